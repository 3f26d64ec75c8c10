#!/usr/bin/env python3
"""Links over TLS: the same bits, and whoever has another key, or none, is told what is wrong."""

import contextlib
import re
import secrets
import signal
import sys

from harness import (COORDINATOR, PERMISSION, REPLICA, SHARD, UNAVAILABLE, Process, dml,
                     is_stopped, main, run, small_job, test, train)


def make_key(path, text=None):
    path.parent.mkdir(exist_ok=True)
    path.touch(mode=0o600)
    path.write_text(text or secrets.token_hex(32) + '\n')
    return path


class Worker(Process):
    """A worker that listens; its address as it says it."""

    def __init__(self, program, key=None, listen='tls:127.0.0.1:0', **environment):
        super().__init__(program, '--listen', listen, *(['--key', key] if key else []),
                         **environment)
        self.until(lambda: '\n' in self.so_far(self.output), 'it listens')
        self.address = re.fullmatch(r'listening (\S+)\n', self.so_far(self.output))[1]

    def log(self):
        return self.so_far(self.errors)


@contextlib.contextmanager
def workers(*programs, **options):
    started = []
    try:
        for program in programs:
            started.append(Worker(program, **options))
        yield started
    finally:
        for worker in started:
            worker.end()


def job_at(folder, shards, replicas, **settings):
    return small_job(folder, shard_addresses=[worker.address for worker in shards],
                     replica_addresses=[worker.address for worker in replicas], **settings)


def state_of(job):
    return job.with_suffix('.state')


@test
def a_model_trained_over_tls_has_the_bits_of_the_quiet_one(folder):
    expected = train(small_job(folder), '--state', folder / 'own.state')['model_sha256']
    key = make_key(folder / 'job.state' / 'key')
    with workers(SHARD, SHARD, REPLICA, REPLICA, key=key) as (one, other, *replicas):
        assert one.address.startswith('tls:127.0.0.1:'), one.address
        other.address = other.address.removeprefix('tls:')  # TCP is TLS in any case
        job = job_at(folder, (one, other), replicas)
        assert train(job)['model_sha256'] == expected
        assert all(worker.wait(60).status == 0 for worker in (one, other, *replicas))


@test
def workers_killed_over_tls_are_replaced_and_the_model_is_the_same(folder):
    expected = train(small_job(folder, checkpoint_seconds=0), '--state', folder / 'own.state')
    key = make_key(folder / 'job.state' / 'key')
    with workers(SHARD, REPLICA, key=key) as started:
        shard, replica = started
        job = job_at(folder, [shard], [replica], checkpoint_seconds=0)
        process = Process(COORDINATOR, 'run', job, '--json',
                          DML_FAILPOINT='coordinator.send_EVALUATE:6:stop')
        try:
            process.until(lambda: is_stopped(process.pid), 'it stops at the sixth evaluation')
            for program, worker in (SHARD, shard), (REPLICA, replica):
                worker.signal(signal.SIGKILL)
                worker.popen.wait()
                started.append(Worker(program, key=key, listen=worker.address))
            process.signal(signal.SIGCONT)
            result = process.wait().json
        finally:
            process.end()
        assert result['model_sha256'] == expected['model_sha256'], (result, expected)
        assert result['restarts'] == {'coordinator': 0, 'shard': 1, 'replica': 1}, result


@test
def both_ends_say_that_their_keys_differ(folder):
    make_key(folder / 'job.state' / 'key')
    with workers(SHARD, REPLICA, key=make_key(folder / 'another')) as (shard, replica):
        job = job_at(folder, [shard], [replica])
        finished = dml('run', job, '--wait', '1')
        assert finished.status == UNAVAILABLE, finished
        for worker in shard, replica:
            assert f'the worker at {worker.address} has another key' in finished.stderr, finished
            worker.until(lambda: 'another key: give both programs the same file' in worker.log(),
                         'the worker says so')
            assert worker.log().count('another key') == 1, worker.log()


@test
def a_coordinator_that_needs_a_key_makes_one_and_says_so(folder):
    with workers(SHARD, REPLICA, key=make_key(folder / 'another')) as (shard, replica):
        finished = dml('run', job_at(folder, [shard], [replica]), '--wait', '1')
        assert finished.status == UNAVAILABLE, finished
        assert f'made the key {state_of(folder / "job.conf")}/key' in finished.stderr, finished


@test
def a_replica_without_a_key_says_that_it_needs_one_for_a_shard_on_tcp(folder):
    key = make_key(folder / 'job.state' / 'key')
    with workers(SHARD, key=key) as (shard,), \
            workers(REPLICA, listen=f'unix:{folder}/replica') as (replica,):
        finished = dml('run', job_at(folder, [shard], [replica]), '--wait', '1')
        assert finished.status and 'give this program --key FILE' in finished.stderr + replica.log(), \
            (finished, replica.log())


@test
def a_key_that_others_may_read_is_refused(folder):
    key = make_key(folder / 'job.state' / 'key')
    key.chmod(0o640)
    finished = run(SHARD, '--listen', '127.0.0.1:0', '--key', key)
    assert finished.status == PERMISSION and f'chmod 600 {key}' in finished.stderr, finished
    job = small_job(folder, shard_addresses=['tls:127.0.0.1:1'])
    finished = dml('run', job)
    assert finished.status == PERMISSION and 'chmod 600' in finished.stderr, finished


if __name__ == '__main__':
    sys.exit(main())
