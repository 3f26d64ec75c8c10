#!/usr/bin/env python3
"""Finds the optimum of logistic regression on a small CSV file by damped Newton, on its own.

    optimum.py FILE LABEL POSITIVE L2 [SKIPPED…]

prints the minimum of mean log(1 + exp(-margin)) + L2/2 |w|^2, the intercept not regularised. It
shares no code with the programs: test_optima.py stores what it prints.
"""

import csv
import math
import sys


def read(path, label, positive, skipped):
    with open(path) as file:
        rows = list(csv.DictReader(file))
    columns = [name for name in rows[0] if name != label and name not in skipped]
    return ([[float(row[name]) for name in columns] + [1.0] for row in rows],
            [1 if row[label] == positive else -1 for row in rows])


def solve(matrix, right):
    """Cholesky; the matrix is symmetric and positive definite."""
    n = len(right)
    lower = [[0.0] * n for _ in range(n)]
    for i in range(n):
        for j in range(i + 1):
            rest = matrix[i][j] - math.fsum(lower[i][k] * lower[j][k] for k in range(j))
            lower[i][j] = math.sqrt(rest) if i == j else rest / lower[j][j]
    y = []
    for i in range(n):
        y.append((right[i] - math.fsum(lower[i][k] * y[k] for k in range(i))) / lower[i][i])
    x = [0.0] * n
    for i in reversed(range(n)):
        x[i] = (y[i] - math.fsum(lower[k][i] * x[k] for k in range(i + 1, n))) / lower[i][i]
    return x


def log1p_exp(z):
    return z + math.log1p(math.exp(-z)) if z > 0 else math.log1p(math.exp(z))


def sigmoid(z):
    return 1 / (1 + math.exp(-z)) if z > 0 else 1 - 1 / (1 + math.exp(z))


def loss(rows, signs, l2, w):
    margins = (math.fsum(x * p for x, p in zip(row, w)) for row in rows)
    return (math.fsum(log1p_exp(-s * m) for s, m in zip(signs, margins)) / len(rows)
            + l2 / 2 * math.fsum(p * p for p in w[:-1]))


def newton_step(rows, signs, l2, w):
    """(gradient, direction) at w; the intercept is the last."""
    n, count = len(w), len(rows)
    penalty = [l2] * (n - 1) + [0.0]
    slopes, curvatures = [], []
    for row, s in zip(rows, signs):
        p = sigmoid(-s * math.fsum(x * v for x, v in zip(row, w)))
        slopes.append(-s * p / count)
        curvatures.append(p * (1 - p) / count)
    columns = list(zip(*rows))
    gradient = [math.fsum(a * x for a, x in zip(slopes, column)) + penalty[j] * w[j]
                for j, column in enumerate(columns)]
    hessian = [[0.0] * n for _ in range(n)]
    for i in range(n):
        weighted = [c * x for c, x in zip(curvatures, columns[i])]
        for j in range(i + 1):
            hessian[i][j] = math.fsum(a * x for a, x in zip(weighted, columns[j]))
        hessian[i][i] += penalty[i]
    # Scaled to a unit diagonal, so that columns of any size are solved alike.
    scale = [1 / math.sqrt(hessian[i][i]) for i in range(n)]
    unit = [[hessian[max(i, j)][min(i, j)] * scale[i] * scale[j] for j in range(n)]
            for i in range(n)]
    step = solve(unit, [-g * s for g, s in zip(gradient, scale)])
    return gradient, [d * s for d, s in zip(step, scale)]


def minimum(rows, signs, l2):
    w = [0.0] * len(rows[0])
    value = loss(rows, signs, l2, w)
    for _ in range(200):
        gradient, direction = newton_step(rows, signs, l2, w)
        decrement = -math.fsum(g * d for g, d in zip(gradient, direction))
        if decrement < 1e-18:
            return value
        t = 1.0
        while t > 1e-10:
            trial = [p + t * d for p, d in zip(w, direction)]
            trial_value = loss(rows, signs, l2, trial)
            if trial_value <= value - 1e-4 * t * decrement:
                break
            t /= 2
        else:
            return value
        w, value = trial, trial_value
    raise SystemExit('no optimum after 200 steps')


if __name__ == '__main__':
    _, file, label, positive, l2, *skipped = sys.argv
    print(repr(minimum(*read(file, label, positive, skipped), float(l2))))
