#!/usr/bin/env python3
"""Early stopping: the run ends when the holdout gets no better, and its model is the best point."""

import random
import signal
import sqlite3
import sys

from harness import BAD_DATA, CONFIG, COORDINATOR, Process, dml, main, test, train, write_job

FEATURES = 9000  # three blocks of parameters, so that three shards have something to do
PATIENCE = 3


def data_to_overfit(folder, rows=700):
    """A few features that matter, and many by which each row can be learnt by heart."""
    rng = random.Random(5)
    weights = [rng.gauss(0, 1) for _ in range(30)]
    with open(folder / 'few.libsvm', 'w') as file:
        for _ in range(rows):
            values = {j: round(rng.gauss(0, 1), 2) for j in rng.sample(range(1, 31), 6)}
            margin = sum(v * weights[j - 1] for j, v in values.items()) + rng.gauss(0, 1)
            values |= {j: round(rng.gauss(0, 1), 2)
                       for j in rng.sample(range(31, FEATURES + 1), 25)}
            file.write(f'{1 if margin > 0 else -1} ' +
                       ' '.join(f'{j}:{v}' for j, v in sorted(values.items())) + '\n')
    return 'few.libsvm'


def overfitting_job(folder, **settings):
    return write_job(folder, **{'data': [data_to_overfit(folder)], 'holdout': ['0.2'], 'l2': 0,
                                'gradient_tolerance': 1e-6, 'loss_tolerance': 0,
                                'early_stopping': PATIENCE, 'precondition': 'none', 'threads': 1,
                                'replicas': 1,
                                'shards': 1, **settings})


def asked(state, question):
    database = sqlite3.connect(state / 'dml.db')
    rows = database.execute(question).fetchall()
    database.close()
    return rows


def steps_of(state):
    """What was recorded of each step: loss, gradient, loss on the holdout."""
    return asked(state, 'SELECT loss, gradient_max, holdout_loss FROM steps ORDER BY step')


@test
def a_run_that_overfits_ends_early_with_its_best_point(folder):
    job = overfitting_job(folder)
    stopped = train(job)
    to_the_end = train(job, '--set', 'early_stopping=off', '--state', folder / 'end.state')
    assert stopped['reason'] == 'early stopping', stopped
    assert to_the_end['reason'] == 'gradient tolerance', to_the_end
    assert 'early_stopping' not in to_the_end, to_the_end
    assert stopped['holdout']['loss'] < 0.8 * to_the_end['holdout']['loss'], \
        (stopped['holdout'], to_the_end['holdout'])
    best = stopped['early_stopping']
    assert 0 < best['best_step'] == stopped['steps'] - PATIENCE, stopped
    assert abs(best['holdout_loss'] - stopped['holdout']['loss']) <= 1e-12, stopped
    shorter = train(job, '--set', 'early_stopping=off', '--set', f'max_steps={best["best_step"]}',
                    '--state', folder / 'short.state')
    for member in ('model_sha256', 'loss', 'gradient_max', 'examples'):
        assert stopped[member] == shorter[member], (member, stopped, shorter)


@test
def a_run_that_came_to_the_optimum_has_converged_wherever_its_best_point_is(folder):
    job = overfitting_job(folder, l2=1e-3, early_stopping=1000, gradient_tolerance=1e-8)
    finished = dml('run', job, '--strict', '--json')
    result = finished.json
    assert result['reason'] == 'gradient tolerance', finished
    assert result['early_stopping']['best_step'] < result['steps'] and result['gradient_max'] > 1e-4, finished
    assert finished.status == 0 and result['converged'] and 'shortfall' not in result, finished
    short = train(job, '--set', 'max_steps=10', '--state', folder / 'short.state')
    assert short['early_stopping']['best_step'] < 10 and not short['converged'], short
    last = steps_of(folder / 'short.state')[-1][1]
    assert f'the gradient is still {last:.3g},' in ' '.join(short['shortfall']), (short, last)


@test
def each_step_is_recorded_with_its_loss_on_the_holdout(folder):
    result = train(overfitting_job(folder))
    steps = steps_of(folder / 'job.state')
    losses = [holdout for _, _, holdout in steps]
    best = result['early_stopping']['best_step']
    assert len(steps) == result['steps'] + 1, steps
    assert losses.index(min(losses)) == best, losses
    assert steps[best] == (result['loss'], result['gradient_max'],
                           result['early_stopping']['holdout_loss']), steps
    assert asked(folder / 'job.state', 'SELECT DISTINCT examples FROM evaluations') == \
        [(result['examples'],)]
    assert result['examples'] + result['holdout']['examples'] == 700, result


@test
def each_step_is_recorded_with_its_accuracy_on_the_holdout(folder):
    result = train(overfitting_job(folder))
    best, holdout = result['early_stopping'], result['holdout']
    accuracies = [row[0] for row in asked(folder / 'job.state', 'SELECT holdout_accuracy FROM steps '
                                          'ORDER BY step')]
    assert best['holdout_accuracy'] == holdout['accuracy'] == accuracies[best['best_step']], result
    assert len(set(accuracies)) > 2 and all(0 < one < 1 for one in accuracies[1:]), accuracies
    ended = dml('status', folder / 'job.state', '--json').json
    assert [ended[name] for name in ('holdout_loss', 'holdout_accuracy')] == \
        [best['holdout_loss'], best['holdout_accuracy']], ended
    targets = train(overfitting_job(folder, objective='squared', max_steps=2), '--state',
                    folder / 'targets.state')
    assert targets['early_stopping']['holdout_accuracy'] is None, targets
    assert asked(folder / 'targets.state', 'SELECT DISTINCT holdout_accuracy FROM steps') == [(None,)]


@test
def without_early_stopping_the_holdout_is_in_no_evaluation(folder):
    job = overfitting_job(folder, early_stopping='off', max_steps=3)
    train(job)
    assert {holdout for _, _, holdout in steps_of(folder / 'job.state')} == {None}


@test
def another_end_has_the_best_point_as_well(folder):
    job = overfitting_job(folder, early_stopping=100, max_steps=15)
    limited, stopped = train(job), train(job, '--set', f'early_stopping={PATIENCE}', '--state',
                                         folder / 'stopped.state')
    assert limited['reason'] == 'step limit', limited
    assert limited['early_stopping'] == stopped['early_stopping'], (limited, stopped)
    assert limited['model_sha256'] == stopped['model_sha256']


@test
def the_result_is_the_same_however_the_work_is_divided(folder):
    job = overfitting_job(folder)
    results = []
    for number, (shards, replicas, portion) in enumerate([(1, 1, 0), (2, 3, 1), (3, 2, 7)]):
        results.append(train(job, '--state', folder / f'{number}.state',
                             '--set', f'shards={shards}', '--set', f'replicas={replicas}',
                             '--set', f'portion_chunks={portion}'))
    assert len({r['model_sha256'] for r in results}) == 1, results
    assert len({tuple(r['early_stopping'].values()) for r in results}) == 1, results
    assert len({tuple(steps_of(folder / f'{number}.state')) for number in range(3)}) == 1


@test
def a_killed_run_comes_to_the_same_best_point(folder):
    job = overfitting_job(folder, shards=2, replicas=2, checkpoint_seconds=0)
    quiet = train(job, '--state', folder / 'quiet.state')
    # Before and after the best point, each evaluation being sent to one or both, and at the end.
    for number, point in enumerate(['state_step_commit:1', 'send_EVALUATE:4', 'send_EVALUATE:9',
                                    'send_READ:1']):
        state = folder / f'{number}.state'
        process = Process(COORDINATOR, 'run', job, '--state', state,
                          DML_FAILPOINT=f'coordinator.{point}:kill')
        finished = process.wait()
        process.end()
        assert finished.status == -signal.SIGKILL, finished
        result = train(job, '--state', state)
        assert result['restarts']['coordinator'] == 1, result
        for member in ('model_sha256', 'early_stopping', 'steps', 'loss'):
            assert result[member] == quiet[member], (point, member, result, quiet)
        assert steps_of(state) == steps_of(folder / 'quiet.state'), point


@test
def a_killed_shard_costs_the_best_point_nothing(folder):
    job = overfitting_job(folder, shards=2, replicas=2, checkpoint_seconds=0)
    quiet = train(job, '--state', folder / 'quiet.state')
    for number, point in enumerate(['PROGRAM:9', 'READ:1']):
        result = train(job, '--state', folder / f'{number}.state',
                       DML_FAILPOINT=f'shard0.receive_{point}:kill',
                       DML_FAILPOINT_ONCE=str(folder / f'{number}.fired'))
        assert result['restarts']['shard'] >= 1, result
        assert result['model_sha256'] == quiet['model_sha256'], point
        assert result['early_stopping'] == quiet['early_stopping'], point


@test
def early_stopping_without_a_holdout_is_refused_with_what_to_do(folder):
    job = write_job(folder, data=[data_to_overfit(folder)], early_stopping=5)
    refused = dml('run', job)
    assert refused.status == CONFIG and 'holdout = 0.1' in refused.stderr, refused
    assert not (folder / 'job.state').exists(), 'something was begun'


@test
def a_holdout_of_unknown_labels_alone_is_refused(folder):
    data = data_to_overfit(folder)
    (folder / 'others.libsvm').write_text('7 1:1 2:1\n9 3:1\n')
    refused = dml('run', write_job(folder, data=[data], holdout=['others.libsvm'],
                                   early_stopping=5))
    assert refused.status == BAD_DATA and 'early_stopping' in refused.stderr, refused


@test
def the_table_of_a_run_says_which_step_the_model_is_of(folder):
    job = overfitting_job(folder)
    shown = dml('run', job)
    assert shown.status == 0 and 'early stopping' in shown.stdout, shown
    best = [line.split() for line in shown.stdout.splitlines() if line.startswith('best ')]
    assert best and best[0][:2] == ['best', 'step'], shown


sys.exit(main())
