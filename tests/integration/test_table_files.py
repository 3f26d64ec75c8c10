#!/usr/bin/env python3
"""Tables in several files, whose columns come and go."""

import csv
import gzip
import json
import random
import sys

from harness import BAD_DATA, dml, main, test, train, write_job
from sweeps import killed

NAMES = ['age', 'color', 'label', 'size', 'town']


def rows_of(seed, count=300):
    rng = random.Random(seed)
    for _ in range(count):
        row = {'age': rng.randrange(18, 80), 'color': rng.choice(['red', 'green', 'blue']),
               'size': round(rng.gauss(5, 10), 2), 'town': rng.choice('NSEW')}
        margin = (0.05 * (row['age'] - 50) + 'rgb'.index(row['color'][0]) - 1 + 0.1 * row['size']
                  + 'NSEW'.index(row['town']) - 1.5 + rng.gauss(0, 0.5))
        yield {**row, 'label': 'yes' if margin > 0 else 'no'}


def write(path, seed, columns, empty=(), header=True):
    """A file without the other columns; or with those that are `empty`."""
    with open(path, 'w', newline='') as file:
        writer = csv.DictWriter(file, [*columns, *empty], extrasaction='ignore',
                                lineterminator='\n')
        if header:
            writer.writeheader()
        writer.writerows({**row, **{name: '' for name in empty}} for row in rows_of(seed))
    return path


def files(folder, empty=False):
    """The first file lacks two columns, the second one, the third none."""
    folder.mkdir(parents=True, exist_ok=True)
    lacking = [['size', 'town'], ['town'], []]
    for i, names in enumerate(lacking):
        columns = [name for name in NAMES if name not in names]
        columns = columns[i:] + columns[:i]
        write(folder / f'{i}.csv', i, columns, names if empty else ())


def job_of(folder, **settings):
    return write_job(folder, **{'data': ['[0-9].csv'], 'l2': 1e-2, 'gradient_tolerance': 1e-9,
                                'csv': {'label': 'label'}, **settings})


def weights(state):
    text = dml('export', state, '--format', 'json').stdout
    return {f['name']: f['weights'][0] for f in json.loads(text)['features']}


def predictions(state, data, *arguments):
    finished = dml('predict', state, data, *arguments)
    assert finished.status == 0, finished
    return [float(line) for line in finished.stdout.splitlines()]


def assert_near(a, b):
    assert list(sorted(a)) == list(sorted(b)), (a, b)
    assert all(abs(a[name] - b[name]) < 1e-5 for name in a), (a, b)


def compare_with_empty_fields(folder, csv=(), **settings):
    settings['csv'] = {'label': 'label', 'categories': ['town'], **dict(csv)}
    files(folder / 'lacking')
    files(folder / 'empty', empty=True)
    for name in 'lacking', 'empty':
        train(job_of(folder / name, **settings))
    states = [folder / name / 'job.state' for name in ('lacking', 'empty')]
    assert_near(*map(weights, states))
    data = write(folder / 'new.csv', 9, NAMES)
    scores = [predictions(state, data) for state in states]
    assert all(abs(a - b) < 1e-6 for a, b in zip(*scores)), scores
    return states[0]


@test
def a_column_that_a_file_lacks_is_as_one_whose_fields_are_empty(folder):
    state = compare_with_empty_fields(folder)
    named = weights(state)
    assert 'town=(missing)' in named and 'size=(missing)' in named, named
    model = json.loads((state / 'models/1/model.json').read_text())
    columns = {c['name']: c for c in model['preparation']['columns']}
    assert [*columns] == ['age', 'color', 'label', 'size', 'town'], columns
    assert columns['size']['place'] == 0 and columns['size']['kind'] == 'number', columns


@test
def a_column_that_a_file_lacks_may_have_bins_weights_or_many_texts(folder):
    compare_with_empty_fields(folder / 'bins', csv={'bins': 4})
    compare_with_empty_fields(folder / 'hash', csv={'hash': 10})
    compare_with_empty_fields(folder / 'rare', csv={'category_least': 80})
    compare_with_empty_fields(folder / 'scaled', standardise=True)


@test
def rows_of_minibatches_have_the_columns_that_their_file_lacks(folder):
    files(folder)
    job = job_of(folder, optimizer='downpour', downpour={'epochs': 3})
    results = [train(job, '--fresh', '--set', f'replicas={n}') for n in (1, 2)]
    assert results[0]['model_sha256'] == results[1]['model_sha256'], results
    assert 'town=(missing)' in weights(folder / 'job.state'), weights(folder / 'job.state')


@test
def files_that_lack_columns_are_told_and_named(folder):
    files(folder)
    finished = dml('run', job_of(folder))
    said = 'columns that other files have are not in 2 of 3 files'
    assert finished.status == 0 and said in finished.stderr, finished
    assert '0.csv column 4 (size), column 5 (town)' in finished.stderr, finished
    refused = dml('run', job_of(folder, missing_columns='error'), '--fresh')
    assert refused.status == 0 and 'ignored: size' in refused.stderr, refused
    write(folder / '3.csv', 3, ['age', 'label'])
    refused = dml('run', job_of(folder, missing_columns='error'), '--fresh')
    assert refused.status == BAD_DATA, refused
    assert '3.csv:1: the column "color" is missing' in refused.stderr, refused
    assert 'missing_columns = missing' in refused.stderr, refused


@test
def packs_stay_valid_when_a_new_file_brings_a_column(folder):
    write(folder / '0.csv', 0, ['age', 'color', 'label'])
    write(folder / '1.csv', 1, ['color', 'age', 'label'])
    job = job_of(folder, holdout=0.2)
    train(job)
    write(folder / '2.csv', 2, NAMES)
    finished = dml('run', job)
    assert finished.status == 0, finished
    assert [line.count('unchanged') for line in finished.stderr.splitlines()].count(1) == 2, \
        finished
    assert 'size' in weights(folder / 'job.state/models/2')
    write(folder / '3.csv', 3, ['age', 'label', 'color'])
    finished = dml('run', job)
    assert finished.stderr.count('unchanged') == 3, finished
    finished = dml('run', job_of(folder, holdout=0.2, l2=1e-3))
    assert finished.stderr.count('unchanged') == 4, finished


@test
def rows_of_old_files_stay_in_the_holdout_when_a_column_comes(folder):
    write(folder / '0.csv', 0, ['age', 'color', 'label'])
    job = job_of(folder, holdout=0.2)
    before = train(job)['holdout']['examples']
    write(folder / '1.csv', 1, NAMES)
    both = train(job)['holdout']['examples']
    (folder / '0.csv').unlink()
    alone = train(job)['holdout']['examples']
    assert both == before + alone, (before, both, alone)


@test
def nights_go_on_when_a_column_comes_and_goes(folder):
    settings = {'holdout': 0.2, 'gate': ['loss <= 1.1 * live']}
    write(folder / '0.csv', 0, ['age', 'color', 'label'])
    write(folder / 'test.csv', 8, ['age', 'color', 'label'])
    job = job_of(folder, test='test.csv', **settings)
    for night, columns in enumerate([NAMES, ['age', 'color', 'label'], NAMES[::-1]], 1):
        assert dml('retrain', job, '--json').status == 0
        write(folder / f'{night}.csv', night, columns)
    finished = dml('retrain', job, '--json')
    assert finished.status == 0 and finished.json['published'], finished
    assert finished.json['warm_start']['evaluations'] > 0, finished.json
    named = weights(folder / 'job.state')
    assert {'size', 'town=N', 'town=(missing)'} <= set(named), named
    ids = json.loads((folder / 'job.state/models/current/model.json').read_text())
    names = [column['name'] for column in ids['preparation']['columns']]
    assert names == ['age', 'color', 'label', 'size', 'town'], names


@test
def a_night_without_a_column_is_compared_with_the_live_model(folder):
    settings = {'holdout': 0.2, 'gate': ['loss <= 2 * live']}
    files(folder)
    job = job_of(folder, **settings)
    assert dml('retrain', job).status == 0
    for i in range(3):
        write(folder / f'{i}.csv', i + 10, ['age', 'label', 'color'])
    finished = dml('retrain', job, '--json')
    assert finished.status == 0 and finished.json['published'], finished
    files(folder)
    finished = dml('retrain', job, '--json')
    assert finished.status == 0 and finished.json['published'], finished
    assert 'town=N' in weights(folder / 'job.state')


@test
def a_file_that_is_scored_lacks_columns_only_if_it_may(folder):
    files(folder)
    train(job_of(folder))
    state = folder / 'job.state'
    data = write(folder / 'less.csv', 9, ['label', 'age', 'size'])
    for command in 'predict', 'evaluate':
        finished = dml(command, state, data)
        assert finished.status == BAD_DATA and 'the column "color" is missing' in finished.stderr
        assert 'missing_columns = missing' in finished.stderr, finished
    filled = write(folder / 'filled.csv', 9, ['label', 'age', 'size'], ['color', 'town'])
    assert predictions(state, data, '--set', 'missing_columns=missing') == \
        predictions(state, filled)
    finished = dml('evaluate', state, data, '--set', 'missing_columns=missing')
    assert 'column 2 (color) is not there' in finished.stderr, finished


@test
def a_test_file_beside_a_single_file_of_data_must_have_its_columns(folder):
    write(folder / 'data.csv', 0, NAMES)
    write(folder / 'test.csv', 1, ['label', 'age', 'size'])
    refused = dml('run', job_of(folder, data='data.csv', test='test.csv'))
    assert refused.status == BAD_DATA and 'test.csv:1: the column "color"' in refused.stderr, refused
    settings = {'data': 'data.csv', 'test': 'test.csv', 'missing_columns': 'missing'}
    result = train(job_of(folder, **settings))
    assert result['test']['examples'] == 300, result
    figures = dml('evaluate', folder / 'job.state', folder / 'test.csv', '--json', '--set',
                  'missing_columns=missing').json
    assert figures == result['test'], (figures, result['test'])
    refused = dml('run', job_of(folder, data='data.csv', test='test.csv'), '--fresh')
    assert refused.status == BAD_DATA and 'test.csv:1: the column "color"' in refused.stderr, refused


@test
def a_list_may_name_a_column_of_any_file_but_not_of_none(folder):
    files(folder)
    train(job_of(folder, csv={'label': 'label', 'skip': ['town'], 'categories': ['size']}))
    named = weights(folder / 'job.state')
    assert not any(name.startswith('town') for name in named), named
    assert any(name.startswith('size=') for name in named), named
    refused = dml('run', job_of(folder, csv={'label': 'label', 'skip': ['twon']}), '--fresh')
    assert refused.status == BAD_DATA, refused
    assert 'key `csv.skip`: no file of the data has a column "twon"; did you mean `town`?' \
        in refused.stderr, refused


@test
def a_run_on_files_that_lack_columns_goes_on_after_a_kill_with_the_same_bits(folder):
    results = []
    for name in 'quiet', 'killed':
        files(folder / name)
        job = job_of(folder / name, replicas=1, shards=1, threads=1, checkpoint_seconds=0,
                     holdout=0.2)
        if name == 'killed':
            killed('run', job, 'send_PROGRAM:8')
        results.append(train(job))
    assert results[1]['restarts']['coordinator'] == 1, results[1]
    assert results[0]['model_sha256'] == results[1]['model_sha256'], results
    assert results[0]['holdout'] == results[1]['holdout'], results


@test
def folds_of_files_that_lack_columns_are_trained_and_scored(folder):
    files(folder)
    job = job_of(folder, folds=3, l2=[1e-2, 1e-1])
    result = train(job)
    assert result['model_sha256'], result


@test
def parts_without_rows_are_passed_over_and_change_nothing(folder):
    """Files of no bytes, a header alone and an archive of nothing, between and before others."""
    for name in 'full', 'parts':
        (folder / name).mkdir()
    columns = ['age', 'color', 'size', 'town', 'label']
    for i in 1, 3:
        for name in 'full', 'parts':
            write(folder / name / f'part-{i}.csv', i, columns)
            (folder / name / f'part-{i}.w').write_text('2\n' * 300)
    write(folder / 'parts/part-0.csv', 0, columns)
    header = (folder / 'parts/part-0.csv').read_text().split('\n', 1)[0] + '\n'
    for part, content in (('0', header.encode()), ('2', b''), ('4', gzip.compress(b'')),
                          ('5', b'\n\n')):
        (folder / f'parts/part-{part}.csv').write_bytes(content)
        (folder / f'parts/part-{part}.w').touch()
    (folder / 'parts/_SUCCESS.csv').touch()
    (folder / 'parts/_SUCCESS.w').touch()
    results = {}
    for name in 'full', 'parts':
        job = job_of(folder / name, data=['*.csv'], weights=['*.w'])
        checked = dml('check', job)
        assert checked.status == 0, checked
        results[name] = train(job)
        again = dml('run', job, '--json')
        assert again.status == 0 and ('passed over' in again.stderr) == (name == 'parts'), again
    assert results['full']['model_sha256'] == results['parts']['model_sha256'], results

    state = folder / 'full/job.state'
    predict = [dml('predict', state, *sorted((folder / name).glob('*.csv')))
               for name in ('full', 'parts')]
    assert predict[0].status == 0 and predict[0].stdout == predict[1].stdout, predict[1]
    for part in '0', '2', '4':
        none = dml('predict', state, folder / f'parts/part-{part}.csv', '--header')
        assert none.status == 0 and none.stdout.count('\n') == 1, none


@test
def lists_whose_files_all_lack_rows_are_refused(folder):
    write(folder / '1.csv', 1, NAMES)
    (folder / '2.csv').write_text(','.join(NAMES) + '\n')
    (folder / '3.csv').touch()
    for settings in {'data': ['2.csv', '3.csv']}, {'data': ['1.csv'], 'holdout': ['2.csv']}, \
            {'data': ['1.csv'], 'test': ['3.csv']}:
        job = job_of(folder, **settings)
        for command in 'check', 'run':
            refused = dml(command, job)
            assert refused.status == BAD_DATA and 'rows' in refused.stderr, (settings, refused)
    proposed = dml('init', folder / '3.csv')
    assert proposed.status == BAD_DATA and 'has no rows' in proposed.stderr, proposed


if __name__ == '__main__':
    sys.exit(main())
