#!/usr/bin/env python3
"""Estimates that no finite value is the best one for are named, whatever the loss and the kind of
errors; estimates that are merely uncertain are not."""

import itertools
import json
import math
import random
import sys

from harness import dml, main, test, train, write_job
from summaries import write_csv

NOTE = 'No finite estimate'


def summary_of(folder, rows, objective, *options, csv=None, **settings):
    write_csv(folder / 'rows.csv', rows)
    result = train(write_job(folder, data=['rows.csv'], objective=objective, csv=csv or {},
                             **{'l2': 0, 'summary': 'robust', **settings}), '--fresh')
    return named(result, *options)


def named(result, *options):
    """The rows that the note names, and all that notes say."""
    said = dml('summary', result['model'], '--json', *options)
    assert said.status == 0, said
    table = json.loads(said.stdout)
    marked = {row['name'] for row in table['rows'] if row.get('runs_away')}
    notes = ' '.join(table['notes'])
    assert (NOTE in notes or 'completely' in notes) == bool(marked), (marked, notes)
    return marked, notes


def label(loss, rng, separated, u):
    """A label that depends on u; of separated rows always the same one."""
    if loss in ('poisson', 'tweedie'):
        return 0 if separated else max(0, round(math.exp(0.3 + 0.5 * u) + rng.gauss(0, 1)))
    classes = 2 if loss == 'logistic' else 3
    return 0 if separated else min(classes - 1, int(classes * rng.random() + 0.3 * max(0, u)))


LOSSES = ('logistic', 'softmax', 'one_vs_rest', 'proportional_odds', 'multilabel', 'poisson', 'tweedie')


def rows_of(loss, rng, count, apart=lambda i, x, z: i % 9 == 0, **more):
    rows = []
    for i in range(count):
        x, z = rng.gauss(0, 1), rng.gauss(0, 1)
        separated = apart(i, x, z)
        rows.append({'x': x, 'z': 2015 + z, **{name: f(i, x, z) for name, f in more.items()},
                     'y': label(loss, rng, separated, x)})
    return rows


def own_settings(loss):
    return {'multilabel': {'separator': ';'}} if loss == 'multilabel' else {}


@test
def a_column_that_separates_is_named_for_every_loss_and_kind_of_errors(folder):
    for loss, standardise in itertools.product(LOSSES, (False, True)):
        rng = random.Random(5)
        rows = rows_of(loss, rng, 240, b=lambda i, x, z: int(i % 9 == 0))
        settings = {'standardise': standardise, **own_settings(loss)}
        for options in [], ['--robust'], ['--robust=HC1']:
            marked, notes = summary_of(folder, rows, loss, *options, **settings)
            assert marked == {'b'}, (loss, settings, options, marked, notes)
        some, _ = summary_of(folder, rows, loss, summary_columns=['b', 'x'], **settings)
        assert some == {'b'}, (loss, settings, some)


@test
def a_reference_level_a_number_and_two_columns_together_can_separate(folder):
    rng = random.Random(7)
    shop = lambda i, x, z: 'abcd'[i % 4]
    for separated in 'ad':  # one of them is the reference level
        rows = rows_of('logistic', rng, 200, lambda i, x, z: 'abcd'[i % 4] == separated, shop=shop)
        marked, notes = summary_of(folder, rows, 'logistic')
        assert marked and all(name.startswith('shop=') for name in marked), (separated, marked, notes)
    # Above 0.5 the class is 0, and at 0.5 and below it is either one.
    far = lambda i, x, z: max(0.5, round(x, 1))
    rows = rows_of('logistic', rng, 200, lambda i, x, z: far(i, x, z) > 0.5, far=far)
    assert summary_of(folder, [{**row, 'x': 0} for row in rows], 'logistic')[0] == {'far'}
    # The difference of u and v is 0 or above, and where it is above the class is 0; each of them alone
    # says nothing.
    rows = []
    for i in range(300):
        u, above = rng.randrange(10), i % 2
        rows.append({'u': u, 'v': u - above * rng.randrange(1, 4), 'z': rng.gauss(2015, 1),
                     'y': 0 if above else rng.randrange(2)})
    assert summary_of(folder, rows, 'logistic')[0] == {'u', 'v'}


@test
def few_rows_that_are_separated_are_found_among_many(folder):
    rng = random.Random(1)
    rows = rows_of('poisson', rng, 40000, lambda i, x, z: i % 400 == 0,
                   b=lambda i, x, z: int(i % 400 == 0))
    assert summary_of(folder, rows, 'poisson')[0] == {'b'}


@test
def classes_that_all_columns_together_separate_are_told_so(folder):
    rng = random.Random(2)
    rows = [{'x': x, 'z': rng.gauss(0, 1), 'y': int(x > 0)} for x in (rng.gauss(0, 1) for _ in range(80))]
    marked, notes = summary_of(folder, rows, 'logistic')
    assert marked and 'completely' in notes, (marked, notes)


@test
def columns_that_are_collinear_or_far_from_0_are_not_named(folder):
    rng = random.Random(3)
    never = lambda i, x, z: False
    more = {'year': lambda i, x, z: 2005 + i % 20, 'square': lambda i, x, z: (2005 + i % 20) ** 2,
            'twin': lambda i, x, z: x + 1e-4 * rng.gauss(0, 1), 'rare': lambda i, x, z: int(i < 3),
            'tiny': lambda i, x, z: 1e-5 * rng.gauss(0, 1)}
    for loss in (*LOSSES, 'gamma', 'squared'):
        rows = rows_of(loss, rng, 240, never, **more)
        if loss in ('gamma', 'squared'):
            rows = [{**row, 'y': row['y'] + rng.random() + 0.1} for row in rows]
        for settings in {}, {'summary_columns': ['*']}, {'max_steps': 1}:
            marked, notes = summary_of(folder, rows, loss, **settings, **own_settings(loss))
            assert not marked - {'rare'}, (loss, settings, marked, notes)


@test
def a_penalty_leaves_nothing_that_runs_away(folder):
    rng = random.Random(5)
    rows = rows_of('logistic', rng, 240, b=lambda i, x, z: int(i % 9 == 0))
    assert not summary_of(folder, rows, 'logistic', l2=1e-4)[0]


@test
def a_run_that_has_no_optimum_is_not_told_of_smaller_tolerances(folder):
    rng = random.Random(5)
    for loss in LOSSES:
        write_csv(folder / 'rows.csv', rows_of(loss, rng, 240, b=lambda i, x, z: int(i % 9 == 0)))
        result = train(write_job(folder, data=['rows.csv'], objective=loss, l2=0, summary='model',
                                 **own_settings(loss)), '--fresh')
        said = ' '.join(result.get('shortfall', []))
        assert 'comes nearer' not in said.replace('no smaller tolerance comes nearer', ''), (loss, said)
        if not result['converged']:
            assert 'there is no optimum' in said and '`b`' in said, (loss, said)


if __name__ == '__main__':
    sys.exit(main())
