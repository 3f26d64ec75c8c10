#!/usr/bin/env python3
"""What durability costs: the same job, with its usual checkpoints and with none, in turns.

    bench/durability.py [--turns N] [wide | a9a ...]

Prints one line a problem: the median seconds with and without, the median ratio over the turns, and
the ratio of the shortest runs, which other load disturbs least. In each turn the two run one after
the other; the order alternates. Run it in the build folder, like the tests.
"""

import argparse
import pathlib
import random
import statistics
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'tests/integration'))
from harness import SHARED, lines_of, train, write_job  # noqa: E402

EVERY, NEVER = 10, 1e6
WIDE_FEATURES, WIDE_ROWS, WIDE_VALUES = 1_000_000, 60_000, 40


def wide_data(path):
    rng = random.Random(1)
    with open(path, 'w') as file:
        for row in range(WIDE_ROWS):
            ids = sorted({int(WIDE_FEATURES * rng.random() ** 2) + 1 for _ in range(WIDE_VALUES)})
            file.write(f'{row % 2} ' + ' '.join(f'{j}:1' for j in ids) + '\n')


def a9a_data(path):
    if not (SHARED / 'a9a.gz').exists():
        sys.exit(f'a9a.gz is not in {SHARED}')
    path.write_text('\n'.join(lines_of(SHARED / 'a9a.gz')) + '\n')


# Steps for half a minute or so: some checkpoints.
PROBLEMS = {'wide': (wide_data, 800), 'a9a': (a9a_data, 20000)}


def compare(folder, name, turns):
    write_data, steps = PROBLEMS[name]
    write_data(folder / name)
    job = write_job(folder, name, data=[name], l2=1e-7, gradient_tolerance=0, loss_tolerance=0,
                    max_steps=steps, history=20)
    seconds = {EVERY: [], NEVER: []}
    models = set()
    for turn in range(turns):
        for every in sorted(seconds, reverse=turn % 2):
            result = train(job, '--fresh', '--quiet', '--set', f'checkpoint_seconds={every}')
            seconds[every].append(result['seconds']['train'])
            models.add(result['model_sha256'])
    assert len(models) == 1, models
    with_it, without = seconds[EVERY], seconds[NEVER]
    ratio = statistics.median(a / b for a, b in zip(with_it, without))
    print(f'{name}: {statistics.median(without):.2f} s without checkpoints, '
          f'{statistics.median(with_it):.2f} s with one every {EVERY} s: ratio {ratio:.3f} over '
          f'{turns} turns, {min(with_it) / min(without):.3f} of the shortest', flush=True)


def main():
    parser = argparse.ArgumentParser(description='What durability costs.')
    parser.add_argument('problems', nargs='*', metavar='wide|a9a')
    parser.add_argument('--turns', type=int, default=7)
    arguments = parser.parse_args()
    unknown = set(arguments.problems) - set(PROBLEMS)
    if unknown:
        parser.error(f'there is no problem {", ".join(unknown)}; there are: {", ".join(PROBLEMS)}')
    with tempfile.TemporaryDirectory(prefix='dml-bench-') as folder:
        for name in arguments.problems or PROBLEMS:
            compare(pathlib.Path(folder), name, arguments.turns)


if __name__ == '__main__':
    main()
