#!/usr/bin/env python3
"""Tiles: data that is cut along columns, too, so that a replica holds a strip of the model at a time.
One model to the bit however the run goes, and the optimum of rows that are whole."""

import functools
import json
import random
import sys

from divided import (by_turns, check_stop, goes_on_from_a_model, goes_on_from_its_limit,
                     has_one_path, has_the_bits_of_a_device, on_hosts, one_model,
                     one_model_however_handed_out, steps_like_whole_rows, stops_early, survives,
                     survives_its_coordinators, write_weights)
from harness import dml, main, some, test, train, write_job

ROWS, COLUMNS = 600, 9000
ROWS_TO_STOP = 1500  # from fewer nothing is learnt that a holdout tells

SHARED = {'strip_columns': 2000, 'directions': 6, 'history': 5, 'gradient_tolerance': 1e-13,
          'loss_tolerance': 0, 'l2': 1e-4, 'max_steps': 25, 'checkpoint_seconds': 0,
          'portion_chunks': 1}

LABELS = {
    'logistic': lambda margin: int(margin > 0),
    'squared': lambda margin: round(margin, 3),
    'softmax': lambda margin: min(2, max(0, int(margin + 1.5))),
    'poisson': lambda margin: max(0, round(margin + 1)),
    'ordinal': lambda margin: min(2, max(0, int(margin + 1.5))),
}


@functools.cache
def text(objective, rows):
    """Rows of words, of which few are frequent; one has no word at all."""
    rng = random.Random(12)
    effect = [rng.gauss(0, 1) for _ in range(COLUMNS)]
    lines = []
    for row in range(rows):
        ids = sorted({int(COLUMNS * rng.random() ** 3) for _ in range(rng.randrange(3, 40))})
        values = [(j, round(rng.random() + 0.1, 2)) for j in ids] if row != min(700, rows - 300) else []
        margin = sum(effect[j] * value for j, value in values) / 3 + rng.gauss(0, 0.5)
        lines.append(f'{LABELS[objective](margin)} '
                     + ' '.join(f'{j + 1}:{value}' for j, value in values) + '\n')
    return ''.join(lines)


def job_of(folder, objective='logistic', rows=ROWS, **settings):
    (folder / 'text.libsvm').write_text(text(objective, rows))
    own = {'ordinal': {'ordinal': {'order': ['0', '1', '2']}}}.get(objective, {})
    return write_job(folder, data=['text.libsvm'], objective=objective,
                     **{**SHARED, **own, **settings})


def check_tiles(result):
    assert result['strips'] > 1 and result['steps'] > 0 and result['directions'] > 0, result


FORMS = [('logistic', {}), ('squared', {}), ('softmax', {}), ('poisson', {}), ('ordinal', {}),
         ('logistic', {'intercept': False}), ('softmax', {'intercept': False}),
         ('logistic', {'weights': ['weights']}), ('logistic', {'history_type': 'double'}),
         ('logistic', {'directions': 1}), ('logistic', {'strip_columns': 700}),
         ('softmax', {'portion_chunks': 3}), ('softmax', {'portion_chunks': 0}),
         ('logistic', {'flush_ms': 1}), ('logistic', {'directions': 'auto'}),
         ('softmax', {'holdout': 0.2, 'early_stopping': 3, 'weights': ['weights']})]
for objective, settings in FORMS:
    def behaviour(folder, objective=objective, settings=settings):
        write_weights(folder / 'weights', ROWS)
        one_model(job_of(folder, objective, max_steps=8, **settings), check_tiles)
    behaviour.__name__ = ' '.join([objective, *settings]) + ' has one model however divided'
    test(behaviour)


@test
def how_much_is_handed_out_and_flushed_at_a_time_costs_no_bit(folder):
    one_model_however_handed_out(job_of(folder, max_steps=8, shards=3, replicas=4, threads=1))


@test
def shards_on_other_hosts_make_the_same_model(folder):
    on_hosts(folder, job_of, check_tiles)


# ---- losses of processes ----

def disturbed(folder):
    return job_of(folder, shards=2, replicas=2, threads=1, max_steps=12)


@test
def a_shard_that_dies_goes_on_with_the_margins_of_the_checkpoint(folder):
    survives(folder, disturbed(folder), check_tiles,
             *by_turns('shard', 'receive_PROGRAM:3', 'receive_PROGRAM:31', 'rows_taken:1',
                       'rows_taken:2', 'rows_taken:9', 'rows_advanced:2'))


@test
def a_replica_that_dies_within_a_strip_costs_no_bit(folder):
    survives(folder, disturbed(folder), check_tiles,
             *by_turns('replica', 'receive_EVALUATE:2', 'receive_EVALUATE:9', 'send_FLUSHED:4',
                       'send_FLUSHED:21', 'receive_PARAMETERS:12'))


@test
def a_coordinator_that_dies_within_a_step_costs_no_bit(folder):
    survives_its_coordinators(folder, disturbed(folder), 'send_EVALUATE:1', 'send_EVALUATE:3',
                              'send_EVALUATE:8', 'state_accept:6', 'state_accept:44')


# ---- l1, bounds, and a line search: evaluations by a product and its transpose ----

def check_trials(result):
    assert result['strips'] > 1 and result['steps'] > 0 and result['directions'] == 0, result


TRIALS = [('logistic', {'l1': 1e-3}),
          ('softmax', {'l1': 1e-3, 'weights': ['weights'], 'holdout': 0.2, 'early_stopping': 9}),
          ('squared', {'directions': 0}), ('poisson', {'bounds': ['1-900 = [-0.1, 0.1]']})]
for objective, settings in (TRIALS[1], TRIALS[3]):
    def behaviour(folder, objective=objective, settings=settings):
        (folder / 'weights').write_text(''.join(f'{row % 3}\n' for row in range(ROWS)))
        one_model(job_of(folder, objective, max_steps=5, **settings), check_trials)
    behaviour.__name__ = ' '.join([objective, *settings]) + ' by products has one model'
    test(behaviour)


def trials(folder):
    return job_of(folder, shards=2, replicas=2, threads=1, max_steps=5, l1=1e-3)


@test
def a_worker_that_dies_within_a_trial_costs_no_bit(folder):
    survives(folder, trials(folder), check_trials,
             *(f'shard1.{place}' for place in ('receive_PROGRAM:6', 'rows_taken:3', 'rows_taken:6',
                                               'rows_advanced:4')),
             *(f'replica0.{place}' for place in ('receive_EVALUATE:5', 'receive_EVALUATE:8',
                                                 'send_FLUSHED:9')))


@test
def a_coordinator_that_dies_within_a_trial_costs_no_bit(folder):
    survives_its_coordinators(folder, trials(folder), 'send_EVALUATE:2', 'send_EVALUATE:7',
                              'state_accept:9', 'state_accept:40')


for objective, settings in (TRIALS[0], TRIALS[2], TRIALS[3]):
    def behaviour(folder, objective=objective, settings=settings):
        settings = {key: value for key, value in settings.items() if key != 'weights'}
        job = job_of(folder, objective, l2=1e-2, max_steps=3000, gradient_tolerance=1e-8,
                     **settings)
        tiles, whole = (train(job, '--fresh', '--set', f'strip_columns={width}')
                        for width in (2000, 0))
        check_trials(tiles)
        assert whole['strips'] == 0 and tiles['converged'] and whole['converged'], (tiles, whole)
        assert abs(tiles['loss'] - whole['loss']) <= 1e-9 * whole['loss'], (tiles, whole)
        assert tiles.get('nonzero') == whole.get('nonzero'), (tiles, whole)
    behaviour.__name__ = ' '.join([objective, *settings]) + ' by products has the optimum'
    test(behaviour)


# ---- the holdout ----

STOPPING = {'holdout': 0.2, 'early_stopping': 3, 'l2': 1e-3, 'max_steps': 400}


for objective in 'logistic', 'softmax', 'squared':
    def behaviour(folder, objective=objective):
        job = job_of(folder, objective, ROWS_TO_STOP, **STOPPING)
        for directions in 6, 0:
            stops_early(job, ROWS_TO_STOP, '--set', f'directions={directions}')
    behaviour.__name__ = f'{objective} stops early at the loss that its best point has on the holdout'
    test(behaviour)


for directions in 6, 0:
    def behaviour(folder, directions=directions):
        (folder / 'weights').write_text(''.join(f'{row % 3}\n' for row in range(ROWS_TO_STOP)))
        job = job_of(folder, rows=ROWS_TO_STOP, directions=directions, weights=['weights'], **STOPPING)
        steps_like_whole_rows(folder, job, 2000, 4)
    behaviour.__name__ = f'steps of {directions} directions have the holdout of whole rows'
    test(behaviour)


@test
def a_loss_of_any_process_costs_no_bit_of_an_early_stop(folder):
    job = job_of(folder, rows=ROWS_TO_STOP, shards=2, replicas=2, threads=1, **STOPPING)
    survives(folder, job, lambda result: check_stop(result, ROWS_TO_STOP),
             *by_turns('shard', 'rows_taken:2', 'rows_advanced:3', 'receive_PROGRAM:27'),
             *by_turns('replica', 'receive_EVALUATE:4', 'send_FLUSHED:21'))
    survives_its_coordinators(folder, job, 'send_EVALUATE:1', 'send_EVALUATE:9', 'state_accept:44')


# ---- what it gives ----

for objective in some([*LABELS], 2):
    def behaviour(folder, objective=objective):
        job = job_of(folder, objective, l2=1e-3, max_steps=3000, gradient_tolerance=1e-9)
        tiles, whole = (train(job, '--fresh', '--set', f'strip_columns={width}')
                        for width in (2000, 0))
        check_tiles(tiles)
        assert whole['strips'] == 0, whole
        assert tiles['converged'] and whole['converged'], (tiles, whole)
        assert abs(tiles['loss'] - whole['loss']) <= 1e-9 * whole['loss'], (tiles, whole)
        assert tiles['examples'] == whole['examples'] == ROWS, (tiles, whole)
    behaviour.__name__ = f'{objective} ends at the optimum of whole rows'
    test(behaviour)


@test
def default_tolerances_wait_until_it_has_converged(folder):
    job = job_of(folder, max_steps=1000)
    lines = job.read_text().splitlines(keepends=True)
    job.write_text(''.join(line for line in lines if '_tolerance' not in line))
    tiles, whole = (train(job, '--fresh', '--set', f'strip_columns={width}')
                    for width in (2000, 0))
    for result in (tiles, whole):
        assert result['converged'] and result['gap_estimate'] <= 1e-6 * result['loss'], result
    assert abs(tiles['loss'] - whole['loss']) <= 1e-6 * whole['loss'], (tiles, whole)


@test
def a_limit_that_is_raised_is_gone_on_from(folder):
    goes_on_from_its_limit(folder, job_of)


@test
def a_model_that_a_run_starts_from_is_gone_on_from(folder):
    goes_on_from_a_model(folder, job_of(folder, max_steps=3000, gradient_tolerance=1e-8))


@test
def a_path_with_folds_gives_the_same_models_on_other_workers(folder):
    has_one_path(folder, job_of(folder, l2=[1e-2, 1e-4], folds=2, max_steps=6))


@test
def a_device_of_the_shards_gives_the_bits_of_the_cpu(folder):
    has_the_bits_of_a_device(job_of(folder, max_steps=8))


@test
def a_night_on_the_same_rows_goes_on_from_the_last(folder):
    job = job_of(folder, max_steps=1000, gradient_tolerance=1e-7, holdout=0.1,
                 gate=['loss <= 10', 'loss <= 1.1 * live'])
    for command in 'retrain', 'retrain':
        finished = dml(command, job, '--json')
        assert finished.status in (0, 3), finished
        (folder / 'text.libsvm').write_text(text('logistic', ROWS) + '1 1:1 8999:0.5\n')
    live = train(job, '--state', folder / 'other')
    assert live['strips'] > 1, live


# ---- jobs that have whole rows ----

@test
def a_job_that_cannot_be_in_tiles_has_whole_rows_and_says_why(folder):
    job = job_of(folder, max_steps=3)
    for setting, why in (('standardise=true', 'shifts columns'),
                         ('precondition=diagonal', 'have no preconditioner'),
                         ('start=downpour', 'minibatches')):
        finished = dml('run', job, '--json', '--fresh', '--set', setting)
        assert finished.status == 0, finished
        assert 'strip_columns' in finished.stderr and why in finished.stderr, finished
        assert json.loads(finished.stdout)['strips'] == 0, finished
        assert why in dml('check', job, '--set', setting).stdout, setting


@test
def indices_beyond_32_bits_are_columns_as_any_others_are(folder):
    """What counts is how many there are: the model has the bits of that of small indices."""
    far = {1: 1, 2: 2**32 - 1, 3: 2**32, 4: 5000000000, 5: 2**33 + 7, 6: 2**48 - 1}
    rows = [(1, [1, 4]), (0, [2, 5]), (1, [1, 3, 6]), (0, [2, 3]), (1, [4, 6]), (0, [5])]
    found = []
    for name, index in ('near', {i: i for i in far}), ('far', far):
        (folder / f'{name}.libsvm').write_text(''.join(
            f'{label} ' + ' '.join(f'{index[i]}:{i / 4}' for i in ids) + '\n'
            for label, ids in rows))
        job = write_job(folder, name, data=[f'{name}.libsvm'], objective='logistic',
                        l2=0.01, strip_columns=2)
        result = train(job)
        assert result['strips'] == 3 and result['features'] == 6, result
        predicted = dml('predict', result['model'], folder / f'{name}.libsvm')
        assert predicted.status == 0, predicted
        found.append((result['model_sha256'], predicted.stdout))
    assert found[0] == found[1], found


@test
def a_width_that_is_none_is_refused(folder):
    for width in '-1', 'wide', '1e12':
        finished = dml('check', job_of(folder), '--set', f'strip_columns={width}')
        assert finished.status in (64, 78) and 'strip_columns' in finished.stderr, finished


@test
def check_says_what_a_replica_holds(folder):
    job = job_of(folder, max_steps=2)
    said = {}
    for width in 500, 0:
        train(job, '--fresh', '--set', f'strip_columns={width}')
        finished = dml('check', job, '--set', f'strip_columns={width}', '--json')
        said[width] = json.loads(finished.stdout)
    assert said[500]['strips'] > 1 and 'strips' not in said[0], said
    assert said[500]['memory_bytes']['replica'] < said[0]['memory_bytes']['replica'], said
    train(job, '--fresh')
    finished = dml('check', job)
    assert 'strips of 2000 columns' in finished.stdout, finished


sys.exit(main())
