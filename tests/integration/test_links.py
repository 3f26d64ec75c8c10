#!/usr/bin/env python3
"""Links over TLS: the same bits, and whoever has another key, or none, is told what is wrong."""

import contextlib
import os
import pathlib
import re
import secrets
import signal
import socket
import sys

from harness import (COORDINATOR, PERMISSION, REPLICA, SHARD, UNAVAILABLE, Process, Skip, dml,
                     is_stopped, main, ordinary_user, run, small_job, test, train)


def make_key(path, text=None):
    path.parent.mkdir(exist_ok=True)
    path.touch(mode=0o600)
    path.write_text(text or secrets.token_hex(32) + '\n')
    return path


class Worker(Process):
    """A worker that listens; its address as it says it."""

    def __init__(self, program, key=None, listen='tls:127.0.0.1:0', **options):
        super().__init__(program, '--listen', listen, *(['--key', key] if key else []), **options)
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


# ---- the socket of a shard for replicas of its host ----

CONNECTED = '03'


def sockets_without_file(worker):
    """Names of the Unix sockets that a shard has for others of its host: the one that it listens
    on, and those by which others have come."""
    def target(descriptor):
        with contextlib.suppress(FileNotFoundError):
            return os.readlink(descriptor)
    own = set(map(target, pathlib.Path(f'/proc/{worker.pid}/fd').iterdir()))
    listening, came = [], []
    for line in pathlib.Path('/proc/net/unix').read_text().splitlines()[1:]:
        *_, state, inode, name = f'{line} none'.split()[:8]
        if f'socket:[{inode}]' in own and name.startswith('@dml-'):
            (came if state == CONNECTED else listening).append(name)
    return listening[0], came


@contextlib.contextmanager
def run_held(job):
    """A run whose coordinator stands still at its sixth evaluation; the caller lets it go on."""
    process = Process(COORDINATOR, 'run', job, '--json',
                      DML_FAILPOINT='coordinator.send_EVALUATE:6:stop')
    try:
        process.until(lambda: is_stopped(process.pid), 'it stops at the sixth evaluation')
        yield process
    finally:
        process.end()


def end_of(process):
    process.signal(signal.SIGCONT)
    return process.wait().json['model_sha256']


def answer_to(name, said):
    """What a process of this user hears that says so to the socket of that name."""
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.settimeout(60)
        stranger.connect('\0' + name[1:])
        stranger.sendall(said)
        try:
            return stranger.recv(1000)
        except ConnectionResetError:
            return b''


@test
def a_replica_of_the_host_comes_by_a_unix_socket_and_gives_the_bits_of_tls(folder):
    expected = train(small_job(folder), '--state', folder / 'own.state')['model_sha256']
    for host, links in ('127.0.0.1', 1), ('127.0.0.2', 0):
        key = make_key(folder / f'of-{links}.state' / 'key')
        with workers(SHARD, key=key) as (shard,), \
                workers(REPLICA, key=key, listen=f'{host}:0') as (replica,), \
                run_held(job_at(folder, [shard], [replica], name=f'of-{links}')) as process:
            name, came = sockets_without_file(shard)
            assert came == [name] * links, (name, came)
            assert answer_to(name, b'GREET without a secret' * 10) == b'', 'strangers hear nothing'
            assert end_of(process) == expected


@test
def a_replica_of_another_user_comes_over_tls(folder):
    job = small_job(folder)
    expected = train(job, '--state', folder / 'own.state')['model_sha256']
    text = secrets.token_hex(32) + '\n'
    key, keys = make_key(folder / 'job.state' / 'key', text), make_key(folder / 'of-another', text)
    assert dml('pack', job).status == 0
    user = ordinary_user(folder)
    if user is None:
        raise Skip('only root can start a process of another user')
    os.chown(key, 0, 0)
    with workers(SHARD, key=key) as (shard,), \
            workers(REPLICA, key=keys, user=user, cwd='/') as (replica,), \
            run_held(job_at(folder, [shard], [replica])) as process:
        name, came = sockets_without_file(shard)
        assert not came, (name, came)
        assert end_of(process) == expected


# Takes a name as another user, if it may, and says who comes, and how much they say.
SQUATTER = """
import os, socket, sys
if os.geteuid() == 0:
    os.setuid(65534)
listener = socket.socket(socket.AF_UNIX)
listener.bind('\\0' + sys.argv[1][1:])
listener.listen()
print('listening', flush=True)
while True:
    visitor, _ = listener.accept()
    print('came', flush=True)
    print('said', len(visitor.recv(1000)), flush=True)
"""


@test
def who_takes_the_name_of_a_dead_shard_is_told_nothing_and_harms_nothing(folder):
    expected = train(small_job(folder, checkpoint_seconds=0), '--state', folder / 'own.state')
    key = make_key(folder / 'job.state' / 'key')
    with contextlib.ExitStack() as stack:
        shard, replica = stack.enter_context(workers(SHARD, REPLICA, key=key))
        process = stack.enter_context(
            run_held(job_at(folder, [shard], [replica], checkpoint_seconds=0)))
        name, came = sockets_without_file(shard)
        assert came == [name], (name, came)
        replica.signal(signal.SIGSTOP)
        shard.signal(signal.SIGKILL)
        shard.popen.wait()
        squatter = Process(sys.executable, '-c', SQUATTER, name)
        stack.callback(squatter.end)
        squatter.until(lambda: 'listening' in squatter.so_far(squatter.output), 'the name is taken')
        replica.signal(signal.SIGCONT)
        squatter.until(lambda: 'came' in squatter.so_far(squatter.output), 'the replica comes')
        stack.enter_context(workers(SHARD, key=key, listen=shard.address))
        assert end_of(process) == expected['model_sha256']
        if os.geteuid() == 0:  # one of the same user hears the secret of a shard that is no more
            assert squatter.so_far(squatter.output).endswith('said 0\n'), squatter.finished(None)


if __name__ == '__main__':
    sys.exit(main())
