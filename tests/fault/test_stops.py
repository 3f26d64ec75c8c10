#!/usr/bin/env python3
"""One coordinator at a time; signals that end a run where it can be taken up; workers that freeze,
and workers whose coordinator does not come back."""

import contextlib
import re
import signal
import sqlite3
import sys
import time

from faults import (ALL, PRECONDITIONED, REPLICAS, check_nothing_left, check_preconditioned,
                    conclude, is_free, kill, long_test, make_job, quiet, run_of, steps_of,
                    until_step, workers_at, write_data)
from harness import AGAIN, REPLICA, SHARD, dml, main, test, write_job

SLOW = {'DML_SHUFFLE': '3', 'DML_PAUSE_US': '8000'}


def slow_job(folder, **settings):
    job = make_job(folder, **{'max_steps': 8, 'checkpoint_seconds': 0, **settings})
    return job, quiet(job)


def check_model(result, expected):
    assert result['model_sha256'] == expected['model_sha256'], f'another model: {result}'


# ---- one coordinator ----

@test
def a_second_coordinator_is_told_that_one_is_running(folder):
    job, expected = slow_job(folder)
    with run_of(job, 'locked', **SLOW) as run:
        first = run.start_held(3)
        second = dml(*run.command[1:], **run.environment)
        assert second.status == AGAIN, second
        assert f'already running, pid {first.pid}' in second.stderr, second
        run.go_on()
        check_model(conclude(run, 0), expected)
        check_nothing_left(run)


@test
def a_coordinator_that_lost_the_lock_finds_itself_fenced_out(folder):
    job, expected = slow_job(folder)
    with run_of(job, 'fenced', **SLOW) as run:
        run.start_held(4)  # so that there are steps to go on from
        run.now.signal(signal.SIGINT)
        run.go_on()
        run.now.wait()
        # The replicas stand still, so that the first cannot end before the second is there. The
        # lock goes when the database names the workers, which the second needs.
        rules = ['coordinator.lock_released@send_EVALUATE:1:hit',
                 *(f'replica{i}.receive_EVALUATE:1:stop' for i in range(REPLICAS))]
        first = run.start(DML_FAILPOINT=','.join(rules), DML_FAILPOINT_ONCE=str(folder / 'fired'))
        for i in range(len(rules)):
            first.until((folder / f'fired.{i}').exists, f'it comes to {rules[i]}')
        first.until(lambda: is_free(run.state / 'lock'), 'the lock is free')
        replicas = run.of_role('replica')
        run.start()
        finished = first.wait()
        for pid in replicas:
            kill(pid, signal.SIGCONT)
        check_model(conclude(run, 0), expected)
        assert finished.status == AGAIN, finished
        # A worker tells it, or its own look at the lock file: whichever comes first.
        assert re.search('took (this run over|over from this one)', finished.stderr), finished
        check_nothing_left(run)
        with run.database() as database:
            epochs = [e for e, in database.execute('SELECT epoch FROM epochs ORDER BY epoch')]
        assert epochs == [1, 2, 3], epochs


@test
def a_coordinator_that_lost_the_lock_and_meets_nobody_writes_no_model(folder):
    job, expected = slow_job(folder)
    with run_of(job, 'lost', **SLOW) as run:
        run.start(DML_FAILPOINT='coordinator.lock_released:1:hit')
        finished = run.now.wait()
        assert finished.status == AGAIN and 'lock was lost' in finished.stderr, finished
        assert not list(run.state.glob('models/[0-9]*')), 'there is a model'
        run.start()
        check_model(conclude(run, 0), expected)
        check_nothing_left(run)


@test
def workers_wait_for_a_coordinator_and_then_exit(folder):
    job = make_job(folder, reconnect_seconds=4)
    with run_of(job, 'orphans', **SLOW) as run:
        run.start_held(3)
        workers = run.workers()
        kill(run.now.pid)
        run.now.popen.wait()
        time.sleep(1)
        assert run.workers() == workers, 'they did not wait'
        left, _ = run.left_over(30)
        assert not left, f'{left} live on long after their 4 seconds'


# ---- signals ----

def interrupted(folder, number, hold=lambda run: run.start_held(5), **settings):
    """`hold` starts the run and returns when it is where the signal is to meet it."""
    job, expected = slow_job(folder, checkpoint_seconds=1000, **settings)
    if 'features' in settings:
        check_preconditioned(expected)
    with run_of(job, 'stopped', **SLOW) as run:
        hold(run)
        run.now.signal(number)
        run.go_on()
        finished = run.now.wait()
        assert finished.status == AGAIN, f'ended with {finished.status}'
        done = steps_of(run)
        check_nothing_left(run)
        assert not (run.state / 'models').exists() or not list((run.state / 'models').iterdir())
        run.start()
        check_model(conclude(run, 0), expected)
        again = set(steps_of(run)) & set(done)
        assert not again, f'steps {again} were made twice'
        check_nothing_left(run)
        return [process.so_far(process.errors) for process in run.starts]


@test
def a_terminated_run_goes_on_from_its_last_step(folder):
    interrupted(folder, signal.SIGTERM)


@test
def an_interrupted_run_goes_on_from_its_last_step(folder):
    interrupted(folder, signal.SIGINT)


CURVATURE_AGAIN = 5  # the evaluation that the second refresh begins with


def refreshing(folder, rule):
    """Interrupted while somebody is late with the second refresh of the preconditioner."""
    def hold(run):
        run.start(DML_FAILPOINT=f'{rule}:delay:1500', DML_FAILPOINT_ONCE=str(folder / 'fired'))
        run.now.until((folder / 'fired.0').exists, f'it comes to {rule}')
    stories = interrupted(folder, signal.SIGINT, hold, **PRECONDITIONED)
    assert ['refresh 2' in story for story in stories] == [False, True], '\n'.join(stories)


@test
def a_run_that_is_interrupted_while_a_factor_is_made_goes_on_from_its_last_step(folder):
    refreshing(folder, 'shard.factor_begin:2')


@test
def a_run_that_is_interrupted_in_an_evaluation_of_curvature_goes_on_from_its_last_step(folder):
    refreshing(folder, f'replica0.receive_EVALUATE:{CURVATURE_AGAIN}')


# ---- between two accepted points ----

# Rows, columns and values of a row; seed; settings; what is found since x was accepted that going on
# from x would not find again.
TRIED = [((1500, 3, 3), 0, {'l1': 1e-5, 'l2': 0, 'gradient_tolerance': 1e-9}, 'curvature'),
         ((300, 40, 6), 5, {'l1': 1e-5, 'l2': 0, 'gradient_tolerance': 1e-9}, 'rejected'),
         ((30, 300, 20), 0, {'precondition': 'block', 'l2': 1e-6, 'gradient_tolerance': 1e-3}, 'curvature')]


def job_of_counts(folder, shape, seed, **settings):
    """Many labels are 0: steps over working sets fail here and there, and rows come to be fitted."""
    data = write_data(folder, 'tweedie', *shape, seed=seed, spread=1)
    return write_job(folder, data=[data.name], objective='tweedie', replicas=REPLICAS,
                     checkpoint_seconds=1000, **settings)


def evaluations_after(state, outcome):
    """Numbers of the evaluations that follow one of this outcome, but for the first of a run."""
    with contextlib.closing(sqlite3.connect(state / 'dml.db')) as database:
        found = database.execute('SELECT evaluation + 1 FROM evaluations WHERE outcome = ? AND evaluation > 2 '
                                 'ORDER BY evaluation', (outcome,))
        return [number for number, in found]


@test
def a_run_that_is_interrupted_behind_what_it_has_tried_goes_on_to_the_same_model(folder):
    for number, (shape, seed, settings, outcome) in enumerate(TRIED):
        place = folder / str(number)
        place.mkdir()
        job = job_of_counts(place, shape, seed, **settings)
        expected = quiet(job)
        places = evaluations_after(place / 'quiet.state', outcome)
        assert places, f'{settings}: no evaluation is {outcome}'
        for evaluation in places if ALL else places[:2]:
            with run_of(job, str(evaluation)) as run:
                run.start_held(evaluation)
                run.now.signal(signal.SIGTERM)
                run.go_on()
                finished = run.now.wait()
                if finished.status:  # it has not come to its end by the same step
                    assert finished.status == AGAIN, finished
                    run.start()
                check_model(conclude(run, 0), expected)


@test
def a_second_interrupt_ends_a_run_whose_time_limit_has_passed_meanwhile(folder):
    """A shard that does not finish its checkpoint keeps the first from ending the run."""
    limit = 4
    job = make_job(folder, checkpoint_seconds=1000, max_seconds=limit)
    with run_of(job, 'twice', DML_FAILPOINT='shard.checkpoint_begin:1:delay:3600000') as run:
        process = run.start(**SLOW)
        until_step(run, 0)  # before its first point a run has nothing to make durable: it ends at once
        process.signal(signal.SIGINT)
        process.until(lambda: 'interrupted' in process.so_far(process.errors), 'it stops')
        time.sleep(limit + 1)  # the limit counts from before the first point
        process.signal(signal.SIGINT)
        finished = process.wait()
        assert finished.status == AGAIN, finished
        assert not list((run.state / 'models').glob('[0-9]*')), 'there is a model'


@test
def a_raised_step_limit_goes_on_from_the_end(folder):
    job, expected = slow_job(folder)
    with run_of(job, 'raised', '--set', 'max_steps=3') as run:
        run.start()
        first = conclude(run, 0)
        assert first['steps'] == 3 and first['reason'] == 'step limit', first
        run.command = run.command[:-2]
        run.start()
        result = conclude(run, 0)
        check_model(result, expected)
        assert result['continues'] == first['run'] != result['run'], result
        assert min(steps_of(run)) == 4, f'steps {steps_of(run)} were made'


# ---- frozen and slow workers ----

def frozen(folder, place):
    """A worker stops itself at the place. It is found by its silence if the run lasts, and another
    takes its place."""
    job, expected = slow_job(folder, checkpoint_seconds=0.1)
    with run_of(job, 'frozen', DML_FAILPOINT=f'{place}:stop',
                DML_FAILPOINT_ONCE=str(folder / 'fired'), **SLOW) as run:
        run.start()
        run.now.until((folder / 'fired.0').exists, 'it is stopped')
        start = time.monotonic()
        run.now.until(lambda: 'silent' in run.now.so_far(run.now.errors) or
                      run.now.popen.poll() is not None, 'the silence is noticed')
        waited = time.monotonic() - start
        check_model(conclude(run, 0), expected)
        check_nothing_left(run)
        return waited


@test
def a_shard_that_freezes_is_found_and_replaced(folder):
    waited = frozen(folder, 'shard0.receive_PROGRAM:5')
    assert 4 < waited < 60, f'found after {waited:.1f} s'


@test
def a_replica_that_freezes_does_not_hold_the_run_up(folder):
    frozen(folder, 'replica0.receive_EVALUATE:3')


# ---- several at once ----

SILENCE_S = 10  # a worker that says nothing for so long counts as lost


def stop_for_long(run, pids, go_on):
    """They are stopped until all who look for it have noticed; some of them go on then. The
    coordinator was held until now."""
    for pid in pids:
        kill(pid, signal.SIGSTOP)
    if run.now.pid not in pids:
        run.go_on()
    time.sleep(SILENCE_S + 3)
    for pid in go_on:
        kill(pid, signal.SIGCONT)


def stopped_together(folder, choose):
    """`choose` answers whom to stop, and who of them goes on."""
    job, expected = slow_job(folder, checkpoint_seconds=0.1)
    with run_of(job, 'together', **SLOW) as run:
        run.start_held(3)
        stop_for_long(run, *choose(run))
        check_model(conclude(run, 0), expected)
        check_nothing_left(run)


@long_test
def a_shard_and_a_replica_that_never_go_on_are_replaced(folder):
    stopped_together(folder, lambda run: ([run.of_role('shard')[0], run.of_role('replica')[0]], []))


@long_test
def a_coordinator_and_a_shard_go_on_together(folder):
    def choose(run):
        both = [run.now.pid, run.of_role('shard')[0]]
        return both, both
    stopped_together(folder, choose)


@long_test
def a_coordinator_goes_on_and_replaces_the_shard_that_does_not(folder):
    stopped_together(folder, lambda run: ([run.now.pid, run.of_role('shard')[0]], [run.now.pid]))


@long_test
def workers_started_by_hand_go_on_after_they_were_given_up(folder):
    """Nobody can replace them: what they say in a name that is no longer theirs is ignored."""
    shards, replicas = ([folder / f'{role}{i}' for i in range(2)] for role in ('shard', 'replica'))
    _, expected = slow_job(folder)
    job = make_job(folder, max_steps=8, checkpoint_seconds=0.1, reconnect_seconds=60,
                   shard_addresses=[f'unix:{path}' for path in shards],
                   replica_addresses=[f'unix:{path}' for path in replicas])
    with workers_at(shards, SHARD, [{}] * 2) as held, \
            workers_at(replicas, REPLICA, [SLOW] * 2) as computing, run_of(job, 'by-hand') as run:
        run.start_held(3)
        both = [held[0].pid, computing[0].pid]
        stop_for_long(run, both, both)
        check_model(conclude(run, 0), expected)
        assert 'shard 0 was lost: it is silent' in run.story(), 'the silence was not noticed'
        for process in held + computing:
            assert process.wait().status == 0, process.finished(None)


@test
def workers_that_crawl_change_nothing(folder):
    job, expected = slow_job(folder, max_steps=8 if ALL else 3)
    for role in ('replica', 'shard') if ALL else ('replica',):
        with run_of(job, f'slow-{role}', DML_SHUFFLE='3', DML_PAUSE_US='2000') as run:
            run.start_held(2)
            victim = run.of_role(role)[0]
            run.go_on()
            end = time.monotonic() + 20
            while run.now.popen.poll() is None and time.monotonic() < end:
                kill(victim, signal.SIGSTOP)
                time.sleep(0.045)
                kill(victim, signal.SIGCONT)
                time.sleep(0.005)
            check_model(conclude(run, 0), expected)
            check_nothing_left(run)


@test
def a_frozen_coordinator_goes_on_where_it_stopped(folder):
    job, expected = slow_job(folder, reconnect_seconds=1)
    with run_of(job, 'paused', **SLOW) as run:
        run.start_held(3)
        time.sleep(3)
        run.go_on()
        check_model(conclude(run, 0), expected)
        check_nothing_left(run)


if __name__ == '__main__':
    sys.exit(main())
