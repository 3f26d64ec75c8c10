#!/usr/bin/env python3
"""Small tables of losses of residuals, by defaults: the optimum that a method of its own finds, soon."""

import json
import math
import random
import sys
from pathlib import Path

from harness import dml, main, test, train, write_job
from optimum import solve

TABLES = 6  # a loss
EVALUATIONS_MOST = 300


def made_table(rng):
    """(rows of features, labels): a line whose residuals are now and then far larger."""
    count, width = rng.choice((30, 60, 120, 300)), rng.choice((2, 3, 5, 10))
    effect, scale = [rng.gauss(0, 1) for _ in range(width)], 10 ** rng.uniform(-3, 3)
    rows = [[round(rng.gauss(0, 1), 3) for _ in range(width)] for _ in range(count)]
    labels = [scale * (math.fsum(x * e for x, e in zip(row, effect)) + rng.gauss(0, 1)
                       * (20 if rng.random() < 0.2 else 1)) for row in rows]
    return rows, labels


def huber_loss(residual, delta):
    """(loss, derivative, curvature of the parabola that touches it there), as of the other."""
    size = abs(residual)
    if size <= delta:
        return residual * residual / 2, residual, 1
    return delta * (size - delta / 2), math.copysign(delta, residual), delta / size


def quantile_loss(residual, tau, epsilon):
    size = abs(residual)
    tilt = 0.5 - tau
    if size < epsilon:
        return (residual * residual / (4 * epsilon) + tilt * residual + epsilon / 4,
                residual / (2 * epsilon) + tilt, 0.5 / epsilon)
    return size / 2 + tilt * residual, math.copysign(0.5, residual) + tilt, 0.5 / size


def minimum(rows, labels, loss, l2):
    """The least of the mean loss and l2/2 |w|^2, the intercept without a penalty: each step goes to the
    minimum of the parabolas that touch the losses, none of which is below its loss."""
    rows = [[*row, 1.0] for row in rows]
    n, count = len(rows[0]), len(rows)
    penalty, w, last = [l2] * (n - 1) + [0.0], [0.0] * n, math.inf
    w[-1] = sorted(labels)[count // 2]
    while True:
        seen = [loss(math.fsum(x * v for x, v in zip(row, w)) - y) for row, y in zip(rows, labels)]
        value = math.fsum(s[0] for s in seen) / count + math.fsum(
            p * v * v for p, v in zip(penalty, w)) / 2
        if value > last * (1 - 1e-7):
            return value
        last = value
        gradient = [sum(s[1] * row[j] for s, row in zip(seen, rows)) / count + penalty[j] * w[j]
                    for j in range(n)]
        hessian = [[sum(s[2] * row[i] * row[j] for s, row in zip(seen, rows)) / count
                    + (penalty[i] if i == j else 0) for j in range(n)] for i in range(n)]
        w = [v - d for v, d in zip(w, solve(hessian, gradient))]


def pinball(residuals, tau):
    return math.fsum(r * (1 - tau) if r > 0 else -r * tau for r in residuals) / len(residuals)


def least_pinball(rows, labels, tau):
    """The least mean loss of a quantile: parabolas around a corner whose smoothing goes to nothing."""
    rows, count = [[*row, 1.0] for row in rows], len(rows)
    n, ordered = len(rows[0]), sorted(labels)
    w, least = [0.0] * (n - 1) + [ordered[int(tau * count)]], math.inf
    width = ordered[count * 3 // 4] - ordered[count // 4]
    for smoothed in [width * 0.4**k for k in range(2, 20)]:
        for _ in range(6):
            residuals = [math.fsum(x * v for x, v in zip(row, w)) - y for row, y in zip(rows, labels)]
            least = min(least, pinball(residuals, tau))
            seen = [quantile_loss(r, tau, smoothed) for r in residuals]
            gradient = [math.fsum(s[1] * row[j] for s, row in zip(seen, rows)) for j in range(n)]
            weighted = [[s[2] * x for x in row] for s, row in zip(seen, rows)]
            hessian = [[math.fsum(a[i] * b[j] for a, b in zip(weighted, rows)) for j in range(n)]
                       for i in range(n)]
            w = [v - d for v, d in zip(w, solve(hessian, gradient))]
    return least


def trained(folder, rows, labels, objective, **more):
    """(result, the parameters of the loss)."""
    columns = [f'x{j}' for j in range(len(rows[0]))]
    (folder / 'd.csv').write_text('\n'.join([','.join([*columns, 'y']), *(
        ','.join(map(repr, [*row, y])) for row, y in zip(rows, labels))]) + '\n')
    result = train(write_job(folder, data=['d.csv'], objective=objective, **more), '--fresh')
    model = json.loads((Path(result['model']) / 'model.json').read_text())
    return result, model['objective_parameters']


def assert_optimal(result, rows, labels, loss, note):
    assert result['converged'] and result['evaluations'] <= EVALUATIONS_MOST, (note, result)
    least = minimum(rows, labels, loss, result['l2'])
    assert abs(result['loss'] - least) <= 1e-4 * least, (note, result, least)


@test
def quantiles_are_found_soon_and_to_four_digits(folder):
    rng = random.Random(31)
    for number in range(TABLES):
        rows, labels = made_table(rng)
        tau = round(rng.uniform(0.1, 0.9), 2)
        for more in {}, {'l2': 0}:
            result, found = trained(folder, rows, labels, 'quantile', quantile={'tau': tau}, **more)
            assert_optimal(result, rows, labels, lambda r: quantile_loss(r, tau, found['epsilon']),
                           (number, tau, more))


@test
def the_corner_of_a_quantile_hides_nothing_of_its_loss(folder):
    rng = random.Random(33)
    for number in range(TABLES):
        rows, labels = made_table(rng)
        tau = round(rng.uniform(0.1, 0.9), 2)
        result, _ = trained(folder, rows, labels, 'quantile', quantile={'tau': tau}, l2=0)
        found = dml('evaluate', Path(result['model']), 'd.csv', '--json', cwd=folder).json['pinball']
        least = least_pinball(rows, labels, tau)
        assert result['converged'] and result['evaluations'] <= EVALUATIONS_MOST, (number, tau, result)
        assert abs(found - least) <= 1e-4 * least, (number, tau, found, least)


@test
def a_corner_wider_than_the_residuals_is_told(folder):
    rng = random.Random(34)
    rows = [[rng.gauss(0, 1)] for _ in range(200)]
    labels = [row[0] + 1e-6 * rng.gauss(0, 1) for row in rows]
    finished = {}
    for epsilon in ('auto', 1e-9):
        result, _ = trained(folder, rows, labels, 'quantile', quantile={'tau': 0.9, 'epsilon': epsilon}, l2=0)
        assert result['converged'], result
        finished[epsilon] = dml('evaluate', Path(result['model']), 'd.csv', '--json', cwd=folder).json
        log = dml('run', folder / 'job.conf', '--fresh').stderr
        assert ('smaller than quantile.epsilon' in log) == (epsilon == 'auto'), log
    assert abs(finished[1e-9]['coverage'] - 0.9) < 0.02, finished


@test
def huber_losses_are_found_soon_and_to_four_digits(folder):
    rng = random.Random(32)
    for number in range(TABLES):
        rows, labels = made_table(rng)
        for more in {}, {'l2': 0}:
            result, found = trained(folder, rows, labels, 'huber', **more)
            assert_optimal(result, rows, labels, lambda r: huber_loss(r, found['delta']),
                           (number, more))


# Brownlee's stack losses: air flow, temperature of the water, acid; the loss of ammonia.
STACK_LOSS = [
    (80, 27, 89, 42), (80, 27, 88, 37), (75, 25, 90, 37), (62, 24, 87, 28), (62, 22, 87, 18),
    (62, 23, 87, 18), (62, 24, 93, 19), (62, 24, 93, 20), (58, 23, 87, 15), (58, 18, 80, 14),
    (58, 18, 89, 14), (58, 17, 88, 13), (58, 18, 82, 11), (58, 19, 93, 12), (50, 18, 89, 8),
    (50, 18, 86, 7), (50, 19, 72, 8), (50, 19, 79, 8), (50, 20, 80, 9), (56, 20, 82, 15),
    (70, 20, 91, 15)]


@test
def a_sharp_corner_ends_soon(folder):
    rows, labels = [row[:3] for row in STACK_LOSS], [row[3] for row in STACK_LOSS]
    result, _ = trained(folder, rows, labels, 'quantile', quantile={'tau': 0.75, 'epsilon': 1e-3},
                        l2=0)
    assert_optimal(result, rows, labels, lambda r: quantile_loss(r, 0.75, 1e-3), 'stack loss')


if __name__ == '__main__':
    sys.exit(main())
