"""Data of two classes, and what is found on held-out rows, computed once more in plain Python."""

import math
import random

from harness import dml, write_job


def sigmoid(x):
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


def write_rows(folder, name, rows, seed, start=-2.0, digits=3):
    """LIBSVM lines of six features; the smaller `start`, the rarer is class 1."""
    source = random.Random(seed)
    with open(folder / name, 'w') as file:
        for _ in range(rows):
            x = [round(source.gauss(0, 1), digits) for _ in range(6)]
            margin = start + sum(a * b for a, b in zip(x, (1.2, -0.8, 0.5, 0.3, 0, -1)))
            file.write(f'{int(source.random() < sigmoid(margin))} ' +
                       ' '.join(f'{j}:{v}' for j, v in enumerate(x, 1)) + '\n')
    return folder / name


def made_job(folder, name='job', **settings):
    """A job on rows to learn from, with others held out; a file of new ones beside them."""
    for data, rows, seed in ('data', 3000, 1), ('held', 1500, 2), ('new', 1000, 3):
        if not (folder / data).exists():
            write_rows(folder, data, rows, seed)
    return write_job(folder, name, **{'data': ['data'], 'holdout': ['held'], 'l2': 1e-4,
                                      **settings})


def labels_of(data):
    return [line.split(' ', 1)[0] == '1' for line in data.read_text().splitlines()]


def predicted(model, data, *options, **settings):
    return [float(line) for line in dml('predict', model, data, *options, **settings)
            .stdout.split()]


def shuffled(data, name, seed=5):
    lines = data.read_text().splitlines(True)
    random.Random(seed).shuffle(lines)
    (data.parent / name).write_text(''.join(lines))
    return data.parent / name


def counts(chances, positive, threshold):
    """True positives, and all that are predicted."""
    above = [y for p, y in zip(chances, positive) if p >= threshold]
    return sum(above), len(above)


def quality(chances, positive, threshold):
    hits, above = counts(chances, positive, threshold)
    return {'precision': hits / above if above else 0, 'recall': hits / sum(positive),
            'f1': 2 * hits / (above + sum(positive))}


def calibration_error(chances, positive):
    """Over tenths from 0 to 1: the mean distance of probability and frequency, by rows."""
    bins = [[] for _ in range(10)]
    for p, y in zip(chances, positive):
        bins[min(9, int(p * 10))].append(p - y)
    return sum(abs(math.fsum(one)) for one in bins) / len(chances)


def platt(margins, positive):
    """Slope and offset of the least log loss with Platt's targets, by Newton's method."""
    p, n = sum(positive), len(positive) - sum(positive)
    target = [(p + 1) / (p + 2) if y else 1 / (n + 2) for y in positive]
    slope, offset = 0.0, math.log((p + 1) / (n + 1))
    for _ in range(40):
        q = [sigmoid(slope * m + offset) for m in margins]
        g = [math.fsum((a - t) * m for a, t, m in zip(q, target, margins)),
             math.fsum(a - t for a, t in zip(q, target))]
        w = [a * (1 - a) for a in q]
        a = math.fsum(v * m * m for v, m in zip(w, margins))
        b, c = math.fsum(v * m for v, m in zip(w, margins)), math.fsum(w)
        slope -= (c * g[0] - b * g[1]) / (a * c - b * b)
        offset -= (a * g[1] - b * g[0]) / (a * c - b * b)
    return slope, offset


def isotonic(margins, positive):
    """(first margin, last margin, frequency) of each pool, by the largest slopes of what is added
    up: another way to the same function than merging neighbours."""
    at = {}
    for m, y in zip(margins, positive):
        rows = at.setdefault(m, [0, 0])
        rows[0] += 1
        rows[1] += y
    points, places = [(0, 0)], sorted(at)
    for m in places:
        points.append((points[-1][0] + at[m][0], points[-1][1] + at[m][1]))
    hull = []  # of the lower convex hull of (rows, positives), whose slopes rise
    for i, (x, y) in enumerate(points):
        while len(hull) > 1:
            (x0, y0), (x1, y1) = (points[j] for j in hull[-2:])
            if (y1 - y0) * (x - x1) < (y - y1) * (x1 - x0):
                break
            hull.pop()
        hull.append(i)
    return [(places[i], places[j - 1],
             (points[j][1] - points[i][1]) / (points[j][0] - points[i][0]))
            for i, j in zip(hull, hull[1:])]
