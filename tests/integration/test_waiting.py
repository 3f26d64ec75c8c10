#!/usr/bin/env python3
"""Workers that are started by hand may come up later than the coordinator."""

import re
import sys

from harness import (AGAIN, COORDINATOR, REPLICA, SHARD, UNAVAILABLE, USAGE, Process, dml,
                     endless_job, main, small_job, test, train)


def addresses(folder, shards=1, replicas=1):
    return ([f'unix:{folder}/s{k}' for k in range(shards)],
            [f'unix:{folder}/r{k}' for k in range(replicas)])


def job_by_hand(folder, make=small_job, shards=1, replicas=1, **settings):
    s, r = addresses(folder, shards, replicas)
    return make(folder, shard_addresses=s, replica_addresses=r, **settings), s, r


def waits_for(run, text):
    run.until(lambda: f'waiting for {text}' in run.so_far(run.errors), f'it waits for {text}')


@test
def workers_that_come_later_than_the_coordinator_are_waited_for(folder):
    expected = train(small_job(folder), '--state', folder / 'own.state')['model_sha256']
    job, (shard,), (replica,) = job_by_hand(folder)
    run = Process(COORDINATOR, 'run', job, '--json')
    workers = []
    try:
        waits_for(run, f'shard 0 at {shard}, replica 0 at {replica}')
        status = dml('status', job, '--json').json
        assert status['waiting'] == f'shard 0 at {shard}, replica 0 at {replica}', status
        assert 'waiting for shard 0' in dml('status', job).stdout
        workers.append(Process(SHARD, '--listen', shard))
        run.until(lambda: dml('status', job, '--json').json['waiting'] ==
                  f'replica 0 at {replica}', 'the shard has come')
        workers.append(Process(REPLICA, '--listen', replica))
        finished = run.wait()
        assert finished.status == 0, finished
        assert finished.json['model_sha256'] == expected, finished
        assert all(worker.wait(60).status == 0 for worker in workers)
    finally:
        for process in (run, *workers):
            process.end()


@test
def who_never_comes_is_named_with_what_to_start(folder):
    job, (shard,), (_, second) = job_by_hand(folder, replicas=2)
    workers = [Process(SHARD, '--listen', shard)]
    try:
        finished = dml('run', job, '--wait', '1.5')
        assert finished.status == UNAVAILABLE, finished
        last = finished.stderr.splitlines()[-1]
        assert 'shard' not in last and 'replica 0' in last and 'replica 1' in last, finished
        assert f'dml-replica --listen {second}' in last, finished
    finally:
        for worker in workers:
            worker.end()


@test
def a_run_starts_with_one_replica_and_the_other_joins_when_it_comes(folder):
    job, (shard,), (first, second) = job_by_hand(folder, endless_job, replicas=2)
    workers = [Process(SHARD, '--listen', shard), Process(REPLICA, '--listen', first)]
    run = Process(COORDINATOR, 'run', job, '--wait', '1')
    try:
        run.until(lambda: 'the run goes on without it' in run.so_far(run.errors), 'it gives up')
        status = dml('status', job, '--json').json
        assert status['step'] > 0 and not status['waiting'], status
        workers.append(Process(REPLICA, '--listen', second))
        run.until(lambda: dml('status', job, '--json').json['processes'][2]['chunks'] > 0,
                  'the other replica works')
        assert dml('cancel', job).status == 0
        assert run.wait().status == AGAIN
    finally:
        for process in (run, *workers):
            process.end()


@test
def a_run_that_waits_can_be_cancelled(folder):
    job, (shard,), _ = job_by_hand(folder)
    run = Process(COORDINATOR, 'run', job, '--wait', '3600')
    try:
        waits_for(run, f'shard 0 at {shard}')
        assert dml('cancel', job).status == 0
        assert run.wait(60).status == AGAIN
    finally:
        run.end()


@test
def a_time_to_wait_that_is_none_is_refused(folder):
    job = small_job(folder)
    for text in '-1', 'soon', '1e9', 'nan', '', '1s':
        finished = dml('run', job, f'--wait={text}')
        assert finished.status == USAGE and '--wait' in finished.stderr, finished
    assert re.search(r'--wait SECONDS', dml('retrain', '--help').stdout)


if __name__ == '__main__':
    sys.exit(main())
