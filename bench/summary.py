#!/usr/bin/env python3
"""What standard errors cost: counts of a Poisson model over categories, one column each.

    bench/summary.py [--rows 2000000] [--robust] [--folder FOLDER]

Eighteen factors have 4,826 columns beside their reference levels. The same job runs without and
with `summary`; printed are seconds of processors and the peak memory of all processes together."""

import argparse
import json
import os
import resource
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy

LEVELS = [2] * 4 + [10] * 4 + [50] * 4 + [766] * 6
BUILD = Path(os.environ.get('DML_BUILD', 'build'))


def write_rows(path, rows, seed=1):
    rng = numpy.random.default_rng(seed)
    firsts = numpy.cumsum([0] + [levels - 1 for levels in LEVELS])
    effects = [numpy.concatenate([[0], rng.normal(0, 0.3, levels - 1)]) for levels in LEVELS]
    with open(path, 'w') as out:
        for begin in range(0, rows, 100000):
            count = min(100000, rows - begin)
            # frequent levels and rare ones
            levels = [(levels * rng.random(count) ** 2).astype(int) for levels in LEVELS]
            mean = numpy.exp(-1 + sum(e[l] for e, l in zip(effects, levels)))
            labels = rng.poisson(mean)
            columns = [firsts[f] + level for f, level in enumerate(levels)]
            for i in range(count):
                ids = (f'{c[i]}:1' for c, l in zip(columns, levels) if l[i])
                out.write(f'{labels[i]} {" ".join(ids)}\n')


def resident(processes):
    """Bytes of these and their children, memory that they share once."""
    total = 0
    for pid in processes:
        try:
            for line in Path(f'/proc/{pid}/smaps_rollup').read_text().splitlines():
                if line.startswith('Pss:'):
                    total += int(line.split()[1]) * 1024
        except OSError:
            pass
    return total


def children(pid):
    found = [pid]
    for process in found:
        try:
            for task in Path(f'/proc/{process}/task').iterdir():
                found += map(int, (task / 'children').read_text().split())
        except OSError:
            pass
    return found


def measured(*command):
    before, start, most = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic(), [0]
    process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True)
    ended = threading.Event()

    def watch():
        while not ended.wait(0.2):
            most[0] = max(most[0], resident(children(process.pid)))

    watcher = threading.Thread(target=watch)
    watcher.start()
    said, _ = process.communicate()
    ended.set()
    watcher.join()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert process.returncode == 0, process.returncode
    used = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return json.loads(said.splitlines()[-1]), used, time.monotonic() - start, most[0]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--rows', type=int, default=2000000)
    parser.add_argument('--robust', action='store_true')
    parser.add_argument('--folder', type=Path, default=Path('/tmp/dml-summary'))
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    data = given.folder / f'{given.rows}.libsvm'
    if not data.exists():
        write_rows(data, given.rows)
    job = given.folder / 'summary.conf'
    job.write_text(f'data = {{ "{data.name}" }}\nformat = libsvm\nobjective = poisson\nl2 = 0\n')
    subprocess.run([BUILD / 'dml-coordinator', 'pack', job], check=True)
    for summary in 'none', 'robust' if given.robust else 'model':
        command = [BUILD / 'dml-coordinator', 'run', job, '--fresh', '--json']
        result, used, wall, most = measured(*command, '--set', f'summary={summary}')
        print(f'summary = {summary}: {result["parameters"]} parameters, {result["evaluations"]} '
              f'evaluations, {used:.1f} s of processors, {wall:.1f} s, {most / 1e9:.2f} GB')


sys.exit(main())
