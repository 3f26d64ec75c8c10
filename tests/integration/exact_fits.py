"""Least squares without rounding: references for what doubles find."""

import math
from fractions import Fraction

from harness import write_job
from summaries import write_csv


def table(folder, rows, **settings):
    write_csv(folder / 'rows.csv', rows)
    return write_job(folder, data=['rows.csv'], **settings)


def solve(a, b):
    """a·x = b for each column of b, in whatever numbers these are."""
    n = len(a)
    rows = [list(a[i]) + list(b[i]) for i in range(n)]
    for c in range(n):
        best = max(range(c, n), key=lambda r: abs(rows[r][c]))
        rows[c], rows[best] = rows[best], rows[c]
        rows[c] = [x / rows[c][c] for x in rows[c]]
        for r in range(n):
            if r != c:
                rows[r] = [x - rows[r][c] * y for x, y in zip(rows[r], rows[c])]
    return [row[n:] for row in rows]


def least_squares(rows, label='y', l2=0, standardise=False):
    """Estimates and errors by name, and the residual sum of squares; with l2 twice F times the rows in
    place of that. Without rounding."""
    names = [name for name in rows[0] if name != label]
    x = [[Fraction(float(row[name])) for name in names] + [Fraction(1)] for row in rows]
    y = [Fraction(float(row[label])) for row in rows]
    n, p = len(rows), len(names) + 1
    h = [[sum(r[i] * r[j] for r in x) for j in range(p)] for i in range(p)]
    ridge = [Fraction(l2) * ((h[j][j] - h[j][-1]**2 / n) if standardise else n) for j in range(p - 1)] + [0]
    penalised = [[h[i][j] + (ridge[i] if i == j else 0) for j in range(p)] for i in range(p)]
    found = solve(penalised, [[sum(r[i] * v for r, v in zip(x, y))] + [Fraction(int(i == j)) for j in range(p)]
                              for i in range(p)])
    rss = sum((v - sum(a * f[0] for a, f in zip(r, found)))**2 for r, v in zip(x, y))
    dispersion = rss / (n - p)
    errors = [math.sqrt(dispersion * found[i][1 + i]) for i in range(p)]
    rss += sum(a * f[0]**2 for a, f in zip(ridge, found))
    return dict(zip(names + ['(intercept)'], zip((float(f[0]) for f in found), errors))), float(rss)


def close(a, b, share):
    return abs(a - b) <= share * abs(b)


def years(rng, count, power, first=1995):
    rows = []
    for i in range(count):
        t = (2 * i + 1) / count - 1
        rows.append({f'year{k}': (first + i)**k for k in range(1, power + 1)})
        rows[-1]['y'] = round(sum((k + 1) * t**k for k in range(1, power + 1)) + rng.gauss(0, 0.2), 4)
    return rows
