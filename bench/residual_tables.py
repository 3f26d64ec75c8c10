#!/usr/bin/env python3
"""Small tables of quantile and huber by defaults, beside the optimum.

    bench/residual_tables.py [SEED]

It needs numpy and scipy. 57 tables of a quantile (30 to 1,000 rows, 2 to 20 columns, tau .1 to .9)
are compared with the linear program without smoothing, 48 of huber with large residuals with
Newton's method. Run it in the build folder, like the tests.
"""

import json
import pathlib
import sys
import tempfile

import numpy as np
import scipy.optimize
import scipy.sparse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'tests/integration'))
from harness import dml, heed_interrupts, train, write_job  # noqa: E402


def made_table(source, kind):
    count = int(np.exp(source.uniform(np.log(30), np.log(1000))))
    width = min(int(source.integers(2, 21)), count // 4)
    x = source.normal(size=(count, width))
    if kind % 4 == 1:
        x = x @ source.normal(size=(width, width))
    if kind % 4 == 2:
        x[:, :width // 2] = x[:, :width // 2] > 0.8
    if kind % 4 == 3:
        x = x * 10 ** source.uniform(-2, 2, size=width) + 3 * source.normal(size=width)
    noise = (source.normal(size=count) if kind % 3 == 0 else source.standard_t(2, size=count)
             if kind % 3 == 1 else source.normal(size=count) * source.choice([1, 1, 1, 20], count))
    effects = source.normal(size=width) / np.sqrt(width) / x.std(0).clip(0.1)
    x = np.round(x, 4)
    return x, (x @ effects + noise) * 10 ** source.uniform(-3, 3)


def pinball(residuals, tau):
    return np.mean(np.where(residuals > 0, (1 - tau) * residuals, -tau * residuals))


def least_pinball(x, y, tau):
    count, width = x.shape
    ones = scipy.sparse.eye(count)
    rows = scipy.sparse.hstack([np.column_stack([x, np.ones(count)]), ones, -ones]).tocsr()
    costs = np.repeat([0, tau / count, (1 - tau) / count], [width + 1, count, count])
    limits = [(None, None)] * (width + 1) + [(0, None)] * (2 * count)
    scale = np.abs(y).max()
    return scale * scipy.optimize.linprog(costs, A_eq=rows, b_eq=y / scale, bounds=limits).fun


def huber(residuals, delta):
    size = np.abs(residuals)
    return np.mean(np.where(size <= delta, size**2 / 2, delta * (size - delta / 2)))


def least_huber(x, y, delta):
    """By the parabolas that touch the losses, which lie nowhere below them."""
    deviations = x.std(0)
    x = np.column_stack([(x - x.mean(0)) / np.where(deviations > 0, deviations, 1), np.ones(len(y))])
    w, least = np.zeros(x.shape[1]), np.inf
    w[-1] = np.median(y)
    while True:
        residuals = x @ w - y
        value = huber(residuals, delta)
        if value > least * (1 - 1e-11):
            return min(value, least)
        least = value
        second = np.minimum(1, delta / np.abs(residuals).clip(delta))
        w -= np.linalg.lstsq((x * second[:, None]).T @ x, x.T @ residuals.clip(-delta, delta), None)[0]


def trained(folder, x, y, objective, **more):
    """(result, residuals, the parameters of the loss)."""
    names = [f'x{j}' for j in range(x.shape[1])]
    np.savetxt(folder / 'd.csv', np.column_stack([x, y]), '%.17g', ',', comments='',
               header=','.join([*names, 'y']))
    result = train(write_job(folder, data=['d.csv'], objective=objective, l2=0, **more), '--fresh')
    model = json.loads((folder / result['model'] / 'model.json').read_text())
    lines = dml('predict', folder / result['model'], folder / 'd.csv').stdout.split()
    return result, np.array(lines, float) - y, model['objective_parameters']


def report(name, found):
    above, evaluations, converged = map(np.array, zip(*found))
    print(f'| {name} | {np.sum(above <= 1e-4)} of {len(found)} | {above.max():.0e} | '
          f'{np.median(evaluations):.0f} | {evaluations.max()} | {np.sum(converged)} |', flush=True)


def main():
    heed_interrupts()
    source = np.random.default_rng(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
    print('| loss | within 1e-4 | worst | evaluations, median | most | converged |\n|---|---|---|---|---|---|')
    with tempfile.TemporaryDirectory() as folder:
        folder, found = pathlib.Path(folder), []
        for number in range(57):
            x, y = made_table(source, number)
            tau = round(source.uniform(0.1, 0.9), 2)
            result, residuals, _ = trained(folder, x, y, 'quantile', quantile={'tau': tau})
            found.append((pinball(residuals, tau) / least_pinball(x, y, tau) - 1, result['evaluations'],
                          result['converged']))
        report('quantile', found)
        found = []
        for number in range(48):
            x, y = made_table(source, 4 * number + 2 + number % 2)
            y *= 1 + 30 * (source.random(len(y)) < 0.1)
            result, residuals, parameters = trained(folder, x, y, 'huber')
            delta = parameters['delta']
            found.append((huber(residuals, delta) / least_huber(x, y, delta) - 1, result['evaluations'],
                          result['converged']))
        report('huber', found)


if __name__ == '__main__':
    main()
