#!/usr/bin/env python3
"""Common directions: a step minimises over the last directions at once, by margins that shards keep
by rows. One model to the bit however the run goes, and the optimum of a run along lines."""

import contextlib
import functools
import math
import random
import sqlite3
import sys

from divided import (by_turns, goes_on_from_a_model, goes_on_from_its_limit, has_one_path,
                     has_the_bits_of_a_device, one_model, survives, survives_its_coordinators)
from harness import dml, main, some, test, train, write_job

ROWS = 600

SHARED = {'directions': 6, 'history': 5, 'gradient_tolerance': 1e-13, 'loss_tolerance': 0, 'l2': 1e-4,
          'max_steps': 25, 'checkpoint_seconds': 0, 'portion_chunks': 1, 'precondition': 'none'}

LABELS = {
    'logistic': lambda margin: int(margin > 0),
    'squared': lambda margin: round(margin, 3),
    'softmax': lambda margin: min(2, max(0, int(margin + 1.5))),
    'poisson': lambda margin: max(0, round(margin + 1)),
    'ordinal': lambda margin: min(2, max(0, int(margin + 1.5))),
}
LABELS |= {'huber': LABELS['squared'], 'proportional_odds': LABELS['ordinal']}


@functools.cache
def text(objective, rows=ROWS):
    """Rows of words, of which few are frequent, more than one shard has parameters for."""
    rng = random.Random(12)
    effect = [rng.gauss(0, 1) for _ in range(9000)]
    lines = []
    for _ in range(rows):
        ids = sorted({int(9000 * rng.random() ** 4) for _ in range(rng.randrange(3, 40))})
        values = [(j, round(rng.random() + 0.1, 2)) for j in ids]
        margin = sum(effect[j] * value for j, value in values) / 3 + rng.gauss(0, 0.5)
        lines.append(f'{LABELS[objective](margin)} '
                     + ' '.join(f'{j + 1}:{value}' for j, value in values) + '\n')
    return ''.join(lines)


def job_of(folder, objective='logistic', **settings):
    (folder / 'text.libsvm').write_text(text(objective))
    own = {'ordinal': {'ordinal': {'order': ['0', '1', '2']}}}.get(objective, {})
    return write_job(folder, data=['text.libsvm'], objective=objective,
                     **{**SHARED, **own, **settings})


def check_directions(result):
    assert result['directions'] > 0 and result['steps'] > 0, result


FORMS = [('logistic', {}), ('squared', {}), ('softmax', {}), ('poisson', {}), ('ordinal', {}),
         ('logistic', {'standardise': True}), ('logistic', {'intercept': False}),
         ('softmax', {'intercept': False}), ('logistic', {'weights': ['weights']}),
         ('logistic', {'precondition': 'diagonal'}),
         ('logistic', {'precondition': 'block', 'precondition_block': 100}),
         ('logistic', {'history_type': 'double'}), ('logistic', {'directions': 1}),
         ('logistic', {'holdout': 0.2, 'early_stopping': 4})]
for objective, settings in FORMS:
    def behaviour(folder, objective=objective, settings=settings):
        rng = random.Random(4)
        (folder / 'weights').write_text(''.join(f'{rng.choice([0, 0.01, 1, 7])}\n'
                                                for _ in range(ROWS)))
        one_model(job_of(folder, objective, max_steps=8, **settings), check_directions)
    behaviour.__name__ = ' '.join([objective, *settings]) + ' has one model however divided'
    test(behaviour)


# ---- losses of processes ----

def disturbed(folder):
    return job_of(folder, shards=2, replicas=2, threads=1, max_steps=12)


@test
def a_shard_that_dies_goes_on_with_the_window_of_the_checkpoint(folder):
    survives(folder, disturbed(folder), check_directions,
             *by_turns('shard', *(f'receive_PROGRAM:{visit}' for visit in (2, 9, 30, 61))))


@test
def a_shard_that_dies_with_margins_that_x_has_not_reached_costs_no_bit(folder):
    survives(folder, disturbed(folder), check_directions,
             *by_turns('shard', 'rows_taken:1', 'rows_taken:2', 'rows_taken:9', 'rows_advanced:1',
                       'rows_advanced:2', 'rows_advanced:7'))


@test
def a_replica_that_dies_in_a_product_or_a_transpose_costs_no_bit(folder):
    survives(folder, disturbed(folder), check_directions,
             *by_turns('replica', 'receive_EVALUATE:2', 'receive_EVALUATE:9', 'send_FLUSHED:4',
                       'receive_PARAMETERS:12'))


@test
def a_coordinator_that_dies_within_a_step_costs_no_bit(folder):
    survives_its_coordinators(folder, disturbed(folder), 'send_EVALUATE:1', 'send_EVALUATE:6',
                              'send_EVALUATE:7', 'state_accept:6', 'state_accept:14')


# ---- what it gives ----

for objective in some([*LABELS], 2):
    def behaviour(folder, objective=objective):
        job = job_of(folder, objective, max_steps=3000, gradient_tolerance=1e-9)
        lines, common = (train(job, '--fresh', '--set', f'directions={count}') for count in (0, 20))
        assert lines['converged'] and common['converged'], (lines, common)
        assert abs(lines['loss'] - common['loss']) <= 1e-9 * lines['loss'], (lines, common)
        assert common['steps'] < lines['steps'], (lines['steps'], common['steps'])
    behaviour.__name__ = f'{objective} ends at the optimum of a run along lines, in fewer steps'
    test(behaviour)


@test
def a_long_run_measures_its_margins_anew_and_ends_at_the_optimum(folder):
    job = job_of(folder, max_steps=3000, gradient_tolerance=1e-10, l2=1e-7)
    lines, common = (train(job, '--fresh', '--set', f'directions={count}') for count in (0, 3))
    assert common['steps'] > 40, common
    assert abs(lines['loss'] - common['loss']) <= 1e-9 * lines['loss'], (lines, common)


@test
def a_run_begins_with_the_loss_at_its_start_where_intercepts_start_too(folder):
    for objective in LABELS:
        job = job_of(folder, objective, max_steps=1)
        first = [first_loss(folder, train(job, '--fresh', '--set', f'directions={count}')['run'])
                 for count in (0, 6)]
        assert math.isclose(*first, rel_tol=1e-12), (objective, first)


def first_loss(folder, run):
    with contextlib.closing(sqlite3.connect(folder / 'job.state' / 'dml.db')) as store:
        return store.execute('SELECT loss FROM steps WHERE run = ? AND step = 0', [run]).fetchone()[0]


@test
def a_model_that_a_run_starts_from_is_gone_on_from(folder):
    goes_on_from_a_model(folder, job_of(folder, max_steps=3000, gradient_tolerance=1e-8))


@test
def a_path_with_folds_gives_the_same_models_on_other_workers(folder):
    has_one_path(folder, job_of(folder, l2=[1e-2, 1e-4], folds=2, max_steps=6))


@test
def a_device_that_is_emulated_gives_the_bits_of_the_cpu(folder):
    has_the_bits_of_a_device(job_of(folder, max_steps=8))


@test
def a_limit_that_is_raised_is_gone_on_from(folder):
    goes_on_from_its_limit(folder, job_of)


@test
def columns_of_very_different_units_come_to_the_optimum_with_a_block(folder):
    """Weights of 1e-100 would be 0 in a direction that is kept in floats."""
    rng = random.Random(3)
    losses = []
    for name, units in ('alike', (1, 1)), ('apart', (1e100, 1e-100)):
        rng.seed(3)
        lines = []
        for _ in range(300):
            row = [rng.gauss(0, 1) for _ in range(3)]
            target = row[0] + 0.5 * row[2] + 0.1 * rng.gauss(0, 1)
            values = (row[0] * units[0], row[1] * units[1], row[2])
            lines.append(f'{target!r} ' + ' '.join(f'{j}:{v!r}' for j, v in enumerate(values, 1)))
        (folder / f'{name}.libsvm').write_text('\n'.join(lines) + '\n')
        job = write_job(folder, name=name, data=[f'{name}.libsvm'], objective='squared', l2=0,
                        directions=20, precondition='block')
        result = train(job)
        assert result['converged'], result
        losses.append(result['loss'])
    assert abs(losses[1] / losses[0] - 1) < 1e-6, losses


@test
def a_number_of_directions_that_is_none_is_refused(folder):
    finished = dml('check', job_of(folder, directions=101))
    assert finished.status == 78 and 'directions' in finished.stderr, finished


sys.exit(main())
