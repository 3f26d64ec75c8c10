#!/usr/bin/env python3
"""`init`: a job file for a table, which trains as it is."""

import random
import sys

from harness import BAD_DATA, CREATE, USAGE, dml, main, test, train


def made(folder, *arguments):
    finished = dml('init', *arguments, cwd=folder)
    assert finished.status == 0, finished
    return finished.stdout


def clients(path, header=True):
    """Numbers, codes, dates, names, sentences, an empty column and a label."""
    r = random.Random(3)
    lines = ['id,when,"the ""name""",amount,reason,nothing,churn,later'] if header else []
    for i in range(200):
        lines.append(f'{i + 1000},2024-{1 + i % 12:02}-{1 + i % 27:02},"O\'Neil ""{i}"" $HOME",'
                     f'{r.random():.4f},it is a {r.choice(["good", "bad"])} thing {i},,'
                     f'{r.choice(["yes", "no"])},{i % 3}')
    path.write_text('\n'.join(lines) + '\n')


@test
def the_job_of_a_table_trains_as_it_is(folder):
    clients(folder / 'clients.csv')
    assert 'dml-coordinator run clients.conf' in made(folder, 'clients.csv')
    text = (folder / 'clients.conf').read_text()
    for line in ('objective = logistic\n', 'label = "churn"', 'dates = { "when" }',
                 'text = { "reason" }', 'skip = { "the \\"name\\"", "nothing" }',
                 '#   1 id, number, 1000 to 1199, 200 different; if it only numbers the rows',
                 '#   8 later, number, 0 to 2, 3 different; if these are codes'):
        assert line in text, (line, text)
    result = train(folder / 'clients.conf')
    assert result['converged'] and result['holdout']['examples'] > 0, result


@test
def columns_without_names_go_by_their_numbers(folder):
    clients(folder / 'clients.csv', header=False)
    text = made(folder, 'clients.csv', '-o', '-', '--set', 'csv.label=7', '--set', 'csv.skip=1')
    for line in ('header = no\n', 'label = "7"', 'dates = { "2" }', 'skip = { "1", "3", "6" }'):
        assert line in text, (line, text)
    (folder / 'other.conf').write_text(text)
    assert train(folder / 'other.conf')['converged']


@test
def the_objective_follows_from_the_labels(folder):
    cases = {'logistic': ['a', 'b'], 'softmax': ['x', 'y', 'z'], 'squared': [k / 7 for k in range(50)]}
    for objective, labels in cases.items():
        rows = [f'{k},{labels[k % len(labels)]}\n' for k in range(200)]
        (folder / 'data.csv').write_text('a,b\n' + ''.join(rows))
        text = made(folder, 'data.csv', '-o', '-')
        assert f'objective = {objective}\n' in text, text
    (folder / 'data.csv').write_text('a,b\n' + ''.join(f'{k},{k % 4}\n' for k in range(200)))
    text = made(folder, 'data.csv', '-o', '-')
    assert 'objective = softmax\n' in text and 'ordinal' in text and 'poisson' in text, text


@test
def text_of_libsvm_has_no_columns_to_tell_of(folder):
    (folder / 'a.b.libsvm').write_text(''.join(f'{k % 2} 1:{k}\n' for k in range(100)))
    made(folder, 'a.b.libsvm')
    text = (folder / 'a.conf').read_text()
    assert 'csv' not in text and 'objective = logistic' in text, text
    assert train(folder / 'a.conf')['converged']


@test
def what_cannot_be_proposed_is_told_and_nothing_is_written(folder):
    clients(folder / 'clients.csv')
    (folder / 'clients.conf').write_text('mine')
    finished = dml('init', 'clients.csv', cwd=folder)
    assert finished.status == CREATE and '-o' in finished.stderr, finished
    assert (folder / 'clients.conf').read_text() == 'mine'
    (folder / 'same.csv').write_text('a,b\n1,2\n3,2\n')
    for arguments, status, word in ((['same.csv'], BAD_DATA, 'csv.label'),
                                    (['none.csv'], BAD_DATA, 'none.csv'),
                                    (['same.csv', '--set', 'l2=1'], USAGE, 'l2'), ([], USAGE, 'TABLE')):
        finished = dml('init', *arguments, cwd=folder)
        assert finished.status == status and word in finished.stderr, finished
    assert not (folder / 'same.conf').exists()


if __name__ == '__main__':
    sys.exit(main())
