#!/usr/bin/env python3
"""Workers are started before the data is packed: they are there when it is, and nothing is left of
them if it never is."""

import contextlib
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time

from harness import (AGAIN, BAD_DATA, COORDINATOR, REPLICA, SHARD, UNAVAILABLE, Process, Skip, dml,
                     endless_job, main, run, small_data, small_job, test, train, write_job)

HOUR_MS = 3600000
HELD = f'coordinator.pack_publish:1:delay:{HOUR_MS}'
NAMES = 'dml-shard', 'dml-replica'


def workers_of(process):
    """{pid: name} of the workers that the command has started."""
    found = {}
    for pid in process.survivors():
        with contextlib.suppress(OSError):
            name = pathlib.Path(f'/proc/{pid}/comm').read_text().strip()
            if name in NAMES:
                found[pid] = name
    return found


def sockets_in(places):
    return sorted(path.name for path in places.glob('dml-*/*'))


def places_of(folder):
    """Where sockets are made, and the environment that says so."""
    places = folder / 'places'
    places.mkdir(exist_ok=True)
    return places, {'TMPDIR': str(places), 'XDG_RUNTIME_DIR': ''}


@contextlib.contextmanager
def packing(folder, job, sockets=('replica-0.0', 'shard-0.0'), **environment):
    """A run that is held while it packs, once its workers listen."""
    places, variables = places_of(folder)
    log = folder / 'failpoints'
    log.unlink(missing_ok=True)
    process = Process(COORDINATOR, 'run', job, DML_FAILPOINT_LOG=str(log),
                      **{**variables, 'DML_FAILPOINT': HELD, **environment})
    try:
        process.until(lambda: log.exists() and 'pack_publish' in log.read_text(), 'it packs')
        process.until(lambda: sockets_in(places) == sorted(sockets), 'workers listen')
        yield process, places
    finally:
        process.end()


@test
def workers_listen_while_the_data_is_packed_and_a_signal_ends_them(folder):
    job = small_job(folder)
    for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
        with packing(folder, job) as (process, places):
            assert sorted(workers_of(process).values()) == sorted(NAMES), process
            process.signal(number)
            finished = process.wait(60)
            assert finished.status == AGAIN, finished
            assert 'the same command goes on from here' in finished.stderr, finished
            assert not process.survivors(), finished
            assert not list(places.iterdir()), 'sockets are left'
    train(job)


@test
def as_many_are_started_as_the_job_says_and_none_of_those_it_has_addresses_of(folder):
    job = small_job(folder, shards=2, replicas=3)
    sockets = [f'shard-{i}.0' for i in range(2)] + [f'replica-{i}.0' for i in range(3)]
    with packing(folder, job, sockets):
        pass
    job = small_job(folder, shard_addresses=[f'unix:{folder}/elsewhere'])
    shutil.rmtree(folder / 'places')
    with packing(folder, job, ['replica-0.0']):
        pass


@test
def data_that_is_refused_leaves_no_worker_and_no_socket(folder):
    places, variables = places_of(folder)
    job = small_job(folder)
    (folder / 'small.libsvm').write_text('1 1:1\n-1 2:x\n')
    finished = dml('run', job, **variables)
    assert finished.status == BAD_DATA and 'small.libsvm:2' in finished.stderr, finished
    assert len(finished.stderr.splitlines()) == 1, finished
    assert not list(places.iterdir()), 'sockets are left'


@test
def a_worker_whose_coordinator_stopped_before_it_listened_ends_without_a_word(folder):
    for program in SHARD, REPLICA:
        address = folder / program.name
        reader, writer = os.pipe()
        os.close(reader)
        worker = subprocess.Popen([program, '--listen', f'unix:{address}', '--parent-pid',
                                   str(os.getpid())], stdout=writer, stderr=subprocess.PIPE)
        os.close(writer)
        try:
            end = time.monotonic() + 60
            while not address.exists() and time.monotonic() < end:
                time.sleep(0.02)
            worker.terminate()
            _, told = worker.communicate(timeout=60)
        finally:
            worker.kill()
        # It may be ended before it handles the signal.
        assert worker.returncode in (0, -signal.SIGTERM) and not told, (worker.returncode, told)


@test
def a_coordinator_that_is_killed_while_it_packs_leaves_nothing_that_lasts(folder):
    job = small_job(folder)
    with packing(folder, job) as (process, places):
        process.signal(signal.SIGKILL)
        process.wait(60)
        assert process.deserted(), 'workers outlive their coordinator'
    result = train(job, **places_of(folder)[1])
    assert not list(places.iterdir()), 'sockets are left'
    assert result['restarts'] == {'coordinator': 0, 'shard': 0, 'replica': 0}, result
    assert result['model_sha256'] == train(job, '--state', folder / 'own.state')['model_sha256']


@test
def a_worker_that_is_killed_while_the_data_is_packed_is_replaced_without_a_word(folder):
    job = small_job(folder)
    expected = train(job, '--state', folder / 'own.state')
    held = 'coordinator.pack_publish:1:delay:3000'
    with packing(folder, job, DML_FAILPOINT=held) as (process, places):
        for pid in workers_of(process):
            os.kill(pid, signal.SIGKILL)
        finished = process.wait()
        assert finished.status == 0, finished
        assert not list(places.iterdir()), 'sockets are left'
    assert expected['model_sha256'] in finished.stdout, finished


def programs(folder, **scripts):
    """A folder with the coordinator, and with scripts in place of workers."""
    shutil.copy(COORDINATOR, folder / COORDINATOR.name)
    for program in SHARD, REPLICA:
        script = folder / program.name
        script.write_text('#!/bin/sh\n' + scripts.get(program.name[4:], f'exec "{program}" "$@"\n'))
        script.chmod(0o755)
    return folder / COORDINATOR.name


@test
def a_worker_that_cannot_begin_is_named_once_and_the_pack_is_kept(folder):
    places, variables = places_of(folder)
    job = small_job(folder)
    for place in 'replica', 'shard':
        coordinator = programs(folder, **{place: 'exit 3\n'})
        finished = run(coordinator, 'run', job, **variables)
        assert finished.status == UNAVAILABLE, finished
        assert finished.stderr.count(f'{place} 0 could not be started') == 1, finished
        assert list(folder.glob('job.state/packs/*.pack')), 'what was packed is kept'
        assert not list(places.iterdir()), 'sockets are left'


@test
def data_that_is_refused_counts_before_a_worker_that_cannot_begin(folder):
    job = small_job(folder)
    (folder / 'small.libsvm').write_text('1 1:1\n-1 2:x\n')
    coordinator = programs(folder, shard='exit 3\n')
    finished = run(coordinator, 'run', job)
    assert finished.status == BAD_DATA and 'could not be started' not in finished.stderr, finished


def wide_job(folder, **settings):
    """Of a model that has two shards, if there are two processors."""
    rng = random.Random(1)
    with open(folder / 'wide.libsvm', 'w') as file:
        for row in range(600):
            values = ' '.join(f'{1 + row * 1000 + j}:1' for j in range(1000))
            file.write(f'{rng.choice([-1, 1])} {values}\n')
    return write_job(folder, data=['wide.libsvm'], l2=0.1, max_steps=2, **settings)


@test
def all_shards_begin_while_columns_are_measured_and_end_with_a_run_that_is_refused(folder):
    places, variables = places_of(folder)
    (folder / 'test.libsvm').write_text('7 1:1\n')
    job = wide_job(folder, test=['test.libsvm'])
    finished = dml('run', job, **variables)
    assert finished.status == BAD_DATA and 'test.libsvm' in finished.stderr, finished
    assert not list(places.iterdir()), 'sockets are left'
    if len(os.sched_getaffinity(0)) < 2:
        raise Skip('there is one CPU: shards = auto is one')
    third = dml('run', job, DML_FAILPOINT='coordinator.launch_worker:3:kill', **variables)
    assert third.status == -signal.SIGKILL, third


@test
def more_shards_join_those_that_were_started_if_the_model_is_wide(folder):
    places, variables = places_of(folder)
    job = wide_job(folder)
    result = train(job, **variables)
    if result['shards'] < 2:
        raise Skip('there is one CPU: shards = auto is one')
    assert not list(places.iterdir()), 'sockets are left'
    alone = train(job, '--state', folder / 'own.state', '--set', 'shards=1')
    assert result['model_sha256'] == alone['model_sha256']


@test
def none_are_started_where_workers_of_a_lost_coordinator_may_wait(folder):
    places, variables = places_of(folder)
    job = endless_job(folder, reconnect_seconds=3600)
    first = Process(COORDINATOR, 'run', job, **variables)
    try:
        first.until(lambda: 'step 0:' in first.so_far(first.errors), 'it steps')
        before = workers_of(first)
        first.signal(signal.SIGKILL)
        first.wait()
        small_data(folder, rows=70, seed=5)  # other data: to be packed, and the run goes on no more
        with packing(folder, job) as (second, _):
            assert not workers_of(second), 'workers were started'
            assert set(workers_of(first)) == set(before), 'workers were disturbed'
    finally:
        first.end()


if __name__ == '__main__':
    sys.exit(main())
