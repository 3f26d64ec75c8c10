#!/usr/bin/env python3
"""Workers that are started by hand may come up later than the coordinator, and outlive a run."""

import contextlib
import re
import signal
import sys

from harness import (AGAIN, BAD_DATA, COORDINATOR, REPLICA, SHARD, UNAVAILABLE, USAGE, Process, dml,
                     endless_job, main, small_data, small_job, test, train, write_job)


def addresses(folder, shards=1, replicas=1):
    return ([f'unix:{folder}/s{k}' for k in range(shards)],
            [f'unix:{folder}/r{k}' for k in range(replicas)])


def job_by_hand(folder, make=small_job, shards=1, replicas=1, **settings):
    s, r = addresses(folder, shards, replicas)
    return make(folder, shard_addresses=s, replica_addresses=r, **settings), s, r


def listening(program, address):
    worker = Process(program, '--listen', address)
    worker.until(lambda: 'listening' in worker.so_far(worker.output), 'it listens')
    return worker


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
    workers = [listening(SHARD, shard)]
    try:
        finished = dml('run', job, '--wait', '4')
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
    workers = [listening(SHARD, shard), listening(REPLICA, first)]
    run = Process(COORDINATOR, 'run', job, '--wait', '4')
    try:
        run.until(lambda: 'the run goes on without it' in run.so_far(run.errors), 'it gives up')
        run.until(lambda: dml('status', job, '--json').json['step'] > 0, 'a step')
        assert not dml('status', job, '--json').json['waiting']
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


# ---- workers that stay ----

@contextlib.contextmanager
def staying(folder):
    """A shard and a replica that stay, and the settings of jobs that use them."""
    (shard,), (replica,) = addresses(folder)
    workers = [Process(SHARD, '--stay', '--listen', shard),
               Process(REPLICA, '--stay', '--listen', replica)]
    try:
        for worker in workers:
            worker.until(lambda w=worker: 'listening' in w.so_far(w.output), 'it listens')
        yield workers, {'shard_addresses': [shard], 'replica_addresses': [replica]}
        for worker in workers:
            worker.signal(signal.SIGTERM)
            assert worker.wait().status == 0
    finally:
        for worker in workers:
            worker.end()


def resident_mib(worker):
    with open(f'/proc/{worker.pid}/status') as file:
        found = dict(line.split(':', 1) for line in file)
    return sum(int(found[what].split()[0]) for what in ('RssAnon', 'RssShmem')) / 1024


def until_free(worker, runs):
    worker.until(lambda: worker.so_far(worker.errors).count('the run is over') >= runs, 'it is free')


@test
def workers_that_stay_serve_ten_runs_and_give_back_what_they_had(folder):
    data = folder / 'wide.libsvm'
    with open(data, 'w') as file:  # a model of 200,000 parameters
        for row in range(200):
            values = ' '.join(f'{1 + row * 1000 + j}:1' for j in range(1000))
            file.write(f'{row % 2} {values}\n')
    with staying(folder) as (workers, settings):
        job = write_job(folder, data=[data.name], l2=0.1, max_steps=2, history=10, **settings)
        before = [resident_mib(worker) for worker in workers]
        hashes, after = set(), []
        for run in range(10):
            hashes.add(train(job, '--fresh')['model_sha256'])
            for worker in workers:
                until_free(worker, run + 1)
            after.append([resident_mib(worker) for worker in workers])
        assert len(hashes) == 1, hashes
        for start, first, last in zip(before, after[0], after[-1]):
            assert last < start + 8 and last < first + 2, (before, after)


@test
def two_jobs_in_turn_get_the_models_of_workers_of_their_own(folder):
    jobs, own = [], []
    with staying(folder) as (_, settings):
        for name, rows in ('one', 40), ('other', 90):
            data = small_data(folder, f'{name}.libsvm', rows=rows)
            jobs.append(write_job(folder, name, data=[data.name], l2=1e-3, **settings))
            own.append(write_job(folder, f'{name}-own', data=[data.name], l2=1e-3))
        found = [train(job, '--fresh')['model_sha256'] for job in jobs + jobs]
    expected = [train(job)['model_sha256'] for job in own]
    assert found == expected + expected, (found, expected)


@test
def a_run_that_fails_or_is_killed_does_not_poison_the_next(folder):
    with staying(folder) as (workers, settings):
        good = small_job(folder, **settings)
        expected = train(good)['model_sha256']
        (folder / 'huge.libsvm').write_text('1 1:1e300\n0 1:-1e300\n')
        bad = write_job(folder, 'bad', data=['huge.libsvm'], objective='squared', **settings)
        assert dml('run', bad).status == BAD_DATA
        assert train(good, '--fresh')['model_sha256'] == expected
        (folder / 'endless').mkdir()
        killed = Process(COORDINATOR, 'run', endless_job(folder / 'endless', reconnect_seconds=2,
                                                         **settings))
        try:
            killed.until(lambda: 'step 0:' in killed.so_far(killed.errors), 'it steps')
            killed.signal(signal.SIGKILL)
            killed.wait()
        finally:
            killed.end()
        finished = dml('run', good, '--fresh', '--json')  # waits until they are given up
        assert finished.status == 0 and finished.json['model_sha256'] == expected, finished
        assert 'the coordinator did not come back' not in workers[0].so_far(workers[0].errors)


@test
def a_busy_worker_says_so_and_the_second_run_waits_for_it(folder):
    with staying(folder) as (_, settings):
        (folder / 'endless').mkdir()
        endless = endless_job(folder / 'endless', **settings)
        job = small_job(folder, **settings)
        first = Process(COORDINATOR, 'run', endless)
        second = None
        try:
            first.until(lambda: 'step 0:' in first.so_far(first.errors), 'it steps')
            refused = dml('run', job, '--wait', '0')
            assert refused.status == UNAVAILABLE, refused
            assert 'busy with another run' in refused.stderr, refused
            second = Process(COORDINATOR, 'run', job)
            waits_for(second, 'shard 0 at')
            assert dml('cancel', endless).status == 0
            assert first.wait().status == AGAIN
            assert second.wait().status == 0
        finally:
            for process in filter(None, (first, second)):
                process.end()


@test
def a_time_to_wait_that_is_none_is_refused(folder):
    job = small_job(folder)
    for text in '-1', 'soon', '1e9', 'nan', '', '1s':
        finished = dml('run', job, f'--wait={text}')
        assert finished.status == USAGE and '--wait' in finished.stderr, finished
    assert re.search(r'--wait SECONDS', dml('retrain', '--help').stdout)


if __name__ == '__main__':
    sys.exit(main())
