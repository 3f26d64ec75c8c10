#!/usr/bin/env python3
"""Monotone columns: predictions that rise or fall with a number, the optimum of coordinate descent on steps
from bin to bin, the same bits over workers and files, scoring of files, warm starts, and errors."""

import json
import math
import pathlib
import random

from descent import minimiser
from harness import CONFIG, dml, main, read_safetensors, test, train, write_job

TIGHT = {'gradient_tolerance': 1e-12, 'loss_tolerance': 0, 'max_steps': 3000, 'l2': 0.02, 'csv': {'bins': 6}}
RULES = ['a = rising', 'b = falling']


def table(rows=160, seed=5):
    """a, b and c, of which a has missing cells, and labels of which a and b are not monotone."""
    rng = random.Random(seed)
    cells = [[round(rng.gauss(0, 1), 2) for _ in range(3)] for _ in range(rows)]
    labels = [1 if math.sin(2 * a) + math.cos(3 * b) + c + rng.gauss(0, 1) > 0.5 else -1
              for a, b, c in cells]
    return [[None if i % 9 == 4 else row[0], *row[1:]] for i, row in enumerate(cells)], labels


def write(folder, name, cells, labels=None):
    head = 'a,b,c' + (',y' if labels else '') + '\n'
    tails = [f',{y}' for y in labels] if labels else [''] * len(cells)
    (folder / name).write_text(head + ''.join(
        ','.join('' if x is None else str(x) for x in row) + tail + '\n'
        for row, tail in zip(cells, tails)))


def job_of(folder, name='job', files=('data.csv',), **settings):
    return write_job(folder, name, data=list(files), objective='logistic',
                     **{**TIGHT, 'monotone': RULES, **settings})


def model_of(result):
    folder = pathlib.Path(result['model'])
    details = json.loads((folder / 'model.json').read_text())
    tensors = {k: v for k, (_, v) in read_safetensors(folder / 'model.safetensors').items()}
    return details, dict(zip(details['feature_names'], tensors['weight'])), tensors['bias'][0]


def matrix(details, cells):
    """A row's values by the names of the features."""
    columns, rows = details['preparation']['columns'], []
    for row in cells:
        values = {}
        for column, x in zip(columns, row):
            name, edges = column['name'], column['edges']
            values[name] = column['mean'] if x is None else x
            if x is None:
                values[f'{name}=(missing)'] = 1.0
            elif 'monotone' in column:
                values.update({f'{name}>={e:g}': 1.0 for e in edges if x >= e})
            else:
                ends = ['-inf', *(f'{e:g}' for e in edges), 'inf']
                k = sum(x >= e for e in edges)
                values[f'{name}={"[" if k else "("}{ends[k]}, {ends[k + 1]})'] = 1.0
        assert set(values) <= set(details['feature_names']), (values, details['feature_names'])
        rows.append([float(values.get(name, 0)) for name in details['feature_names']])
    return rows


def bound_of(name):
    if name == 'a' or name.startswith('a>='):
        return 0, math.inf
    if name == 'b' or name.startswith('b>='):
        return -math.inf, 0
    return -math.inf, math.inf


@test
def the_optimum_is_that_of_bounded_steps(folder):
    cells, labels = table()
    write(folder, 'data.csv', cells, labels)
    result = train(job_of(folder), '--fresh')
    details, weights, bias = model_of(result)
    names = details['feature_names']
    expected, _ = minimiser(matrix(details, cells), labels, 'logistic', 0, 0.02, True, accuracy=1e-13,
                            bounds=[bound_of(name) for name in names])
    for name, (other,) in zip([*names, ''], expected):
        assert math.isclose(weights.get(name, bias), other, abs_tol=1e-9), (name, weights, expected)
    assert result['active_bounds']['count'] > 3, result


@test
def predictions_rise_and_fall(folder):
    cells, labels = table()
    write(folder, 'data.csv', cells, labels)
    model = train(job_of(folder), '--fresh')['model']
    grid = [i / 50 for i in range(-200, 201)]
    for column, sign in ((0, 1), (1, -1)):
        write(folder, 'grid.csv', [[x if j == column else 0.3 for j in range(3)] for x in grid])
        finished = dml('predict', model, folder / 'grid.csv')
        assert finished.status == 0, finished
        found = [sign * float(line.split()[-1]) for line in finished.stdout.splitlines()]
        assert len(found) == len(grid) and found == sorted(found) and found[0] < found[-1], found


@test
def workers_and_files_change_no_bit_and_scoring_agrees(folder):
    cells, labels = table()
    write(folder, 'data.csv', cells, labels)
    write(folder, 'one.csv', cells[:70], labels[:70])
    write(folder, 'two.csv', cells[70:], labels[70:])
    results = [train(job_of(folder, **settings), '--fresh') for settings in
               ({}, {'shards': 3}, {'replicas': 3, 'threads': 2}, {'files': ('one.csv', 'two.csv')})]
    assert len({result['model_sha256'] for result in results}) == 1, results
    held = train(job_of(folder, files=('one.csv',), holdout=['two.csv']), '--fresh')
    finished = dml('evaluate', held['model'], folder / 'two.csv', '--json')
    assert finished.status == 0, finished
    assert finished.json['loss'] == held['holdout']['loss'], (finished, held)
    warm = train(job_of(folder), '--fresh', '--start', held['model'])
    assert abs(warm['loss'] - results[0]['loss']) < 1e-12, (warm, results[0])


@test
def crosses_of_other_columns_go_beside_many_steps(folder):
    write(folder, 'data.csv', *table())
    details, weights, _ = model_of(train(job_of(
        folder, monotone=['a = rising'], cross=['b*c'], cross_least=1, csv={'bins': 100}, max_steps=5)))
    assert len(details['preparation']['columns'][0]['edges']) > 60, details['preparation']
    assert any(' * c=' in name for name in weights) and any(name.startswith('a>=') for name in weights)


@test
def rules_that_cannot_be_are_errors(folder):
    cells, labels = table()
    write(folder, 'data.csv', cells, labels)
    for settings, words in (({'csv': {}}, 'csv.bins'), ({'monotone': ['z = rising']}, 'no column "z"'),
                            ({'monotone': ['a = up']}, 'is not valid'),
                            ({'monotone': ['y = rising']}, 'no column of numbers'),
                            ({'csv': {'bins': 6, 'skip': ['a']}}, 'no column of numbers'),
                            ({'csv': {'bins': 6, 'categories': ['a']}}, 'no column of numbers'),
                            ({'monotone': ['a = rising', 'a = falling']}, 'given twice'),
                            ({'bounds': ['a = [0, 1]']}, 'remove it from one'),
                            ({'cross': ['a*c']}, 'remove it from one'),
                            ({'objective': 'network'}, 'linear models'),
                            ({'optimizer': 'downpour'}, 'minibatches')):
        for command in 'check', 'run':
            job = write_job(folder, data=['data.csv'],
                            **{'objective': 'logistic', 'csv': {'bins': 6}, 'monotone': RULES, **settings})
            finished = dml(command, job)
            assert finished.status == CONFIG and words in finished.stderr, (settings, finished)


if __name__ == '__main__':
    main()
