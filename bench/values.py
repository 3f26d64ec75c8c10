#!/usr/bin/env python3
"""Whether more than 2³³ values are counted, kept and summed right: a model of a table of bytes.

    bench/values.py [--rows N] [--columns N] [--files N] [--folder PATH] [--set KEY=VALUE]...

Writes random bytes as arrays of numpy and labels y = X·w + noise, trains a squared loss without penalty
on them, and computes in blocks, with numpy, what the run says: the loss where all weights are 0 and
that of the model, the largest derivative at both, and how far the model is from w, in standard
errors. By default 2²³ + 2¹⁶ rows of 1,024 columns in two files, each of more than 2³² values: 26 GB
of disk, a byte a value in the files, their packs and the set. Run it in the build folder, like the
tests.
"""

import argparse
import pathlib
import shutil
import sqlite3
import sys
import tempfile
import time

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'tests/integration'))
from harness import COORDINATOR, Process, read_safetensors, write_job  # noqa: E402

BLOCK = 1 << 14  # rows
NOISE = 64
STEPS = 3  # columns that are independent and of one size need no more
SPREAD = np.sqrt((256 ** 2 - 1) / 12)  # deviation of a byte
DISK_SPARED = 10 << 30


def blocks(arrays):
    for rows, labels in arrays:
        for first in range(0, len(rows), BLOCK):
            yield rows[first:first + BLOCK].astype('f8'), labels[first:first + BLOCK]


def write(folder, rows, columns, files, truth):
    """(rows, labels) of each file, as maps of them."""
    rng, arrays = np.random.default_rng(1), []
    for i in range(files):
        count = rows * (i + 1) // files - rows * i // files
        names = [folder / f'{what}-{i}' for what in ('rows', 'labels')]
        data = np.lib.format.open_memmap(names[0], 'w+', 'u1', (count, columns))
        labels = np.lib.format.open_memmap(names[1], 'w+', 'f8', (count,))
        for first in range(0, count, BLOCK):
            end = min(first + BLOCK, count)
            block = np.frombuffer(rng.bytes((end - first) * columns), 'u1').reshape(-1, columns)
            data[first:end] = block
            # Exact in floats: multiples of 2⁻⁴ below 2²⁰.
            labels[first:end] = block.astype('f4') @ truth.astype('f4')
            labels[first:end] += NOISE * rng.standard_normal(end - first)
        data.flush()
        labels.flush()
        arrays.append((np.load(names[0], 'r'), np.load(names[1], 'r')))
    return arrays


def computed(arrays, weights):
    """(loss, the largest derivative) at each column of `weights`, by a pass in blocks."""
    count, loss = 0, np.zeros(weights.shape[1])
    gradient = np.zeros(weights.shape)
    for rows, labels in blocks(arrays):
        residual = rows @ weights - labels[:, None]
        loss += (residual ** 2).sum(axis=0) / 2
        gradient += rows.T @ residual
        count += len(rows)
    return loss / count, abs(gradient / count).max(axis=0)


def trained(folder, files, settings):
    """The result of the run, its weights, and (loss, largest derivative) of its first step and last."""
    job = write_job(folder, data=[f'rows-{i}' for i in range(files)],
                    labels=[f'labels-{i}' for i in range(files)], objective='squared', l2=0,
                    intercept=False, precondition='none', max_steps=STEPS)
    words = [word for setting in settings for word in ('--set', setting)]
    for command in ('pack',), ('run', '--json'):
        began = time.monotonic()
        finished = Process(COORDINATOR, command[0], job, *command[1:], *words).wait(7200)
        assert finished.status == 0, finished
        print(f'{command[0]}: {time.monotonic() - began:.0f} s', flush=True)
    result = finished.json
    with sqlite3.connect(folder / 'job.state/dml.db') as store:
        steps = store.execute('SELECT loss, gradient_max FROM steps ORDER BY step').fetchall()
    model = read_safetensors(pathlib.Path(result['model']) / 'model.safetensors')
    weights = np.zeros(len(model['weight'][1]))
    weights[np.array(model['feature_id'][1]) - 1] = model['weight'][1]
    return result, weights, (steps[0], steps[-1])


def compare(folder, options):
    truth = np.random.default_rng(0).integers(-32, 33, options.columns) / 16
    arrays = write(folder, options.rows, options.columns, options.files, truth)
    values = options.rows * options.columns
    print(f'{options.rows} rows, {options.columns} columns, 2^{np.log2(values):.3f} values', flush=True)
    result, weights, told = trained(folder, options.files, options.set)
    print({key: result[key] for key in ('reason', 'evaluations', 'loss', 'examples') if key in result})
    loss, derivative = computed(arrays, np.stack([np.zeros(options.columns), weights], axis=1))
    for i, where in enumerate(('at 0', 'at the model')):
        print(f'{where}: loss {told[i][0]:.15g}, by numpy {loss[i]:.15g}, '
              f'relatively {told[i][0] / loss[i] - 1:.1e}; largest derivative {told[i][1]:.6g}, '
              f'by numpy {derivative[i]:.6g}')
        assert abs(told[i][0] / loss[i] - 1) < 1e-9
    errors = (weights - truth) / (NOISE / SPREAD / np.sqrt(options.rows))
    print(f'weights: off by {np.sqrt((errors ** 2).mean()):.3f} standard errors, at most '
          f'{abs(errors).max():.2f}')
    assert abs(errors).max() < 6


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--rows', type=int, default=(1 << 23) + (1 << 16))
    parser.add_argument('--columns', type=int, default=1024)
    parser.add_argument('--files', type=int, default=2)
    parser.add_argument('--folder')
    parser.add_argument('--set', action='append', default=[], metavar='KEY=VALUE')
    options = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix='dml-values-', dir=options.folder))
    try:
        asked = 3 * options.rows * options.columns + DISK_SPARED
        if shutil.disk_usage(folder).free < asked:
            sys.exit(f'this needs {asked >> 30} GiB of free disk')
        compare(folder, options)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == '__main__':
    main()
