#!/usr/bin/env python3
"""Networks in tiles: the first layer by products of strips of columns, and the layers above it at its
margins. One model to the bit however the run goes, and the losses of rows that are whole."""

import functools
import json
import random
import sys

from divided import (by_turns, check_stop, goes_on_from_its_limit, has_one_path,
                     has_the_bits_of_a_device, on_hosts, one_model, one_model_however_handed_out,
                     steps_like_whole_rows, stops_early, survives, survives_its_coordinators,
                     write_weights)
from harness import dml, main, some, test, train, write_job
from sweeps import rows_of

ROWS, COLUMNS = 600, 6000
ROWS_TO_STOP = 1200  # from fewer nothing is learnt that a holdout tells

SHARED = {'strip_columns': 1500, 'history': 5, 'gradient_tolerance': 1e-13, 'loss_tolerance': 0,
          'l2': 1e-4, 'max_steps': 12, 'checkpoint_seconds': 0, 'portion_chunks': 1,
          'early_stopping': 'off', 'objective': 'network'}

LABELS = {'logistic': lambda margin: int(margin > 0),
          'squared': lambda margin: round(margin, 3),
          'softmax': lambda margin: min(2, max(0, int(margin + 1.5))),
          'ordinal': lambda margin: min(2, max(0, int(margin + 1.5)))}


@functools.cache
def text(loss, rows):
    """Rows of words, of which few are frequent; one has no word at all. Two words together say
    something else than each."""
    rng = random.Random(12)
    effect = [(rng.gauss(0, 1), rng.choice([-1, 1])) for _ in range(COLUMNS)]
    lines = []
    for row in range(rows):
        ids = sorted({int(COLUMNS * rng.random() ** 3) for _ in range(rng.randrange(3, 40))})
        values = [(j, round(rng.random() + 0.1, 2)) for j in ids] if row != min(700, rows - 300) else []
        margin = sum(effect[j][0] * value for j, value in values) / 3 + rng.gauss(0, 0.3)
        for j, _ in values[:2]:
            margin *= effect[j][1]
        lines.append(f'{LABELS[loss](margin)} '
                     + ' '.join(f'{j + 1}:{value}' for j, value in values) + '\n')
    return ''.join(lines)


def job_of(folder, loss='logistic', layers=(4,), network=None, rows=ROWS, **settings):
    (folder / 'text.libsvm').write_text(text(loss, rows))
    own = {'ordinal': {'ordinal': {'order': ['0', '1', '2']}}}.get(loss, {})
    shape = {'layers': list(layers), 'loss': loss, **(network or {})}
    return write_job(folder, data=['text.libsvm'], network=shape, **{**SHARED, **own, **settings})


def check_tiles(result):
    assert result['strips'] > 1 and result['steps'] > 0 and result['directions'] == 0, result


FORMS = [({}, {}), ({'loss': 'squared', 'layers': (3, 2)}, {}),
         ({'loss': 'softmax', 'network': {'precision': 'float'}}, {}),
         ({'loss': 'ordinal', 'network': {'activation': 'gelu'}}, {'holdout': 0.2}),
         ({'network': {'activation': 'relu'}},
          {'weights': ['weights'], 'holdout': 0.2, 'early_stopping': 3}),
         ({}, {'history_type': 'double', 'strip_columns': 700}), ({}, {'l1': 1e-3}),
         ({}, {'portion_chunks': 3}), ({}, {'portion_chunks': 0}), ({}, {'flush_ms': 1})]
for shape, settings in FORMS:
    def behaviour(folder, shape=shape, settings=settings):
        write_weights(folder / 'weights', ROWS)
        one_model(job_of(folder, max_steps=6, **shape, **settings), check_tiles)
    words = [str(value) for value in (*shape.values(), *settings)]
    behaviour.__name__ = ' '.join(['a network', *words, 'has one model however divided'])
    test(behaviour)


@test
def how_much_is_handed_out_and_flushed_at_a_time_costs_no_bit(folder):
    one_model_however_handed_out(job_of(folder, max_steps=6, shards=3, replicas=4, threads=1))


@test
def shards_on_other_hosts_make_the_same_model(folder):
    on_hosts(folder, job_of, check_tiles)


# ---- losses of processes ----

def disturbed(folder):
    return job_of(folder, shards=2, replicas=2, threads=1, max_steps=6)


@test
def a_shard_that_dies_costs_no_bit(folder):
    survives(folder, disturbed(folder), check_tiles,
             *by_turns('shard', 'receive_PROGRAM:3', 'receive_PROGRAM:19', 'rows_taken:1',
                       'rows_taken:2', 'rows_taken:3', 'rows_taken:10', 'rows_taken:11'))


@test
def a_replica_that_dies_within_an_evaluation_costs_no_bit(folder):
    survives(folder, disturbed(folder), check_tiles,
             *by_turns('replica', 'receive_EVALUATE:2', 'receive_EVALUATE:3', 'receive_EVALUATE:4',
                       'send_FLUSHED:4', 'send_FLUSHED:21', 'receive_PARAMETERS:12',
                       'upper_fetched:1', 'upper_fetched:2', 'upper_fetched:5'))


@test
def a_coordinator_that_dies_within_a_step_costs_no_bit(folder):
    survives_its_coordinators(folder, disturbed(folder), 'send_EVALUATE:2', 'send_EVALUATE:5',
                              'send_EVALUATE:8', 'state_accept:6', 'state_accept:44')


# ---- the holdout ----

STOPPING = {'holdout': 0.2, 'early_stopping': 3, 'l2': 1e-3, 'max_steps': 400}

for loss, layers in ('logistic', (4,)), ('squared', (3, 2)), ('softmax', (4,)):
    def behaviour(folder, loss=loss, layers=layers):
        stops_early(job_of(folder, loss, layers, rows=ROWS_TO_STOP, **STOPPING), ROWS_TO_STOP)
    behaviour.__name__ = f'{loss} stops early at the loss that its best point has on the holdout'
    test(behaviour)


@test
def a_point_has_the_holdout_of_whole_rows(folder):
    write_weights(folder / 'weights', ROWS)
    job = job_of(folder, weights=['weights'], **{**STOPPING, 'max_steps': 5})
    start = train(job)
    steps_like_whole_rows(folder, job, 1500, 0, '--start', start['model'], figures='loss')


@test
def a_loss_of_any_process_costs_no_bit_of_an_early_stop(folder):
    job = job_of(folder, rows=ROWS_TO_STOP, shards=2, replicas=2, threads=1, **STOPPING)
    survives(folder, job, lambda result: check_stop(result, ROWS_TO_STOP),
             *by_turns('shard', 'rows_taken:3', 'receive_PROGRAM:27'),
             *by_turns('replica', 'receive_EVALUATE:4', 'send_FLUSHED:21', 'upper_fetched:3'))
    survives_its_coordinators(folder, job, 'send_EVALUATE:3', 'state_accept:44')


# ---- what it gives ----

def sums_of(folder, job, *arguments):
    """Losses and largest derivatives of the points that a run has come to."""
    state = folder / ('.'.join(arguments[-1:]).replace('/', '') + '.state')
    result = train(job, '--state', state, *arguments)
    return result, rows_of(state, 'SELECT loss, gradient_max FROM steps ORDER BY step')


for loss, layers, l1 in some([('logistic', (3,), 1e-3), ('squared', (3, 2), 0), ('softmax', (4,), 0)], 2):
    def behaviour(folder, loss=loss, layers=layers, l1=l1):
        job = job_of(folder, loss, layers, l1=l1, l2=1e-2, max_steps=4000,
                     gradient_tolerance=1e-6)
        whole = train(job, '--set', 'strip_columns=0', '--state', folder / 'whole.state')
        assert whole['strips'] == 0 and whole['reason'] == 'gradient tolerance', whole
        result, steps = sums_of(folder, job, '--start', whole['model'])
        check_tiles({**result, 'steps': 1})
        first, largest = steps[0]
        assert abs(first - whole['loss']) <= 1e-12 * whole['loss'], (first, whole)
        assert largest <= 1e-5, (largest, whole)
        assert result.get('nonzero') == whole.get('nonzero'), (result, whole)
        scored = dml('evaluate', result['model'], folder / 'text.libsvm', '--json')
        assert scored.status == 0, scored
    behaviour.__name__ = (f'{loss} {"l1 " if l1 else ""}has loss and gradient of whole rows at their '
                          'optimum')
    test(behaviour)


@test
def the_loss_is_that_of_the_model_that_it_gives(folder):
    job = job_of(folder, l2=0, max_steps=25)
    result = train(job)
    check_tiles(result)
    scored = json.loads(dml('evaluate', result['model'], folder / 'text.libsvm', '--json').stdout)
    assert abs(scored['log_loss'] - result['loss']) <= 1e-9 * result['loss'], (scored, result)
    assert result['loss'] < 0.6, result


@test
def a_limit_that_is_raised_is_gone_on_from(folder):
    goes_on_from_its_limit(folder, job_of)


@test
def a_path_with_folds_gives_the_same_models_on_other_workers(folder):
    has_one_path(folder, job_of(folder, l2=[1e-2, 1e-4], folds=2, max_steps=4))


@test
def a_device_of_the_shards_gives_the_bits_of_the_cpu(folder):
    has_the_bits_of_a_device(job_of(folder, max_steps=5))


# ---- jobs that have whole rows ----

@test
def a_network_that_cannot_be_in_tiles_has_whole_rows_and_says_why(folder):
    job = job_of(folder, max_steps=3)
    for setting, why in (('standardise=true', 'shifts columns'),
                         ('precondition=kronecker', 'have no preconditioner'),
                         ('start=downpour', 'minibatches')):
        finished = dml('check', job, '--set', setting)
        assert why in finished.stdout + finished.stderr, (setting, finished)
        if 'kronecker' in setting:
            continue
        finished = dml('run', job, '--json', '--fresh', '--set', setting)
        assert finished.status == 0, finished
        assert 'strip_columns' in finished.stderr and why in finished.stderr, finished
        assert json.loads(finished.stdout)['strips'] == 0, finished


@test
def check_says_what_a_replica_holds(folder):
    job = job_of(folder, layers=(64,), max_steps=2)
    said = {}
    for width in 500, 0:
        train(job, '--fresh', '--set', f'strip_columns={width}')
        finished = dml('check', job, '--set', f'strip_columns={width}', '--json')
        said[width] = json.loads(finished.stdout)
    assert said[500]['strips'] > 1 and 'strips' not in said[0], said
    assert said[500]['memory_bytes']['replica'] < said[0]['memory_bytes']['replica'], said


sys.exit(main())
