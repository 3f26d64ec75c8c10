#!/usr/bin/env python3
"""Whoever connects to a worker's socket and is nobody, or says nonsense, is dropped with a counted
reason, while a job goes on to the same bits."""

import contextlib
import ctypes
import os
import pathlib
import re
import signal
import socket
import struct
import sys
import time

from faults import check_nothing_left, conclude, make_job, quiet, run_of, say
from harness import AGAIN, SOURCE, Skip, main, test

SLOW = {'DML_SHUFFLE': '3', 'DML_PAUSE_US': '100000'}
GROWTH_MAX = 16 << 20
IDLE = 500
HELLO, BYE, PROGRAM, STAGE = 1, 4, 20, 40
MAGIC = 0x314c4d44
VERSION = int(re.search(r'PROTOCOL_VERSION (\d+)', (SOURCE / 'wire/message.h').read_text())[1])


def hash64(data):
    try:
        function = ctypes.CDLL('libxxhash.so.0').XXH3_64bits
    except OSError as error:
        raise Skip(f'frames cannot be made: {error}') from None
    function.restype, function.argtypes = ctypes.c_uint64, (ctypes.c_char_p, ctypes.c_size_t)
    return function(data, len(data))


def frame(kind, body=b'', length=None, term=1, version=VERSION, bulk=0, flags=0):
    header = struct.pack('<IHHIIQQQQII', MAGIC, version, kind, flags,
                         len(body) if length is None else length, term, bulk, hash64(body), 0, 0, 0)
    return header + struct.pack('<Q', hash64(header)) + body


def hello(role, run='a stranger', version=VERSION):
    """Of another run, in a later term."""
    return frame(HELLO, struct.pack('<II', version, len(run)) + run.encode() + b'\0' +
                 struct.pack('<BIQI', role, 0, 77, 30) + 2 * struct.pack('<Ix', 0), term=9)


def nonsense():
    """What is said, by the reason for which its sender is dropped."""
    return {
        'not a frame of this protocol': os.urandom(4096),
        'another protocol version': frame(HELLO, version=999),
        "bad checksum of a frame's header": frame(HELLO)[:-1] + b'\x55',
        'unknown message type': frame(999),
        'message longer than its type allows': frame(HELLO, length=1 << 30),
        'bulk where there may be none, or too long': frame(STAGE, bulk=1 << 60),
        'malformed message': frame(HELLO, b'\xff' * 40),
        'bad checksum of a message': frame(HELLO, b'x' * 40)[:-1] + b'y',
        'a message that strangers may not send': frame(BYE, b'go\0'),
        'closed within a frame': frame(HELLO, b'x' * 40)[:70],
    }


# ---- connections ----

def sockets_of(run):
    return sorted(path for path in run.sockets.rglob('*') if path.is_socket())


def connect(path):
    link = socket.socket(socket.AF_UNIX)
    link.settimeout(30)
    link.connect(str(path))
    return link


def is_dropped(link, seconds=15):
    """Whether the other end hangs up in time."""
    link.settimeout(seconds)
    try:
        while link.recv(4096):
            pass
        return True
    except ConnectionError:
        return True
    except TimeoutError:
        return False


def memory_of(pid):
    text = pathlib.Path(f'/proc/{pid}/status').read_text()
    return int(re.search(r'VmRSS:\s+(\d+)', text)[1]) << 10


@contextlib.contextmanager
def long_run(folder, name):
    """Half a minute's work, under way. It is told to stop then, and goes on quickly; its model must
    be the quiet run's."""
    job = make_job(folder, max_steps=60, checkpoint_seconds=0.1, history=2,
                   gradient_tolerance=1e-10)
    expected = quiet(job)
    with run_of(job, name, **SLOW) as run:
        run.start()
        run.now.until(lambda: 'info: step 2:' in run.now.so_far(run.now.errors), 'step 2')
        before = {pid: memory_of(pid) for pid in run.workers()}
        yield run
        assert run.now.popen.poll() is None, 'the run ended before the strangers'
        growth = {pid: memory_of(pid) - before[pid] for pid in run.workers() if pid in before}
        assert set(growth) == set(before), 'a worker was lost'
        say(f'memory grew by at most {max(growth.values()) / 2 ** 20:.1f} MiB')
        assert max(growth.values()) < GROWTH_MAX, f'memory grew by {growth} bytes'
        run.now.signal(signal.SIGTERM)
        assert run.now.wait().status == AGAIN
        run.start(DML_PAUSE_US='0')
        result = conclude(run, 0)
        assert result['model_sha256'] == expected['model_sha256'], 'another model'
        check_nothing_left(run)


def check_counted(run, reasons):
    log = run.story()
    missing = [reason for reason in reasons
               if not re.search(rf'dropped \d+ connections: {re.escape(reason)}', log)]
    assert not missing, f'not counted: {missing}'


@test
def nonsense_is_dropped_with_a_counted_reason(folder):
    said = nonsense()
    with long_run(folder, 'nonsense') as run:
        for path in sockets_of(run):
            for reason, data in said.items():
                link = connect(path)
                with contextlib.suppress(ConnectionError):
                    link.sendall(data)
                    link.shutdown(socket.SHUT_WR)
                assert is_dropped(link), f'not dropped: {reason}'
                link.close()
    check_counted(run, said)


@test
def a_stranger_is_refused(folder):
    with long_run(folder, 'stranger') as run:
        for path in sockets_of(run):
            link = connect(path)
            link.sendall(hello(role=1 if path.name.startswith('shard') else 2))
            answer = link.recv(4096)
            assert b'another run' in answer, answer
            link.sendall(hello(role=1 if path.name.startswith('shard') else 2, version=7))
            link.close()


@test
def who_sends_a_byte_a_second_or_nothing_is_dropped(folder):
    with long_run(folder, 'slow') as run:
        links = []
        for path in sockets_of(run):
            links += [(connect(path), frame(HELLO, b'x' * 40)), (connect(path), b'')]
        start = time.monotonic()
        for i in range(14):
            for link, data in links:
                with contextlib.suppress(ConnectionError):
                    link.send(data[i:i + 1])
            if run.now.popen.poll() is not None:
                break
            time.sleep(0.7)
        for link, _ in links:
            assert is_dropped(link), f'not dropped after {time.monotonic() - start:.0f} s'
    check_counted(run, ['no HELLO or GREET that was welcome, in time'])


@test
def many_idle_connections_cost_little(folder):
    with long_run(folder, 'idle') as run:
        links = [connect(path) for path in sockets_of(run) for _ in range(IDLE)]
        time.sleep(1)
        refused = sum(is_dropped(link, 0.001) for link in links[:5])
        say(f'{len(links)} connections, {refused} of 5 dropped within a second')
        for link in links:
            link.close()


if __name__ == '__main__':
    sys.exit(main())
