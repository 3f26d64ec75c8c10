#!/usr/bin/env python3
"""Several hosts over TLS: how long an evaluation takes on two of them beside one, and how many bytes go
between them.

    bench/hosts.py [SET] [--copies N] [--turns N] [KEY=VALUE ...]
    bench/hosts.py [SET] --bytes REPLICAS [--bytes REPLICAS]... [KEY=VALUE ...]

SET is farm_ads, news20 (two classes), wide (bench/wide_text.py), made (3.4 million columns of 10 million
ids), or the path of a LIBSVM file; --copies repeats its rows so many times. Keys are those of a job file,
such as objective=network. A run of few steps is taken from one of more, so that neither starting nor
ending counts.

Times: a host is one processor. One host is a run all of whose processes are held to processor 0. Two are
addresses of the loopback device whose shard and replica are held to a processor each, where the
coordinator shares the first. So two hosts have twice the processors of one, and also do what a network
card and a second kernel would do elsewhere: all of TCP and TLS. Runs take turns; the least of each counts,
because the machine may be shared. The models must have the same bits. Printed are ms an evaluation, and of
processor time in all processes, whose excess over one host is what the link costs.

Bytes: two shards, and so many replicas, each on a host of its own. Hosts are addresses of the loopback
device of a network namespace of its own, which takes root or unprivileged namespaces, so that all that the
device counts is of this run. Printed are MB an evaluation and host, with headers and all small
messages."""

import argparse
import gzip
import os
import pathlib
import random
import resource
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / 'tests/integration'))

from harness import COORDINATOR, SHARED, run, words, write_job  # noqa: E402

STEPS = 2, 10
HOSTS = ['127.0.0.2', '127.0.0.3']
BYTES_INSIDE, BYTES_STEPS = 'DML_OWN_NETWORK', (4, 24)
MADE_IDS, MADE_ROWS, MADE_VALUES = 10_000_000, 40_000, 150


def farm_ads(path):
    path.write_bytes(gzip.open(SHARED / 'farm_ads.libsvm.gz').read())


def news20(path):
    with gzip.open(SHARED / 'news20.libsvm.gz', 'rt') as rows, open(path, 'w') as file:
        for row in rows:
            label, _, values = row.partition(' ')
            file.write(f'{1 if int(label) <= 10 else -1} {values}')


def wide(path):
    subprocess.run([sys.executable, HERE / 'wide_text.py', '--binary', path], check=True)


def made(path):
    """Half of the values are drawn uniformly from the columns, half mostly from the first ones."""
    rng = random.Random(1)
    with open(path, 'w') as file:
        for row in range(MADE_ROWS):
            columns = {int(MADE_IDS * rng.random() ** (10 if rng.random() < 0.5 else 1))
                       for _ in range(MADE_VALUES)}
            file.write(f'{row % 2} ' + ' '.join(f'{1 + j}:1' for j in sorted(columns)) + '\n')


SETS = {'farm_ads': farm_ads, 'news20': news20, 'wide': wide, 'made': made}

# What starts a worker on a host, which is a processor.
PLACE = """#!/bin/sh
export DML_HOST=$1
case $1 in *.3) shift; exec taskset --cpu-list 1 "$@" ;; *) shift; exec taskset --cpu-list 0 "$@" ;; esac
"""


def processor_ms():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1e3 * (usage.ru_utime + usage.ru_stime)


def one_run(job, settings, prefix=()):
    """Answers the result and the milliseconds of processors."""
    before = processor_ms()
    finished = run(*prefix, COORDINATOR, 'run', job, '--fresh', '--json', *words(settings))
    assert finished.status == 0, finished
    return finished.json, processor_ms() - before


class Way:
    def __init__(self, folder, name, **settings):
        self.job = write_job(folder, name, objective='logistic', l2=1e-4, precondition='none', threads=1,
                             checkpoint_seconds=3600, gradient_tolerance=0, loss_tolerance=0, **settings)
        self.least = {}  # of each number of steps: ms of training, and of processors
        self.evaluations = {}
        self.models = set()

    def measure(self, settings):
        for steps in STEPS:
            result, processor = one_run(self.job, {**settings, 'max_steps': steps},
                                         ('taskset', '--cpu-list', '0'))
            ms, before = self.least.get(steps, (float('inf'), float('inf')))
            self.least[steps] = min(ms, 1e3 * result['seconds']['train']), min(before, processor)
            self.evaluations[steps] = result['evaluations']
        self.models.add(result['model_sha256'])

    def each(self):
        """What an evaluation takes, of those of the longer run that the shorter one has not."""
        few, more = STEPS
        evaluations = self.evaluations[more] - self.evaluations[few]
        return [(b - a) / evaluations for a, b in zip(self.least[few], self.least[more])]


def repeat(path, copies):
    text = path.read_bytes()
    with open(path.with_suffix('.copies'), 'wb') as file:
        for _ in range(copies):
            file.write(text)
    return path.with_suffix('.copies')


def counted():
    """Bytes that the loopback device of this network has sent."""
    line = next(line for line in open('/proc/self/net/dev') if 'lo:' in line)
    return int(line.split(':')[1].split()[8])


def bytes_of(folder, data, replicas, steps, settings):
    """(bytes, evaluations) of a run."""
    job = write_job(folder, data=[data], l2=1e-4, max_steps=steps, shards=2, precondition='none',
                    checkpoint_seconds=3600, replicas=replicas, threads=1,
                    hosts=[f'127.0.0.{2 + i}' for i in range(replicas)], launch='env DML_HOST=%h',
                    optimizer='lbfgs', gradient_tolerance=0, loss_tolerance=0)
    before = counted()
    result, _ = one_run(job, settings)
    return counted() - before, result['evaluations']


def show_times(folder, name, data, turns, own):
    place = folder / 'place'
    place.write_text(PLACE)
    place.chmod(0o700)
    ways = [Way(folder, 'one', data=[data], shards=1, replicas=1),
            Way(folder, 'two', data=[data], shards=2, replicas=2, hosts=HOSTS, launch=f'{place} %h')]
    for _ in range(turns):
        for way in ways:
            way.measure(own)
    assert len(ways[0].models | ways[1].models) == 1, [way.models for way in ways]
    (one, one_processor), (two, two_processor) = (way.each() for way in ways)
    print('| set | one host, ms | two | two to one | processors, one | two |\n' + '|---' * 6 + '|')
    print(f'| {name} | {one:.0f} | {two:.0f} | {two / one:.2f} | {one_processor:.0f} | {two_processor:.0f} |')


def show_bytes(folder, name, data, counts, own):
    print('| set | replicas | MB an evaluation and host |\n|---|---|---|')
    for count in counts:
        (few, first), (more, last) = (bytes_of(folder, data, count, steps, own) for steps in BYTES_STEPS)
        print(f'| {name} | {count} | {(more - few) / (last - first) / count / 1e6:.3f} |', flush=True)


def main():
    options = argparse.ArgumentParser(description=__doc__,
                                      formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument('set', nargs='?', default='wide')
    options.add_argument('--copies', type=int, default=1)
    options.add_argument('--turns', type=int, default=3)
    options.add_argument('--bytes', type=int, action='append', metavar='REPLICAS')
    options.add_argument('settings', nargs='*')
    given = options.parse_intermixed_args()
    if given.bytes and BYTES_INSIDE not in os.environ:
        os.environ[BYTES_INSIDE] = '1'
        os.execvp('unshare', ['unshare', '--map-root-user', '--net', 'sh', '-c',
                              'ip link set lo up && exec "$@"', 'sh', sys.executable, *sys.argv])
    own = dict(word.split('=', 1) for word in given.settings)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        data = folder / 'data.libsvm'
        if given.set in SETS:
            SETS[given.set](data)
        else:
            data.symlink_to(pathlib.Path(given.set).resolve())
        data = repeat(data, given.copies) if given.copies > 1 else data
        title = given.set + (f' × {given.copies}' if given.copies > 1 else '')
        if given.bytes:
            show_bytes(folder, title, data, given.bytes, own)
        else:
            show_times(folder, title, data, given.turns, own)


if __name__ == '__main__':
    sys.exit(main())
