#!/usr/bin/env python3
"""Evaluations of a path of ten values: each from zero, each from the model before, and as a sweep,
which passes on the curvature pairs as well; and of the runs of five folds of it, from zero and in the
sweep. Counts, so the machine may be busy.

    DML_BUILD=build bench/path.py DATA [l1] [--set KEY=VALUE ...]
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

BUILD = pathlib.Path(os.environ.get('DML_BUILD', 'build')).resolve()
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'tests/integration'))

from row_hash import fold_of, libsvm_hash  # noqa: E402

FOLDS = 5
VALUES = [10 ** (-1 - 5 * i / 9) for i in range(10)]


def run(folder, name, data, *settings, start=None):
    job = folder / f'{name}.conf'
    job.write_text(f'data = "{data}"\n')
    words = [word for setting in settings for word in ('--set', setting)]
    words += ['--start', str(start)] if start else []
    out = subprocess.run([BUILD / 'dml-coordinator', 'run', job, '--json', '--quiet', '--fresh',
                          *words], check=True, capture_output=True, text=True).stdout
    return json.loads(out)


def cold(folder, name, data, key, common):
    return [run(folder, f'{name}{i}', data, f'{key}={value!r}', *common)
            for i, value in enumerate(VALUES)]


def from_x(folder, data, key, common):
    """As a path, but without the pairs beside each model."""
    results, start = [], None
    for i, value in enumerate(VALUES):
        results.append(run(folder, f'x{i}', data, f'{key}={value!r}', *common, start=start))
        start = pathlib.Path(results[-1]['model'])
        (start / 'curvature').unlink(missing_ok=True)
    return results


def evaluations(results):
    return sum(result['evaluations'] for result in results)


def folds_cold(folder, data, key, common):
    lines = pathlib.Path(data).read_text().splitlines()
    fold = [fold_of(libsvm_hash(line), 1, FOLDS) for line in lines]
    total = 0
    for number in range(1, FOLDS + 1):
        rest = folder / f'rest{number}.libsvm'
        rest.write_text(''.join(f'{line}\n' for line, f in zip(lines, fold) if f != number))
        total += evaluations(cold(folder, f'f{number}-', rest, key, common))
    return total


def main():
    data, *words = sys.argv[1:]
    key = 'l1' if 'l1' in words else 'l2'
    common = [word for word in words if '=' in word]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        values = '{' + ', '.join(map(repr, VALUES)) + '}'
        single = cold(folder, 'cold', data, key, common)
        warm = from_x(folder, data, key, common)
        sweep = run(folder, 'sweep', data, f'{key}={values}', f'folds={FOLDS}', *common)
        path = sweep['path']
        worst = max(abs(a['loss'] - b['loss']) / b['loss'] for a, b in zip(path, single))
        print(f'{pathlib.Path(data).name} {key} {" ".join(common)}: cold {evaluations(single)}, '
              f'from x {evaluations(warm)}, path {evaluations(path)}, losses differ by {worst:.0e}; '
              f'{FOLDS} folds: cold {folds_cold(folder, data, key, common)}, '
              f'in the sweep {sweep["sweep"]["evaluations"] - evaluations(path)}')


if __name__ == '__main__':
    main()
