#!/usr/bin/env python3
"""What links cost: bulk through shared memory, a Unix socket and TLS, and a wide job whose
workers are reached over each. All ways in turn, several times; the best of each counts, because
the machine may be shared. Prints tables for bench/RESULTS.md."""

import contextlib
import os
import pathlib
import random
import re
import secrets
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ.get('DML_SOURCE') or pathlib.Path(__file__).resolve().parents[1])
BUILD = pathlib.Path(os.environ.get('DML_BUILD') or os.getcwd())
sys.path.insert(0, str(SOURCE / 'tests/integration'))

from harness import COORDINATOR, REPLICA, SHARD, Process, write_job  # noqa: E402

ROUNDS = 5
WAYS = ['shared memory', 'Unix socket', 'TLS']
MEGABYTES = 16
TIMES = 40
FEATURES = 500_000
ROWS = 4_000
STEPS = 25  # after which the wide job ends


def write_data(path):
    """Few values in very many columns: an evaluation is mostly vectors that are sent."""
    rng = random.Random(1)
    with open(path, 'w') as file:
        for row in range(ROWS):
            columns = sorted(rng.sample(range(1, FEATURES + 1), 200))
            values = ' '.join(f'{column}:{rng.random():.3f}' for column in columns)
            file.write(f'{row % 2} {values}\n')
    return path


def bulk(way):
    return float(subprocess.run([BUILD / 'bench/transport', way, str(MEGABYTES), str(TIMES)],
                                check=True, capture_output=True, text=True).stdout)


@contextlib.contextmanager
def worker(program, way, folder, key):
    name = program.name
    # Addresses of one host would be spared TLS.
    host = '127.0.0.1' if program == SHARD else '127.0.0.2'
    listen = {'shared memory': f'unix:{folder}/{name}'}.get(way, f'{host}:0')
    process = Process(program, '--listen', listen, '--folder', folder,
                      *(['--key', key] if way == 'TLS' else []))
    try:
        process.until(lambda: '\n' in process.so_far(process.output), 'it listens')
        yield re.search(r'listening (\S+)', process.so_far(process.output))[1]
    finally:
        process.end()


def evaluation_ms(way, folder, data):
    """Milliseconds an evaluation of the wide job takes."""
    state = folder / 'job.state'
    state.mkdir(exist_ok=True)
    key = state / 'key'
    if not key.exists():
        key.touch(mode=0o600)
        key.write_text(secrets.token_hex(32) + '\n')
    with worker(SHARD, way, folder, key) as shard, worker(REPLICA, way, folder, key) as replica:
        job = write_job(folder, data=[data], l2=1e-6, max_steps=STEPS, checkpoint_seconds=3600,
                        precondition='none', shard_addresses=[shard], replica_addresses=[replica])
        finished = Process(COORDINATOR, 'run', job, '--fresh', '--json').wait()
    assert finished.status == 0, finished
    return 1e3 * finished.json['seconds']['train'] / finished.json['evaluations'], \
        finished.json['model_sha256']


def main():
    best = {way: 0 for way in WAYS}
    for _ in range(ROUNDS):
        for way in WAYS:
            best[way] = max(best[way], bulk(way))
    times, hashes = {}, set()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        data = write_data(folder / 'wide.libsvm')
        for _ in range(ROUNDS):
            for way in WAYS:
                if way != 'Unix socket':  # where there is one there is shared memory
                    ms, model = evaluation_ms(way, folder, data)
                    times[way] = min(ms, times.get(way, ms))
                    hashes.add(model)
    assert len(hashes) == 1, hashes
    print('| link | GB/s | ms an evaluation |')
    print('|------|------|------------------|')
    for way in WAYS:
        print(f'| {way} | {best[way]:.2f} | {f"{times[way]:.1f}" if way in times else "–"} |')


if __name__ == '__main__':
    sys.exit(main())
