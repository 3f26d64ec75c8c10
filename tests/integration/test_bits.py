#!/usr/bin/env python3
"""One build gives one model, bit for bit, however the work is divided and in whatever order its
parts finish.

By default a covering array of the settings is run, in which every pair of values of two settings occurs:
sparse rows and dense rows take all of it, a third with each of three objectives. Other forms of a job
take two of its combinations. With DML_BITS=all every combination is run on both; with DML_BITS=few a
handful, enough to notice sums that depend on their order.
"""

import contextlib
import functools
import itertools
import os
import random
import sqlite3
import sys

from harness import Skip, dml, main, test, train, words, write_job

SETTINGS = {
    'replicas': [1, 2, 3, 5],
    'shards': [1, 2, 4],
    'threads': [1, 2],
    'portion_chunks': [1, 5, 0],  # 0: as the coordinator sees fit
}
if os.environ.get('DML_TEST_DEVICE'):
    SETTINGS['device'] = ['cpu', os.environ['DML_TEST_DEVICE']]
GRID = os.environ.get('DML_BITS') or 'pairs'

# Enough for 32 chunks of the least size, and for 4 blocks of 4,096 parameters.
SPARSE_ROWS, SPARSE_VALUES = 2500, 40
CHUNKS_LEAST, PARAMETERS_LEAST = 32, 4 * 4096


def combinations():
    everything = [dict(zip(SETTINGS, values)) for values in itertools.product(*SETTINGS.values())]
    if GRID == 'all':
        return everything
    if GRID == 'few':
        return [c for c in everything if c['shards'] == 2 and c['portion_chunks'] == 1]
    return covering(everything)


def third_of_combinations(first):
    """Every third of the covering array."""
    return combinations()[first::3] if GRID == 'pairs' else combinations()


forms = itertools.count()


def two_combinations():
    """For forms of a job beside those of same_bits(): the next of the covering array, and of the others the
    one that differs from it in most settings."""
    array = combinations()
    if GRID != 'pairs':
        return array
    one = array[next(forms) % len(array)]
    return [one, max(array, key=lambda c: sum(c[key] != one[key] for key in c))]


def pairs_of(combination):
    return set(itertools.combinations(combination.items(), 2))


def covering(everything):
    """Greedily: always the combination with the most pairs not seen yet."""
    missing = set().union(*map(pairs_of, everything))
    chosen = []
    while missing:
        best = max(everything, key=lambda c: len(pairs_of(c) & missing))
        chosen.append(best)
        missing -= pairs_of(best)
    return chosen


# ---- data ----

def label(objective, rng, margin):
    if objective == 'logistic':
        return int(margin + rng.gauss(0, 1) > 0)
    if objective == 'softmax':
        return min(3, max(0, int(margin + rng.gauss(0, 1) + 2)))
    return round(100 * margin + rng.gauss(0, 10), 2)


def sparse_rows(objective, features, rows=SPARSE_ROWS, seed=7):
    """Lines of LIBSVM text: few common features, many rare, none missing."""
    rng = random.Random(seed)
    lines = []
    for row in range(rows):
        ids = {1 + int(features * rng.random() ** 3) for _ in range(SPARSE_VALUES)}
        ids |= {1 + (row * 4 + k) % features for k in range(4)}
        values = {j: round(rng.gauss(0, 1), 3) or 1 for j in sorted(ids)}
        margin = sum(v * ((j * 7919) % 13 - 6) for j, v in values.items()) / 20
        text = ' '.join(f'{j}:{v}' for j, v in values.items())
        lines.append(f'{label(objective, rng, margin)} {text}\n')
    return lines


CELLS = range(-999, 1000)
TEXTS = {cell: f'{cell}e-2' for cell in CELLS}


def dense_rows(objective, features, rows, seed=8):
    """Lines of CSV, the label last; not every value is exact in single precision."""
    rng = random.Random(seed)
    lines = []
    for _ in range(rows):
        values = rng.choices(CELLS, k=features)
        margin = sum(values[::97]) / 5000
        text = ','.join(map(TEXTS.__getitem__, values))
        lines.append(f'{text},{label(objective, rng, margin)}\n')
    return lines


@functools.cache
def text_of(objective, kind):
    if kind == 'sparse':
        lines = sparse_rows(objective, 5000 if objective == 'softmax' else 19000)
    else:
        lines = dense_rows(objective, *((4200, 50) if objective == 'softmax' else (16400, 40)))
    return ''.join(lines)


def make_job(folder, objective, kind):
    (folder / 'data').write_text(text_of(objective, kind))
    # Steps are few and bounded, so a run takes a blink and ends for the same reason everywhere.
    return write_job(folder, data=['data'], format='libsvm' if kind == 'sparse' else 'csv',
                     objective=objective, l2=1e-4, history=4, max_steps=5, gradient_tolerance=1e-12,
                     loss_tolerance=0)


def assert_large_enough(folder, result):
    assert result['parameters'] >= PARAMETERS_LEAST, result
    sets = list((folder / 'job.state').rglob('*.set'))
    assert len(sets) == 1, sets
    chunks = dml('inspect', sets[0], '--json').json['chunks']
    assert chunks >= CHUNKS_LEAST, f'{chunks} chunks'


def assert_same_bits(results):
    """`results` maps a description of a run to its result."""
    models = {}
    for what, result in results.items():
        models.setdefault(result['model_sha256'], []).append(str(what))
    print(f'# {len(results)} runs, {len(models)} models')
    assert len(models) == 1, 'different bits: ' + '; '.join(
        f'{digest[:12]}: {", ".join(runs)}' for digest, runs in models.items())


def same_bits(objective, kind, folder):
    job = make_job(folder, objective, kind)
    results = {}
    for settings in third_of_combinations(OBJECTIVES.index(objective)):
        results[str(settings)] = train(job, '--fresh', *words(settings))
        if len(results) == 1:
            assert_large_enough(folder, *results.values())
    assert_same_bits(results)


OBJECTIVES = 'logistic', 'squared', 'softmax'
for objective in OBJECTIVES:
    for kind in 'sparse', 'dense':
        def behaviour(folder, objective=objective, kind=kind):
            same_bits(objective, kind, folder)
        behaviour.__name__ = f'{objective}_on_{kind}_rows_has_the_same_bits_however_divided'
        test(behaviour)


# ---- with l1 ----

def same_bits_with_l1(objective, kind, folder):
    job = make_job(folder, objective, kind)
    l1 = '0.1' if objective == 'squared' else '1e-3'
    results = {str(s): train(job, '--fresh', '--set', f'l1={l1}', *words(s))
               for s in two_combinations()}
    for result in results.values():
        assert 0 < result['nonzero'] < result['parameters'] - 1, result
    assert_same_bits(results)


for objective, kind in ('logistic', 'sparse'), ('squared', 'dense'), ('softmax', 'sparse'):
    def behaviour(folder, objective=objective, kind=kind):
        same_bits_with_l1(objective, kind, folder)
    behaviour.__name__ = f'{objective}_with_l1_on_{kind}_rows_has_the_same_bits_however_divided'
    test(behaviour)


# ---- in centred and scaled columns ----

COORDINATES = [{'precondition': 'diagonal'}, {'standardise': 'true', 'precondition': 'none'},
               {'precondition': 'diagonal', 'l1': '1e-3'}, {'standardise': 'true', 'l1': '1e-3'}]


def same_bits_in_coordinates(objective, kind, form, folder):
    job = make_job(folder, objective, kind)
    results = {str(s): train(job, '--fresh', *words(form), *words(s))
               for s in two_combinations()}
    for result in results.values():
        assert (result['preconditioner']['kind'] == 'diagonal') == ('precondition' in form and
                                                                    'standardise' not in form)
    assert_same_bits(results)


for (objective, kind), form in zip((('logistic', 'sparse'), ('softmax', 'dense'),
                                    ('logistic', 'sparse'), ('softmax', 'sparse')), COORDINATES):
    def behaviour(folder, objective=objective, kind=kind, form=form):
        same_bits_in_coordinates(objective, kind, form, folder)
    behaviour.__name__ = (f'{objective}_with_{"_and_".join(form)}_on_{kind}_rows_has_the_same_bits_'
                          'however_divided')
    test(behaviour)


# ---- with a preconditioner ----

def make_small_job(folder, objective, kind):
    """Few features: the curvature is that of a part of the rows unless it is constant."""
    make = sparse_rows if kind == 'sparse' else dense_rows
    lines = make(objective, 48, 2 * SPARSE_ROWS)
    (folder / 'data').write_text(''.join(lines))
    return write_job(folder, data=['data'], format='libsvm' if kind == 'sparse' else 'csv',
                     objective=objective, l2=1e-4, max_steps=6, gradient_tolerance=1e-13,
                     loss_tolerance=0, precondition='block')


def same_bits_preconditioned(objective, kind, folder):
    job = make_small_job(folder, objective, kind)
    results = {str(s): train(job, '--fresh', *words(s)) for s in two_combinations()}
    for result in results.values():
        curvature = result['preconditioner']
        assert curvature['refreshes'] >= (2 if objective == 'logistic' else 1), curvature
        assert (curvature['rows'] == result['examples']) == (objective == 'squared'), curvature
    assert_same_bits(results)


for objective in 'logistic', 'squared', 'softmax':
    for kind in 'sparse', 'dense':
        def behaviour(folder, objective=objective, kind=kind):
            same_bits_preconditioned(objective, kind, folder)
        behaviour.__name__ = (f'preconditioned_{objective}_on_{kind}_rows_has_the_same_bits_'
                              'however_divided')
        test(behaviour)


# ---- with a column that is far from 0 ----

def far_lines(objective, kind):
    rng = random.Random(9)
    lines = sparse_rows(objective, 48) if kind == 'sparse' else dense_rows(objective, 48, SPARSE_ROWS)
    times = [1700000000 + rng.randrange(10**6) for _ in lines]
    return [f'{line[:-1]} 49:{at}\n' if kind == 'sparse' else f'{at},{line}' for line, at in zip(lines, times)]


def same_bits_far_from_0(objective, kind, form, folder):
    """The rows are in one file or in three; what is taken off the column follows from them alone."""
    lines = far_lines(objective, kind)
    (folder / 'data').write_text(''.join(lines))
    for i, part in enumerate((lines[:10], lines[10:1500], lines[1500:])):
        (folder / f'part{i}').write_text(''.join(part))
    results = {}
    for i, settings in enumerate(two_combinations()):
        data = [f'part{j}' for j in range(3)] if i % 2 else ['data']
        job = write_job(folder, data=data, format='libsvm' if kind == 'sparse' else 'csv',
                        objective=objective, l2=1e-4, max_steps=6, gradient_tolerance=1e-13,
                        loss_tolerance=0, **form)
        results[f'{settings} {len(data)}'] = train(job, '--fresh', *words(settings))
    assert_same_bits(results)


for objective, kind, form in (('logistic', 'sparse', {'precondition': 'block'}),
                              ('squared', 'dense', {'precondition': 'block'}),
                              ('softmax', 'dense', {'standardise': True}),
                              ('logistic', 'sparse', {'strip_columns': 20})):
    def behaviour(folder, objective=objective, kind=kind, form=form):
        same_bits_far_from_0(objective, kind, form, folder)
    behaviour.__name__ = (f'{objective}_with_{"_and_".join(form)}_on_{kind}_rows_far_from_0_has_the_'
                          'same_bits_however_divided')
    test(behaviour)


# ---- networks ----

NETWORKS = {'sparse': {'layers': [5], 'loss': 'softmax'},
            'dense': {'layers': [6, 3], 'loss': 'logistic', 'activation': 'relu',
                      'precision': 'float'}}


def make_network_job(folder, kind, lines):
    (folder / 'data').write_text(''.join(lines))
    return write_job(folder, data=['data'], format='libsvm' if kind == 'sparse' else 'csv',
                     objective='network', network=NETWORKS[kind], history=4, max_steps=5,
                     gradient_tolerance=1e-12, loss_tolerance=0, early_stopping=20)


def same_bits_of_a_network(kind, folder):
    loss = NETWORKS[kind]['loss']
    lines = (sparse_rows(loss, 5000) if kind == 'sparse' else dense_rows(loss, 3000, 200))
    job = make_network_job(folder, kind, lines)
    results = {str(s): train(job, '--fresh', *words(s)) for s in two_combinations()}
    assert_large_enough(folder, next(iter(results.values())))
    assert_same_bits(results)


for kind in NETWORKS:
    def behaviour(folder, kind=kind):
        same_bits_of_a_network(kind, folder)
    behaviour.__name__ = f'a_network_on_{kind}_rows_has_the_same_bits_however_divided'
    test(behaviour)


def evaluations_made_again(folder):
    """Of the last run."""
    with contextlib.closing(sqlite3.connect(folder / 'job.state' / 'dml.db')) as database:
        return database.execute(
            "SELECT count(*) FROM evaluations WHERE outcome = 'bound exceeded' AND "
            'run = (SELECT max(run) FROM runs)').fetchone()[0]


@test
def bounds_of_a_network_are_raised_to_the_same_bits_in_any_order(folder):
    """Columns of very different scales, into units without a limit."""
    lines = [','.join([f'{value}e{j % 9}' for j, value in enumerate(row.split(',')[:-1])] +
                      row.split(',')[-1:])
             for row in (line.replace('e-2', '') for line in dense_rows('logistic', 30, 3000))]
    job = make_network_job(folder, 'dense', lines)
    results = {}
    for number, settings in enumerate(two_combinations()):
        results[str(settings)] = train(job, '--fresh', *words(settings), DML_SHUFFLE=str(number))
        assert evaluations_made_again(folder) > 0
    assert_same_bits(results)


# ---- order, packing ----

def any_order_of_portions_gives_the_same_bits(objective, folder):
    job = make_job(folder, objective, 'sparse')
    divided = words({'replicas': 3, 'shards': 2, 'threads': 2, 'portion_chunks': 2})
    results = {'in sequence': train(job, '--fresh', *divided)}
    for seed in range(1, 3 if GRID == 'pairs' else 5):
        results[f'shuffled by {seed}'] = train(job, '--fresh', *divided, DML_SHUFFLE=str(seed))
    assert_same_bits(results)


@test
def portions_that_finish_in_a_random_order_give_the_same_bits(folder):
    any_order_of_portions_gives_the_same_bits('logistic', folder)


@test
def a_bound_that_is_raised_is_raised_to_the_same_bits_in_any_order(folder):
    any_order_of_portions_gives_the_same_bits('squared', folder)


@test
def packing_on_one_core_or_two_gives_the_same_bits(folder):
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        raise Skip('there is only one core')
    job = make_job(folder, 'logistic', 'sparse')
    results = {}
    for count in 1, 2:
        chosen = ','.join(map(str, cores[:count]))
        results[f'{count} cores'] = train(job, '--state', folder / f'{count}.state',
                                          prefix=('taskset', '-c', chosen))
    assert_same_bits(results)


def split_in_five(folder, kind, name):
    """The rows of folder/data in five unequal files; a glob lists them in order."""
    lines = (folder / 'data').read_text().splitlines(keepends=True)
    cuts = [0, 1, len(lines) // 7, len(lines) // 3, len(lines) // 2, len(lines)]
    for part in range(5):
        (folder / f'{name}-{part}').write_text(''.join(lines[cuts[part]:cuts[part + 1]]))


def one_file_or_five(kind, folder):
    job = make_job(folder, 'logistic', kind)
    split_in_five(folder, kind, 'part')
    # The settings of the job but for its data.
    many = folder / 'many.conf'
    many.write_text(job.read_text().replace('{ "data" }', '{ "part-*" }'))
    assert_same_bits({'one file': train(job), 'five files': train(many)})


@test
def one_sparse_file_or_the_same_rows_in_five_give_the_same_bits(folder):
    one_file_or_five('sparse', folder)


@test
def one_dense_file_or_the_same_rows_in_five_give_the_same_bits(folder):
    one_file_or_five('dense', folder)


sys.exit(main())
