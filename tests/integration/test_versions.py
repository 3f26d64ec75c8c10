#!/usr/bin/env python3
"""What another version of the program left: it is read, brought up to date or refused with what to
do, and nothing of it is lost.

old_state.tar.xz was made by an earlier version: a job, its data, the predictions of its model, and
its state folder with two runs that ended. It has state 8, checkpoints 3, sets 5, the database 6 and
models 3. Of a format whose version was not raised since, tests write a lower or a higher number."""

import ctypes
import pathlib
import re
import shutil
import signal
import sqlite3
import struct
import sys
import tarfile

from harness import (AGAIN, COORDINATOR, SOURCE, UNAVAILABLE, Process, Skip, dml, endless_job, main,
                     small_job, test, train)

OLD = pathlib.Path(__file__).with_name('old_state.tar.xz')
WAY_OUT = 'end the run with the program that began it'


def version_of(header, name):
    return int(re.search(rf'{name} (\d+)', (SOURCE / header).read_text())[1])


STATE = version_of('coordinator/machine/machine.h', 'STATE_VERSION')
CHECKPOINT = version_of('shard/checkpoint.h', 'CHECKPOINT_VERSION')


def hash64(data, seed=0):
    try:
        function = ctypes.CDLL('libxxhash.so.0').XXH3_64bits_withSeed
    except OSError as error:
        raise Skip(f'records cannot be made: {error}') from None
    function.restype = ctypes.c_uint64
    function.argtypes = ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint64
    return function(data, len(data), seed)


def unpacked(folder):
    with tarfile.open(OLD) as archive:
        archive.extractall(folder)
    return folder / 'job.conf'


def database(state):
    return sqlite3.connect(state / 'dml.db')


def durable_steps(state):
    connection = database(state)
    rows = connection.execute('SELECT * FROM durable_steps ORDER BY number').fetchall()
    connection.close()
    return rows


def put_state(state, blob):
    """In place of that of the newest durable step of run 1."""
    connection = database(state)
    number, step, attempt, digests = connection.execute(
        'SELECT number, step, attempt, digests FROM durable_steps WHERE run = 1 '
        'ORDER BY number DESC').fetchone()
    row = struct.pack('<5Q', 1, attempt, step, len(digests), len(blob))
    checksum = hash64(blob, hash64(digests, hash64(row)))
    connection.execute('UPDATE durable_steps SET state = ?, checksum = ? WHERE number = ?',
                       (blob, checksum - (checksum >> 63 << 64), number))
    connection.commit()
    connection.close()


def kept(state):
    """All that the run would go on from, and what is recorded of it."""
    connection = database(state)
    runs = connection.execute('SELECT * FROM runs').fetchall()
    steps = connection.execute('SELECT * FROM steps').fetchall()
    connection.close()
    files = {path: path.read_bytes() for path in (state / 'shards').rglob('step-*')}
    return runs, steps, durable_steps(state), files


def ended_run(folder, **settings):
    """A run that ended at a limit, and how it would have ended without: it can go on."""
    job = small_job(folder, max_steps=3, checkpoint_seconds=0, precondition='none', **settings)
    through = train(job, '--state', folder / 'other.state', '--set', 'max_steps=9')
    train(job)
    return job, folder / 'job.state', through['model_sha256']


def assert_refused(job, state, says):
    before = kept(state)
    finished = dml('run', job, '--set', 'max_steps=9')
    assert finished.status == UNAVAILABLE, finished
    assert says in finished.stderr and WAY_OUT in finished.stderr, finished
    assert '--fresh' in finished.stderr and finished.stderr.count(WAY_OUT) == 1, finished
    return before


@test
def a_state_of_another_version_is_refused_and_kept(folder):
    job, state, model = ended_run(folder)
    own = durable_steps(state)[-1][6]
    unpacked(folder / 'old')
    old = durable_steps(folder / 'old/job.state')[-1][6]
    records = [old]
    for version in STATE - 1, STATE + 1:
        head = struct.pack('<II', struct.unpack_from('<I', own)[0], version)
        record = head + own[8:-8]
        records.append(record + struct.pack('<Q', hash64(record)))
    for record in records:
        put_state(state, record)
        version = struct.unpack_from('<I', record, 4)[0]
        before = assert_refused(job, state, f'its state is of version {version}')
        assert kept(state) == before
    put_state(state, own)
    assert train(job, '--set', 'max_steps=9')['model_sha256'] == model


@test
def a_run_can_begin_beside_one_of_another_version(folder):
    job, state, model = ended_run(folder)
    unpacked(folder / 'old')
    put_state(state, durable_steps(folder / 'old/job.state')[-1][6])
    assert train(job, '--fresh', '--set', 'max_steps=9')['model_sha256'] == model


@test
def prune_says_what_becomes_of_a_run_of_another_version(folder):
    job, state = endless_job(folder), folder / 'job.state'
    process = Process(COORDINATOR, 'run', job)
    process.until(lambda: ': loss ' in process.so_far(process.errors), 'a step')
    process.signal(signal.SIGTERM)
    assert process.wait().status == AGAIN
    unpacked(folder / 'old')
    put_state(state, durable_steps(folder / 'old/job.state')[-1][6])
    said = dml('prune', state)
    assert said.status == 0 and (state / 'shards/1').is_dir(), said
    assert 'run 1 cannot go on' in said.stderr and 'once a later run' in said.stderr, said
    train(job, '--set', 'max_steps=3', '--set', 'l2=0.5')
    said = dml('prune', state)
    assert said.status == 0 and not (state / 'shards/1').is_dir(), said


@test
def a_checkpoint_of_another_version_is_refused_and_kept(folder):
    job, state, model = ended_run(folder, shards=1)
    newest = state / f'shards/1/0/step-{durable_steps(state)[-1][2]}'
    own = newest.read_bytes()
    unpacked(folder / 'old')
    files = [(folder / 'old/job.state/shards/1/0/step-4').read_bytes()]
    length = struct.unpack_from('<I', own, 12)[0]
    for version in CHECKPOINT - 1, CHECKPOINT + 1:
        header = own[:8] + struct.pack('<IIQ', version, length, 0) + own[24:length]
        files.append(header[:16] + struct.pack('<Q', hash64(header)) + header[24:] + own[length:])
    for content in files:
        newest.write_bytes(content)
        version = struct.unpack_from('<I', content, 8)[0]
        _, _, steps, checkpoints = assert_refused(job, state, f'has version {version}')
        # The run that goes on from the end of the first has them; their times stay those of files.
        assert [row[2:4] + row[5:7] for row in durable_steps(state)] == \
            [row[2:4] + row[5:7] for row in steps], 'a durable step was given up'
        assert kept(state)[3] == checkpoints, 'a checkpoint is gone'
    newest.write_bytes(own)
    assert train(job, '--set', 'max_steps=9')['model_sha256'] == model


@test
def a_starting_point_of_another_version_is_refused_and_kept(folder):
    (folder / 'first').mkdir()
    first = small_job(folder / 'first', max_steps=2)
    train(first)
    job = small_job(folder, max_steps=3, checkpoint_seconds=0)
    start = '--start', folder / 'first/job.state/models/1'
    train(job, *start)
    path = folder / 'job.state/shards/1/start'
    own = path.read_bytes()
    path.write_bytes(own[:8] + struct.pack('<I', 99) + own[12:])
    finished = dml('run', job, *start, '--set', 'max_steps=9')
    assert finished.status == UNAVAILABLE and WAY_OUT in finished.stderr, finished
    assert 'starting point of version 99' in finished.stderr, finished
    path.write_bytes(own)
    assert train(job, *start, '--set', 'max_steps=9')['continues'] == 1


def store_version(state):
    connection = database(state)
    [[version]] = connection.execute('PRAGMA user_version').fetchall()
    connection.close()
    return version


def to_version_10(state):
    """The database as the program of version 10 had it."""
    connection = database(state)
    for name, in connection.execute("SELECT name FROM sqlite_master WHERE type = 'index' AND "
                                    "sql IS NOT NULL").fetchall():
        connection.execute(f'DROP INDEX {name}')
    connection.execute('ALTER TABLE sweeps DROP COLUMN decided')
    connection.execute('DROP TABLE invocations')
    connection.execute('PRAGMA user_version = 10')
    connection.commit()
    connection.close()


def all_rows(state):
    connection = database(state)
    tables = [name for name, in connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()]
    rows = {table: connection.execute(f'SELECT * FROM {table}').fetchall() for table in tables}
    connection.close()
    return rows


@test
def an_old_database_is_brought_up_to_date_with_all_it_has(folder):
    job = unpacked(folder)
    state = folder / 'job.state'
    before, version = durable_steps(state), store_version(state)
    for command in 'jobs', 'status', 'prune':
        finished = dml(command, state, '--json', *(['--dry-run'] if command == 'prune' else []))
        assert finished.status == 0, finished
        assert store_version(state) == version, command
    listed = dml('jobs', state, '--json').json['folders'][0]['runs']
    assert [(run['run'], run['reason'], run['steps']) for run in listed[:1]] == [
        (1, 'step limit', 4)], listed
    assert durable_steps(state) == before
    assert dml('rollback', '--to', '1', state).status == 0
    assert store_version(state) > version and durable_steps(state) == before
    assert train(job, '--fresh')['run'] == 3


@test
def a_run_that_only_an_older_program_can_end_is_left_to_it(folder):
    job, state = endless_job(folder), folder / 'job.state'
    process = Process(COORDINATOR, 'run', job)
    process.until(lambda: ': loss ' in process.so_far(process.errors), 'a step')
    process.signal(signal.SIGTERM)
    assert process.wait().status == AGAIN
    own = durable_steps(state)[-1][6]
    record = own[:4] + struct.pack('<I', STATE - 1) + own[8:-8]
    put_state(state, record + struct.pack('<Q', hash64(record)))
    to_version_10(state)
    before, files = all_rows(state), sorted(state.rglob('*'))
    for command in 'status', 'jobs', 'events', 'report':
        said = dml(command, state)
        assert 'version' not in said.stderr, said
    for command in ('run', job), ('retrain', job), ('retrain', job, '--cron'), ('publish', '1', state), \
            ('prune', state):
        said = dml(*command)
        assert said.status == UNAVAILABLE and said.stderr.count(WAY_OUT) == 1, said
        assert f'its state is of version {STATE - 1}' in said.stderr, said
        assert '--fresh' in said.stderr and 'nothing was changed' in said.stderr, said
        assert store_version(state) == 10 and all_rows(state) == before, command
        assert sorted(state.rglob('*')) == files, command
    put_state(state, own)  # the older program would end it
    assert train(job, '--set', 'max_steps=9')['run'] == 1
    assert store_version(state) > 10


@test
def a_run_of_an_older_program_can_be_given_up(folder):
    job, state, _ = ended_run(folder)
    connection = database(state)
    connection.execute('UPDATE runs SET reason = NULL, ended_ms = NULL')
    connection.commit()
    connection.close()
    own = durable_steps(state)[-1][6]
    record = own[:4] + struct.pack('<I', STATE - 1) + own[8:-8]
    put_state(state, record + struct.pack('<Q', hash64(record)))
    to_version_10(state)
    assert dml('run', job).status == UNAVAILABLE
    assert train(job, '--fresh')['run'] == 2
    assert store_version(state) > 10 and train(job, '--set', 'l2=0.5')['run'] == 3


@test
def old_packs_and_sets_are_named_and_made_again(folder):
    job = unpacked(folder)
    packs = folder / 'job.state/packs'
    [old] = packs.glob('*.set')
    finished = dml('inspect', old)
    assert finished.status == UNAVAILABLE and 'is a set of version 5' in finished.stderr, finished
    assert train(job, '--fresh')['examples'] == 24
    [made] = set(packs.glob('*.set')) - {old}
    assert dml('inspect', made).status == 0


@test
def an_old_model_predicts_as_ever_and_a_newer_one_is_refused(folder):
    unpacked(folder)
    model = folder / 'job.state/models/1'
    said = dml('predict', model, folder / 'small.libsvm')
    assert said.stdout == (folder / 'predictions').read_text(), said
    newer = folder / 'newer'
    shutil.copytree(model, newer)
    text = (newer / 'model.json').read_text()
    (newer / 'model.json').write_text(text.replace('"format_version": 3', '"format_version": 99'))
    refused = dml('predict', newer, folder / 'small.libsvm')
    assert refused.status and 'use the program that wrote it' in refused.stderr, refused


sys.exit(main())
