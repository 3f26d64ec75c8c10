#!/usr/bin/env python3
"""Columns that nearly follow from others, such as powers of a year, are fitted to the minimum and have
their errors, which sums in doubles do not hold. What doubles cannot hold at all is said. References are
exact fractions, and fits in columns that are far apart."""

import itertools
import math
import random
import sys
from fractions import Fraction

from exact_fits import close, least_squares, solve, table, years
from harness import dml, main, test, train


def powers_of_a_length(rng, count, power):
    """As NIST's Filip: x from -8.7 to -3.1, and its powers."""
    rows = []
    for i in range(count):
        x = -8.7 + 5.6 * i / (count - 1)
        rows.append({f'x{k}': repr(x**k) for k in range(1, power + 1)})
        rows[-1]['y'] = round(0.85 + 0.05 * math.sin(2 * x) + rng.gauss(0, 0.003), 5)
    return rows


TABLES = {
    'powers_of_a_year_to_the_fifth': lambda rng: years(rng, 121, 5, first=1900),
    'powers_to_the_tenth': lambda rng: powers_of_a_length(rng, 82, 10),
    'columns_that_differ_by_1e-9': lambda rng: [
        {'x': x, 'z': repr(x + 1e-9 * e), 'y': round(x + e + rng.gauss(0, 1), 3)}
        for x, e in ((rng.gauss(0, 1), rng.gauss(0, 1)) for _ in range(80))],
}

for name, rows_of in TABLES.items():
    def behaviour(folder, rows_of=rows_of):
        rows = rows_of(random.Random(3))
        job = table(folder, rows, objective='squared', l2=0)
        expected, rss = least_squares(rows)
        for standardise, columns in itertools.product(('false', 'true'), (None, '{ "*" }')):
            named = ['--set', f'summary_columns={columns}'] if columns else []
            result = train(job, '--fresh', '--set', f'standardise={standardise}', '--set', 'summary=model',
                           *named)
            assert result['converged'], result
            assert close(result['loss'], rss / len(rows) / 2, 1e-6), (result['loss'], rss / len(rows) / 2)
            said = dml('summary', result['model'], '--json').json
            assert close(said['fit']['deviance'], rss, 1e-6), (said['fit'], rss)
            for row in said['rows']:
                estimate, error = expected[row['name']]
                assert abs(row['estimate'] - estimate) <= 1e-6 * error, (row, estimate)
                assert close(row['error'], error, 1e-6), (row, error)
    behaviour.__name__ = f'{name}_are_fitted_and_have_their_errors'.replace('-', '_')
    test(behaviour)


@test
def a_penalised_fit_of_powers_is_at_its_minimum(folder):
    rows = years(random.Random(3), 121, 5, first=1900)
    job = table(folder, rows, objective='squared')
    for l2, standardise in itertools.product(('auto', '1e-9'), ('false', 'true')):
        result = train(job, '--fresh', '--set', f'l2={l2}', '--set', f'standardise={standardise}')
        _, twice = least_squares(rows, l2=result['l2'], standardise=standardise == 'true')
        assert result['converged'] and close(result['loss'], twice / len(rows) / 2, 1e-6), (result, twice)


# ---- other losses: the same polynomial in columns that are far apart has the same minimum ----

def label_of(loss, margin, rng):
    noisy = margin + rng.gauss(0, 0.5)
    if loss in ('logistic', 'squared_hinge'):
        return int(noisy > 0)
    if loss in ('softmax', 'one_vs_rest', 'proportional_odds'):
        return max(0, min(2, int(noisy + 1.5)))
    if loss == 'poisson':
        return int(math.exp(noisy) + 0.5)
    return round({'gamma': math.exp(noisy), 'tweedie': max(0, math.exp(noisy) - 0.3)}.get(loss, noisy), 4)


LOSSES = ('logistic', 'poisson', 'gamma', 'tweedie', 'huber', 'quantile', 'squared_hinge', 'softmax', 'one_vs_rest',
           'proportional_odds')
ERRORS = ('logistic', 'poisson', 'gamma', 'tweedie', 'softmax', 'proportional_odds')


def two_tables(folder, loss):
    rng = random.Random(5)
    far, near = [], []
    for year in range(1900, 2021):
        t = (year - 1960) / 60
        for _ in range(3):
            y = label_of(loss, t + t**5, rng)
            far.append({**{f'p{k}': year**k for k in range(1, 6)}, 'y': y})
            near.append({**{f'p{k}': repr(t**k) for k in range(1, 6)}, 'y': y})
    (folder / 'far').mkdir()
    (folder / 'near').mkdir()
    return [table(folder / place, rows, objective=loss, l2=0) for place, rows in (('far', far), ('near', near))]


for loss in LOSSES:
    def behaviour(folder, loss=loss):
        far, near = two_tables(folder, loss)
        corner = ['--set', 'quantile.epsilon=0.05'] if loss == 'quantile' else []
        best = train(near, '--set', 'max_steps=10000', '--set', 'gap_tolerance=1e-9', *corner)
        for standardise in 'false', 'true':
            result = train(far, '--fresh', '--set', f'standardise={standardise}', *corner)
            assert result['converged'] and close(result['loss'], best['loss'], 1e-6), (standardise, result, best)
    behaviour.__name__ = f'{loss}_of_powers_of_a_year_is_at_its_minimum'
    test(behaviour)


@test
def a_sharp_corner_is_called_converged_at_the_minimum_alone(folder):
    """By default the corner of a quantile is so sharp that the steps of a run may not be enough."""
    far, near = two_tables(folder, 'quantile')
    best = train(near, '--set', 'max_steps=10000', '--set', 'gap_tolerance=1e-9')
    for standardise in 'false', 'true':
        result = train(far, '--fresh', '--set', f'standardise={standardise}')
        assert not result['converged'] or close(result['loss'], best['loss'], 1e-5), (standardise, result, best)


for loss in ERRORS:
    def behaviour(folder, loss=loss):
        """The error of the last power is that of the other table in another unit."""
        said = []
        for job in two_tables(folder, loss):
            result = train(job, '--set', 'summary=robust', '--set', 'gap_tolerance=1e-9')
            for errors in [], ['--robust']:
                summary = dml('summary', result['model'], *errors, '--json').json
                said.append([summary['fit']['deviance'] or summary['fit']['loss'], summary['fit']['parameters']] +
                            [row['statistic'] for row in summary['rows']
                             if row['name'] == 'p5' and not row.get('aliased')])
        for far, near in zip(said[:2], said[2:]):
            assert len(far) == len(near) >= 3 and all(close(a, b, 1e-4) for a, b in zip(far, near)), said
    behaviour.__name__ = f'{loss}_has_the_errors_of_powers_of_a_year'
    test(behaviour)


# ---- what is beyond doubles is said ----

def degrees(rng, count):
    """Of Celsius and of Fahrenheit: the same but for rounding."""
    rows = []
    for _ in range(count):
        celsius = rng.randrange(-100, 350) / 10
        rows.append({'celsius': celsius, 'fahrenheit': round(1.8 * celsius + 32, 2),
                     'y': round(0.1 * celsius + rng.gauss(0, 1), 3)})
    return rows


def sums(rng, count):
    """A column is the sum of two others, rounded."""
    rows = []
    for _ in range(count):
        a, b = rng.gauss(0, 1), rng.gauss(0, 1)
        rows.append({'a': repr(a), 'b': repr(b), 'sum': repr(a + b), 'y': round(a + rng.gauss(0, 1), 3)})
    return rows


for name, (rows_of, column) in {'another_unit': (degrees, 'fahrenheit'), 'a_sum': (sums, 'sum')}.items():
    def behaviour(folder, rows_of=rows_of, column=column):
        """The column that follows is named and left out, and the others are as without it."""
        rows = rows_of(random.Random(7), 200)
        expected, rss = least_squares([{k: v for k, v in row.items() if k != column} for row in rows])
        job = table(folder, rows, objective='squared', l2=0, summary='model')
        for columns in None, '{ "*" }':
            named = ['--set', f'summary_columns={columns}'] if columns else []
            result = train(job, '--fresh', *named)
            assert result['converged'] and result['collinear'] == [column], result
            assert close(result['loss'], rss / len(rows) / 2, 1e-9), (result, rss)
            said = dml('summary', result['model'], '--json').json
            assert close(said['fit']['deviance'], rss, 1e-9), said
            assert said['fit']['parameters'] == len(expected), said
            for row in said['rows']:
                assert row.get('aliased', False) == (row['name'] == column), row
                if row['name'] != column:
                    estimate, error = expected[row['name']]
                    assert abs(row['estimate'] - estimate) <= 1e-6 * error, (row, estimate)
                    assert close(row['error'], error, 1e-6), (row, error)
        finished = dml('run', job, '--fresh')
        assert f'column `{column}` follows from those before it' in finished.stderr, finished.stderr
    behaviour.__name__ = f'{name}_that_follows_but_for_rounding_is_told'
    test(behaviour)


@test
def columns_that_differ_by_1e_13_are_not_called_converged(folder):
    rng = random.Random(3)
    rows = []
    for _ in range(80):
        x, e = rng.gauss(0, 1), rng.gauss(0, 1)
        rows.append({'x': x, 'z': repr(x + 1e-13 * e), 'y': round(x + e + rng.gauss(0, 1), 3)})
    result = train(table(folder, rows, objective='squared', l2=0), '--fresh')
    assert not result['converged'] and 'column `z`' in ' '.join(result['shortfall']), result


@test
def columns_that_follow_exactly_are_not_touched(folder):
    """Twice a column, and indicators of a category."""
    rng = random.Random(4)
    rows = []
    for _ in range(200):
        x, kind = rng.gauss(0, 1), rng.randrange(3)
        rows.append({'x': repr(x), 'twice': repr(2 * x), 'kind': f'k{kind}', 'y': round(x + kind + rng.gauss(0, 1), 3)})
    result = train(table(folder, rows, objective='squared', l2=0), '--fresh')
    assert result['converged'] and 'collinear' not in result, result
    assert result['gap_estimate'] <= 1e-9 * result['loss'], result


@test
def rounding_along_what_all_classes_share_is_no_gap(folder):
    """Weights that all outputs of a softmax have alike change no loss."""
    rng = random.Random(1)
    rows = []
    for _ in range(500):
        x = [round(rng.gauss(0, 1), 3) for _ in range(3)]
        margins = [m - math.log(-math.log(rng.random())) for m in (x[0], x[1], 0)]
        rows.append({'a': x[0], 'b': x[1], 'c': x[2], 'y': f'k{margins.index(max(margins))}'})
    job = table(folder, rows, csv={'label': 'y'}, objective='softmax', l2=0)
    for gap in '1e-12', '1e-14':
        result = train(job, '--fresh', '--set', f'gap_tolerance={gap}')
        assert result['converged'] and result['gap_estimate'] <= float(gap), result


# ---- and it follows from the data alone ----

@test
def max_seconds_end_the_search_in_twice_the_precision_and_the_run_is_not_called_converged(folder):
    rows = years(random.Random(3), 121, 5, first=1900)
    job = table(folder, rows, objective='squared', l2=0)
    late = dml('run', job, '--json', '--set', 'max_seconds=10', DML_FAILPOINT='coordinator.refine:1:delay:10500')
    result = late.json
    assert late.status == 0 and not result['converged'], late
    assert any('max_seconds (10)' in sentence for sentence in result['shortfall']), result['shortfall']
    result = train(job, '--fresh', '--set', 'max_seconds=1000')
    assert result['converged'] and 'shortfall' not in result, result


@test
def the_model_is_the_same_with_other_workers_and_after_a_kill(folder):
    rows = years(random.Random(3), 121, 5, first=1900)
    job = table(folder, rows, objective='squared', l2=0, summary='model')
    quiet = train(job)['model_sha256']
    for settings in (['shards=2'], ['shards=3', 'replicas=2'], ['threads=2']):
        sets = [word for setting in settings for word in ('--set', setting)]
        assert train(job, '--state', folder / f'{settings[0]}.state', *sets)['model_sha256'] == quiet, settings
    for place in 'refine', 'single_errors', 'run_ended':
        state = folder / f'{place}.state'
        killed = dml('run', job, '--state', state, DML_FAILPOINT=f'coordinator.{place}:1:kill')
        assert killed.status < 0, killed
        assert train(job, '--state', state)['model_sha256'] == quiet, place


def sampled_errors(rows, l2, dispersion):
    """√diag((H + Λ)⁻¹H(H + Λ)⁻¹) of least squares by name, without rounding."""
    names = [name for name in rows[0] if name != 'y']
    x = [[Fraction(float(row[name])) for name in names] + [Fraction(1)] for row in rows]
    p = len(names) + 1
    h = [[sum(r[i] * r[j] for r in x) for j in range(p)] for i in range(p)]
    ridge = [Fraction(l2) * len(rows)] * (p - 1) + [0]
    penalised = [[h[i][j] + (ridge[i] if i == j else 0) for j in range(p)] for i in range(p)]
    inverse = solve(penalised, [[Fraction(int(i == j)) for j in range(p)] for i in range(p)])
    square = [sum(a * sum(b * c for b, c in zip(h[k], row)) for k, a in enumerate(row)) for row in inverse]
    return {name: math.sqrt(dispersion * v) for name, v in zip(names + ['(intercept)'], square)}


@test
def after_a_penalty_columns_that_follow_from_others_have_errors_from_sample_to_sample(folder):
    """What a shard has of them in doubles are differences of numbers that are 1e10 times as large."""
    rng = random.Random(5)
    values = [round(100 * rng.gauss(0, 1), 3) for _ in range(60)]
    twins = [{'a': v, 'b': v, 'y': round(v / 100 + rng.gauss(0, 1), 3)} for v in values]
    powers = years(rng, 60, 3)
    for rows, l2s in (twins, (1e-6, 1e-2, 1)), (powers, (1e-7, 1e-5, 1e-3)):
        job = table(folder, rows, objective='squared', summary='model')
        for l2 in l2s:
            result = train(job, '--fresh', '--set', f'l2={l2}')
            shown = dml('summary', result['model'], '--json').json
            expected = sampled_errors(rows, l2, shown['fit']['dispersion'])
            for row in shown['rows']:
                assert close(row['error'], expected[row['name']], 1e-4), (l2, row, expected)


@test
def errors_that_are_lost_in_a_model_of_many_columns_are_not_shown(folder):
    rng = random.Random(6)
    rows = [{**{f'x{k}': round(rng.gauss(0, 1), 3) for k in range(70)}, 'y': round(rng.gauss(0, 1), 3)}
            for _ in range(200)]
    rows = [{'a': 1e4 * row['x0'], **row} for row in rows]
    job = table(folder, rows, objective='squared', summary='model', l2=1e-2)
    model = train(job)['model']
    shown = dml('summary', model, '--json').json
    lost = {row['name'] for row in shown['rows'] if row['error'] is None}
    assert lost == {'x0'}, lost
    assert any('No error was found for' in note for note in shown['notes']), shown['notes']


if __name__ == '__main__':
    sys.exit(main())
