#!/usr/bin/env python3
"""Replicas that a name lists join and leave while a run goes on. The name is one of /etc/hosts, in a mount
namespace of the coordinator's own, so the resolver of the system is asked."""

import contextlib
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys

from harness import AGAIN, COORDINATOR, REPLICA, UNAVAILABLE, Process, Skip, dml, endless_job, main, test, train

NAME = 'workers.dml.test'


class Names:
    """The file that takes the place of /etc/hosts."""

    def __init__(self, folder):
        self.path = folder / 'hosts'
        self.list()
        script = 'mount --bind "$0" /etc/hosts && exec "$@"'
        self.prefix = ['unshare', '-m', 'sh', '-c', script, self.path]
        if not shutil.which('unshare') or subprocess.run([*map(str, self.prefix), 'true'], capture_output=True,
                                                         check=False).returncode:
            raise Skip('this user may not mount')

    def list(self, *hosts, text=''):
        """In place: the mount shows this file, and another one of its name would not be seen."""
        lines = ''.join(f'{host} {NAME}\n' for host in hosts)
        with open(self.path, 'w', encoding='ascii') as file:
            file.write(f'127.0.0.1 localhost\n{lines}{text}')


def free_port():
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


class Pods:
    """Replicas on loopback addresses, each by the last number of its address."""

    def __init__(self, folder, key):
        self.names, self.key, self.port, self.live = Names(folder), key, free_port(), {}

    @staticmethod
    def host(number):
        return f'127.0.1.{number}' if number != 99 else '::1'

    def start(self, *numbers, **environment):
        for number in numbers:
            host = f'[{self.host(number)}]' if number == 99 else self.host(number)
            pod = Process(REPLICA, '--listen', f'{host}:{self.port}', '--key', self.key, '--stay', **environment)
            self.live[number] = pod
            pod.until(lambda: 'listening' in pod.so_far(pod.output), 'it listens')

    def kill(self, *numbers):
        for number in numbers:
            self.live.pop(number).end()

    def list(self, *numbers):
        self.names.list(*map(self.host, numbers))

    @property
    def address(self):
        return f'dns:{NAME}:{self.port}'


@contextlib.contextmanager
def pods_of(folder, make=endless_job, **settings):
    key = folder / 'job.state/key'
    key.parent.mkdir()
    key.parent.chmod(0o700)
    key.touch(0o600)
    key.write_text(secrets.token_hex(32) + '\n')
    pods = Pods(folder, key)
    job = make(folder, **{'replica_addresses': [pods.address], 'threads': 1, **settings})
    try:
        yield pods, job
    finally:
        pods.kill(*list(pods.live))


def start(pods, job, *arguments):
    return Process(COORDINATOR, 'run', job, '--json', *arguments, prefix=pods.names.prefix)


def status_of(job):
    """{} before the run has begun."""
    status = dml('status', job, '--json')
    return status.json if status.status == 0 else {}


def replicas(job):
    return [one for one in status_of(job).get('processes', []) if one['role'] == 'replica']


def until_there(run, job, *indices):
    """These replicas work, and no others are expected."""
    run.until(lambda: {one['index']: one['state'] for one in replicas(job)} == dict.fromkeys(indices, 'running'),
              f'replicas {indices} work')


def ends_as_alone(folder, pods, job, run):
    """Stops the run, and lets it go on for a few steps. It ends with the model that one command makes."""
    run.signal(signal.SIGTERM)
    stopped = run.wait()
    assert stopped.status == AGAIN, stopped
    steps = f'max_steps={stopped.json["steps"] + 20}'
    finished = start(pods, job, '--set', steps).wait()
    assert finished.status == 0, finished
    alone = folder / 'alone'
    alone.mkdir()
    expected = train(endless_job(alone), '--set', steps)
    assert finished.json['model_sha256'] == expected['model_sha256'], (finished, expected)
    return stopped.stderr


@test
def from_two_replicas_to_eight_and_back_the_model_is_the_same(folder):
    with pods_of(folder) as (pods, job):
        pods.start(1, 2)
        pods.list(1, 2)
        run = start(pods, job)
        try:
            until_there(run, job, 0, 1)
            pods.start(*range(3, 9))
            pods.list(*range(1, 9))
            until_there(run, job, *range(8))
            pods.kill(4, 5)  # before their name is gone
            pods.list(1, 8)
            until_there(run, job, 0, 7)
            pods.start(4)
            pods.list(1, 4)
            until_there(run, job, 0, 3)  # in the place that it had
            said = ends_as_alone(folder, pods, job, run)
            assert len(re.findall('replica . has left', said)) == 7, said
            assert all(pod.popen.poll() is None for pod in pods.live.values())  # they stay
        finally:
            run.end()


@test
def while_a_name_is_not_resolved_replicas_stay(folder):
    with pods_of(folder) as (pods, job):
        pods.start(1)
        pods.list(1)
        run = start(pods, job)
        try:
            until_there(run, job, 0)
            pods.list()
            run.until(lambda: 'is not resolved' in run.so_far(run.errors), 'it is asked again')
            assert f'{pods.address} is not resolved' in run.so_far(run.errors)
            assert len(replicas(job)) == 1
            run.signal(signal.SIGTERM)
            assert 'has left' not in run.wait().stderr
        finally:
            run.end()


@test
def a_name_that_lists_nobody_is_waited_for_and_then_named(folder):
    with pods_of(folder, reconnect_seconds=1) as (pods, job):
        run = start(pods, job)
        finished = run.wait()
        assert finished.status == UNAVAILABLE, finished
        assert re.search(rf'no replica is listed by {pods.address} \(.+\); start replicas, or wait longer for them '
                         'with --wait', finished.stderr), finished
        run = start(pods, job, '--wait', '60')
        try:
            run.until(lambda: f'a replica that is listed by {pods.address}' in
                      (status_of(job).get('waiting') or ''), 'it waits')
            pods.start(1)
            pods.list(1)
            until_there(run, job, 0)
            run.signal(signal.SIGTERM)
            run.wait()
        finally:
            run.end()


@test
def a_resumed_run_takes_its_replicas_up(folder):
    with pods_of(folder) as (pods, job):
        pods.start(1, 2, 3)
        pods.list(1, 2, 3)
        run = start(pods, job)
        until_there(run, job, 0, 1, 2)
        run.signal(signal.SIGKILL)
        run.wait()
        pods.list(2, 3)
        run = start(pods, job)
        try:
            until_there(run, job, 1, 2)
            ends_as_alone(folder, pods, job, run)
        finally:
            run.end()


@test
def a_name_stands_beside_an_address_and_lists_ipv6(folder):
    with pods_of(folder) as (pods, _):
        pods.start(1, 2, 99)
        job = endless_job(folder, threads=1, replica_addresses=[pods.address, f'127.0.1.2:{pods.port}',
                                                                f'dns:localhost:{pods.port}'])
        pods.list(1, 2, 99)
        run = start(pods, job)
        try:
            run.until(lambda: sum(one['state'] == 'running' for one in replicas(job)) == 3, 'all are there')
            ends_as_alone(folder, pods, job, run)
        finally:
            run.end()


@test
def a_shard_needs_an_address_of_its_own(folder):
    job = endless_job(folder, shard_addresses=['dns:shards:7000'])
    refused = dml('check', job)
    assert 'shards keep state, so each needs an address of its own' in refused.stderr, refused


if __name__ == '__main__':
    sys.exit(main())
