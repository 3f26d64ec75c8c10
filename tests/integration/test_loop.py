#!/usr/bin/env python3
"""Nothing blocks the coordinator's event loop: whatever it waits for, workers hear its PING and
questions are answered meanwhile. Each obstacle lasts until the test ends it."""

import contextlib
import datetime
import errno
import http.client
import json
import os
import re
import shutil
import signal
import socket
import statistics
import sys
import time
import urllib.parse

from harness import (AGAIN, COORDINATOR, REPLICA, SHARD, UNAVAILABLE, Process, dml, endless_job,
                     main, run, small_data, small_job, test, train, url_of)

ANSWER_SECONDS = 0.05
HOUR_MS = 3600000
PINGS = 4


def ask(url, path):
    """The status of the answer, its body, and how long it took."""
    place = urllib.parse.urlsplit(url)
    client = http.client.HTTPConnection(place.hostname, place.port, timeout=60)
    begun = time.monotonic()
    client.request('GET', path)
    response = client.getresponse()
    body = response.read().decode()
    seconds = time.monotonic() - begun
    client.close()
    return response.status, body, seconds


def answers(url):
    """The server answers soon: at least once in a few times, however busy the machine is."""
    took = []
    for _ in range(20):
        status, body, seconds = ask(url, '/livez')
        assert status == 200, (status, body)
        took.append(seconds)
    assert min(took) < ANSWER_SECONDS, took


def pings(process):
    """When PING came, in seconds, by the worker's log."""
    return [datetime.datetime.fromisoformat(stamp).timestamp() for stamp in
            re.findall(r'(\S+)Z \S+ debug: PING from link', process.so_far(process.errors))]


def goes_on(run, worker, url):
    """PING goes out each second to the worker, and the server answers. A second may get long on a
    busy machine, but not as a rule."""
    answers(url)
    before = len(pings(worker))
    run.until(lambda: len(pings(worker)) >= before + PINGS, 'PING goes on')
    times = pings(worker)[before:]
    gaps = [later - earlier for earlier, later in zip(times, times[1:])]
    assert statistics.median(gaps) < 2.5, gaps
    answers(url)


@contextlib.contextmanager
def worker(program, address, *arguments):
    process = Process(program, '--listen', address, *arguments)
    try:
        process.until(lambda: 'listening' in process.so_far(process.output), 'it listens')
        yield process
    finally:
        process.end()


@contextlib.contextmanager
def running(job, *arguments, program=COORDINATOR, **environment):
    """A run that makes steps, and where its status server is."""
    run = Process(program, 'run', job, *arguments, **environment)
    try:
        url = url_of(run)
        run.until(lambda: ask(url, '/readyz')[0] == 200, 'it is ready')
        yield run, url
    finally:
        run.end()


def address_of(process):
    return re.search(r'listening (\S+)', process.so_far(process.output))[1]


def at_last_cancelled(job, run):
    assert dml('cancel', job).status == 0
    finished = run.wait()
    assert finished.status == AGAIN, finished


def full_queue(path, stack):
    """A Unix socket that takes no more connections."""
    listener = stack.enter_context(socket.socket(socket.AF_UNIX))
    listener.bind(str(path))
    listener.listen(0)
    while True:
        client = stack.enter_context(socket.socket(socket.AF_UNIX))
        client.setblocking(False)
        if client.connect_ex(str(path)) == errno.EAGAIN:
            return


@test
def an_address_whose_queue_is_full_holds_nothing_up(folder):
    kept, lost = (f'unix:{folder}/r{k}' for k in range(2))
    job = endless_job(folder, http='127.0.0.1:0', replica_addresses=[kept, lost],
                      reconnect_seconds=3600)
    with worker(REPLICA, kept, '--verbose') as other, worker(REPLICA, lost) as victim, \
            running(job) as (run, url), contextlib.ExitStack() as stack:
        full_queue(folder / 'full', stack)
        os.rename(folder / 'full', folder / 'r1')
        victim.end()
        run.until(lambda: 'replica 1 was lost' in run.so_far(run.errors), 'it is lost')
        goes_on(run, other, url)
        at_last_cancelled(job, run)


@test
def a_name_that_is_not_resolved_holds_nothing_up(folder):
    key = folder / 'job.state/key'
    key.parent.mkdir()
    key.touch(mode=0o600)
    key.write_text('0' * 64 + '\n')
    never = ','.join(f'coordinator.name_lookup:{k}:delay:{HOUR_MS}' for k in range(2, 32))
    with worker(REPLICA, f'unix:{folder}/r', '--verbose') as other, \
            worker(REPLICA, '127.0.0.1:0', '--key', key) as victim:
        port = address_of(victim).rpartition(':')[2]
        job = endless_job(folder, http='127.0.0.1:0', reconnect_seconds=3600,
                          replica_addresses=[f'unix:{folder}/r', f'localhost:{port}'])
        with running(job, DML_FAILPOINT=never) as (run, url):
            victim.end()
            run.until(lambda: 'replica 1 was lost' in run.so_far(run.errors), 'it is lost')
            goes_on(run, other, url)
            at_last_cancelled(job, run)


def programs(folder, refuses):
    """A folder with the programs, of which the one that is told to listen at an address that ends so
    sleeps instead."""
    shutil.copy(COORDINATOR, folder / COORDINATOR.name)
    for program in (SHARD, REPLICA):
        script = folder / program.name
        script.write_text(f'#!/bin/sh\ncase "$2" in *{refuses}) exec sleep 3600;; esac\n'
                          f'exec "{program}" "$@"\n')
        script.chmod(0o755)
    return folder / COORDINATOR.name


def sleepers(run):
    """Processes of the run that sleep."""
    found = []
    for pid in run.survivors():
        with contextlib.suppress(OSError), open(f'/proc/{pid}/cmdline', 'rb') as file:
            if file.read().startswith(b'sleep\0'):
                found.append(pid)
    return found


def kill_process(url, role, index):
    found = re.search(rf'"role":\s*"{role}",\s*"index":\s*{index},\s*"pid":\s*(\d+)',
                      ask(url, '/api/v1/status')[1])
    os.kill(int(found[1]), signal.SIGKILL)


@test
def a_worker_that_does_not_come_up_holds_nothing_up(folder):
    for place in ('replica', 'shard'):
        here = folder / place
        here.mkdir()
        kept = f'unix:{here}/kept'
        own = {'replica': 'shard_addresses', 'shard': 'replica_addresses'}[place]
        with worker(SHARD if place == 'replica' else REPLICA, kept, '--verbose') as other:
            job = endless_job(here, http='127.0.0.1:0', **{own: [kept]})
            with running(job, program=programs(here, f'{place}-0.1')) as (run, url):
                kill_process(url, place, 0)
                run.until(lambda: sleepers(run), 'it is started anew')
                goes_on(run, other, url)
                assert sleepers(run), f'{place} 0 was given up meanwhile'
                at_last_cancelled(job, run)


@test
def a_worker_that_is_killed_before_it_listens_is_started_again(folder):
    expected = train(small_job(folder), '--state', folder / 'own.state')['model_sha256']
    program = programs(folder, 'never')
    for worker_program in (SHARD, REPLICA):
        script = folder / worker_program.name
        script.write_text(script.read_text().replace(
            'exec "', f'mkdir {folder}/{worker_program.name}.killed 2>/dev/null && kill -9 $$\nexec "'))
    finished = run(program, 'run', small_job(folder), '--json')
    assert finished.status == 0, finished
    assert finished.json['model_sha256'] == expected, finished
    assert len(list(folder.glob('*.killed'))) == 2, finished


@test
def a_worker_that_exits_before_it_listens_ends_the_run(folder):
    here = programs(folder, 'replica-0.0')
    (folder / REPLICA.name).write_text('#!/bin/sh\nexit 3\n')
    finished = run(here, 'run', small_job(folder))
    assert finished.status == UNAVAILABLE, finished
    assert 'replica 0 could not be started' in finished.stderr, finished


# ---- beside the loop ----

def so_far(path):
    return path.read_text() if path.exists() else ''


def state_of(url):
    return json.loads(ask(url, '/api/v1/status')[1])['state']


def stands_at(process, job, stage):
    """Waits until the command is at that stage; while it is there, it must answer questions."""
    url = url_of(process)
    process.until(lambda: state_of(url) == stage, f'it is {stage}')
    answers(url)
    for question in ('status', 'jobs'):
        asked = dml(question, job, '--json')
        assert asked.status == 0, asked
    assert dml('status', job, '--json').json['state'] == stage
    status, why, _ = ask(url, '/readyz')
    assert status == 503 and stage in why, (status, why)
    answers(url)
    assert state_of(url) == stage


def ends_at_once(process, job, stop):
    if stop == 'cancel':
        asked = dml('cancel', job, '--json')
        assert asked.status == 0 and asked.json == {'folder': str(job.with_suffix('.state')), 'stopping': True}, asked
    else:
        process.signal(stop)
    finished = process.wait(60)
    assert finished.status == AGAIN, finished
    assert 'the same command goes on from here' in finished.stderr, finished
    assert process.deserted(), finished
    assert not (job.parent / 'job.state/control.sock').exists()


def job_with_all(folder, **settings):
    small_data(folder, 'more.libsvm', seed=2)
    return small_job(folder, http='127.0.0.1:0', test=['more.libsvm'], holdout=['more.libsvm'],
                     **settings)


@contextlib.contextmanager
def process_of(command, job, **environment):
    process = Process(COORDINATOR, command, job, **environment)
    try:
        yield process
    finally:
        process.end()


@test
def questions_are_answered_and_a_stop_is_obeyed_at_every_stage(folder):
    stages = [('packing', 'pack_publish:1', 'cancel'),
              ('scoring', 'score:1', signal.SIGTERM),
              ('writing the model', 'model_publish:1', signal.SIGINT),
              ('scoring', 'score:2', 'cancel')]
    job = job_with_all(folder)
    for stage, place, stop in stages:
        with process_of('run', job, DML_FAILPOINT=f'coordinator.{place}:delay:{HOUR_MS}') as run:
            stands_at(run, job, stage)
            ends_at_once(run, job, stop)
    result = train(job)
    assert result['model_sha256'] == train(job, '--state', folder / 'own.state')['model_sha256']


@test
def old_versions_are_removed_beside_the_loop(folder):
    job = job_with_all(folder, keep_models=2)
    for night in 1, 2:
        small_data(folder, rows=80, seed=night)
        assert dml('retrain', job).status == 0
    small_data(folder, rows=80, seed=3)
    place = f'coordinator.model_remove:1:delay:{HOUR_MS}'
    with process_of('retrain', job, DML_FAILPOINT=place, DML_FAILPOINT_LOG=folder / 'log') as run:
        run.until(lambda: 'model_remove' in so_far(folder / 'log'), 'a version is removed')
        stands_at(run, job, 'ending')
        ends_at_once(run, job, 'cancel')
    models = folder / 'job.state/models'
    assert (models / '1').exists() and os.readlink(models / 'current') == '3'
    assert dml('retrain', job).status == 0
    assert not (models / '1').exists()


@test
def on_publish_and_the_gate_run_beside_the_loop(folder):
    job = job_with_all(folder, gate=['loss <= 2 * live'])
    assert dml('retrain', job).status == 0
    small_data(folder, rows=80, seed=3)
    # The new model is scored on the holdout and on the test data, then the live one.
    with process_of('retrain', job, DML_FAILPOINT=f'coordinator.score:3:delay:{HOUR_MS}') as run:
        stands_at(run, job, 'checking the gate')
        ends_at_once(run, job, signal.SIGTERM)
    for command, stop in (('retrain', 'cancel'), ('run', signal.SIGINT)):
        job = job_with_all(folder, gate=['loss <= 2 * live'],
                           on_publish='exec sleep 3600')
        small_data(folder, rows=80, seed=3)
        with process_of(command, job) as run:
            stands_at(run, job, 'running on_publish')
            ends_at_once(run, job, stop)
    job = job_with_all(folder, gate=['loss <= 2 * live'], on_publish=f'env >{folder}/seen')
    small_data(folder, rows=80, seed=3)
    finished = dml('retrain', job)
    assert finished.status == 0, finished
    assert 'DML_KIND=published' in (folder / 'seen').read_text(), finished


if __name__ == '__main__':
    sys.exit(main())
