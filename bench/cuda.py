#!/usr/bin/env python3
"""dml on a GPU beside a plain L-BFGS on cuSPARSE and cuBLAS (bench/plain_lbfgs), and beside dml on
the processor: seconds of training to the same objective. Only where there is a GPU.

    bench/cuda.py [ROWS]

The data look like a large collection of texts: many columns, few of them in a row. Seconds of dml
are those of the result (`train`: from the packed data on, all of the cluster's work included),
those of the plain loop from when the data are in the GPU's memory."""

import pathlib
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'tests/integration'))
from harness import BUILD, train, words, write_job  # noqa: E402

COLUMNS, VALUES, L2 = 90000, 200, 1e-6


def texts(rows, seed=1):
    """Lines of LIBSVM text: common words, rare words, and a label that both tell."""
    rng = random.Random(seed)
    for _ in range(rows):
        ids = sorted({1 + int(COLUMNS * rng.random() ** 4) for _ in range(VALUES)})
        margin = sum((j * 7919) % 13 - 6 for j in ids) / 10 + rng.gauss(0, 2)
        yield f'{int(margin > 0)} ' + ' '.join(f'{j}:{1 + j % 3}' for j in ids) + '\n'


def trained(job, device):
    result = train(job, '--fresh', *words({'device': device}))
    print(f'dml, {result["devices"][0]["device"]}: {result["evaluations"]} evaluations, objective '
          f'{result["loss"]:.12g}, {result["seconds"]["train"]:.3f} seconds ({result["reason"]})',
          flush=True)
    return result


def plain(folder, target):
    packed, = (folder / 'job.state').rglob('*.set')
    done = subprocess.run([BUILD / 'bench/plain_lbfgs', packed, repr(L2), repr(target)],
                          capture_output=True, text=True)
    print('plain: ' + (done.stdout or done.stderr).strip(), flush=True)


def main():
    rows = int(sys.argv[1]) if sys.argv[1:] else 100000
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        with open(folder / 'texts', 'w') as file:
            file.writelines(texts(rows))
        job = write_job(folder, data=['texts'], format='libsvm', objective='logistic', l2=L2)
        results = [trained(job, device) for device in ('cuda', 'cpu')]
        assert len({result['model_sha256'] for result in results}) == 1, 'other bits'
        plain(folder, results[0]['loss'] * (1 + 1e-6))


if __name__ == '__main__':
    main()
