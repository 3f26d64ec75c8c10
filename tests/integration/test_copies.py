#!/usr/bin/env python3
"""State folders that are copied or moved while a run in them is unfinished."""

import contextlib
import signal
import subprocess
import sys
import time

from harness import (COORDINATOR, REPLICA, SHARD, Process, dml, endless_job, main, test)


@contextlib.contextmanager
def killed_run(folder, **settings):
    """The coordinator of a run with durable steps, killed; its workers wait for the next."""
    job = endless_job(folder, checkpoint_seconds=0, reconnect_seconds=3600, **settings)
    process = Process(COORDINATOR, 'run', job, '--verbose')
    try:
        process.until(lambda: 'is durable' in process.so_far(process.errors), 'a step is durable')
        process.signal(signal.SIGKILL)
        process.wait()
        yield job, process
    finally:
        process.end()


def contents(folder):
    """What the files below a folder hold; none if one of them went while it was read."""
    try:
        return {path: path.read_bytes() for path in folder.rglob('*') if path.is_file()}
    except FileNotFoundError:
        return None


def settled(folder):
    """What the files below a folder hold, once its workers have ended what they were told to save: a
    shard whose coordinator was killed completes the checkpoint in hand, and takes old ones away."""
    end = time.monotonic() + 60
    before = contents(folder)
    while time.monotonic() < end:
        time.sleep(0.5)
        files = contents(folder)
        if files == before and files and not any('.tmp.' in path.name for path in files):
            return files
        before = files
    raise AssertionError('workers without a coordinator change files for a minute')


def ended(job, state):
    """The run in that folder, taken up and ended."""
    return dml('run', job, '--state', state, '--verbose', '--wait', 0, '--set', 'max_seconds=2')


@test
def a_copy_of_a_state_folder_goes_on_with_workers_of_its_own(folder):
    with killed_run(folder) as (job, process):
        workers = process.survivors()
        assert workers
        files = settled(folder / 'job.state/shards')
        subprocess.run(['cp', '-a', folder / 'job.state', folder / 'copy.state'], check=True)
        copy = ended(job, folder / 'copy.state')
        assert copy.status == 0 and 'is a copy' in copy.stderr, copy
        assert 'goes on; step' in copy.stderr, copy
        assert process.survivors() == workers, copy
        assert all(path.read_bytes() == was for path, was in files.items()), copy
        original = ended(job, folder / 'job.state')
        assert original.status == 0 and 'is a copy' not in original.stderr, original
        assert process.deserted(), 'its workers are not told to exit'


@test
def a_state_folder_that_was_moved_keeps_its_workers(folder):
    with killed_run(folder) as (job, process):
        (folder / 'job.state').rename(folder / 'moved.state')
        moved = ended(job, folder / 'moved.state')
        assert moved.status == 0 and 'is a copy' not in moved.stderr, moved
        assert process.deserted(), 'its workers are not told to exit'


@test
def workers_that_were_started_by_hand_refuse_a_copy_of_the_state_that_they_serve(folder):
    addresses = [f'unix:{folder}/{name}' for name in ('s', 'r')]
    workers = [Process(program, '--listen', address)
               for program, address in zip((SHARD, REPLICA), addresses)]
    try:
        for worker, name in zip(workers, ('s', 'r')):
            worker.until((folder / name).exists, 'it listens')
        with killed_run(folder, shard_addresses=addresses[:1],
                        replica_addresses=addresses[1:]) as (job, _):
            settled(folder / 'job.state/shards')
            subprocess.run(['cp', '-a', folder / 'job.state', folder / 'copy.state'], check=True)
            copy = ended(job, folder / 'copy.state')
            assert copy.status == 69 and 'busy with another run' in copy.stderr, copy
            original = ended(job, folder / 'job.state')
            assert original.status == 0, original
    finally:
        for worker in workers:
            worker.end()


if __name__ == '__main__':
    sys.exit(main())
