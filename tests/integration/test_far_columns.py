#!/usr/bin/env python3
"""Columns far from 0 beside their deviation, or nearly equal, are trained to the minimum like any other,
and summaries tell their errors. Where that is beyond the digits of a double, the end is not called
converged. References are exact: fractions for least squares, and Newton on exact differences."""

import itertools
import math
import random
import sys
from fractions import Fraction

from exact_fits import close, least_squares, solve, table, years
from harness import dml, main, test, train
from summaries import write_csv


def assert_summary(result, expected, rss, share):
    said = dml('summary', result['model'], '--json').json
    assert close(said['fit']['deviance'], rss, share), (said['fit']['deviance'], rss)
    for row in said['rows']:
        estimate, error = expected[row['name']]
        assert abs(row['estimate'] - estimate) <= 0.01 * error, (row, estimate)
        assert close(row['error'], error, share), (row, error)


def stamps(rng, count):
    """Times in seconds, a few of which lie between the two of a row."""
    rows = []
    for i in range(count):
        start = 1732795200 + 8123 * i + rng.randrange(100)
        end = start + rng.choice((1, 2, 4, 5))
        rows.append({'start': start, 'end': end, 'y': round(2 * (end - start) + rng.gauss(0, 0.7), 1)})
    return rows


def offset(rng, count, ratio):
    """One column whose mean is that many deviations."""
    rows = []
    for _ in range(count):
        x = rng.gauss(0, 1)
        rows.append({'x': repr(ratio + x), 'y': round(1.5 * x + rng.gauss(0, 1), 3)})
    return rows


LEAST_SQUARES = {
    'times_of_today': lambda rng: stamps(rng, 120),
    'a_cubic_of_years': lambda rng: years(rng, 29, 3),
    'a_mean_of_1e4_deviations': lambda rng: offset(rng, 80, 1e4),
    'a_mean_of_1e9_deviations': lambda rng: offset(rng, 80, 1e9),
    'two_columns_that_differ_by_1e-5': lambda rng: [
        {'x': x, 'z': repr(x + 1e-5 * e), 'y': round(x + e + rng.gauss(0, 1), 3)}
        for x, e in ((rng.gauss(0, 1), rng.gauss(0, 1)) for _ in range(80))],
}

for name, rows_of in LEAST_SQUARES.items():
    def behaviour(folder, rows_of=rows_of):
        rows = rows_of(random.Random(3))
        expected, rss = least_squares(rows)
        job = table(folder, rows, objective='squared', summary='model')
        for standardise in 'false', 'true':
            result = train(job, '--fresh', '--set', f'standardise={standardise}')
            assert result['converged'], result
            assert close(result['loss'], rss / len(rows) / 2, 1e-6), (result['loss'], rss / len(rows) / 2)
            assert_summary(result, expected, rss, 1e-4)
    behaviour.__name__ = f'{name}_are_fitted_and_have_their_errors'.replace('-', '_')
    test(behaviour)


@test
def estimates_beside_a_far_column_that_follows_from_them_are_those_of_the_data(folder):
    rows = offset(random.Random(3), 80, 1e4)
    expected, rss = least_squares(rows)
    expected['twice'] = 0, 0
    twice = [{'x': row['x'], 'twice': repr(2 * float(row['x'])), 'y': row['y']} for row in rows]
    for settings in {}, {'summary_columns': ['*']}:
        job = table(folder, twice, objective='squared', l2=0, summary='model', **settings)
        said = dml('summary', train(job, '--fresh')['model'], '--json').json
        assert close(said['fit']['deviance'], rss, 1e-9), (settings, said['fit'], rss)
        for row in said['rows']:
            estimate, error = expected[row['name']]
            assert row.get('aliased', False) == (row['name'] == 'twice'), (settings, row)
            assert abs(row['estimate'] - estimate) <= 1e-4 * error, (settings, row, estimate)
            assert row.get('aliased') or close(row['error'], error, 1e-6), (settings, row, error)


# ---- logistic ----

def logistic_minimum(rows, columns, l2):
    """Newton on exact differences from the first row."""
    first = [Fraction(float(rows[0][c])) for c in columns]
    x = [[float(Fraction(float(row[c])) - f) for c, f in zip(columns, first)] for row in rows]
    mean = [math.fsum(r[j] for r in x) / len(x) for j in range(len(columns))]
    x = [[a - m for a, m in zip(r, mean)] + [1.0] for r in x]
    n, p = len(x), len(columns) + 1
    w = [Fraction(0)] * p
    for _ in range(40):
        g = [Fraction(l2) * w[j] * (j < p - 1) for j in range(p)]
        h = [[Fraction(l2 * (i == j < p - 1)) for j in range(p)] for i in range(p)]
        for r, row in zip(x, rows):
            chance = 1 / (1 + math.exp(-math.fsum(a * float(b) for a, b in zip(r, w))))
            for i in range(p):
                g[i] += Fraction((chance - row['y']) * r[i]) / n
                for j in range(p):
                    h[i][j] += Fraction(chance * (1 - chance) * r[i]) * Fraction(r[j]) / n
        w = [Fraction(float(a - d[0])) for a, d in zip(w, solve(h, [[v] for v in g]))]
    margins = [math.fsum(a * float(b) for a, b in zip(r, w)) for r in x]
    loss = math.fsum(math.log1p(math.exp(-m if row['y'] else m)) for m, row in zip(margins, rows)) / n
    return loss + l2 / 2 * sum(float(a)**2 for a in w[:-1])


@test
def classes_by_the_length_of_a_session_are_told_at_the_minimum(folder):
    rows = stamps(random.Random(4), 150)
    rng = random.Random(5)
    for row in rows:
        row['y'] = int(row['end'] - row['start'] + rng.gauss(0, 2) > 3)
    job = table(folder, rows, objective='logistic')
    for l2, standardise in itertools.product((0, 0.005), ('false', 'true')):
        if l2 and standardise == 'true':
            continue
        result = train(job, '--fresh', '--set', f'l2={l2}', '--set', f'standardise={standardise}')
        least = logistic_minimum(rows, ['start', 'end'], l2)
        assert result['converged'] and close(result['loss'], least, 1e-7), (result['loss'], least)


# ---- the model is one of the columns as they are ----

def mixed(rng, count, blank=0.1):
    rows = []
    for i in range(count):
        at, kind, x = 1700000000 + 60 * i + rng.randrange(60), rng.randrange(40), rng.gauss(0, 1)
        margin = (i / count - 0.5) * 3 + (kind % 3 - 1) + x
        rows.append({'at': '' if rng.random() < blank else at, 'kind': f'k{kind}', 'x': round(x, 3),
                     'y': int(margin + rng.gauss(0, 1) > 0)})
    return rows


@test
def rows_of_a_sparse_table_score_as_they_were_trained(folder):
    """The time is missing from some rows; held-out rows are scored by the model as the run did."""
    rng = random.Random(6)
    job = table(folder, mixed(rng, 400), csv={'label': 'y'}, l2=1e-3)
    write_csv(folder / 'new.csv', mixed(rng, 200))
    result = train(job, '--fresh', '--set', 'early_stopping=50', '--set', 'holdout=0.25')
    own = dml('evaluate', result['model'], folder / 'rows.csv', '--json').json
    assert math.isfinite(own['loss'])
    result = train(job, '--fresh')
    own = dml('evaluate', result['model'], folder / 'rows.csv', '--json').json
    penalty = result['loss'] - own['loss']
    assert 0 < penalty < 0.1 * result['loss'], (result['loss'], own['loss'])
    again = train(job, '--fresh', '--start', result['model'])
    assert again['steps'] <= 1 and close(again['loss'], result['loss'], 1e-9), again
    assert dml('predict', result['model'], folder / 'new.csv').status == 0


@test
def a_table_whose_column_is_moved_has_the_weights_that_it_had(folder):
    """The loss of a model without a penalty does not know where 0 is."""
    rng = random.Random(8)
    rows = [{'x': round(1024 * rng.gauss(0, 1)) / 1024, 'z': round(rng.gauss(0, 3), 3)} for _ in range(200)]
    for loss in 'poisson', 'huber', 'softmax', 'proportional_odds':
        for row in rows:
            noisy = row['x'] + rng.gauss(0, 1)
            row['y'] = round(noisy, 3) if loss == 'huber' else max(0, min(3, int(noisy + 1.5)))
        results = []
        for far in 0, 1 << 30:
            moved = [{**row, 'x': repr(row['x'] + far)} for row in rows]
            job = table(folder, moved, objective=loss, l2=0, gap_tolerance=1e-9)
            results.append(train(job, '--fresh'))
        near, far = results
        assert far['converged'] and close(far['loss'], near['loss'], 1e-8), (loss, near, far)


# ---- what is beyond doubles is not claimed ----

@test
def powers_that_doubles_cannot_tell_apart_are_not_called_converged_above_the_minimum(folder):
    for power, first in itertools.product((4, 5, 6), (1900, 1995)):
        rows = years(random.Random(power), 60 if first == 1900 else 30, power, first)
        _, rss = least_squares(rows)
        result = train(table(folder, rows, objective='squared', l2=0), '--fresh')
        least = rss / len(rows) / 2
        above = result['loss'] - least
        assert not result['converged'] or above <= 1e-5 * least, (power, first, result, least)


if __name__ == '__main__':
    sys.exit(main())
