#!/usr/bin/env python3
"""Penalties of single columns: the optimum of coordinate descent, for columns of all kinds."""

import json
import math
import pathlib
import random

from descent import minimiser
from harness import CONFIG, dml, main, read_safetensors, test, train, write_job

TIGHT = {'gradient_tolerance': 1e-10, 'loss_tolerance': 0, 'max_steps': 3000}
NUMBERS, TEXTS = ['a', 'b', 'c'], ['p', 'q', 'r']


def table(objective, rows=80, seed=3):
    """Rows of three numbers and a text, and their labels."""
    rng = random.Random(seed)
    cells = [[round(rng.gauss(0, 1), 3) for _ in NUMBERS] + [rng.choice(TEXTS)]
             for _ in range(rows)]
    margins = [row[0] - 0.6 * row[1] + (row[3] == 'q') + rng.gauss(0, 1) for row in cells]
    if objective == 'squared':
        return cells, [round(2 * m, 3) for m in margins]
    if objective == 'softmax':
        return cells, [int(m > -0.5) + int(m > 0.9) for m in margins]
    return cells, [1 if m > 0 else -1 for m in margins]


def rows_of(cells):
    """A number, or a column of zeros and ones for each text."""
    return [[*row[:3], *(float(row[3] == text) for text in TEXTS)] for row in cells]


def write_table(folder, cells, labels):
    text = ','.join([*NUMBERS, 'kind', 'y']) + '\n'
    text += ''.join(','.join(map(str, [*row, y])) + '\n' for row, y in zip(cells, labels))
    (folder / 'data.csv').write_text(text)


def job_of(folder, cells, labels, objective='logistic', **settings):
    write_table(folder, cells, labels)
    return write_job(folder, data=['data.csv'], objective=objective, **{**TIGHT, **settings})


def weights_of(result):
    """[column][output] in the order of rows_of(), and the intercepts behind."""
    folder = pathlib.Path(result['model'])
    tensors = {name: numbers for name, (_, numbers) in
               read_safetensors(folder / 'model.safetensors').items()}
    names = result_names(folder)
    outputs = range(len(tensors['weight']) // len(names))
    order = [*NUMBERS, *(f'kind={text}' for text in TEXTS)]
    return [[tensors['weight'][k * len(names) + names.index(name)] for k in outputs]
            for name in order] + [list(tensors['bias'])]


def result_names(folder):
    return json.loads((folder / 'model.json').read_text())['feature_names']


def assert_near(found, expected, within=1e-6):
    for j, (own, other) in enumerate(zip(found, expected)):
        for x, y in zip(own, other):
            assert math.isclose(x, y, abs_tol=within), (j, own, other)


FACTORS = [0, 2.5, 1, 0.1, 0.1, 0.1]
RULES = ['a = 0', 'b = 2.5', 'kind = 0.1']


@test
def factors_of_columns_multiply_the_penalty(folder):
    for objective, outputs in (('logistic', 1), ('squared', 1), ('softmax', 3)):
        cells, labels = table(objective)
        free = 0.2 if outputs > 1 else 0  # of classes alike, weights together are not determined
        expected, _ = minimiser(rows_of(cells), labels, objective, 0, 0.02, True, outputs,
                                factors=[free, *FACTORS[1:]])
        for settings in ({}, {'precondition': 'none'}, {'shards': 2, 'replicas': 3}):
            result = train(job_of(folder, cells, labels, objective, l2=0.02,
                                  penalty=[f'a = {free}', *RULES[1:]], **settings), '--fresh')
            found = weights_of(result)
            if objective == 'softmax':  # its intercepts together do not count
                expected = [row if j < 6 else [b - expected[6][0] for b in row]
                            for j, row in enumerate(expected)]
                found[6] = [b - found[6][0] for b in found[6]]
            assert_near(found, expected)


@test
def columns_are_numbers_or_ranges_of_ids_where_there_are_no_names(folder):
    cells, labels = table('logistic')
    lines = [f'{y} ' + ' '.join(f'{j + 1}:{x}' for j, x in enumerate(row)) + '\n'
             for row, y in zip(rows_of(cells), labels)]
    (folder / 'data.libsvm').write_text(''.join(lines))
    by_ids = write_job(folder, 'ids', data=['data.libsvm'], l2=0.02, **TIGHT,
                       penalty=['1 = 0', '2 = 2.5', '4-6 = 0.1'])
    by_names = job_of(folder, cells, labels, l2=0.02, penalty=RULES)
    by_numbers = job_of(folder, cells, labels, l2=0.02, penalty=['1 = 0', '2=2.5', '4 = 0.1'])
    hashes = {train(job, '--fresh')['loss'] for job in (by_ids, by_names, by_numbers)}
    assert max(hashes) - min(hashes) < 1e-12, hashes


@test
def a_factor_of_one_changes_little_and_any_workers_nothing(folder):
    cells, labels = table('logistic')
    plain = train(job_of(folder, cells, labels, l2=0.02), '--fresh')
    ones = train(job_of(folder, cells, labels, l2=0.02, penalty=['a = 1']), '--fresh')
    assert_near(weights_of(plain), weights_of(ones), 1e-9)
    hashes = {train(job_of(folder, cells, labels, l2=0.02, penalty=RULES, **settings),
                    '--fresh')['model_sha256']
              for settings in ({}, {'shards': 3}, {'replicas': 3, 'threads': 2})}
    assert len(hashes) == 1, hashes


@test
def minibatches_have_the_factors_too(folder):
    cells, labels = table('logistic', rows=600)
    strong = {'l2': 5, 'optimizer': 'downpour', 'downpour': {'epochs': 20}, 'csv': {'label': 'y'}}
    sizes = {}
    for factor in (0, 1):
        result = train(job_of(folder, cells, labels, penalty=[f'a = {factor}'], **strong), '--fresh')
        sizes[factor] = abs(weights_of(result)[0][0])
    assert sizes[0] > 5 * sizes[1], sizes


@test
def rules_that_say_nothing_are_errors(folder):
    cells, labels = table('logistic')
    for rules, words in ((['z = 2'], 'no column "z"'), (['a = -1'], 'is not valid'),
                         (['a'], 'is not valid'), (['a = nan'], 'is not valid'),
                         (['a = 1', '1 = 2'], 'given twice'), (['y = 2'], 'no column that'),
                         (['b = 1', 'kind = 1e7'], 'is not valid')):
        finished = dml('run', job_of(folder, cells, labels, l2=0.1, penalty=rules))
        assert finished.status == CONFIG and words in finished.stderr, finished
        assert 'job.conf' in finished.stderr and '`penalty`' in finished.stderr, finished
    finished = dml('check', job_of(folder, cells, labels, objective='network', penalty=['a = 2']))
    assert finished.status == CONFIG and 'linear models' in finished.stderr, finished
    finished = dml('check', job_of(folder, cells, labels, l2=0, penalty=['a = 2']))
    assert finished.status == 0 and 'no effect without l2' in finished.stderr, finished


if __name__ == '__main__':
    main()
