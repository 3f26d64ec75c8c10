#!/usr/bin/env python3
"""Training on minibatches with Adagrad: an oracle that shares nothing with the programs comes to the
same model; the bits are the same however the work is divided and whoever is lost on the way."""

import contextlib
import math
import random
import re
import signal
import sqlite3
import sys
import time

import adagrad
from harness import (AGAIN, BAD_DATA, COORDINATOR, Process, dml, is_stopped, long_test, main, pairs_of_words,
                     read_safetensors, some, test, train, words, write_job)

# ---- beside the oracle ----


def made_rows(kind, rows=1605, columns=7, seed=3):
    """Values far from 0 in one column, small and rare ones in another; a label, and a weight each."""
    rng = random.Random(seed)
    made = []
    for _ in range(rows):
        x = [rng.gauss(0, 1) + (j == 2) for j in range(columns)]
        x[4] *= 0.05 * (rng.random() < 0.2)
        margin = math.fsum(v * (j - 3) for j, v in enumerate(x)) / 3 + rng.gauss(0, 1)
        label = {'class': int(margin > 0), 'classes': min(2, max(0, int(margin + 1.5))),
                 'number': margin}[kind]
        made.append((x, label, round(rng.uniform(0.1, 4), 3)))
    return made


def write_rows(folder, rows, weighted):
    lines = [','.join([*(f'c{j}' for j in range(len(rows[0][0]))), 'label'])]
    lines += [','.join([*map(repr, x), repr(label)]) for x, label, _ in rows]
    (folder / 'data.csv').write_text('\n'.join(lines) + '\n')
    (folder / 'weights').write_text(''.join(f'{weight}\n' for _, _, weight in rows))
    return {'data': ['data.csv'], **({'weights': ['weights']} if weighted else {})}


def scaled(rows, means, scales):
    return [([(v - m) * s for v, m, s in zip(x, means, scales)], label, weight)
            for x, label, weight in rows]


def means_of(rows, power=1):
    """Of the columns' values to that power; weighted."""
    total = math.fsum(weight for _, _, weight in rows)
    return [math.fsum(x[j] ** power * weight for x, _, weight in rows) / total
            for j in range(len(rows[0][0]))]


def units_of(rows):
    """As linear models see their columns: the means of those that most rows have, else 0, and 1 by
    the root mean square of what is left of their values, zeros left out elsewhere."""
    means, scales = means_of(rows), []
    for j, square in enumerate(means_of(rows, 2)):
        share = sum(x[j] != 0 for x, _, _ in rows) / len(rows)
        if share < 0.5:
            means[j] = 0
        scales.append(1 / math.sqrt((square - means[j] ** 2) / (share if share < 0.5 else 1)))
    return means, scales


def model_of(path, widths):
    """The vector of a model's parameters, in the order of adagrad.py."""
    arrays = read_safetensors(path / 'model.safetensors')
    if 'weight' in arrays:
        by_output = arrays['weight'][1]
        inputs, outputs = widths
        return [by_output[k * inputs + j] for j in range(inputs) for k in range(outputs)] + \
            arrays['bias'][1]
    layers = range(1, len(widths))
    return [v for kind in 'Wb' for layer in layers for v in arrays[f'{kind}{layer}'][1]]


def spread_of(rows):
    """Of three quarters of the labels: the unit of a linear model's steps."""
    labels = sorted(label for _, label, _ in rows)
    at = [labels[(len(labels) - 1) * share // 8] for share in (1, 7)]
    return at[1] - at[0]


def by_oracle(rows, loss, widths, network_seed, **settings):
    """The parameters by the columns as they are in the data."""
    layers = adagrad.zeros(widths) if len(widths) == 2 else adagrad.glorot(widths, network_seed)
    start = adagrad.flat(layers, [[0.0] * w for w in widths[1:]])
    means, scales = units_of(rows) if len(widths) == 2 else (means_of(rows), [1.0] * widths[0])
    floored = len(widths) == 2 and loss is not adagrad.squared
    unit = spread_of(rows) if loss is adagrad.squared else 1.0
    x, _ = adagrad.descend(scaled(rows, means, scales), loss, widths, start, scales=scales,
                           floored=floored, unit=unit, **settings)
    weights, biases = adagrad.folded(x, widths)
    weights[0] = [[s * v for v in row] for s, row in zip(scales, weights[0])]
    biases[0] = [b - math.fsum(m * row[k] for m, row in zip(means, weights[0]))
                 for k, b in enumerate(biases[0])]
    return adagrad.flat(weights, biases)


# Objective, kind of labels, the oracle's loss, widths, weighted, settings of the job, penalties, rows
# of a minibatch.
ORACLE = [
    ('logistic', 'class', adagrad.logistic, [7, 1], False, {}, {'l2': 1e-2}, 64),
    ('logistic', 'class', adagrad.logistic, [7, 1], True, {}, {'l1': 5e-2}, 48),
    ('softmax', 'classes', adagrad.softmax, [7, 3], True, {}, {'l2': 1e-3}, 64),
    ('squared', 'number', adagrad.squared, [7, 1], False, {}, {}, 64),
    ('network', 'classes', adagrad.softmax, [7, 5, 4, 3], True,
     {'network': {'layers': [5, 4], 'seed': 9}, 'early_stopping': 'off'}, {'l2': 1e-3}, 64),
]


@test
def an_oracle_comes_to_the_same_point_after_a_hundred_minibatches(folder):
    for number, (objective, kind, loss, widths, weighted, own, penalties,
                 batch) in enumerate(ORACLE):
        place = folder / str(number)
        place.mkdir()
        rows = made_rows(kind)
        job = write_job(place, **write_rows(place, rows, weighted), objective=objective,
                        optimizer='downpour', precondition='none', shards=2, replicas=2,
                        threads=1, **{'l2': 0, **own, **penalties},
                        downpour={'epochs': 6, 'batch': batch, 'seed': 5, 'rate': [0.1, 0.07, 0.05],
                                  'schedule': [1, 1, 2]})
        if not weighted:
            rows = [(x, label, 1.0) for x, label, _ in rows]
        result = train(job)
        assert result['reason'] == 'epoch limit', result
        want = by_oracle(rows, loss, widths, own.get('network', {}).get('seed'), batch=batch,
                         rates=[0.1, 0.07, 0.05], schedule=[1, 1, 2], seed=5, epochs=6, **penalties)
        got = model_of(place / 'job.state/models/1', widths)
        assert len(got) == len(want), (got, want)
        apart = max(abs(a - b) for a, b in zip(got, want))
        print(f'# {objective} {penalties}: {apart:.2g} apart at most')
        assert apart <= 1e-11, (objective, apart, got, want)
        if 'l1' in penalties:
            assert 0.0 in got and got.count(0.0) < len(got) - 2, got
            assert [v == 0 for v in got] == [v == 0 for v in want], (got, want)


# ---- the same bits ----

def wide_job(folder, **settings):
    """Enough parameters that three shards have a part of them. 19 chunks: an epoch has ten
    minibatches, then five."""
    return write_job(folder, **{
        'data': [pairs_of_words(folder)], 'objective': 'network', 'start': 'downpour',
        'network': {'layers': [200, 8], 'activation': 'gelu'}, 'holdout': ['0.2'], 'max_steps': 5,
        'downpour': {'epochs': 3, 'rate': [0.05, 0.02], 'schedule': [1, 2]},
        'checkpoint_seconds': 0, 'replicas': 2, 'shards': 2, 'threads': 1, **settings})


# What must not depend on how a run went.
FIGURES = 'model_sha256', 'steps', 'loss', 'reason', 'early_stopping', 'holdout'


def check_same(result, quiet, where):
    for member in FIGURES:
        assert result.get(member) == quiet.get(member), (where, member, result, quiet)


@test
def the_model_is_the_same_however_the_work_is_divided(folder):
    job = wide_job(folder)
    divisions = [(1, 1, 1, 0), (2, 3, 2, 1), (3, 2, 1, 2), (1, 4, 1, 1)]
    results = [train(job, '--state', folder / f'{number}.state',
                     *words({'shards': shards, 'replicas': replicas, 'threads': threads,
                             'portion_chunks': portion}))
               for number, (shards, replicas, threads, portion) in enumerate(divisions)]
    for result, division in zip(results, divisions):
        check_same(result, results[0], division)
    others = {'another order': {'downpour.seed': 2}, 'another rate': {'downpour.rate': '0.03'},
              'other minibatches': {'downpour.schedule': '{ 2, 1 }'}}
    hashes = [train(job, '--fresh', *words(settings))['model_sha256']
              for settings in others.values()]
    assert len({results[0]['model_sha256'], *hashes}) == 4, hashes


def program(number):
    """Where the coordinator sends a program to the second of two shards."""
    return f'coordinator.send_PROGRAM:{2 * number}'


# An epoch has ten minibatches, or five, and then the holdout, a program each.
MOMENTS = {'the first minibatch': program(1), 'an epoch': program(6), 'the holdout': program(11),
           'the next epoch': program(14), 'the last holdout': program(23),
           'the hand-over': program(24), 'the first step of L-BFGS': program(25),
           'a durable minibatch': 'coordinator.state_step_commit:2',
           'reading': 'coordinator.send_READ:1',
           'the first durable minibatch': 'coordinator.state_step_commit:1'}


def rerun(job, state, point, *arguments):
    """Kills the coordinator there, and gives the command again."""
    process = Process(COORDINATOR, 'run', job, '--state', state, *arguments,
                      DML_FAILPOINT=f'{point}:kill')
    finished = process.wait()
    process.end()
    assert finished.status == -signal.SIGKILL, finished
    return train(job, '--state', state, *arguments)


@test
def a_coordinator_that_is_killed_costs_nothing(folder):
    job = wide_job(folder)
    quiet = train(job, '--state', folder / 'quiet.state')
    for number, (moment, point) in enumerate(some([*MOMENTS.items()])):
        state = folder / f'{number}.state'
        check_same(rerun(job, state, point), quiet, moment)
        steps = [int(step) for step in re.findall(r'back to step (\d+)', events(state))]
        if moment == 'the first durable minibatch':
            assert len(steps) == 1 and 0 < steps[0] < 10, steps  # in the middle of an epoch


@test
def a_run_that_goes_on_where_l_bfgs_took_over_takes_its_steps(folder):
    """The only minibatch is a checkpoint, and nothing is evaluated after it."""
    rows = made_rows('class', rows=300)
    job = write_job(folder, **write_rows(folder, rows, False), objective='logistic', max_steps=6,
                    start='downpour', downpour={'epochs': 1, 'batch': 6400}, checkpoint_seconds=0)
    quiet = train(job, '--state', folder / 'quiet.state')
    assert quiet['steps'] == 6, quiet
    result = rerun(job, folder / 'again.state', 'coordinator.state_step_commit:1')
    check_same(result, quiet, 'the hand-over')


def job_in_units(folder, **settings):
    """A linear model of columns of which each has another unit: a tenth to a thousandth. A minibatch
    has values in few of them."""
    rng = random.Random(8)
    with open(folder / 'd.libsvm', 'w') as file:
        for _ in range(600):
            columns = sorted(rng.sample(range(1, 30000), 20))
            file.write(f'{int(sum(j % 2 for j in columns) > 10)} '
                       + ' '.join(f'{j}:{rng.uniform(1, 3) * 10 ** -(1 + j % 3):.4g}'
                                  for j in columns) + '\n')
    return write_job(folder, **{'data': ['d.libsvm'], 'optimizer': 'downpour',
                                'checkpoint_seconds': 0, 'shards': 2, **settings})


@long_test
def units_of_the_columns_change_no_promise(folder):
    job = job_in_units(folder)
    quiet = train(job, '--state', folder / 'quiet.state')
    for number, (shards, replicas) in enumerate([(1, 1), (3, 2), (2, 3)]):
        result = train(job, '--state', folder / f'{number}.state',
                       *words({'shards': shards, 'replicas': replicas, 'threads': 1}))
        check_same(result, quiet, (shards, replicas))
    for moment, point in MOMENTS.items():
        if moment != 'the holdout':  # there is none
            check_same(rerun(job, folder / f'{moment}.state', point), quiet, moment)
    state = folder / 'fewer.state'
    train(job, '--state', state, *words({'downpour.epochs': 1}))
    check_same(train(job, '--state', state), quiet, 'more epochs')


@test
def a_model_is_the_start_that_it_was_in_other_units(folder):
    job = job_in_units(folder)
    first = train(job)
    second = train(job, '--fresh', '--start', folder / 'job.state/models/1',
                   *words({'downpour.rate': 1e-12}))
    assert abs(second['loss'] - first['loss']) < 1e-6 * first['loss'], (first, second)
    ones, others = (read_safetensors(folder / f'job.state/models/{run}/model.safetensors')
                    for run in (1, 2))
    assert all(math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-7)
               for a, b in zip(ones['weight'][1], others['weight'][1]))


def events(state):
    with contextlib.closing(sqlite3.connect(state / 'dml.db')) as database:
        return '\n'.join(text for text, in database.execute('SELECT text FROM events'))


@test
def workers_that_are_killed_cost_nothing(folder):
    job = wide_job(folder)
    quiet = train(job, '--state', folder / 'quiet.state')
    for point in some(['shard0.receive_PROGRAM:6', 'shard1.receive_PROGRAM:12', 'shard0.send_RESULT:2',
                       'shard1.checkpoint_begin:1', 'shard0.checkpoint_done:1', 'shard1.receive_FOLD:17',
                       'replica0.send_FLUSHED:1', 'replica1.receive_EVALUATE:1',
                       'replica0.receive_PARAMETERS:1']):
        result = train(job, '--state', folder / f'{point}.state', *words({'portion_chunks': 1}),
                       DML_FAILPOINT=f'{point}:kill',
                       DML_FAILPOINT_ONCE=str(folder / f'{point}.fired'))
        assert result['restarts'][point.split('.')[0][:-1]] >= 1, result
        check_same(result, quiet, point)


@test
def over_few_columns_workers_that_are_killed_or_late_cost_nothing(folder):
    job = job_in_units(folder, replicas=2, threads=2, portion_chunks=1)
    quiet = train(job, '--state', folder / 'quiet.state')
    for fault in some(['shard1.receive_FOLD:7:kill', 'shard0.checkpoint_begin:1:kill',
                       'replica0.send_FLUSHED:2:kill', 'replica1.receive_PARAMETERS:3:kill',
                       'replica1.send_STAGE:2:delay:300,replica0.receive_PARAMETERS:5:delay:300'], 2):
        result = train(job, '--state', folder / f'{fault}.state', DML_FAILPOINT=fault,
                       DML_FAILPOINT_ONCE=str(folder / f'{fault}.fired'))
        assert 'kill' not in fault or any(result['restarts'].values()), (fault, result)
        check_same(result, quiet, fault)


@test
def a_replica_that_is_late_costs_no_bit(folder):
    job = wide_job(folder, portion_chunks=1)
    quiet = train(job, '--state', folder / 'quiet.state')
    late = ','.join(f'replica1.{point}:{visit}:delay:300'
                    for point, visit in [('send_FLUSHED', 1), ('send_STAGE', 4),
                                         ('receive_PARAMETERS', 6), ('receive_EVALUATE', 9)])
    check_same(train(job, DML_FAILPOINT=late), quiet, late)


def stopped_at(job, number, *arguments, **environment):
    """A coordinator that stopped itself where it sends that program."""
    process = Process(COORDINATOR, 'run', job, '--json', *arguments, **environment,
                      DML_FAILPOINT=f'{program(number)}:stop')
    process.until(lambda: is_stopped(process.pid), 'it stops')
    return process


def late_at(job, number, *arguments):
    """A run whose time is over where it sends that program. It has more time on a machine on which it
    does not come so far."""
    for seconds in (0.5 * 2 ** i for i in range(8)):
        process = Process(COORDINATOR, 'run', job, '--json', '--fresh', *arguments, '--set',
                          f'max_seconds={seconds}', DML_FAILPOINT=f'{program(number)}:stop')
        while process.popen.poll() is None and not is_stopped(process.pid):
            time.sleep(0.02)
        if process.popen.poll() is None:
            time.sleep(seconds + 0.1)
            process.signal(signal.SIGCONT)
            return process.wait()
    raise AssertionError(f'it does not come to program {number}')


@test
def a_run_that_was_interrupted_or_out_of_time_goes_on_to_the_same_model(folder):
    job = wide_job(folder)
    quiet = train(job, '--state', folder / 'quiet.state')
    for number in some([14, 1, 6, 11, 24]):
        state = folder / f'interrupted-{number}.state'
        process = stopped_at(job, number, '--state', state)
        process.signal(signal.SIGINT)
        process.signal(signal.SIGCONT)
        finished = process.wait()
        assert finished.status == AGAIN, finished
        result = train(job, '--state', state)
        assert result['restarts']['coordinator'] == 1, result
        check_same(result, quiet, number)
    for number in some([24, 6, 11, 14], 4):
        state = folder / f'late-{number}.state'
        finished = late_at(job, number, '--state', state)
        assert finished.json['reason'] == 'time limit', finished
        check_same(train(job, '--state', state), quiet, ('late', number))


@test
def more_epochs_go_on_where_fewer_ended(folder):
    job = wide_job(folder, start='zero', optimizer='downpour', early_stopping='off')
    whole = train(job, '--fresh', *words({'downpour.epochs': 4}))
    assert train(job, '--fresh', *words({'downpour.epochs': 2}))['reason'] == 'epoch limit'
    check_same(train(job, *words({'downpour.epochs': 4})), whole, 'more epochs')


# ---- ends ----

@test
def epochs_that_make_the_holdout_worse_are_not_kept(folder):
    job = wide_job(folder, start='zero', optimizer='downpour', early_stopping=2)
    result = train(job, *words({'downpour.epochs': 20}))
    assert result['reason'] == 'early stopping' and result['converged'], result
    shorter = train(job, '--fresh', *words({'downpour.epochs': 2}))
    assert result['model_sha256'] == shorter['model_sha256'], (result, shorter)


@test
def a_night_of_minibatches_is_not_compared_with_one_from_zero(folder):
    rows = made_rows('class')
    night = {'objective': 'logistic', 'optimizer': 'downpour', 'downpour': {'epochs': 2, 'batch': 256}}
    job = write_job(folder, **write_rows(folder, rows[:1200], False), **night)
    dml('retrain', job, '--quiet')
    write_rows(folder, rows, False)
    finished = dml('retrain', job, '--json')
    assert finished.status == 0 and finished.json['start']['run'] == 1, finished
    assert 'warm_start' not in finished.json and 'start from zero' not in finished.stderr, finished


@test
def a_rate_that_is_far_too_high_ends_with_words_and_without_a_model(folder):
    rows = [(x, max(0, round(margin)), weight) for x, margin, weight in made_rows('number')]
    job = write_job(folder, **write_rows(folder, rows, False), objective='poisson',
                    start='downpour', downpour={'rate': 1e4})
    finished = dml('run', job, '--json')
    assert finished.status == BAD_DATA and finished.json['reason'] == 'not finite', finished
    assert 'set downpour.rate lower than 10000' in finished.stderr.splitlines()[-1], finished
    assert not (folder / 'job.state/models/current').exists(), finished


if __name__ == '__main__':
    sys.exit(main())
