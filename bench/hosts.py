#!/usr/bin/env python3
"""Two hosts over TLS beside one: how long an evaluation takes on each.

    bench/hosts.py [SET] [--copies N] [--turns N] [KEY=VALUE ...]

SET is one of bench/host_bytes.py, or the path of a LIBSVM file; --copies repeats its rows so many
times. Keys are those of a job file. A host is one processor here: one host is a run all of whose
processes are held to processor 0, two are addresses of the loopback device whose shard and replica
are held to a processor each, where the coordinator shares the first. So two hosts have twice the
processors of one, and also do what a network card and a second kernel would do elsewhere: all of
TCP and TLS.

Runs take turns; the best of each counts, because the machine may be shared. A run of few steps is
taken from one of more, so that neither starting nor ending counts. The models must have the same
bits. Prints a line of the table in bench/RESULTS.md: ms an evaluation, and of processor time in all
processes, whose excess over one host is what the link costs."""

import argparse
import os
import pathlib
import resource
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from host_bytes import SETS  # noqa: E402
from harness import COORDINATOR, run, words, write_job  # noqa: E402

STEPS = 2, 10
HOSTS = ['127.0.0.2', '127.0.0.3']

# What starts a worker on a host, which is a processor.
PLACE = """#!/bin/sh
export DML_HOST=$1
case $1 in *.3) shift; exec taskset --cpu-list 1 "$@" ;; *) shift; exec taskset --cpu-list 0 "$@" ;; esac
"""


def processor_ms():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1e3 * (usage.ru_utime + usage.ru_stime)


def one_run(job, settings):
    """Answers the result and the milliseconds of processors."""
    before = processor_ms()
    finished = run('taskset', '--cpu-list', '0', COORDINATOR, 'run', job, '--fresh', '--json',
                   *words(settings))
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
            result, processor = one_run(self.job, {**settings, 'max_steps': steps})
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


def main():
    options = argparse.ArgumentParser()
    options.add_argument('set', nargs='?', default='wide')
    options.add_argument('--copies', type=int, default=1)
    options.add_argument('--turns', type=int, default=3)
    options.add_argument('settings', nargs='*')
    given = options.parse_intermixed_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        data = folder / 'data.libsvm'
        if given.set in SETS:
            SETS[given.set](data)
        else:
            data.symlink_to(pathlib.Path(given.set).resolve())
        data = repeat(data, given.copies) if given.copies > 1 else data
        place = folder / 'place'
        place.write_text(PLACE)
        place.chmod(0o700)
        own = dict(word.split('=', 1) for word in given.settings)
        ways = [Way(folder, 'one', data=[data], shards=1, replicas=1),
                Way(folder, 'two', data=[data], shards=2, replicas=2, hosts=HOSTS,
                    launch=f'{place} %h')]
        for _ in range(given.turns):
            for way in ways:
                way.measure(own)
        assert len(ways[0].models | ways[1].models) == 1, [way.models for way in ways]
        (one, one_processor), (two, two_processor) = (way.each() for way in ways)
        print(f'| {given.set}{f" × {given.copies}" if given.copies > 1 else ""} | '
              f'{one:.0f} | {two:.0f} | {two / one:.2f} | {one_processor:.0f} | {two_processor:.0f} |')



if __name__ == '__main__':
    sys.exit(main())
