#!/usr/bin/env python3
"""l2 = auto, the default: 1/(sum of the weights of the rows that are trained on), in the labels' unit."""

import json
import random
import sys

import optimum
from harness import dml, main, test, train, write_job
from sweeps import killed, rows_of

CLOSE = {'gradient_tolerance': 1e-10, 'loss_tolerance': 0}
SEPARABLE = '1 1:1 2:1\n-1 1:2\n1 1:0.5 2:2\n-1 2:-1\n'


def made_rows(count, seed=1):
    """[([x1, x2, x3, 1], sign)]: two classes that overlap."""
    rng = random.Random(seed)
    rows = []
    for _ in range(count):
        x = [round(rng.gauss(0, 1), 3) for _ in range(3)]
        rows.append((x + [1.0], 1 if x[0] - x[1] + rng.gauss(0, 1) > 0 else -1))
    return rows


def write_rows(path, rows):
    path.write_text(''.join(f'{sign} 1:{x[0]!r} 2:{x[1]!r} 3:{x[2]!r}\n' for x, sign in rows))
    return path.name


def job_of(folder, count=60, **settings):
    name = write_rows(folder / 'd.libsvm', made_rows(count))
    return write_job(folder, **{'data': [name], **settings})


@test
def the_optimum_is_that_of_the_sum_over_the_rows_and_half_the_square(folder):
    rows = made_rows(80)
    weights = [1 + i % 3 for i in range(80)]
    name = write_rows(folder / 'd.libsvm', rows)
    for times in 1, 2, 0.5:
        (folder / 'w').write_text(''.join(f'{times * weight}\n' for weight in weights))
        result = train(write_job(folder, data=[name], weights=['w'], **CLOSE), '--fresh')
        l2 = 1 / (times * sum(weights))
        repeated = [row for row, weight in zip(rows, weights) for _ in range(weight)]
        least = optimum.minimum([x for x, _ in repeated], [sign for _, sign in repeated], l2)
        assert abs(result['l2'] / l2 - 1) < 1e-15, (result, l2)
        assert abs(result['loss'] / least - 1) < 1e-10, (result, least)
        model = json.loads((folder / 'job.state/models/current/model.json').read_text())
        assert model['result']['l2'] == result['l2'], model
        assert model['settings']['l2'] == 'auto', model


@test
def every_linear_objective_has_it_and_what_a_job_says_comes_before(folder):
    cases = [({'objective': 'squared'}, 1 / 60), ({'objective': 'softmax'}, 1 / 60),
             ({'objective': 'quantile'}, 1 / 120), ({'optimizer': 'downpour'}, 0),
             ({'standardise': True}, 1 / 60), ({'start': 'downpour'}, 1 / 60),
             ({'l2': 0}, 0), ({'l2': 0.5}, 0.5), ({'l1': 0.01}, 0), ({'l1': 0.01, 'l2': 0.5}, 0.5),
             ({'objective': 'network', 'network': {'layers': 2}, 'max_steps': 2}, 1e-4)]
    for settings, l2 in cases:
        result = train(job_of(folder, **settings), '--fresh')
        assert abs(result['l2'] - l2) < 1e-16, (settings, result)


@test
def check_shows_it_once_the_data_is_packed(folder):
    job = job_of(folder)
    assert '# l2: auto: 1/Σ weights\n' in dml('check', job).stdout
    assert 'l2_auto' not in dml('check', job, '--json').json
    train(job)
    assert '# l2: auto: 1/Σ weights = 0.0166667\n' in dml('check', job).stdout
    settings = dml('check', job, '--json').json
    assert settings['l2'] == 'auto' and settings['l2_auto'] == 1 / 60, settings
    assert '1/Σ' not in dml('check', job, '--set', 'l2=0').stdout


@test
def each_run_of_folds_has_that_of_its_own_rows(folder):
    result = train(job_of(folder, folds=3))
    runs = [json.loads(text) for (text,) in
            rows_of(folder / 'job.state', 'SELECT result FROM runs ORDER BY run')]
    assert len(runs) == 4 and result['l2'] == result['path'][0]['l2'] == 1 / 60, result
    assert all(run['l2'] == 1 / run['examples'] for run in runs), runs
    assert sum(run['examples'] for run in runs) == 180, runs


@test
def a_run_goes_on_with_it_and_not_with_another_value(folder):
    job = job_of(folder, checkpoint_seconds=0, precondition='none')
    whole = train(job)
    killed('run', job, 'model_publish:1', '--fresh')
    finished = dml('run', job, '--json')
    assert finished.json['run'] == 2 and 'run 2 goes on' in finished.stderr, finished
    assert finished.json['model_sha256'] == whole['model_sha256'], (finished, whole)
    killed('run', job, 'model_publish:1', '--fresh')
    finished = dml('run', job, '--json', '--set', 'l2=0')
    assert finished.json['run'] == 4 and 'has another `l2`: a new run' in finished.stderr, finished


@test
def nights_with_more_rows_are_the_same_job(folder):
    job = job_of(folder, warm_start=True)
    assert dml('retrain', job, '--json').json['l2'] == 1 / 60
    job_of(folder, 90, warm_start=True)
    second = dml('retrain', job, '--json').json
    assert second['l2'] == 1 / 90 and second['published'] and second['start']['run'] == 1, second
    assert len(rows_of(folder / 'job.state', 'SELECT DISTINCT identity FROM runs')) == 1
    dml('retrain', job)
    assert rows_of(folder / 'job.state', 'SELECT max(run) FROM runs') == [(2,)]


@test
def classes_that_can_be_separated_are_named_where_nothing_bounds_the_weights(folder):
    (folder / 'd.libsvm').write_text(SEPARABLE)
    said = 'the classes are separable: without a penalty there is no optimum; l2 = auto or a number'
    for objective in 'logistic', 'softmax', 'one_vs_rest', 'ordinal':
        job = write_job(folder, data=['d.libsvm'], objective=objective)
        result = train(job, '--fresh', '--set', 'l2=0')
        assert result['converged'] is False and said in result['shortfall'], result
        result = train(job, '--fresh')
        assert result['converged'] is True and result['l2'] == 1 / 4, result
        result = train(job, '--fresh', '--set', 'l2=0', '--set', 'max_steps=2')
        assert said not in result['shortfall'], result
    (folder / 'w').write_text('0.5\n' * 4)  # the loss still falls by much with each step
    weighted = train(write_job(folder, data=['d.libsvm'], weights=['w'], l2=0), '--fresh')
    assert said in weighted['shortfall'] and weighted['steps'] > 10, weighted
    job = job_of(folder, l2=0, max_steps=1)
    assert said not in train(job, '--fresh')['shortfall']


sys.exit(main())
