#!/usr/bin/env python3
"""Runs in their state folder: jobs, status, how they are stopped, and workers started by hand."""

import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import sqlite3
import sys
import threading
import time

from harness import (AGAIN, BAD_DATA, COORDINATOR, IO, REPLICA, SHARD, Process, Skip, dml, endless_job, main, run,
                     small_job, test, train, write_job)

# ---- jobs, status, the state folder ----

@test
def jobs_names_the_jobs_of_a_folder_that_has_several(folder):
    train(small_job(folder))
    assert 'job job' not in dml('jobs', folder / 'job.state').stdout
    train(small_job(folder, name='other', state=folder / 'job.state'))
    listed = dml('jobs', folder / 'job.state').stdout.split('\n')
    assert listed.index('      job job') < listed.index('      job other'), listed


@test
def jobs_lists_the_runs_so_far(folder):
    job = small_job(folder)
    first = train(job)
    second = train(job, '--fresh')
    finished = dml('jobs', folder / 'job.state')
    assert finished.status == 0, finished
    assert finished.stdout.count(first['reason']) >= 2, finished
    [answer] = dml('jobs', job, '--json').json['folders']
    listed = answer['runs']
    assert [r['run'] for r in listed] == [first['run'], second['run']], listed
    assert listed[0]['reason'] == first['reason'] and listed[0]['loss'] == first['loss'], listed


@test
def models_are_where_the_state_folder_is_now(folder):
    job = small_job(folder)
    train(job)
    (folder / 'elsewhere').mkdir()
    moved = (folder / 'job.state').rename(folder / 'elsewhere/moved.state')
    run = dml('jobs', moved, '--json').json['folders'][0]['runs'][0]
    assert run['model'] == f'{moved}/models/1', run
    assert dml('status', 'moved.state', '--json', cwd=moved.parent).json['model'] == 'moved.state/models/1'


@test
def a_clock_that_was_set_back_makes_no_time_negative(folder):
    job = small_job(folder)
    result = train(job)
    store = sqlite3.connect(folder / 'job.state/dml.db', isolation_level=None)
    store.execute('UPDATE runs SET ended_ms = started_ms - 7200000')
    store.close()
    listed = dml('jobs', job, '--json')
    assert listed.status == 0, listed
    took = result['seconds']['total']
    assert listed.json['folders'][0]['runs'][0]['seconds'] == took, listed
    assert dml('status', job, '--json').json['seconds'] == took


@test
def status_tells_the_last_state_when_nothing_runs(folder):
    job = small_job(folder)
    result = train(job)
    for where in job, folder / 'job.state':
        finished = dml('status', where)
        assert finished.status == 0 and result['reason'] in finished.stdout, finished
    state = dml('status', job, '--json').json
    assert state['step'] == result['steps'] and state['loss'] == result['loss'], state


@test
def status_asks_the_live_coordinator(folder):
    job = endless_job(folder, shards=2, replicas=2)
    process = Process(COORDINATOR, 'run', job)
    try:
        control = folder / 'job.state/control.sock'
        process.until(control.exists, 'the control socket is there')
        assert control.stat().st_mode & 0o777 == 0o600

        def stepping():
            finished = dml('status', job, '--json')
            return finished.status == 0 and finished.json.get('step', 0) > 0 and finished.json
        state = process.until(stepping, 'status tells of a step')
        roles = sorted(p['role'] for p in state['processes'] if p['role'] != 'coordinator')
        assert roles == ['replica', 'replica', 'shard', 'shard'], state
        for worker in state['processes']:
            assert {'role', 'index', 'pid', 'host', 'state'} <= set(worker), worker
            os.kill(worker['pid'], 0)
        assert str(process.pid) in json.dumps(state), state
        process.signal(signal.SIGTERM)
        assert process.wait().status == AGAIN
        assert not process.survivors()
    finally:
        process.end()


@test
def a_second_run_is_told_that_one_is_running(folder):
    job = endless_job(folder)
    process = Process(COORDINATOR, 'run', job)
    try:
        process.until((folder / 'job.state/control.sock').exists, 'the control socket is there')
        finished = dml('run', job)
        assert finished.status == AGAIN, finished
        assert f'already running, pid {process.pid}' in finished.stderr, finished
        process.signal(signal.SIGTERM)
        process.wait()
    finally:
        process.end()


@test
def a_run_waits_for_whoever_only_reads_the_record(folder):
    train(small_job(folder))
    reader = Process(COORDINATOR, 'jobs', folder / 'job.state', '--json',
                     DML_FAILPOINT='store_opened:1:delay:1500')
    try:
        reader.until(lambda: str(reader.pid) in (folder / 'job.state/lock').read_text(),
                     'it has the lock')
        train(small_job(folder, l2=0.5))
        assert len(reader.wait().json['folders'][0]['runs']) == 1
    finally:
        reader.end()


def stopped_by(folder, stop, prefix=()):
    """Starts an endless run, stops it, and sees that it can be taken up again."""
    job = endless_job(folder)
    process = Process(COORDINATOR, 'run', job, '--json', prefix=prefix)
    try:
        process.until((folder / 'job.state/control.sock').exists, 'the control socket is there')
        process.until(lambda: dml('status', job, '--json').json.get('step', 0) > 0, 'a step is made')
        stop(process, job)
        finished = process.wait(30)
        assert finished.status == AGAIN, finished
        assert not process.survivors(), 'processes outlive the run'
    finally:
        process.end()
    assert not list((folder / 'job.state').glob('models/*')), 'a stopped run writes no model'
    assert dml('status', job).status == 0
    return finished


@test
def ctrl_c_stops_a_run_and_all_it_started_without_a_model(folder):
    finished = stopped_by(folder, lambda process, _: process.signal(signal.SIGINT))
    assert finished.json['reason'] == 'cancelled', finished


@test
def a_terminal_that_goes_stops_a_run_unless_nohup_began_it(folder):
    finished = stopped_by(folder, lambda process, _: process.signal(signal.SIGHUP))
    assert finished.json['reason'] == 'cancelled' and 'the terminal is gone' in finished.stderr, finished

    def hang_up_then_stop(process, job):
        step = dml('status', job, '--json').json['step']
        process.signal(signal.SIGHUP)
        process.until(lambda: dml('status', job, '--json').json['step'] > step, 'it goes on')
        process.signal(signal.SIGTERM)
    finished = stopped_by(folder, hang_up_then_stop, prefix=['nohup'])
    assert 'terminated' in finished.stderr and 'the terminal' not in finished.stderr, finished


class Meeting(threading.Thread):
    """Coordinators of empty folders, none of which answers before all are asked."""

    def __init__(self, folders):
        super().__init__(daemon=True)
        self.listeners = [socket.socket(socket.AF_UNIX) for _ in folders]
        for listener, folder in zip(self.listeners, folders):
            folder.mkdir()
            listener.bind(str(folder / 'control.sock'))
            listener.listen()

    def run(self):
        asking = [listener.accept()[0] for listener in self.listeners]
        for connection in asking:
            with connection:
                connection.recv(100)
                connection.sendall(b'{"runs": []}')


@test
def jobs_asks_the_coordinators_of_several_folders_at_the_same_time(folder):
    folders = [folder / f'{name}.state' for name in 'abc']
    meeting = Meeting(folders)
    meeting.start()
    finished = dml('jobs', '--json', *folders)
    assert finished.status == 0, finished
    listed = [answer['folder'] for answer in finished.json['folders']]
    assert listed == [str(each) for each in folders], finished


@test
def a_run_survives_who_asks_and_leaves_before_the_answer(folder):
    job = endless_job(folder)
    process = Process(COORDINATOR, 'run', job)
    socket_path = folder / 'job.state/control.sock'
    try:
        process.until(socket_path.exists, 'the control socket is there')
        process.until(lambda: dml('status', job, '--json').json.get('step', 0) > 0, 'a step is made')
        process.signal(signal.SIGSTOP)
        with socket.socket(socket.AF_UNIX) as asking:
            asking.connect(str(socket_path))
            asking.send(b'status\n')
        process.signal(signal.SIGCONT)
        step = dml('status', job, '--json').json['step']
        process.until(lambda: dml('status', job, '--json').json['step'] > step, 'it goes on')
    finally:
        process.end()


@test
def whoever_asks_too_much_leaves_a_run_its_descriptors(folder):
    job, clients = endless_job(folder), []
    with contextlib.ExitStack() as stack:
        process = Process(COORDINATOR, 'run', job)
        stack.callback(process.end)
        process.until(lambda: ': loss ' in process.so_far(process.errors), 'a step')
        descriptors = lambda: len(os.listdir(f'/proc/{process.pid}/fd'))
        before = descriptors()
        while len(clients) < 200:  # some are accepted, others wait, and the last are told to try again
            client = stack.enter_context(socket.socket(socket.AF_UNIX))
            client.setblocking(False)
            clients.append(client)
            with contextlib.suppress(BlockingIOError):
                client.connect(str(folder / 'job.state/control.sock'))
                process.until(lambda: descriptors() > before, 'one is accepted')
        assert descriptors() < before + 50, (before, descriptors())
        for client in clients:
            client.close()
        process.until(lambda: dml('status', job).status == 0, 'the next is heard')


@test
def sigterm_stops_a_run_and_all_it_started(folder):
    stopped_by(folder, lambda process, _: process.signal(signal.SIGTERM))


@test
def cancel_stops_a_live_run(folder):
    def cancel(_, job):
        finished = dml('cancel', job, '--json')
        assert finished.status == 0, finished
        assert finished.json == {'folder': f'{folder}/job.state', 'stopping': True}, finished
    stopped_by(folder, cancel)


@test
def the_database_holds_every_step_and_evaluation(folder):
    result = train(small_job(folder))
    connection = sqlite3.connect(f'file:{folder / "job.state/dml.db"}?mode=ro', uri=True)
    steps = connection.execute('SELECT step, loss FROM steps ORDER BY step').fetchall()
    assert [step for step, _ in steps] == list(range(result['steps'] + 1)), steps
    assert steps[-1][1] == result['loss'], (steps[-1], result)
    counted = connection.execute('SELECT examples FROM evaluations').fetchall()
    assert len(counted) == result['evaluations'], (len(counted), result)
    assert all(examples == 60 for examples, in counted), counted
    connection.close()


@test
def the_state_folder_is_private_to_its_owner(folder):
    train(small_job(folder))
    state = folder / 'job.state'
    assert {'dml.db', 'lock', 'packs', 'models'} <= {path.name for path in state.iterdir()}
    assert not (state / 'control.sock').exists(), 'the control socket outlives the run'


@test
def what_a_killed_coordinator_leaves_for_sockets_goes_with_the_next_run(folder):
    places = folder / 'tmp'
    (places / 'dml-1-2-others').mkdir(parents=True)
    job, environment = endless_job(folder), {'XDG_RUNTIME_DIR': '', 'TMPDIR': str(places)}
    left = lambda: sorted(path.name for path in places.iterdir() if 'others' not in path.name)
    for settings in [], ['--fresh']:
        process = Process(COORDINATOR, 'run', job, **environment)
        process.until(lambda: ': loss ' in process.so_far(process.errors), 'a step')
        process.end()
        assert len(left()) == 1, left()
        train(job, '--set', 'max_steps=9', *settings, **environment)
        assert left() == [], left()
    assert (places / 'dml-1-2-others').is_dir()


@test
def sockets_lie_in_the_first_place_that_takes_them(folder):
    """A path too long for a socket, a place that is missing, a file, a runtime folder of others."""
    own, long, file = folder / 'own', folder / 'long' / ('x' * (100 - len(str(folder)))), folder / 'file'
    own.mkdir()
    long.mkdir(parents=True)
    file.touch()
    job = endless_job(folder)
    places = [({'XDG_RUNTIME_DIR': str(long), 'TMPDIR': str(own)}, own),
              ({'XDG_RUNTIME_DIR': str(folder / 'none'), 'TMPDIR': str(own)}, own),
              ({'XDG_RUNTIME_DIR': '', 'TMPDIR': str(long)}, pathlib.Path('/tmp')),
              ({'XDG_RUNTIME_DIR': str(file), 'TMPDIR': str(folder / 'none')}, pathlib.Path('/tmp'))]
    if os.geteuid() == 0:
        others = folder / 'others'
        others.mkdir()
        os.chown(others, 12345, 12345)
        places.append(({'XDG_RUNTIME_DIR': str(others), 'TMPDIR': str(own)}, own))
    for environment, expected in places:
        process = Process(COORDINATOR, 'run', job, '--fresh', **environment)
        try:
            process.until(lambda: ': loss ' in process.so_far(process.errors), 'a step')
            worker = dml('status', job, '--json').json['processes'][-1]
            words = pathlib.Path(f'/proc/{worker["pid"]}/cmdline').read_text().split('\0')
            place = pathlib.Path(words[words.index('--listen') + 1].removeprefix('unix:')).parents[1]
            assert place == expected, (environment, words)
            process.signal(signal.SIGTERM)
            assert process.wait().status == AGAIN
        finally:
            process.end()


@test
def every_folder_that_is_made_is_synced_into_the_one_above(folder):
    for number, above in enumerate((folder, folder / 'a', folder / 'a/b'), 1):
        finished = dml('run', small_job(folder), '--state', folder / 'a/b/state',
                       DML_FAILPOINT=f'coordinator.folder_fsync:{number}:eio')
        assert finished.status == IO, (number, finished)
        assert f'cannot write the folder {above} to disk' in finished.stderr, finished
        shutil.rmtree(folder / 'a')


# ---- workers started by hand ----

def start_worker(program, address):
    process = Process(program, '--listen', address)
    path = address.removeprefix('unix:')
    process.until(lambda: os.path.exists(path), 'it listens')
    return process


@test
def workers_started_by_hand_are_used_and_end_with_the_job(folder):
    expected = train(small_job(folder), '--state', folder / 'own.state')['model_sha256']
    shards = [f'unix:{folder}/s{k}' for k in range(2)]
    replicas = [f'unix:{folder}/r{k}' for k in range(2)]
    workers = [start_worker(SHARD, address) for address in shards]
    workers += [start_worker(REPLICA, address) for address in replicas]
    try:
        job = small_job(folder, shard_addresses=shards, replica_addresses=replicas)
        result = train(job)
        assert (result['shards'], result['replicas']) == (2, 2), result
        assert result['model_sha256'] == expected, result
        for worker in workers:
            finished = worker.wait(30)
            assert finished.status == 0, finished
    finally:
        for worker in workers:
            worker.end()


@test
def a_shard_writes_only_below_the_folder_that_it_was_told(folder):
    own = train(small_job(folder), '--state', folder / 'own.state')['model_sha256']
    for below, fits in (folder, True), (folder / 'other', False):
        workers = [Process(program, '--listen', f'unix:{folder}/{program.name}', '--folder', below)
                   for program in (SHARD, REPLICA)]
        try:
            finished = dml('run', small_job(folder, shard_addresses=[f'unix:{folder}/{SHARD.name}'],
                                            replica_addresses=[f'unix:{folder}/{REPLICA.name}']),
                           '--fresh', '--json')
            if fits:
                assert finished.json['model_sha256'] == own, (finished, own)
            else:
                assert finished.status == 77 and 'other' in finished.stderr, finished
                assert not list((folder / 'job.state/shards').glob('*/*')), finished
        finally:
            for worker in workers:
                worker.end()


@test
def workers_end_when_their_coordinator_is_lost_for_longer_than_reconnect_seconds(folder):
    job = endless_job(folder, reconnect_seconds=1)
    process = Process(COORDINATOR, 'run', job)
    try:
        process.until((folder / 'job.state/control.sock').exists, 'the control socket is there')
        process.until(lambda: dml('status', job, '--json').json.get('step', 0) > 0, 'a step is made')
        process.signal(signal.SIGKILL)
        process.wait()
        assert process.deserted()
    finally:
        process.end()



@test
def a_process_that_has_the_number_of_a_lost_worker_is_let_be(folder):
    job, state = endless_job(folder), folder / 'job.state'
    other = start_worker(REPLICA, f'unix:{folder}/other')
    try:
        process = Process(COORDINATOR, 'run', job)
        process.until(lambda: ': loss ' in process.so_far(process.errors), 'a step')
        process.end()
        with contextlib.closing(sqlite3.connect(state / 'dml.db')) as database:
            database.execute("UPDATE processes SET pid = ? WHERE role = 'replica'", (other.pid,))
            database.commit()
        goes_on = dml('run', job, '--json', '--set', 'max_steps=9')
        assert goes_on.status == 0 and 'was lost' in goes_on.stderr, goes_on
        assert other.popen.poll() is None, other.wait()
    finally:
        other.end()


@test
def a_run_takes_no_number_that_a_model_of_a_lost_database_has(folder):
    job = small_job(folder, max_steps=2)
    first = train(job)
    for path in (folder / 'job.state').glob('dml.db*'):
        path.unlink()
    finished = dml('run', job, '--json', '--set', 'l2=0.1', '--publish')
    assert finished.status == 0 and 'dml.db does not know: this is run 2' in finished.stderr, finished
    assert (first['run'], finished.json['run']) == (1, 2), finished
    assert first['model_sha256'] != finished.json['model_sha256'], finished
    details = json.loads((folder / 'job.state/models/1/model.json').read_text())
    assert first['model_sha256'] in json.dumps(details), details


@test
def a_journal_of_the_database_that_was_cut_is_named(folder):
    """The steps that it lost are durable, and so older checkpoints are gone."""
    job, state = endless_job(folder, checkpoint_seconds=0, reconnect_seconds=1), folder / 'job.state'
    process = Process(COORDINATOR, 'run', job, DML_FAILPOINT='coordinator.state_step_commit:15:kill')
    assert process.wait().status == -signal.SIGKILL
    process.end()
    log = state / 'dml.db-wal'
    os.truncate(log, log.stat().st_size // 2)
    refused = dml('run', job, '--set', 'max_steps=20')
    assert refused.status == BAD_DATA and 'dml.db-wal' in refused.stderr, refused
    assert 'journal that was cut' in refused.stderr and '--fresh' in refused.stderr, refused
    train(job, '--fresh', '--set', 'max_steps=20')


@test
def a_run_begins_in_a_folder_of_its_own_whatever_was_left_under_its_number(folder):
    job = small_job(folder, max_steps=2)
    place = folder / 'job.state/shards/1'
    (place / '0').mkdir(parents=True)
    left = [place / 'start', place / '0/step-99']
    for path in left:
        path.write_text('of a run that was lost')
    train(job)
    assert place.exists() and not any(path.exists() for path in left), list(place.rglob('*'))


@test
def a_run_goes_on_with_as_many_shards_as_wrote_its_checkpoints(folder):
    """Another machine would have chosen another number."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        raise Skip('one processor has one shard')
    rng = random.Random(1)
    (folder / 'wide.libsvm').write_text(''.join(
        f'{row % 2} ' + ' '.join(f'{j}:1' for j in sorted(rng.sample(range(1, 30000), 40))) + '\n'
        for row in range(2000)))
    job = write_job(folder, data=['wide.libsvm'], l2=1e-3, max_steps=6, checkpoint_seconds=0)
    quiet = train(job, '--state', folder / 'quiet')
    assert quiet['shards'] == 2, quiet
    process = Process(COORDINATOR, 'run', job, prefix=('taskset', '-c', cpus[0]),
                      DML_FAILPOINT='coordinator.state_step_commit:2:kill')
    assert process.wait().status == -signal.SIGKILL
    process.end()  # its workers, too
    result = train(job)
    assert result['shards'] == 1 and result['restarts']['coordinator'] == 1, result
    assert result['model_sha256'] == quiet['model_sha256'], (result, quiet)


@test
def a_state_folder_is_no_address(folder):
    for words in ['--set', 'state=s3://bucket/job'], ['--state', 'https://host/job']:
        refused = dml('run', small_job(folder), *words)
        assert refused.status == 78 and 'on a local or shared file system' in refused.stderr, refused
    assert not [path for path in folder.iterdir() if path.name.endswith(':')], list(folder.iterdir())


@test
def a_file_in_place_of_a_folder_of_the_state_is_named(folder):
    for name in 'packs', 'models':
        (folder / 'job.state').mkdir(exist_ok=True)
        (folder / 'job.state' / name).write_text('')
        refused = dml('run', small_job(folder))
        assert refused.status in (73, 74) and f'job.state/{name}' in refused.stderr, refused
        (folder / 'job.state' / name).unlink()
    train(small_job(folder))


@test
def a_pipe_in_place_of_a_file_hangs_no_command(folder):
    os.mkfifo(folder / 'pipe.conf')
    refused = dml('check', folder / 'pipe.conf')
    assert refused.status == 78 and 'nobody writes to it' in refused.stderr, refused
    job = small_job(folder, checkpoint_seconds=0, shards=1)
    Process(COORDINATOR, 'run', job, DML_FAILPOINT='coordinator.send_EVALUATE:9:kill').wait()
    for _ in range(200):  # the shard writes a step beside the work, also after the coordinator
        files = [path for path in (folder / 'job.state/shards').rglob('*') if path.is_file()]
        if all(any(word in path.name for path in files) for word in ('step', 'epoch')):
            break
        time.sleep(0.05)
    else:
        raise AssertionError(files)
    for path in files:
        path.unlink()
        os.mkfifo(path)
    finished = dml('run', job)
    assert finished.status in (0, 65, 69, 74) and 'is no regular file' in finished.stderr, finished


@test
def the_threads_that_are_told_of_are_those_that_compute(folder):
    process = Process(COORDINATOR, 'run', endless_job(folder, threads=1, replicas=1))
    try:
        def replica():
            status = dml('status', folder / 'job.state', '--json')
            found = [p for p in (status.json.get('processes') or []) if p['role'] == 'replica']
            return found and found[0]['state'] == 'running' and found[0]
        process.until((folder / 'job.state/control.sock').exists, 'the control socket is there')
        assert process.until(replica, 'a replica runs')['threads'] == 1
    finally:
        process.end()


sys.exit(main())
