#!/usr/bin/env python3
"""Two versions at once: workers of another version of the protocol, and programs that are replaced
on disk while a run goes on. Both ends say what is wrong, nobody tries again without a pause, and a
run does without a replica that cannot be replaced."""

import contextlib
import os
import re
import shutil
import signal
import socket
import sqlite3
import struct
import sys
import threading
import time

from harness import (AGAIN, COORDINATOR, REPLICA, SHARD, SOURCE, UNAVAILABLE, Process, dml, endless_job, main,
                     small_job, test, train)

MAGIC = 0x314c4d44
HEADER_BYTES = 64
OTHER = 77  # a version of the protocol
OWN = int(re.search(r'PROTOCOL_VERSION (\d+)', (SOURCE / 'wire/message.h').read_text())[1])
SAID = f'it runs another version of dml (protocol {OTHER}, this is {OWN})'
SILENT = 'it closed the connection before it greeted, as another version of dml does'


def header(version=OTHER):
    """All that two versions know of one another."""
    return struct.pack('<IH', MAGIC, version) + bytes(HEADER_BYTES - 6)


# In the place of a worker's program; ANSWER is what it sends before it closes the connection.
FAKE = f'''#!{sys.executable}
import socket, struct, sys
path = sys.argv[sys.argv.index('--listen') + 1].removeprefix('unix:')
listener = socket.socket(socket.AF_UNIX)
listener.bind(path)
listener.listen()
print('listening', flush=True)
while True:
    connection, _ = listener.accept()
    connection.recv(65536)
    connection.send(ANSWER)
    connection.close()
'''


class Fake(threading.Thread):
    """A worker of another version that someone started, at a Unix socket."""

    def __init__(self, path, answer):
        super().__init__(daemon=True)
        self.answer, self.greeted = answer, 0
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen()
        self.start()

    def run(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                with connection:
                    if connection.recv(65536):
                        self.greeted += 1
                    connection.send(self.answer)

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


def events(state, like):
    with contextlib.closing(sqlite3.connect(state / 'dml.db')) as database:
        return [text for text, in database.execute('SELECT text FROM events WHERE text LIKE ?', (like,))]


@test
def a_worker_of_another_version_is_named_and_asked_ever_less_often(folder):
    for answer, says in (header(), SAID), (b'', SILENT):
        shard, replica = (Fake(folder / name, answer) for name in ('shard', 'replica'))
        job = small_job(folder, shard_addresses=[f'unix:{folder}/shard'],
                        replica_addresses=[f'unix:{folder}/replica'])
        state = folder / f'{len(answer)}.state'
        refused = dml('run', job, '--wait', '4', '--state', state)
        assert refused.status == UNAVAILABLE and says in refused.stderr, refused
        assert f'shard 0 is not there (unix:{folder}/shard: {says})' in refused.stderr, refused
        assert refused.stderr.count('\n') < 30, refused
        for worker in shard, replica:  # at 0, 0.5, 1.5, 3.5
            assert 2 <= worker.greeted <= 5, worker.greeted
            worker.close()
        for path in folder / 'shard', folder / 'replica':
            path.unlink()
        assert 2 <= len(events(state, f'%{says}%')) <= 10, events(state, '%')


def listens(path):
    """A socket is there a moment before its program listens on it."""
    with socket.socket(socket.AF_UNIX) as connection:
        return connection.connect_ex(str(path)) == 0


@test
def a_worker_tells_a_coordinator_of_another_version_which_it_has(folder):
    for program in SHARD, REPLICA:
        worker = Process(program, '--listen', f'unix:{folder}/{program.name}')
        try:
            worker.until(lambda: listens(folder / program.name), 'it listens')
            for _ in range(20):
                with socket.socket(socket.AF_UNIX) as connection:
                    connection.connect(str(folder / program.name))
                    connection.send(header())
                    answer = b''
                    while part := connection.recv(4096):
                        answer += part
                magic, version = struct.unpack_from('<IH', answer)
                assert (magic, version) == (MAGIC, OWN), answer
            told = worker.until(lambda: SAID in worker.so_far(worker.errors), 'it says so') and \
                worker.so_far(worker.errors)
            assert told.count(SAID) == 1, told
        finally:
            worker.end()


@contextlib.contextmanager
def own_programs(folder, job):
    """A run by programs of its own folder, which can be replaced on disk."""
    programs = folder / 'programs'
    programs.mkdir()
    for program in COORDINATOR, SHARD, REPLICA:
        shutil.copy(program, programs)
    process = Process(programs / COORDINATOR.name, 'run', job, '--json')
    try:
        process.until(lambda: ': loss ' in process.so_far(process.errors), 'a step')
        yield programs, process
    finally:
        process.end()


def workers_of(process, role):
    found = []
    for pid in process.survivors():
        with contextlib.suppress(OSError):
            words = open(f'/proc/{pid}/cmdline').read().split('\0')
            if f'dml-{role}' in words[0] or (len(words) > 1 and f'dml-{role}' in words[1]):
                found.append(pid)
    return found


def replace(program, content):
    """As installers do: another file takes the name."""
    new = program.with_suffix('.new')
    new.write_text(content)
    new.chmod(0o755)
    new.rename(program)


@test
def a_run_goes_on_without_a_replica_whose_program_was_replaced(folder):
    job = endless_job(folder, shards=1, replicas=2, threads=1)
    with own_programs(folder, job) as (programs, process):
        replace(programs / REPLICA.name, FAKE.replace('ANSWER', repr(header())))
        before = time.monotonic()
        os.kill(workers_of(process, 'replica')[0], signal.SIGKILL)
        process.until(lambda: 'cannot be replaced' in process.so_far(process.errors), 'it is told')
        assert time.monotonic() - before > 5, 'no pauses'
        text = process.so_far(process.errors)
        assert SAID in text and 'the run goes on with the others' in text, text
        assert text.count(SAID) < 20, text
        process.signal(signal.SIGTERM)
        finished = process.wait()
        assert finished.status == AGAIN, finished


@test
def a_shard_whose_program_was_replaced_ends_the_run_by_the_reason(folder):
    job = endless_job(folder, shards=1, replicas=2, checkpoint_seconds=0)
    with own_programs(folder, job) as (programs, process):
        replace(programs / SHARD.name, FAKE.replace('ANSWER', repr(header())))
        os.kill(workers_of(process, 'shard')[0], signal.SIGKILL)
        finished = process.wait()
        assert finished.status == UNAVAILABLE and SAID in finished.stderr.splitlines()[-1], finished
        assert 'run the same command again' in finished.stderr, finished
    assert train(job, '--set', 'max_steps=9')['run'] == 1


@test
def what_happens_time_and_again_is_counted_in_place_of_a_row_each(folder):
    """Ten times, as the eleventh ends the run."""
    job, killed = endless_job(folder, shards=1, replicas=1), set()
    process = Process(COORDINATOR, 'run', job, '--verbose')
    steps = lambda: process.so_far(process.errors).count(': loss ')
    try:
        while len(killed) < 10:
            before = steps()
            process.until(lambda: steps() > before + 2, 'a step')
            [replica] = workers_of(process, 'replica')
            os.kill(replica, signal.SIGKILL)
            killed.add(replica)
            process.until(lambda: set(workers_of(process, 'replica')) - killed, 'another one comes')
        process.signal(signal.SIGTERM)
        assert process.wait().status == AGAIN
    finally:
        process.end()
    rows = events(folder / 'job.state', 'replica 0 was lost%')
    assert len(rows) == 8 and rows[0] + ' (10 times)' == rows[-1], rows


sys.exit(main())
