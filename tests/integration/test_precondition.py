#!/usr/bin/env python3
"""With a preconditioner training ends at the optimum that it has without one, whatever the data: on
columns that are constant, zero, duplicated or of any scale, on singular Hessians, and where there is
no optimum. The optima are those of an independent Newton method."""

import functools
import random
import sys

from harness import CONFIG, dml, long_test, main, test, train, write_job
from optimum import minimum

FORMS = ('auto', 'block')
TIGHT = {'gradient_tolerance': 1e-9, 'loss_tolerance': 0, 'max_steps': 2000}


def margins(rows, rng, rule):
    return [sum(a * b for a, b in zip(rule, row)) + rng.gauss(0, 1) for row in rows]


def table(rows=80, columns=4, seed=1):
    """Rows of standard normal numbers, and a sign that no plane separates."""
    rng = random.Random(seed)
    x = [[round(rng.gauss(0, 1), 3) for _ in range(columns)] for _ in range(rows)]
    rule = [rng.gauss(0, 1) for _ in range(columns)]
    return x, [1 if m > 0 else -1 for m in margins(x, rng, rule)]


def with_columns(x, *functions):
    """Columns added behind, each a function of the row."""
    return [row + [f(row) for f in functions] for row in x]


def scaled(x, *scales):
    return [[value * scale for value, scale in zip(row, scales)] for row in x]


def written(folder, x, labels, **settings):
    text = ''.join(','.join(map(repr, [*row, y])) + '\n' for row, y in zip(x, labels))
    (folder / 'data.csv').write_text(text)
    return write_job(folder, data=['data.csv'], csv={'header': 'no'}, **settings)


def losses(folder, x, labels, **settings):
    """The results without a preconditioner, and with each form."""
    job = written(folder, x, labels, **{**TIGHT, **settings})
    found = {}
    for form in ('none', *FORMS):
        found[form] = train(job, '--set', f'precondition={form}', '--state', folder / form)
    for form in FORMS:
        kind = found[form]['preconditioner']
        assert kind['kind'] == 'block' and kind['refreshes'] >= 1, found[form]
    return found


def never_worse(found):
    """Neither a higher loss nor a worse reason than without."""
    plain = found['none']
    for form in FORMS:
        excess = found[form]['loss'] - plain['loss']
        assert excess <= 1e-9 * max(abs(plain['loss']), 1e-3), f'{form}: {excess} above: {found}'
        assert found[form]['converged'] or not plain['converged'], f'{form}: {found}'


def ends_at(found, optimum):
    for form in FORMS:
        excess = found[form]['loss'] - optimum
        assert abs(excess) <= 1e-9 * max(abs(optimum), 1e-3), f'{form}: {excess} beside: {found}'


def ends_at_the_optimum(make, l2, folder, reference=None):
    """`reference` is the table without the columns that cannot change the optimum, where Newton's
    method needs a Hessian that is not singular."""
    x, signs = make()
    found = losses(folder, x, signs, l2=l2)
    never_worse(found)
    ends_at(found, minimum([[*row, 1.0] for row in (reference or make)()[0]], signs, l2))


def more(*functions, scales=None, **size):
    """A table with columns added and scaled."""
    def make():
        x, signs = table(**size)
        x = with_columns(x, *functions)
        return scaled(x, *scales) if scales else x, signs
    return make


def twice():
    """Every row twice."""
    x, signs = table()
    return x + x, signs + signs


WIDE = {'rows': 20, 'columns': 60}
CASES = [
    ('ordinary columns', table, 1e-6, None),
    ('constant and zero columns', more(lambda row: 3.0, lambda row: 0.0), 1e-4, None),
    ('columns of 1e12 and 1e-12', more(scales=(1, 1e12, 1e-12, 1)), 1e-6, None),
    ('columns that are far from zero', more(lambda row: 1e6 + row[0] * row[1]), 1e-6, None),
    ('duplicated rows', twice, 1e-6, None),
    ('a duplicated column, without l2', more(lambda row: row[0]), 0, table),
    ('a column that is a sum of others, without l2', more(lambda row: row[0] + row[1]), 0, table),
    ('a column that is the intercept, without l2', more(lambda row: 1.0), 0, table),
    ('more columns than rows', functools.partial(table, **WIDE), 1e-2, None),
]
for name, make, l2, reference in CASES:
    function = functools.partial(ends_at_the_optimum, make, l2, reference=reference)
    function.__name__ = f'on {name} it ends at the optimum'
    (long_test if '1e12' in name else test)(function)  # without a preconditioner that takes all steps


@test
def on_separable_data_without_l2_it_ends_near_zero(folder):
    x, _ = table()
    signs = [1 if row[0] > row[1] else -1 for row in x]
    found = losses(folder, x, signs, l2=0, gradient_tolerance=1e-5)
    # There is no minimum to compare at: each ends somewhere below where its gradient is small.
    assert all(found[form]['loss'] <= 1e-4 and found[form]['gradient_max'] <= 1e-5
               for form in FORMS), found


@test
def two_rows_are_enough(folder):
    found = losses(folder, [[1e-3, 2.0], [5.0, 2.0]], [1, -1], l2=1e-3)
    never_worse(found)
    ends_at(found, minimum([[1e-3, 2.0, 1.0], [5.0, 2.0, 1.0]], [1, -1], 1e-3))


@test
def a_single_row_is_fitted_exactly(folder):
    found = losses(folder, [[3.0, 1e6, 0.0]], [7.5], objective='squared', gradient_tolerance=1e-7)
    never_worse(found)
    assert all(found[form]['loss'] <= 1e-12 for form in FORMS), found


@test
def a_singular_table_of_targets_is_fitted_as_well(folder):
    x, _ = table()
    x = with_columns(scaled(x, 1, 1e5, 1e-5, 1), lambda row: row[0], lambda row: 2.0)
    rng = random.Random(2)
    targets = [round(m, 3) for m in margins(x, rng, [1, 1e-5, 1e5, -1, 0, 0])]
    found = losses(folder, x, targets, objective='squared')
    never_worse(found)
    low, high = (min(f(found[form]['loss'] for form in FORMS) for f in (g,)) for g in (min, max))
    assert high - low <= 1e-9 * high, found


@test
def classes_that_share_all_columns_end_at_one_optimum(folder):
    x, _ = table(rows=120)
    x = with_columns(scaled(x, 1, 1e3, 1e-3, 1), lambda row: row[0])
    rng = random.Random(3)
    classes = [int(m > 0) + int(m > 1) for m in margins(x, rng, [1, 1e-3, 1e3, -1, 0])]
    found = losses(folder, x, classes, objective='softmax', l2=1e-6)
    never_worse(found)
    assert abs(found['auto']['loss'] - found['block']['loss']) <= 1e-12, found


@test
def a_block_of_fewer_columns_than_the_model_has_ends_at_the_optimum_as_well(folder):
    for make in table, more(scales=(1, 1e12, 1e-12, 1)), more(lambda row: 1e6 + row[0] * row[1]):
        x, signs = make(columns=9) if make is table else make()
        job = written(folder, x, signs, l2=1e-4, precondition_block=3, **TIGHT)
        plain, block = (train(job, '--fresh', '--set', f'precondition={form}')
                        for form in ('diagonal', 'block'))
        assert block['preconditioner']['refreshes'] and block['converged'], block
        assert abs(block['loss'] - plain['loss']) <= 1e-9 * plain['loss'], (plain, block)


@test
def a_block_that_not_one_column_fits_into_is_refused_with_the_way_out(folder):
    x, signs = table(columns=9)
    job = written(folder, x, signs, precondition='block', precondition_block=1)
    finished = dml('run', job)
    assert finished.status == CONFIG, finished
    for text in 'job.conf', '`precondition`', 'not one column', '`precondition_block`', '`auto`':
        assert text in finished.stderr, finished
    result = train(job, '--set', 'precondition=auto')
    assert result['preconditioner']['kind'] == 'none', result


@test
def a_model_that_a_run_starts_from_is_gone_on_from(folder):
    """The curvature is taken at the starting point, so that one step tells it is the optimum."""
    x, signs = table(rows=400)
    job = written(folder, x, signs, l2=1e-3, precondition='block', **TIGHT)
    cold = train(job)
    warm = train(job, '--start', cold['model'], '--state', folder / 'warm')
    assert warm['steps'] <= 1 < cold['steps'], (cold, warm)
    assert warm['start'] and abs(warm['loss'] - cold['loss']) <= 1e-14, (cold, warm)


@test
def the_curvature_is_taken_of_more_rows_at_a_model_than_at_zero(folder):
    """The loss changes little from there on, so that the first refresh may be the only one."""
    x, signs = table(rows=4000, columns=20)
    job = written(folder, x, signs, l2=1e-3, max_steps=1)
    cold = train(job)
    warm = train(job, '--start', cold['model'], '--state', folder / 'warm')
    few, more_rows = cold['preconditioner'], warm['preconditioner']
    assert few['refreshes'] == more_rows['refreshes'] == 1, (cold, warm)
    assert more_rows['rows'] > 2 * few['rows'], (cold, warm)


@test
def early_stopping_keeps_the_best_point_among_preconditioned_steps(folder):
    x, signs = table(rows=60, columns=40)
    settings = {'holdout': ['0.4'], 'early_stopping': 3, 'l2': 1e-9, 'precondition': 'block', **TIGHT}
    job = written(folder, x, signs, **settings)
    stopped = train(job)
    best = stopped['early_stopping']['best_step']
    assert stopped['reason'] == 'early stopping' and stopped['preconditioner']['refreshes'], stopped
    assert best == stopped['steps'] - 3, stopped
    shorter = train(job, '--set', 'early_stopping=off', '--set', f'max_steps={best}',
                    '--state', folder / 'short')
    assert shorter['model_sha256'] == stopped['model_sha256'], (stopped, shorter)


sys.exit(main())
