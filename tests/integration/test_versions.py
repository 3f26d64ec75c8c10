#!/usr/bin/env python3
"""What another version of the program left: it is read, or refused with what to do, and nothing of it
is lost.

version_1.tar.xz has files of version 1 of every format (stored.py): they stay readable. In place of
a file of another version, tests write its number. test_upgrades.py in tests/fault has two programs
of which one is a version ahead."""

import ctypes
import json
import pathlib
import re
import signal
import sqlite3
import struct
import sys
import tarfile

from harness import (AGAIN, BAD_DATA, COORDINATOR, SOURCE, UNAVAILABLE, Process, Skip, dml,
                     endless_job, main, small_job, test, train)
from stored import JOBS, START, outcomes

STORED = pathlib.Path(__file__).with_name('version_1.tar.xz')
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
    with tarfile.open(STORED) as archive:
        archive.extractall(folder)


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


def put_version(state, version):
    """The newest state of run 1 becomes one of another version."""
    own = durable_steps(state)[-1][6]
    record = own[:4] + struct.pack('<I', version) + own[8:-8]
    put_state(state, record + struct.pack('<Q', hash64(record)))
    return own


@test
def a_state_of_another_version_is_refused_and_kept(folder):
    job, state, model = ended_run(folder)
    for version in STATE + 1, 99:
        own = put_version(state, version)
        before = assert_refused(job, state, f'its state is of version {version}, but this program '
                                            f'reads version {STATE}')
        assert kept(state) == before
        put_state(state, own)
    assert train(job, '--set', 'max_steps=9')['model_sha256'] == model


@test
def a_run_can_begin_beside_one_of_another_version(folder):
    job, state, model = ended_run(folder)
    put_version(state, STATE + 1)
    assert train(job, '--fresh', '--set', 'max_steps=9')['model_sha256'] == model


@test
def prune_says_what_becomes_of_a_run_of_another_version(folder):
    job, state = endless_job(folder), folder / 'job.state'
    process = Process(COORDINATOR, 'run', job)
    process.until(lambda: ': loss ' in process.so_far(process.errors), 'a step')
    process.signal(signal.SIGTERM)
    assert process.wait().status == AGAIN
    put_version(state, STATE + 1)
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
    files = []
    length = struct.unpack_from('<I', own, 12)[0]
    for version in CHECKPOINT + 1, 99:
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


def change_database(state, sql):
    connection = database(state)
    connection.executescript(sql)
    connection.close()


def tables_of(state):
    connection = database(state)
    found = connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL "
                               'ORDER BY name').fetchall()
    found += connection.execute(
        'SELECT t.name, t.wr, c.cid, c.name, c.type, c."notnull", c.dflt_value, c.pk FROM '
        'pragma_table_list AS t, pragma_table_info(t.name) AS c ORDER BY t.name, c.cid').fetchall()
    connection.close()
    return found


@test
def a_database_of_a_newer_or_a_development_version_is_refused_and_kept(folder):
    job, state, model = ended_run(folder)
    for sql, version in (('PRAGMA user_version = 77', 77),
                         ('PRAGMA application_id = 0; PRAGMA user_version = 12', 12)):
        change_database(state, sql)
        before = kept(state)
        for command in ('run', job), ('retrain', job), ('status', state), ('jobs', state), ('prune', state):
            said = dml(*command)
            assert said.status == UNAVAILABLE and said.stderr.count(f'has version {version}, and this') == 1, said
            assert 'a newer or a development version of dml made it' in said.stderr, said
            assert 'use that program, or another state folder' in said.stderr, said
        assert kept(state) == before, version
    assert train(job, '--state', folder / 'new.state', '--set', 'max_steps=9')['model_sha256'] == model


@test
def packs_and_sets_of_another_version_are_named_and_made_again(folder):
    job = small_job(folder)
    model, packs = train(job)['model_sha256'], folder / 'job.state/packs'
    files = [*packs.glob('*.pack'), *packs.glob('*.set')]
    whole = [path.read_bytes() for path in files]
    for path, content in zip(files, whole):
        path.write_bytes(content[:8] + struct.pack('<I', 11) + content[12:])
        said = dml('inspect', path)
        assert said.status == UNAVAILABLE, said
        assert f'is a {path.suffix[1:]} of version 11, but this program reads version 1' in said.stderr, said
    assert train(job, '--fresh')['model_sha256'] == model
    assert [path.read_bytes()[:12] for path in files] == [content[:12] for content in whole]


# ---- version 1 stays readable ----

@test
def what_is_stored_is_read_as_ever(folder):
    unpacked(folder)
    expected = json.loads((folder / 'outcomes.json').read_text())
    for name in JOBS:
        [run] = dml('jobs', folder / f'{name}.state', '--json').json['folders'][0]['runs']
        assert run['run'] == 1 and run['reason'] in ('gradient tolerance', 'step limit'), run
        for path in (folder / f'{name}.state').glob('packs/*'):
            assert dml('inspect', path).status == 0, path
    for name, outcome in outcomes(folder).items():
        assert outcome == expected[name], name


@test
def a_stored_run_goes_on_from_stored_packs_and_pairs(folder):
    unpacked(folder)
    start = '--start', folder / START[1]
    said = dml('run', folder / 'started.conf', *start, '--set', 'max_steps=9', '--verbose')
    assert said.status == 0 and 'goes on' in said.stderr and 'packed in' not in said.stderr, said
    assert 'merged' not in said.stderr, said
    said = dml('run', folder / 'started.conf', *start, '--fresh')
    assert 'step length 0 trials 0 history 3' in said.stderr, said


@test
def a_stored_database_gets_the_tables_of_a_new_one(folder):
    unpacked(folder)
    assert dml('publish', '1', folder / 'pairs.state').status == 0
    train(small_job(folder))
    assert tables_of(folder / 'pairs.state') == tables_of(folder / 'job.state')


@test
def a_model_of_a_newer_or_a_development_version_is_refused(folder):
    unpacked(folder)
    model = folder / 'table.state/models/1'
    described = json.loads((model / 'model.json').read_text())
    newer, earlier = {**described, 'format_version': 2}, {**described, 'format_version': 14}
    del earlier['format']
    for changed in newer, earlier:
        (model / 'model.json').write_text(json.dumps(changed))
        for command in 'predict', 'evaluate':
            said = dml(command, model, folder / 'data.csv')
            assert said.status == BAD_DATA and 'and this program reads version 1: a newer or a development ' \
                'version of dml wrote it; use that program, or train the model again' in said.stderr, said
    (model / 'model.json').write_text(json.dumps(described))
    summary = json.loads((model / 'summary.json').read_text())
    (model / 'summary.json').write_text(json.dumps({**summary, 'format_version': 2}))
    said = dml('summary', model)
    assert said.status == BAD_DATA and 'has format version 2, and this program reads version 1' in said.stderr, said


sys.exit(main())
