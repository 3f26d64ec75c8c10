#!/usr/bin/env python3
"""Seconds of a path of 20 values of l1: one run of dml, and 20 of LIBLINEAR's -s 6, from text to
models, without intercepts, so that both minimise the same F.

    bench/l1_path.py [--turns N] [--tolerance E] [--gradient G] TRAINED HELD-OUT

TRAINED and HELD-OUT are LIBSVM text of two classes, 1 and -1. The values go from half of the least
l1 at which all weights are 0 down to a thousandth of that. E is LIBLINEAR's -e, 0.01 by default as
there, and G the gradient tolerance of dml, which otherwise ends by the defaults. The excess of a program is how far, relatively, its F is above the lesser of both, the worst of
the 20. It needs numpy, scipy and scikit-learn, and liblinear-train. Run it in the build folder, like
the tests, on a machine that is idle; on a busy one the time of processors, the least of the turns,
says more.
"""

import argparse
import gzip
import json
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
from sklearn.datasets import load_svmlight_file

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'tests/integration'))
from harness import COORDINATOR, heed_interrupts, write_job  # noqa: E402

VALUES = 20


def values_for(x, y):
    most = float(np.abs(x.T @ y).max()) / 2 / len(y)
    return [most / 2 * 1000 ** (-i / (VALUES - 1)) for i in range(VALUES)]


def processor_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def loss(x, y, w):
    return np.logaddexp(0, -y * (x @ w)).mean()


def run_dml(folder, values, trained, held_out, gradient):
    tolerance = {'gradient_tolerance': gradient} if gradient else {}
    job = write_job(folder, data=[trained], holdout=[held_out], intercept=False,
                    l1=[repr(value) for value in values], **tolerance)
    start = time.monotonic()
    done = subprocess.run([COORDINATOR, 'run', job, '--json', '--quiet', '--fresh'], check=False,
                          capture_output=True, text=True)
    seconds = time.monotonic() - start
    assert done.returncode == 0, done.stderr
    table = json.loads(done.stdout.splitlines()[-1])['path']
    return seconds, [entry['loss'] for entry in table]


def run_liblinear(folder, values, trained, rows, tolerance):
    start = time.monotonic()
    for i, value in enumerate(values):
        subprocess.run(['liblinear-train', '-q', '-s', '6', '-e', str(tolerance), '-c',
                        repr(1 / value / rows), trained, folder / f'{i}.model'], check=True)
    return time.monotonic() - start


def weights_of(path, features):
    lines = path.read_text().split()
    sign = 1 if lines[lines.index('label') + 1] == '1' else -1
    w = np.array([float(word) for word in lines[lines.index('w') + 1:]])
    return sign * np.pad(w, (0, features - len(w)))


def plain(path, folder, name):
    """Uncompressed: LIBLINEAR reads nothing else."""
    made = folder / name
    made.write_bytes((gzip.open if path.suffix == '.gz' else open)(path, 'rb').read())
    return made


def main():
    heed_interrupts()
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('files', nargs=2, type=pathlib.Path, metavar='FILE')
    parser.add_argument('--turns', type=int, default=3)
    parser.add_argument('--tolerance', type=float, default=0.01)
    parser.add_argument('--gradient', type=float)
    options = parser.parse_args()
    seconds, processors = ([], []), ([], [])
    with tempfile.TemporaryDirectory(prefix='dml-l1-') as name:
        folder = pathlib.Path(name)
        trained, held_out = (plain(path, folder, f'{i}.libsvm')
                             for i, path in enumerate(options.files))
        x, y = load_svmlight_file(str(trained))
        values = values_for(x, y)
        for _ in range(options.turns):
            before = processor_seconds()
            taken, losses = run_dml(folder, values, trained, held_out, options.gradient)
            seconds[0].append(taken)
            between = processor_seconds()
            seconds[1].append(run_liblinear(folder, values, trained, len(y), options.tolerance))
            processors[0].append(between - before)
            processors[1].append(processor_seconds() - between)
        excess = [0, 0]
        for i, (value, own) in enumerate(zip(values, losses)):
            w = weights_of(folder / f'{i}.model', x.shape[1])
            other = loss(x, y, w) + value * np.abs(w).sum()
            excess[0] = max(excess[0], own / min(own, other) - 1)
            excess[1] = max(excess[1], other / min(own, other) - 1)
    own, other = (statistics.median(taken) for taken in seconds)
    of_own, of_other = (min(taken) for taken in processors)
    print(f'dml {own:.2f} s, excess {excess[0]:.0e}; LIBLINEAR {other:.2f} s, excess '
          f'{excess[1]:.0e}; dml / LIBLINEAR {own / other:.2f}; of processors '
          f'{of_own:.2f} s and {of_other:.2f} s, {of_own / of_other:.2f}')


if __name__ == '__main__':
    main()
