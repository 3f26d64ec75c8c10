#!/usr/bin/env python3
"""Shards that do not see the state folder: their checkpoints go to the coordinator, and come back.

The host of a shard is a mount namespace, in which another folder lies over the state folder. That takes root."""

import contextlib
import re
import shutil
import signal
import subprocess
import sys

from harness import (COORDINATOR, REPLICA, SHARD, Process, Skip, dml, main, small_data, test, train, write_job)


class Worker(Process):
    """A worker at an address; with `own` it sees nothing of the state folder, and keeps its files there."""

    def __init__(self, program, state, key, own=None, listen='tls:127.0.0.1:0', **environment):
        hidden = ('unshare', '-m', 'sh', '-c', f'mount -t tmpfs none "{state}" && exec "$@"', 'sh')
        super().__init__(program, '--listen', listen, '--stay', '--key', key, *(('--folder', own) if own else ()),
                         prefix=hidden if own else (), **environment)
        self.until(lambda: '\n' in self.so_far(self.output), 'it listens')
        self.address = re.fullmatch(r'listening (\S+)\n', self.so_far(self.output))[1]


@contextlib.contextmanager
def hosts_apart(folder, place=None, **settings):
    """A job with two shards of this kind, its state folder and key, the shards, a function that starts a worker,
    and the hash of the model. The first shard has a failpoint at `place`."""
    if not shutil.which('unshare') or subprocess.run(['unshare', '-m', 'true'], capture_output=True,
                                                     check=False).returncode:
        raise Skip('no mount namespaces: they take root and unshare')
    state, key = folder / 'apart.state', folder / 'key'
    state.mkdir()
    for path in key, state / 'key':
        path.touch(mode=0o600)
        path.write_text('ab' * 32 + '\n')
    settings = {'data': [small_data(folder, rows=3000).name], 'l2': 1e-4, 'gradient_tolerance': 1e-9,
                'checkpoint_seconds': 0, **settings}
    expected = train(write_job(folder, 'quiet', **settings))['model_sha256']
    with contextlib.ExitStack() as workers:
        def started(*arguments, **options):
            worker = Worker(*arguments, **options)
            workers.callback(worker.end)
            return worker
        shards = [started(SHARD, state, key, folder / 'host0', **({'DML_FAILPOINT': f'shard.{place}'} if place else {})),
                  started(SHARD, state, key, folder / 'host1')]
        replica = started(REPLICA, state, key)
        job = write_job(folder, 'apart', shard_addresses=[shard.address for shard in shards],
                        replica_addresses=[replica.address], **settings)
        yield job, state, key, shards, started, expected


def files_of(folder):
    return sorted(path.name for path in folder.rglob('step-*'))


@test
def checkpoints_lie_in_the_state_folder_and_no_file_is_left_on_the_hosts(folder):
    with hosts_apart(folder) as (job, state, _, shards, _, expected):
        finished = dml('run', job, '--json', '--set', 'max_steps=3')
        assert finished.json['reason'] == 'step limit', finished
        assert len(list((state / 'shards').rglob('step-3'))) == 2, files_of(state)
        shards[0].until(lambda: 'the run is over' in shards[0].so_far(shards[0].errors), 'it is free')
        assert not files_of(folder / 'host0') and not files_of(folder / 'host1')
        assert dml('run', job, '--json').json['model_sha256'] == expected


@test
def a_shard_that_is_killed_with_its_disk_goes_on_from_the_copies(folder):
    with hosts_apart(folder) as (job, state, key, shards, started, expected):
        listen = shards[0].address
        # The coordinator waits when a step is durable, so that the run does not end before the shard is killed.
        run = Process(COORDINATOR, 'run', job, '--json', '--verbose', '--wait', '60',
                      DML_FAILPOINT='coordinator.state_step_commit:3:delay:1000')
        run.until(lambda: 'step 2 is durable' in run.so_far(run.errors) or
                  re.search(r'step [3-9] is durable', run.so_far(run.errors)), 'a step is durable')
        shards[0].signal(signal.SIGKILL)
        shards[0].wait()
        shutil.rmtree(folder / 'host0')
        started(SHARD, state, key, folder / 'host0', listen=listen)
        finished = run.wait()
        assert finished.status == 0 and finished.json['model_sha256'] == expected, finished
        assert re.search(r'back to step \d+', run.so_far(run.errors)), finished


def killed_and_started(folder, run, shard, state, key, started, **environment):
    """The shard dies at its failpoint, and is started again at its address."""
    run.until(lambda: shard.popen.poll() is not None, 'the shard is killed')
    assert shard.wait().status == -signal.SIGKILL
    return started(SHARD, state, key, folder / 'host0', listen=shard.address, **environment)


@test
def a_shard_may_be_killed_between_the_messages_that_deliver_a_checkpoint(folder):
    for place in 'receive_READ_FILE:2', 'send_FILE_BYTES:2', 'send_NEEDED:1':
        inner = folder / place.partition(':')[0]
        inner.mkdir()
        with hosts_apart(inner, f'{place}:kill') as (job, state, key, shards, started, expected):
            run = Process(COORDINATOR, 'run', job, '--json', '--wait', '60')
            killed_and_started(inner, run, shards[0], state, key, started)
            finished = run.wait()
            assert finished.status == 0 and finished.json['model_sha256'] == expected, (place, finished)


@test
def a_shard_may_be_killed_between_the_messages_that_bring_a_checkpoint(folder):
    for place in 'send_READ_FILE:1', 'receive_FILE_BYTES:1':
        inner = folder / place.partition(':')[0]
        inner.mkdir()
        with hosts_apart(inner) as (job, state, key, shards, started, expected):
            assert dml('run', job, '--json', '--set', 'max_steps=3').json['reason'] == 'step limit'
            shards[0].end()
            dies = started(SHARD, state, key, inner / 'host0', listen=shards[0].address,
                           DML_FAILPOINT=f'shard.{place}:kill')
            run = Process(COORDINATOR, 'run', job, '--json', '--wait', '60')
            killed_and_started(inner, run, dies, state, key, started)
            finished = run.wait()
            assert finished.status == 0 and finished.json['model_sha256'] == expected, (place, finished)


@test
def a_coordinator_may_be_killed_between_these_messages(folder):
    with hosts_apart(folder) as (job, _, _, _, _, expected):
        for place in 'send_READ_FILE:2', 'receive_FILE_BYTES:3', 'receive_NEEDED:1':
            killed = dml('run', job, '--json', '--wait', '60', DML_FAILPOINT=f'coordinator.{place}:kill')
            assert killed.status == -signal.SIGKILL, (place, killed)
        # The files of the hosts go when a run ends at a limit, so what it goes on from comes from the coordinator.
        assert dml('run', job, '--json', '--wait', '60', '--set', 'max_steps=4').json['reason'] == 'step limit'
        for place in 'receive_READ_FILE:1', 'send_FILE_BYTES:2':
            killed = dml('run', job, '--json', '--wait', '60', DML_FAILPOINT=f'coordinator.{place}:kill')
            assert killed.status == -signal.SIGKILL, (place, killed)
        assert dml('run', job, '--json', '--wait', '60').json['model_sha256'] == expected


if __name__ == '__main__':
    sys.exit(main())
