#!/usr/bin/env python3
"""`jobs --diff`: two runs beside each other."""

import json
import math
import shutil
import sys

from harness import (COORDINATOR, UNAVAILABLE, USAGE, Process, dml, endless_job, main, read_safetensors, small_data,
                     small_job, test, train, write_job)


def diff(*operands):
    finished = dml('jobs', '--diff', *operands, '--json')
    assert finished.status == 0, finished
    return finished.json


@test
def settings_that_differ_come_with_both_values_and_who_set_them(folder):
    job = small_job(folder, l2=0.1)
    train(job)
    train(job, '--set', 'max_steps=50', '--set', 'l2=0.2', '--set', 'threshold=0.3')
    found = diff(1, 2, folder / 'job.state')
    assert {each['key']: (each['values'], each['set']) for each in found['settings']} == {
        'l2': ([0.1, 0.2], [True, True]), 'max_steps': ([1000, 50], [False, True]),
        'threshold': (['auto', '0.3'], [False, True])}, found['settings']
    assert found['data'] == {'same': True, 'rows': [60, 60], 'count': [1, 1], 'files': []}, found
    table = dml('jobs', '--diff', 2, 1, job)
    assert table.status == 0 and '\nmax_steps              50                     1000\n' in table.stdout, table
    assert 'data ' in table.stdout and 'no difference' in table.stdout, table
    same = diff(1, 1, job)
    assert same['settings'] == [] and same['coefficients']['differ'] == 0, same


@test
def files_that_were_added_or_changed_are_named_with_their_rows(folder):
    for name, rows in (('a', 40), ('b', 50), ('c', 60)):
        small_data(folder, f'{name}.libsvm', rows=rows, seed=rows)
    train(write_job(folder, data=['a.libsvm', 'b.libsvm']))
    small_data(folder, 'b.libsvm', rows=55, seed=3)
    train(write_job(folder, data=['a.libsvm', 'b.libsvm', 'c.libsvm']))
    found = diff(1, 2, folder / 'job.conf')['data']
    files = {each['path'].rpartition('/')[2]: (each['a'] and each['a']['rows'], each['b'] and each['b']['rows'])
             for each in found['files']}
    assert files == {'b.libsvm': (50, 55), 'c.libsvm': (None, 60)}, found
    assert (found['same'], found['rows'], found['count']) == (False, [90, 155], [2, 3]), found
    changed = next(each for each in found['files'] if each['a'])
    assert changed['a']['fingerprint'] != changed['b']['fingerprint'], changed
    text = dml('jobs', '--diff', 1, 2, folder / 'job.conf').stdout
    assert '90 rows in 2 files' in text and '155 rows in 3 files' in text and 'c.libsvm' in text, text


@test
def figures_stand_beside_each_other_and_other_held_out_rows_are_told(folder):
    job = small_job(folder, holdout=0.3)
    results = [train(job), train(job, '--set', 'l2=1'), train(job, '--set', 'holdout=0.2')]
    found = diff(1, 2, job)
    assert found['same_holdout'] is True and found['test'] is None, found
    assert found['training']['loss'] == [results[0]['loss'], results[1]['loss']], found
    for figure in 'loss', 'accuracy', 'auc', 'f1':
        assert found['holdout'][figure] == [result['holdout'][figure] for result in results[:2]], figure
    assert diff(2, 3, job)['same_holdout'] is False
    text = dml('jobs', '--diff', 2, 3, job).stdout
    assert 'not comparable' in text and f'{results[2]["loss"] - results[1]["loss"]:+.4g}' in text, text


@test
def weights_that_differ_most_are_ordered_by_the_deviation_of_their_columns(folder):
    job = small_job(folder)
    train(job)
    train(job, '--set', 'l2=0.5')
    found = diff(1, 2, job)['coefficients']
    models = [read_safetensors(folder / f'job.state/models/{run}/model.safetensors') for run in (1, 2)]
    names = [str(number) for number in models[0]['feature_id'][1]]
    exported = dml('export', folder / 'job.state/models/1', '--format', 'tsv').stdout.splitlines()[1:]
    deviations = {line.split('\t')[0]: line.split('\t')[2] for line in exported}
    expected = sorted(((abs(a - b) * float(deviations[name]), name, [a, b]) for name, a, b in
                       zip(names, models[0]['weight'][1], models[1]['weight'][1])), reverse=True)[:10]
    assert (found['weights'], found['differ'], found['by']) == (21, 21, 'deviation'), found
    assert [each['feature'] for each in found['largest']] == [name for _, name, _ in expected], found
    for each, (_, name, weights) in zip(found['largest'], expected):
        assert each['weights'] == weights and math.isclose(each['deviation'], float(deviations[name])), each
    shutil.rmtree(folder / 'job.state/packs')
    assert diff(1, 2, job)['coefficients']['by'] == 'weight', 'without the training rows'


@test
def models_that_cannot_be_compared_say_why(folder):
    job = small_job(folder)
    train(job)
    train(job, '--set', 'objective=network', '--set', 'network.layers=3', '--state', folder / 'network.state')
    small_data(folder, 'small.libsvm', rows=3)
    train(job, '--state', folder / 'few.state')
    for other, why in ('network', 'only linear models'), ('few', 'different columns'):
        finished = dml('jobs', '--diff', folder / 'job.state', folder / f'{other}.state', '--json')
        assert finished.status == 0 and why in finished.json['coefficients']['why'], finished
        assert why in dml('jobs', '--diff', folder / 'job.state', folder / f'{other}.state').stdout


@test
def runs_are_named_by_number_tag_folder_or_model(folder):
    job = small_job(folder)
    train(job, '--tag', 'first')
    train(job, '--set', 'l2=0.1')
    train(job, '--set', 'l2=0.2', '--tag', 'last')
    dml('publish', 2, job)
    state = folder / 'job.state'
    for names, runs in (((1, 3), [1, 3]), (('last', 'first'), [3, 1]), ((state, 1), [2, 1]),
                        ((state / 'models/3', f'{state}/models/1/'), [3, 1]), ((job, 'last'), [2, 3])):
        found = diff(*names, state)
        assert [run['run'] for run in found['runs']] == runs, (names, found)
        assert [run['folder'] for run in found['runs']] == [str(state)] * 2, found
    alone = dml('jobs', '--diff', 1, 2, '--json', cwd=folder)
    assert alone.status == 0 and alone.json['runs'][0]['folder'] == 'job.state', alone


@test
def a_run_that_does_not_exist_is_named_with_where_it_was_looked_for(folder):
    job = small_job(folder)
    train(job)
    state = folder / 'job.state'
    (folder / 'empty.state').mkdir()
    for operands, status, words in (
            ([1, 7, state], UNAVAILABLE, f'{state}: there is no run 7; `jobs {state}` lists the runs'),
            ([1, 'spring', state], UNAVAILABLE, f'{state}: there is no run with the tag spring'),
            ([1, folder / 'other.state', state], UNAVAILABLE, 'other.state'),
            ([1, 2, folder / 'empty.state'], UNAVAILABLE, 'empty.state'),
            ([1], USAGE, 'takes two runs'), ([1, 2, state, state], USAGE, 'takes two runs'),
            ([1, 2, state, '--sort', 'auc'], USAGE, 'takes two runs')):
        finished = dml('jobs', '--diff', *operands)
        assert finished.status == status and words in finished.stderr and not finished.stdout, finished


@test
def a_run_that_is_under_way_can_be_compared(folder):
    small = small_job(folder)
    train(small, '--state', folder / 'job.state')
    process = Process(COORDINATOR, 'run', endless_job(folder))
    try:
        def steps():
            asked = dml('status', folder / 'job.state', '--json')
            return asked.status == 0 and asked.json.get('run') == 2 and asked.json['step'] > 2
        process.until(steps, 'steps')
        found = diff(1, 2, folder / 'job.state')
        assert [run['state'] for run in found['runs']] == ['ended', 'running'], found
        assert 'no model' in found['coefficients']['why'] and found['training']['loss'][0], found
        assert 'max_steps' in [each['key'] for each in found['settings']], json.dumps(found['settings'])
    finally:
        process.end()


if __name__ == '__main__':
    sys.exit(main())
