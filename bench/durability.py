"""What durability costs: the same job with its usual checkpoints and with none, turn by turn in this
run. One line a problem: seconds of either, and their ratio."""

import pathlib
import random
import statistics
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'tests/integration'))
from harness import SHARED, lines_of, train, write_job  # noqa: E402

NEVER = 1e6
WIDE_FEATURES, WIDE_ROWS, WIDE_VALUES = 1_000_000, 60_000, 40


def wide_data(path):
    rng = random.Random(1)
    with open(path, 'w') as file:
        for row in range(WIDE_ROWS):
            ids = sorted({int(WIDE_FEATURES * rng.random() ** 2) + 1 for _ in range(WIDE_VALUES)})
            file.write(f'{row % 2} ' + ' '.join(f'{j}:1' for j in ids) + '\n')


def compare(folder, name, data, steps, repeats=3):
    job = write_job(folder, name, data=[data], l2=1e-7, gradient_tolerance=0, loss_tolerance=0,
                    max_steps=steps, history=20)
    seconds = {10: [], NEVER: []}
    models = set()
    for _ in range(repeats):
        for every, found in seconds.items():
            result = train(job, '--fresh', '--quiet', '--set', f'checkpoint_seconds={every}')
            found.append(result['seconds']['train'])
            models.add(result['model_sha256'])
    assert len(models) == 1, models
    with_it, without = (statistics.median(found) for found in seconds.values())
    print(f'{name}: {without:.2f} s without checkpoints, {with_it:.2f} s with one every 10 s: '
          f'ratio {with_it / without:.3f}', flush=True)


def main():
    with tempfile.TemporaryDirectory(prefix='dml-bench-') as name:
        folder = pathlib.Path(name)
        wide_data(folder / 'wide.libsvm')
        compare(folder, 'wide', 'wide.libsvm', 800)
        if (SHARED / 'a9a.gz').exists():
            (folder / 'a9a').write_text('\n'.join(lines_of(SHARED / 'a9a.gz')) + '\n')
            compare(folder, 'a9a', 'a9a', 20000)
        else:
            print('a9a: skipped, it is not here')


main()
