#!/usr/bin/env python3
"""Training on minibatches (Downpour): how many a second, and how much of their time is latency.

    minibatches.py              the table: data and model by batch, replicas and shards
    minibatches.py straggler    one of four replicas is ten times as slow, beside four equal ones

"Computing" is what one replica with one thread computes in a minibatch, from the largest batch, whose
latency is spread over the most rows; the rest is latency: messages, flushes and the step of Adagrad.
So a share of one half says that twice the batch costs hardly more than the half of the minibatches.

For the straggler replicas sleep before each chunk (DML_SHUFFLE, DML_PAUSE_US), the slow one ten times
as long, so that what is measured does not depend on the number of processors.

Data are those of a folder (DML_SHARED) that has a9a.gz and fashion_mnist.
"""

import contextlib
import os
import pathlib
import sqlite3
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / 'tests' / 'fault'))

from faults import workers_at  # noqa: E402
from harness import COORDINATOR, REPLICA, SHARED  # noqa: E402

BATCHES = 64, 128, 256, 1024, 4096
ROWS_A_CHUNK = 64
CHUNK_MS = 1  # that an undisturbed replica sleeps for a chunk, in the mean
SLOWDOWN, REPLICAS, TIMES = 10, 4, 3
PLACES = (1, 1), (2, 1), (2, 2)

FASHION = f'''
data = {{ "{SHARED}/fashion_mnist/train-images-idx3-ubyte.gz" }}
labels = {{ "{SHARED}/fashion_mnist/train-labels-idx1-ubyte.gz" }}
'''
DATA = {
    'a9a': f'data = {{ "{SHARED}/a9a.gz" }}\nformat = libsvm\nobjective = logistic\n',
    'fashion softmax': FASHION + 'objective = softmax\n',
    'fashion 784-100-10': FASHION + 'objective = network\nnetwork { layers = { 100 } }\n'
                                    'early_stopping = off\n',
}


def write_job(folder, data, **settings):
    job = folder / 'job.conf'
    lines = [f'{key} = {value}' for key, value in settings.items()]
    job.write_text(data + 'optimizer = downpour\nthreads = 1\n' + '\n'.join(lines))
    return job


def train(job, *arguments):
    """Minibatches and rows a second of the fastest epoch but the first, and the hash of the model."""
    state = job.parent / 'state'
    process = subprocess.run([COORDINATOR, 'run', job, '--fresh', '--set', f'state={state}',
                              *arguments], capture_output=True, text=True)
    if process.returncode:
        sys.exit(process.stderr)
    with contextlib.closing(sqlite3.connect(next(state.glob('*.db')))) as database:
        rows = database.execute(
            'SELECT minibatches, rows, seconds FROM downpour_epochs WHERE epoch > 1 AND '
            'run = (SELECT max(run) FROM downpour_epochs)').fetchall()
    sha256 = next(line for line in process.stdout.splitlines() if line.startswith('sha256'))
    return max((n / seconds, rows / seconds) for n, rows, seconds in rows) + (sha256,)


def table():
    print('| data and model | replicas, shards | batch | minibatches a second | rows a second '
          '| latency |')
    print('|---|---|---|---|---|---|')
    for name, data in DATA.items():
        for replicas, shards in PLACES:
            with tempfile.TemporaryDirectory() as folder:
                job = write_job(pathlib.Path(folder), data, replicas=replicas, shards=shards)
                found = {batch: measure_best(job, batch) for batch in BATCHES}
            most = max(rows for _, rows in found.values())
            for batch, (minibatches, rows) in found.items():
                print(f'| {name} | {replicas}, {shards} | {batch} | {minibatches:.0f} | {rows:.0f} '
                      f'| {1 - rows / most:.2f} |', flush=True)


def measure_best(job, batch):
    return max(train(job, '--set', f'downpour.batch={batch}')[:2] for _ in range(TIMES))


def straggler(batch=1024):
    pauses = [2000 * CHUNK_MS] * REPLICAS
    slowed = pauses[:-1] + [pauses[-1] * SLOWDOWN]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        sockets = [folder / f'replica{i}' for i in range(REPLICAS)]
        addresses = ', '.join(f'"unix:{path}"' for path in sockets)
        job = write_job(folder, DATA['a9a'], replicas=REPLICAS, shards=1,
                        replica_addresses='{ ' + addresses + ' }')
        hashes = set()
        for _ in range(TIMES):
            rates = []
            for times in pauses, slowed:
                environments = [{'DML_SHUFFLE': '1', 'DML_PAUSE_US': str(us)} for us in times]
                with workers_at(sockets, REPLICA, environments):
                    rate, _, sha256 = train(job, '--set', f'downpour.batch={batch}')
                rates.append(rate)
                hashes.add(sha256)
            print(f'batch {batch}: {rates[0]:.1f} minibatches a second of four equal replicas, '
                  f'{rates[1]:.1f} with one slowed tenfold: {rates[1] / rates[0]:.2f}', flush=True)
        assert len(hashes) == 1, hashes


if __name__ == '__main__':
    os.environ.setdefault('DML_BUILD', os.getcwd())
    straggler() if sys.argv[1:] == ['straggler'] else table()
