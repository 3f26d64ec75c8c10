#!/usr/bin/env python3
"""Networks trained in Kronecker-factored coordinates: fewer evaluations, the same promises."""

import random
import signal
import sqlite3
import sys

from harness import CONFIG, COORDINATOR, Process, dml, main, test, train, write_job


def scales_of_all_sizes(folder, rows=500, features=12):
    """Correlated columns, of scales from 0.1 to 10; three classes, by a bent surface."""
    rng = random.Random(2)
    with open(folder / 'bent.csv', 'w') as file:
        for _ in range(rows):
            common = rng.gauss(0, 1)
            values = [10 ** (2 * j / (features - 1) - 1) * (common + rng.gauss(0, 0.6)) + j
                      for j in range(features)]
            bend = (values[0] - 0.1 * common) * 8 + (values[-1] - 11) ** 2 / 60 + rng.gauss(0, 0.3)
            file.write(','.join(f'{v:.5g}' for v in values) + f',{int(bend > 1) + int(bend > 4)}\n')
    return 'bent.csv'


def bent_job(folder, **settings):
    return write_job(folder, **{'data': [scales_of_all_sizes(folder)], 'objective': 'network',
                                'network': {'layers': [9, 5]}, 'precondition': 'kronecker',
                                'early_stopping': 'off', 'holdout': [], 'l2': 1e-3,
                                'max_steps': 25, 'threads': 1, 'replicas': 1, 'shards': 1,
                                **settings})


def losses_of(state, run=1):
    database = sqlite3.connect(state / 'dml.db')
    rows = database.execute('SELECT loss FROM steps WHERE run = ? ORDER BY step', [run]).fetchall()
    database.close()
    return [loss for loss, in rows]


@test
def it_minimises_the_same_function_in_fewer_evaluations(folder):
    job = bent_job(folder)
    mixed = train(job)
    plain = train(job, '--set', 'precondition=none', '--state', folder / 'plain.state')
    mixed_losses, plain_losses = losses_of(folder / 'job.state'), losses_of(folder / 'plain.state')
    assert abs(mixed_losses[0] - plain_losses[0]) < 1e-10 * plain_losses[0]
    assert mixed_losses[-1] < plain_losses[-1] - 0.01, (mixed_losses, plain_losses)
    assert mixed['preconditioner']['kind'] == 'kronecker', mixed
    assert plain['preconditioner']['kind'] == 'none', plain


@test
def its_loss_is_that_of_its_model_and_what_weights_cost(folder):
    result = train(bent_job(folder, l2=0.01, max_steps=5))
    costly = train(bent_job(folder, l2=0, max_steps=0), '--state', folder / 'free.state')
    figures = dml('evaluate', '--json', folder / 'job.state', folder / 'bent.csv').json
    start = dml('evaluate', '--json', folder / 'free.state', folder / 'bent.csv').json
    assert abs(start['loss'] - costly['loss']) < 1e-10, (start, costly)
    cost = result['loss'] - figures['loss']
    assert 0 < cost < result['loss'], (result, figures)
    assert result['l2'] == 0.01, result


@test
def models_are_the_same_for_any_workers(folder):
    job = bent_job(folder)
    quiet = train(job)['model_sha256']
    ways = [{'replicas': 3, 'threads': 1}, {'shards': 3}, {'threads': 2, 'portion_chunks': 1},
            {'replicas': 2, 'shards': 2, 'flush_ms': 1}]
    for i, way in enumerate(ways):
        settings = [word for key, value in way.items() for word in ('--set', f'{key}={value}')]
        other = train(job, *settings, '--state', folder / f'{i}.state')
        assert other['model_sha256'] == quiet, (way, other)


@test
def a_killed_run_ends_with_the_same_model(folder):
    job = bent_job(folder, shards=2, replicas=2, checkpoint_seconds=0)
    quiet = train(job)['model_sha256']
    for number, victim in enumerate(['coordinator.send_EVALUATE:9', 'shard0.send_RESULT:7',
                                     'replica1.send_FLUSHED:5', 'coordinator.send_READ:1']):
        state = folder / f'{number}.state'
        process = Process(COORDINATOR, 'run', job, '--state', state,
                          DML_FAILPOINT=f'{victim}:kill')
        finished = process.wait()
        process.end()
        ended = -signal.SIGKILL if victim.startswith('coordinator') else 0
        assert finished.status == ended, (victim, finished)
        result = train(job, '--state', state) if ended else dml('status', state, '--json').json
        assert result['model_sha256'] == quiet, (victim, result)


@test
def a_night_starts_from_the_model_of_the_last(folder):
    job = bent_job(folder, max_steps=15, holdout=['0.2'])
    first = dml('retrain', job, '--json')
    assert first.status == 0, first
    again = dml('retrain', job, '--json', '--set', 'l2=0.0011')
    assert again.status == 0, again
    state = folder / 'job.state'
    first_losses, losses = losses_of(state), losses_of(state, 2)
    assert losses[0] < 1.05 * first_losses[-1] < 0.9 * first_losses[0], (first_losses, losses)


@test
def labels_of_any_unit_are_learnt_alike(folder):
    rng = random.Random(4)
    rows = [[rng.gauss(0, 1) for _ in range(4)] for _ in range(300)]
    for name, unit in ('small', 1.0), ('large', 2.0 ** 20):
        with open(folder / f'{name}.csv', 'w') as file:
            for row in rows:
                y = unit * round(row[0] * row[1] + 3 * max(row[2], 0), 6)
                file.write(','.join(f'{v:.6f}' for v in row) + f',{y!r}\n')
    for precondition in 'none', 'kronecker':
        figures = {}
        for name in 'small', 'large':
            job = bent_job(folder, data=[f'{name}.csv'], precondition=precondition, max_steps=30,
                           network={'layers': [9], 'loss': 'squared'})
            state = folder / f'{name}.{precondition}.state'
            train(job, '--state', state, '--fresh')
            figures[name] = losses_of(state)
        small, large = figures['small'], figures['large']
        assert large == [2.0 ** 40 * loss for loss in small], figures
        assert small[-1] < 0.1 * small[0], figures


@test
def what_cannot_have_factors_is_refused_by_name(folder):
    for settings, word in (({'objective': 'softmax', 'network': {}}, 'only networks'),
                           ({'l1': 0.1}, 'l1'),
                           ({'network': {'layers': [9000]}}, '8192')):
        finished = dml('run', bent_job(folder, **settings), '--fresh')
        assert finished.status == CONFIG and 'precondition' in finished.stderr and \
            word in finished.stderr, (settings, finished)


if __name__ == '__main__':
    sys.exit(main())
