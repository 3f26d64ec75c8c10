#!/usr/bin/env python3
"""The holdout: rows that evaluate a model and are not trained on."""

import gzip
import json
import random
import sys

from harness import (BAD_DATA, CONFIG, USAGE, dml, main, small_data, test, train, write_job)
from row_hash import row_hash

FIGURES = ('examples', 'loss', 'accuracy', 'auc', 'rmse', 'unseen_features', 'unseen_labels')


def split(lines, share):
    """The rows that are trained on, and those held out."""
    held = [row_hash(line) < int(share * 2 ** 64) for line in lines]
    return ([line for line, out in zip(lines, held) if not out],
            [line for line, out in zip(lines, held) if out])


# ---- data ----

def write(path, lines, header=None):
    text = ''.join(f'{line}\n' for line in ([header] if header else []) + lines)
    if path.suffix == '.gz':
        path.write_bytes(gzip.compress(text.encode(), mtime=0))
    else:
        path.write_text(text)
    return path.name


def shuffled(line, rng):
    """A row with its values in another order: unsorted, as some programs write them."""
    label, *pairs = line.split()
    rng.shuffle(pairs)
    return ' '.join([label, *pairs])


def libsvm_rows(folder, rows, seed):
    rng = random.Random(seed)
    lines = small_data(folder, 'rows', rows=rows, seed=seed).read_text().splitlines()
    # A value of 0 that is written, an id that few rows have, and rows that are not sorted.
    return [shuffled(line + (' 99:0' if i % 7 == 0 else f' {1000 + i}:0.1' if i % 5 == 0 else ''),
                     rng) for i, line in enumerate(lines)]


def csv_rows(rows, label_of):
    rng = random.Random(3)
    lines = []
    for _ in range(rows):
        x = [round(rng.gauss(0, 1), 3) for _ in range(4)]
        lines.append(','.join(map(str, [*x, label_of(x, rng)])))
    return lines


def figures(members):
    return {name: members[name] for name in FIGURES if name in members}


def evaluate(model, *files):
    finished = dml('evaluate', model, *files, '--json')
    assert finished.status == 0, finished
    return figures(finished.json)


# ---- a share ----

@test
def held_out_rows_leave_no_trace_in_the_model(folder):
    one, two = libsvm_rows(folder, 300, 1), libsvm_rows(folder, 200, 2)
    kept_one, out_one = split(one, 0.2)
    kept_two, out_two = split(two, 0.2)
    files = [write(folder / 'one', one), write(folder / 'two.gz', two)]
    kept = [write(folder / 'kept-one', kept_one), write(folder / 'kept-two', kept_two)]
    result = train(write_job(folder, data=files, l2=1e-3, holdout=0.2))
    other = train(write_job(folder, 'other', data=kept, l2=1e-3))
    for member in ('model_sha256', 'examples', 'features', 'values', 'loss', 'steps'):
        assert result[member] == other[member], (member, result, other)
    out = write(folder / 'out', out_one + out_two)
    assert figures(result['holdout']) == evaluate(other['model'], folder / out), result
    assert result['holdout']['examples'] == len(out_one) + len(out_two), result
    assert 'holdout' not in other, other


def check_csv(folder, objective, label_of):
    lines = csv_rows(400, label_of)
    kept, out = split(lines, 0.25)
    header = 'a,b,c,d,y'
    settings = {'objective': objective, 'l2': 1e-3}
    result = train(write_job(folder, data=[write(folder / 'all.csv.gz', lines, header)],
                             holdout=0.25, **settings))
    other = train(write_job(folder, 'other', data=[write(folder / 'kept.csv', kept, header)],
                            **settings))
    assert result['model_sha256'] == other['model_sha256'], (result, other)
    write(folder / 'out.csv', out, header)
    assert figures(result['holdout']) == evaluate(other['model'], folder / 'out.csv'), result


@test
def classes_of_a_csv_are_held_out_alike(folder):
    check_csv(folder, 'softmax', lambda x, rng: max(range(3), key=lambda k: x[k] + rng.gauss(0, 1)))


@test
def targets_of_a_csv_are_held_out_alike(folder):
    check_csv(folder, 'squared', lambda x, rng: round(x[0] - 2 * x[1] + rng.gauss(0, 0.1), 3))


@test
def a_new_file_moves_no_row_to_the_other_side(folder):
    one, two = libsvm_rows(folder, 300, 1), libsvm_rows(folder, 150, 2)
    files = [write(folder / 'one', one), write(folder / 'two', two)]
    before = train(write_job(folder, data=files[:1], holdout=0.2, max_steps=2))
    after = train(write_job(folder, 'after', data=files, holdout=0.2, max_steps=2))
    assert before['holdout']['examples'] == len(split(one, 0.2)[1]), before
    assert after['holdout']['examples'] == len(split(one + two, 0.2)[1]), after
    assert after['examples'] == len(split(one + two, 0.2)[0]), after


@test
def the_model_and_the_table_have_the_figures(folder):
    write(folder / 'rows', libsvm_rows(folder, 300, 1))
    job = write_job(folder, data=['rows'], holdout=0.2)
    result = train(job)
    with open(f'{result["model"]}/model.json') as file:
        assert json.load(file)['result']['holdout'] == result['holdout'], result
    finished = dml('run', job, '--set', 'l2=0.1')
    assert finished.status == 0, finished
    line = next(line for line in finished.stdout.splitlines() if line.startswith('holdout'))
    assert 'examples, loss 0.' in line and 'accuracy 0.' in line and 'auc 0.' in line, line


@test
def inspect_says_what_is_held_out(folder):
    lines = libsvm_rows(folder, 300, 1)
    write(folder / 'rows', lines)
    packed = dml('pack', write_job(folder, data=['rows'], holdout=0.2), '--json').json
    held = len(split(lines, 0.2)[1])
    assert packed['examples'] == 300 - held and packed['rows_held_out'] == held, packed
    shown = dml('inspect', packed['set'], '--json').json
    assert shown['holdout'] == 0.2 and shown['rows_held_out'] == held, shown
    assert shown['rows'] == 300 - held and 'holdout_chunks' not in shown, shown
    assert 'holdout           0.2\n' in dml('inspect', packed['set']).stdout


# ---- files of their own ----

@test
def holdout_files_evaluate_the_same_model(folder):
    write(folder / 'rows', libsvm_rows(folder, 300, 1))
    write(folder / 'held-1.gz', libsvm_rows(folder, 100, 2))
    write(folder / 'held-2', libsvm_rows(folder, 50, 3))
    without = train(write_job(folder, data=['rows']))
    result = train(write_job(folder, 'held', data=['rows'], holdout='held-*'))
    assert result['model_sha256'] == without['model_sha256'], (result, without)
    expected = evaluate(result['model'], folder / 'held-1.gz', folder / 'held-2')
    assert figures(result['holdout']) == expected, (result, expected)


@test
def check_counts_the_files_of_the_holdout(folder):
    for name in ('rows', 'held-1', 'held-2'):
        write(folder / name, libsvm_rows(folder, 10, 1))
    finished = dml('check', write_job(folder, data=['rows'], holdout='held-*'))
    assert finished.status == 0, finished
    assert '# 1 data file, 0 test files, 2 holdout files' in finished.stdout, finished


# ---- what is refused ----

@test
def a_holdout_that_cannot_be_is_refused(folder):
    write(folder / 'rows', libsvm_rows(folder, 20, 1))
    for value in (0, 1, 1.5, -0.1, '1', 'inf'):
        job = write_job(folder, data=['rows'], holdout=value)
        finished = dml('check', job)
        assert finished.status == CONFIG, (value, finished)
        assert f'{job}:2: key `holdout`: "{value}"' in finished.stderr, (value, finished)
        assert 'between 0 and 1' in finished.stderr, (value, finished)
    for value in ([0.1, 'rows'], ['rows', 0.1], [0.1, 0.2]):
        finished = dml('check', write_job(folder, data=['rows'], holdout=value))
        assert finished.status == CONFIG and 'the share 0.1 is combined' in finished.stderr, finished
    finished = dml('check', write_job(folder, data=['rows'], holdout='abc'))
    assert finished.status == BAD_DATA and 'abc' in finished.stderr, finished
    job = write_job(folder, data=['rows'])
    finished = dml('check', job, '--set', 'holdout=2')
    assert finished.status == USAGE and 'key `holdout`: "2"' in finished.stderr, finished


@test
def a_file_that_is_trained_on_cannot_be_held_out(folder):
    write(folder / 'rows-1', libsvm_rows(folder, 20, 1))
    write(folder / 'rows-2', libsvm_rows(folder, 20, 2))
    job = write_job(folder, data=['rows-*'], holdout='rows-2')
    for command in ('check', 'run'):
        finished = dml(command, job)
        assert finished.status == CONFIG and 'rows-2 is one of the files of `data`' in \
            finished.stderr, finished


@test
def a_header_that_is_not_that_of_the_data_is_refused_before_training(folder):
    lines = csv_rows(40, lambda x, rng: round(x[0], 3))
    write(folder / 'data.csv', lines, 'a,b,c,d,y')
    write(folder / 'held.csv', lines, 'a,c,z,d,y')
    job = write_job(folder, data=['data.csv'], holdout='held.csv', objective='squared')
    finished = dml('run', job)
    assert finished.status == BAD_DATA, finished
    assert 'held.csv:1: the column "b" is missing' in finished.stderr, finished
    assert 'step 0' not in finished.stderr, finished


@test
def a_share_that_leaves_a_side_empty_is_refused(folder):
    write(folder / 'rows', libsvm_rows(folder, 20, 1))
    for share, side in ((1e-12, 'none'), (0.999999999, 'all')):
        finished = dml('run', write_job(folder, data=['rows'], holdout=share))
        assert finished.status == BAD_DATA, finished
        assert f'{side} of the 20 rows' in finished.stderr, finished


@test
def few_different_rows_with_several_labels_are_warned_of(folder):
    """Rows that are alike stay together, so a class of theirs is on one side alone."""
    rng = random.Random(7)
    for values, warned in ((lambda: rng.randrange(20), True), (lambda: rng.random(), False)):
        lines = [f'{values()},{rng.randrange(2)}' for _ in range(1000)]
        write(folder / 'rows.csv', lines, 'x,y')
        (folder / 'rows.conf').write_text('data = rows.csv\nholdout = 0.2\nl2 = 1e-3\n')
        finished = dml('run', 'rows.conf', '--fresh', cwd=folder)
        assert finished.status == 0 and (
            '`holdout`: all rows have one of 20 different values' in finished.stderr) == warned, finished
        (folder / 'rows.conf').write_text('data = rows.csv\nfolds = 3\nl2 = 1e-3\n')
        finished = dml('run', 'rows.conf', '--fresh', cwd=folder)
        assert finished.status == 0 and finished.stderr.count('`folds`: all rows have one of') == warned, finished


@test
def a_pattern_that_fits_no_file_is_named_with_its_key(folder):
    job = write_job(folder, data=[small_data(folder)], holdout=['checked/*.libsvm'])
    finished = dml('check', job)
    assert finished.status == BAD_DATA, finished
    assert 'job.conf: key `holdout`: no file matches' in finished.stderr, finished


def table_job(folder, **settings):
    """A table with an id, of which a job may leave columns out."""
    rng = random.Random(7)
    if not (folder / 'table.csv').exists():
        rows = [[k, *(round(rng.gauss(0, 1), 3) for _ in range(3))] for k in range(300)]
        lines = [','.join(map(str, [*row, 'ab'[row[1] + row[2] + rng.gauss(0, 1) > 0]])) for row in rows]
        write(folder / 'table.csv', lines, 'id,u,v,w,y')
    return write_job(folder, **{'data': ['table.csv'], 'objective': 'logistic', 'l2': 1e-2, 'holdout': 0.3, **settings})


@test
def a_column_that_is_left_out_draws_the_same_rows(folder):
    """Also one that is taken for something else; and for folds."""
    ways = {}, {'skip': ['id']}, {'skip': ['id', 'w']}, {'categories': ['id']}, {'numbers': ['w'], 'skip': ['u']}
    held = [train(table_job(folder, **({'csv': way} if way else {})))['holdout'] for way in ways]
    assert len({one['rows'] for one in held}) == 1 and len({one['examples'] for one in held}) == 1, held
    assert len({one['loss'] for one in held}) > 2, held
    folds = [train(table_job(folder, holdout=[], folds=3, l2=[1e-2, 1e-1], csv={'skip': skip}), '--state', folder / 'folds')
             for skip in (['id'], ['id', 'w'])]
    sizes = [dml('jobs', folder / 'folds', '--folds', '--json').json['folders'][0]['runs'] for _ in folds]
    told = {tuple(run['holdout']['examples'] for run in runs if run['sweep'].get('fold')) for runs in sizes}
    assert len(told) == 1, told


@test
def a_gate_compares_on_rows_that_neither_model_was_trained_on(folder):
    gate = {'gate': ['loss <= 1.5 * live', 'loss <= 2']}
    first = train(table_job(folder, **gate))
    assert first['published'], first
    wider = dml('run', table_job(folder, holdout=0.6, **gate), '--json')
    assert wider.status == 0 and 'held out 0.3 of the rows' in wider.stderr, wider
    inner = dml('run', table_job(folder, holdout=0.3, l2=0.1, **gate), '--no-publish', '--json').json
    condition = wider.json['gate'][0]
    assert abs(condition['live'] - first['holdout']['loss']) < 1e-12, (condition, first['holdout'])
    assert condition['new'] != wider.json['gate'][1]['new'] == wider.json['holdout']['loss'], wider
    narrower = dml('run', table_job(folder, holdout=0.1, **gate), '--json')
    assert narrower.status == 0 and 'of the rows' not in narrower.stderr, narrower
    assert inner['holdout']['rows'] == first['holdout']['rows'] != narrower.json['holdout']['rows']
    runs = dml('jobs', folder / 'job.state', '--sort', 'loss', '--json').json['folders'][0]['runs']
    assert [bool(run.get('other_holdout')) for run in runs] == [False, True, True, True], runs
    assert runs[0]['run'] == narrower.json['run'], runs
    for sorting in [], ['--sort', 'loss']:
        listed = dml('jobs', folder / 'job.state', *sorting).stdout
        assert f'other holdout than run {narrower.json["run"]}, ' in listed, listed


@test
def a_live_model_that_was_trained_on_the_holdout_is_not_compared(folder):
    assert train(table_job(folder, holdout=[]))['published']
    refused = dml('run', table_job(folder, gate=['loss <= 9 * live']), '--json')
    assert refused.status == BAD_DATA and refused.json['decision'] == 'refused', refused
    assert 'no row is left to compare on' in refused.json['decision_why'], refused.json
    assert 'was trained on rows of this holdout' in refused.stderr and 'holdout_live' not in refused.json, refused
    passed = dml('run', table_job(folder, gate=['loss <= 9'], l2=0.1), '--json')
    assert passed.status == 0 and passed.json['published'], passed
    again = dml('run', table_job(folder, gate=['loss <= 9 * live'], l2=0.2), '--json')
    assert again.status == 0 and again.json['holdout_live'], again


sys.exit(main())
