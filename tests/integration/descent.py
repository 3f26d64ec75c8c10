"""Minimises F = mean loss + l2/2 Σ f·w² + l1 Σ f·|w| over low ≤ w ≤ high by coordinate descent, in plain
Python, with f, low and high of each column, and offsets of rows: an oracle that shares nothing with
the programs. Each coordinate goes to the minimum of a quadratic that lies above F, so F never rises;
the end is where no coordinate can gain anything."""

import math


def logistic(y, margins):
    return [-y / (1 + math.exp(y * margins[0]))]


def squared(y, margins):
    return [margins[0] - y]


def squared_hinge(y, margins):
    return [-2 * y * max(0.0, 1 - y * margins[0])]


def softmax(y, margins):
    most = max(margins)
    shares = [math.exp(m - most) for m in margins]
    total = math.fsum(shares)
    return [share / total - (k == y) for k, share in enumerate(shares)]


# Derivatives of an example's loss by its margins, and what bounds the second ones.
LOSSES = {'logistic': (logistic, 0.25), 'squared': (squared, 1.0), 'softmax': (softmax, 0.5),
          'squared_hinge': (squared_hinge, 2.0)}


def shrunk(value, by):
    return math.copysign(max(abs(value) - by, 0.0), value)


def minimiser(rows, labels, objective, l1, l2, intercept, outputs=1, accuracy=1e-10,
              sweeps_max=20000, factors=None, bounds=None, offsets=None):
    """(w, g): [column][output] with the intercept's last, 0 if there is none; and the gradient of the
    mean loss there. Labels are −1 and 1, numbers, or classes from 0."""
    derivatives, bound = LOSSES[objective]
    n, columns = len(rows), len(rows[0])
    lists = [[row[j] for row in rows] for j in range(columns)] + [[1.0] * n]
    curvature = [bound * math.fsum(x * x for x in column) / n for column in lists]
    factors = [*(factors or [1] * columns), 0]
    bounds = [*(bounds or [(-math.inf, math.inf)] * columns), (-math.inf, math.inf)]
    w = [[0.0] * outputs for _ in lists]
    margins = [[offset] * outputs for offset in offsets or [0.0] * n]

    def gradient(j, k):
        return math.fsum(derivatives(labels[i], margins[i])[k] * x
                         for i, x in enumerate(lists[j]) if x) / n

    for _ in range(sweeps_max):
        moved = 0.0
        for j in range(columns + intercept):
            low, high = bounds[j]
            for k in range(outputs):
                if not curvature[j]:
                    continue
                down = curvature[j] * w[j][k] - gradient(j, k)
                goal = shrunk(down, factors[j] * l1) / (curvature[j] + factors[j] * l2)
                goal = min(max(goal, low), high)
                step = goal - w[j][k]
                if step:
                    w[j][k] = goal
                    for i, x in enumerate(lists[j]):
                        margins[i][k] += step * x
                    moved = max(moved, abs(step) * curvature[j])
        if moved <= accuracy:
            return w, [[gradient(j, k) for k in range(outputs)] for j in range(columns)]
    raise AssertionError(f'coordinates still move by {moved} after {sweeps_max} sweeps')
