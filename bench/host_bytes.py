#!/usr/bin/env python3
"""Bytes that go between hosts: how many an evaluation costs for each host with a replica.

    bench/host_bytes.py SET REPLICAS ... [KEY=VALUE ...]

SET is farm_ads, news20 (two classes), wide (bench/wide_text.py) or made (3.4 million columns of 10
million ids); keys are those of a job file, as objective=network. Hosts are addresses of the loopback
device of a network namespace of its own, which takes root or unprivileged namespaces, so all that
the device counts is of this run. A run of few steps is taken from one of more, so that neither
starting nor ending counts. Prints a line for each number of replicas; bench/NOTES.md has them as a
table, in "Bytes between hosts"."""

import gzip
import os
import pathlib
import random
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ.get('DML_SOURCE') or pathlib.Path(__file__).resolve().parents[1])
sys.path.insert(0, str(SOURCE / 'tests/integration'))

from harness import SHARED, train, write_job  # noqa: E402

INSIDE = 'DML_OWN_NETWORK'
STEPS = 4, 24
SHARDS = 2
MADE_IDS, MADE_ROWS, MADE_VALUES = 10_000_000, 40_000, 150


def farm_ads(path):
    path.write_bytes(gzip.open(SHARED / 'farm_ads.libsvm.gz').read())


def news20(path):
    with gzip.open(SHARED / 'news20.libsvm.gz', 'rt') as rows, open(path, 'w') as file:
        for row in rows:
            label, _, values = row.partition(' ')
            file.write(f'{1 if int(label) <= 10 else -1} {values}')


def wide(path):
    subprocess.run([sys.executable, SOURCE / 'bench/wide_text.py', '--binary', path], check=True)


def made(path):
    """Half of the values are drawn uniformly from the columns, half mostly from the first ones."""
    rng = random.Random(1)
    with open(path, 'w') as file:
        for row in range(MADE_ROWS):
            columns = {int(MADE_IDS * rng.random() ** (10 if rng.random() < 0.5 else 1))
                       for _ in range(MADE_VALUES)}
            file.write(f'{row % 2} ' + ' '.join(f'{1 + j}:1' for j in sorted(columns)) + '\n')


SETS = {'farm_ads': farm_ads, 'news20': news20, 'wide': wide, 'made': made}


def counted():
    """Bytes that the loopback device of this network has sent."""
    line = next(line for line in open('/proc/self/net/dev') if 'lo:' in line)
    return int(line.split(':')[1].split()[8])


def bytes_of(folder, data, replicas, steps, settings):
    """(bytes, evaluations) of a run."""
    job = write_job(folder, data=[data], l2=1e-4, max_steps=steps, shards=SHARDS, precondition='none',
                    checkpoint_seconds=3600, replicas=replicas, threads=1,
                    hosts=[f'127.0.0.{2 + i}' for i in range(replicas)], launch='env DML_HOST=%h',
                    optimizer='lbfgs', gradient_tolerance=0, loss_tolerance=0)
    before = counted()
    result = train(job, '--fresh', *(word for pair in settings for word in ('--set', pair)))
    return counted() - before, result['evaluations']


def main():
    if INSIDE not in os.environ:
        os.environ[INSIDE] = '1'
        os.execvp('unshare', ['unshare', '--map-root-user', '--net', 'sh', '-c',
                              'ip link set lo up && exec "$@"', 'sh', sys.executable, *sys.argv])
    name, *replicas = (word for word in sys.argv[1:] if '=' not in word)
    settings = [word for word in sys.argv[1:] if '=' in word]
    with tempfile.TemporaryDirectory() as folder:
        data = pathlib.Path(folder) / 'data.libsvm'
        SETS[name](data)
        for count in map(int, replicas):
            (few, first), (more, last) = (bytes_of(pathlib.Path(folder), data, count, steps,
                                                   settings)
                                          for steps in STEPS)
            each = (more - few) / (last - first) / count
            print(f'| {name} | {count} | {each / 1e6:.3f} |', flush=True)


if __name__ == '__main__':
    sys.exit(main())
