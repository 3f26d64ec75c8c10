#!/usr/bin/env python3
"""A leading block: tables of more parameters than `precondition_block` are preconditioned by their first
columns. One model to the bit however the run goes, and the optimum of a run without."""

import functools
import random
import sys

from divided import (by_turns, goes_on_from_a_model, has_one_path, has_the_bits_of_a_device,
                     one_model, survives, survives_its_coordinators)
from harness import main, test, train, words, write_job

ROWS = 1500
BLOCK = 200  # `precondition_block`, of some 3,000 columns

SHARED = {'precondition_block': BLOCK, 'gradient_tolerance': 1e-13, 'loss_tolerance': 0, 'l2': 1e-4,
          'max_steps': 25, 'checkpoint_seconds': 0, 'portion_chunks': 1}

LABELS = {
    'logistic': lambda margin: 'yes' if margin > 0 else 'no',
    'squared': lambda margin: round(margin, 3),
    'softmax': lambda margin: f'k{min(2, max(0, int(margin / 2 + 1.5)))}',
    'ordinal': lambda margin: min(2, max(0, int(margin / 2 + 1.5))),
}


@functools.cache
def table(objective):
    """Lines of CSV: categories of 5 to 1,500 texts, the first ones frequent, and a number."""
    rng = random.Random(11)
    sizes = [5, 12, 40, 150, 600, 800, 1500]
    effects = [[rng.gauss(0, 0.6) for _ in range(size)] for size in sizes]
    lines = ['a,b,c,d,e,f,g,number,label\n']
    for _ in range(ROWS):
        texts = [int(size * rng.random() ** 2) for size in sizes]
        number = rng.gauss(2000, 10)
        margin = sum(effect[text] for effect, text in zip(effects, texts)) + rng.gauss(0, 1) + (
            number - 2000) / 20
        cells = [f't{text}' for text in texts] + [f'{number:.2f}', LABELS[objective](margin)]
        lines.append(','.join(map(str, cells)) + '\n')
    return ''.join(lines)


def job_of(folder, objective='logistic', **settings):
    (folder / 'table.csv').write_text(table(objective))
    own = {'ordinal': {'ordinal': {'order': ['0', '1', '2']}}}.get(objective, {})
    return write_job(folder, data=['table.csv'], csv={'label': 'label'}, objective=objective,
                     **{**SHARED, **own, **settings})


def check_leading(result):
    found = result['preconditioner']
    assert found['kind'] == 'block' and found['refreshes'] >= 1, result
    assert 0 < found['block_columns'] <= BLOCK < result['parameters'] / 2, result


FORMS = [('logistic', {}), ('squared', {}), ('softmax', {}), ('ordinal', {}),
         ('logistic', {'standardise': True}), ('logistic', {'intercept': False}),
         ('softmax', {'intercept': False}), ('logistic', {'weights': ['weights']})]
for objective, settings in FORMS:
    def behaviour(folder, objective=objective, settings=settings):
        rng = random.Random(4)
        (folder / 'weights').write_text(''.join(f'{rng.choice([0, 0.01, 1, 7])}\n'
                                                for _ in range(ROWS)))
        one_model(job_of(folder, objective, max_steps=8, **settings), check_leading)
    behaviour.__name__ = ' '.join([objective, *settings]) + ' has one model however divided'
    test(behaviour)


def has_more_than_a_shard_would_have(result):
    check_leading(result)
    assert result['preconditioner']['block_columns'] * CLASSES > 4096, result


CLASSES = 45  # so the block has more elements than half of the vector


@test
def a_block_that_is_longer_than_an_even_range_lies_on_the_first_shard(folder):
    rng = random.Random(9)
    lines = ['a,b,c,d,label\n']
    for _ in range(ROWS):
        texts = [int(size * rng.random() ** 2) for size in (6, 20, 60, 140)]
        label = (texts[0] * 7 + texts[1] + rng.randrange(4)) % CLASSES
        lines.append(','.join(f't{text}' for text in texts) + f',k{label}\n')
    (folder / 'table.csv').write_text(''.join(lines))
    job = write_job(folder, data=['table.csv'], csv={'label': 'label'}, objective='softmax',
                    precondition='block', **{**SHARED, 'precondition_block': 180, 'max_steps': 6})
    one_model(job, has_more_than_a_shard_would_have)


# ---- losses of processes ----

def disturbed(folder):
    return job_of(folder, shards=2, replicas=2, threads=1, max_steps=12)


def check_refreshed(result):
    assert result['preconditioner']['refreshes'] >= 2, result


@test
def a_shard_that_dies_while_it_makes_a_factor_costs_no_bit(folder):
    survives(folder, disturbed(folder), check_refreshed,
             *by_turns('shard', 'factor_begin:1', 'factor_begin:2', 'factor_done:2',
                       'factor_done:1'))


@test
def the_one_factor_of_several_outputs_outlives_shards_and_replicas(folder):
    job = job_of(folder, 'softmax', shards=2, replicas=2, threads=1, max_steps=12)
    survives(folder, job, check_leading, 'shard0.factor_begin:1', 'shard0.factor_done:1',
             'shard0.receive_PROGRAM:20', 'replica1.receive_EVALUATE:2', 'replica0.send_FLUSHED:2')


@test
def a_shard_that_dies_later_goes_on_with_the_factor_of_the_checkpoint(folder):
    survives(folder, disturbed(folder), check_refreshed, 'shard0.receive_PROGRAM:30', 'shard1.receive_PROGRAM:30')


@test
def a_replica_that_dies_in_a_refresh_costs_no_bit(folder):
    survives(folder, disturbed(folder), check_refreshed,
             *by_turns('replica', 'receive_EVALUATE:2', 'receive_EVALUATE:5', 'send_FLUSHED:2'))


@test
def a_coordinator_that_dies_in_a_refresh_costs_no_bit(folder):
    survives_its_coordinators(folder, disturbed(folder), 'send_EVALUATE:3', 'state_accept:6',
                              'state_accept:14')


# ---- what it gives ----

def optima(job):
    """Of runs without a preconditioner, and with it."""
    exact = words({'max_steps': 3000, 'gradient_tolerance': 1e-8})
    plain = train(job, '--fresh', '--set', 'precondition=diagonal', *exact)
    leading = train(job, '--fresh', *exact)
    check_leading(leading)
    return plain, leading


for objective in LABELS:
    def behaviour(folder, objective=objective):
        plain, leading = optima(job_of(folder, objective))
        assert abs(plain['loss'] - leading['loss']) <= 1e-8 * plain['loss'], (plain, leading)
    behaviour.__name__ = f'{objective} ends at the optimum of the diagonal'
    test(behaviour)


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
def a_device_that_is_emulated_gives_the_bits_of_a_block_that_outputs_share(folder):
    has_the_bits_of_a_device(job_of(folder, 'softmax', max_steps=8))


@test
def a_text_takes_a_block_only_if_it_is_asked_for(folder):
    rng = random.Random(2)
    lines = []
    for _ in range(400):
        ids = sorted({1 + int(2000 * rng.random() ** 3) for _ in range(rng.randrange(1, 90))})
        lines.append(f'{int(ids[0] % 2)} ' + ' '.join(f'{j}:1' for j in ids) + '\n')
    (folder / 'text.libsvm').write_text(''.join(lines))
    job = write_job(folder, data=['text.libsvm'], **{**SHARED, 'max_steps': 200, 'l2': 1e-2,
                                                     'gradient_tolerance': 1e-6})
    auto, block = (train(job, '--fresh', '--set', f'precondition={form}')
                   for form in ('auto', 'block'))
    assert auto['preconditioner']['kind'] == 'none', auto
    check_leading(block)
    assert block['converged'] and abs(block['loss'] - auto['loss']) <= 1e-9, (auto, block)


sys.exit(main())
