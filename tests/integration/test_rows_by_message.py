#!/usr/bin/env python3
"""A replica that does not see the state folder gets the set by messages from the coordinator.

Its host is a mount namespace, in which another folder lies over the state folder. That takes root."""

import contextlib
import random
import re
import shutil
import signal
import subprocess
import sys

from harness import (COORDINATOR, REPLICA, SHARD, Process, Skip, dml, is_stopped, main, small_data, test, train,
                     write_job)

HEADER = 416  # bytes of the header of a set, which a worker asks for in any case


def need_namespaces():
    if not shutil.which('unshare') or subprocess.run(['unshare', '-m', 'true'], capture_output=True,
                                                     check=False).returncode:
        raise Skip('no mount namespaces: they take root and unshare')


class Worker(Process):
    """A worker on a host of its own, unless it sees the state folder; its address as it says it."""

    def __init__(self, program, made, own=None, listen='tls:127.0.0.1:0', **environment):
        self.own = own
        hidden = ('unshare', '-m', 'sh', '-c', f'mount -t tmpfs none "{made.state}" && exec "$@"', 'sh')
        folder = ('--folder', own) if own else ()
        super().__init__(program, '--listen', listen, '--stay', '--key', made.key, *folder,
                         prefix=hidden if own else (), **environment)
        made.workers.append(self)
        self.until(lambda: '\n' in self.so_far(self.output), 'it listens')
        self.address = re.fullmatch(r'listening (\S+)\n', self.so_far(self.output))[1]

    def came(self, runs=1):
        """The bytes of the set that came by messages in the last of so many runs."""
        self.until(lambda: self.so_far(self.errors).count('the run is over') >= runs, 'it is free')
        found = re.findall(r'(\d+) bytes of the set came', self.so_far(self.errors))
        return int(found[-1]) if found else 0

    def copies(self):
        return list(self.own.glob('copies/dml-*.scratch'))


class Apart:
    """A job whose replicas do not see the state folder; each is on a host of its own, or all are on one."""

    def __init__(self, folder, replicas=1, hosts=None, environment=None, **settings):
        self.state, self.key, self.workers = folder / 'apart.state', folder / 'key', []
        self.state.mkdir()
        for path in self.key, self.state / 'key':
            path.touch(mode=0o600)
            path.write_text('ab' * 32 + '\n')
        common = {'data': [small_data(folder, rows=6000).name], 'l2': 1e-3, **settings} \
            if 'data' not in settings else {'l2': 1e-3, **settings}
        self.expected = train(write_job(folder, 'quiet', **common))['model_sha256']
        shard = Worker(SHARD, self)
        hosts = [folder / f'host{i % (hosts or replicas)}' for i in range(replicas)]
        for host in hosts:
            host.mkdir(mode=0o700, exist_ok=True)
        self.replicas = [Worker(REPLICA, self, host, **(environment or {})) for host in hosts]
        self.job = write_job(folder, 'apart', shard_addresses=[shard.address],
                             replica_addresses=[worker.address for worker in self.replicas], **common)

    def run(self, *arguments):
        return self.ended(dml('run', self.job, '--json', *arguments))

    def ended(self, finished):
        assert finished.status == 0, finished
        assert finished.json['model_sha256'] == self.expected, finished
        return finished.json

    def set_bytes(self):
        return next(self.state.glob('**/*.set')).stat().st_size


@contextlib.contextmanager
def apart(folder, **settings):
    need_namespaces()
    made = None
    try:
        made = Apart(folder, **settings)
        yield made
    finally:
        for worker in made.workers if made else ():
            worker.end()


@test
def each_chunk_comes_once_in_a_run_and_the_model_is_the_same(folder):
    with apart(folder) as made:
        made.run()
        replica, size = made.replicas[0], made.set_bytes()
        came = replica.came()
        assert 0.9 * size < came <= size, (came, size)
        assert not replica.copies()  # it goes with the run


@test
def a_copy_in_scratch_serves_the_next_run(folder):
    with apart(folder, scratch=str(folder / 'scratch')) as made:
        made.run()
        made.replicas[0].came()
        made.run('--fresh')
        assert made.replicas[0].came(2) == HEADER


@test
def a_killed_replica_uses_what_its_host_has_and_fetches_what_is_damaged(folder):
    with apart(folder) as made:
        run = Process(COORDINATOR, 'run', made.job, '--json',
                      DML_FAILPOINT='coordinator.send_EVALUATE:4:stop')
        try:
            run.until(lambda: is_stopped(run.pid), 'it stops at the fourth evaluation')
            former = made.replicas[0]
            former.signal(signal.SIGKILL)
            former.popen.wait()
            copy, = former.copies()
            with open(copy, 'r+b') as file:
                file.seek(1000)
                byte = file.read(1)[0]
                file.seek(1000)
                file.write(bytes([byte ^ 1]))
            later = Worker(REPLICA, made, former.own, listen=former.address)
            run.signal(signal.SIGCONT)
            made.ended(run.wait())
            assert HEADER < later.came() < 0.3 * made.set_bytes(), (later.came(), made.set_bytes())
        finally:
            run.end()


@test
def a_replica_may_be_killed_between_the_messages(folder):
    for place in 'send_READ_SET:1', 'send_READ_SET:9', 'receive_SET_BYTES:5':
        inner = folder / place.partition(':')[0] / place[-1]
        inner.mkdir(parents=True)
        with apart(inner, environment={'DML_FAILPOINT': f'replica.{place}:kill'}) as made:
            run = Process(COORDINATOR, 'run', made.job, '--json')
            try:
                former = made.replicas[0]
                assert former.wait().status == -signal.SIGKILL
                Worker(REPLICA, made, former.own, listen=former.address)
                made.ended(run.wait())
            finally:
                run.end()


@test
def a_copy_that_is_damaged_while_it_is_used_changes_no_bit(folder):
    with apart(folder) as made:
        run = Process(COORDINATOR, 'run', made.job, '--json',
                      DML_FAILPOINT='coordinator.send_EVALUATE:4:stop')
        try:
            run.until(lambda: is_stopped(run.pid), 'it stops at the fourth evaluation')
            copy, = made.replicas[0].copies()
            with open(copy, 'r+b') as file:
                file.seek(1000)
                byte = file.read(1)[0]
                file.seek(1000)
                file.write(bytes([byte ^ 1]))
            run.signal(signal.SIGCONT)
            made.ended(run.wait())
        finally:
            run.end()


@test
def replicas_of_one_host_share_a_copy(folder):
    with apart(folder, replicas=2, hosts=1) as made:
        made.run()
        came = [worker.came() for worker in made.replicas]
        assert sum(came) < 2.1 * made.set_bytes(), (came, made.set_bytes())
        assert not made.replicas[0].copies()


@test
def what_the_disk_has_no_room_for_is_kept_in_memory(folder):
    for place in 1, 4, 9:
        inner = folder / str(place)
        inner.mkdir()
        with apart(inner, environment={'DML_FAILPOINT': f'replica.scratch_write:{place}:enospc'}) as made:
            made.run()


@test
def a_coordinator_that_is_killed_is_followed_by_one_that_is_asked_for_the_rest(folder):
    with apart(folder, checkpoint_seconds=0) as made:
        for place in 'send_SET_BYTES:12', 'receive_READ_SET:2', 'send_EVALUATE:3':
            killed = dml('run', made.job, '--json', DML_FAILPOINT=f'coordinator.{place}:kill')
            assert killed.status == -signal.SIGKILL, killed
        made.run()


@test
def holdouts_tiles_and_minibatches_come_by_messages(folder):
    wide = folder / 'wide.libsvm'
    rng = random.Random(4)
    with open(wide, 'w') as file:
        for _ in range(3000):
            columns = sorted(rng.sample(range(1, 400), 6))
            file.write(f'{rng.randrange(2)} ' + ' '.join(f'{j}:{rng.randrange(1, 9)}' for j in columns) + '\n')
    for name, settings in (('holdout', {'holdout': ['0.2'], 'early_stopping': 3}),
                           ('tiles', {'strip_columns': 64, 'directions': 4}),
                           ('network', {'objective': 'network', 'network': {'layers': [6]}, 'start': 'downpour',
                                        'downpour': {'epochs': 2}})):
        inner = folder / name
        inner.mkdir()
        with apart(inner, data=[str(wide)], max_steps=8, **settings) as made:
            made.run()
            assert made.replicas[0].came() <= made.set_bytes()


if __name__ == '__main__':
    sys.exit(main())
