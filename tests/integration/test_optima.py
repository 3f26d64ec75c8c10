#!/usr/bin/env python3
"""Training ends at optima that an independent method found: F - F* <= 1e-9 max(|F*|, 1e-3).

With DML_OPTIMA=all (make check-optima) the two sets that take long are trained on whole, news20 only then.
"""

import functools
import gzip
import math
import os
import sys

from harness import SOURCE, main, shared, lines_of, test, train, write_job

# Found with a damped Newton-CG in double precision, gradient norm at the end 1e-13 or below.
REFERENCE = [
    ('heart_scale', 'logistic', 1e-2, 0.369595638067),
    ('heart_scale', 'logistic', 1e-4, 0.3332468880896),
    ('a9a.gz', 'logistic', 1e-4, 0.324413044112),
    ('a9a.gz', 'logistic', 1e-6, 0.3226701779074),
    ('agaricus.txt.train.gz', 'logistic', 1e-4, 0.01144906953321),
    ('agaricus.txt.train.gz', 'logistic', 1e-6, 0.0003976556959185),
    ('ijcnn1.gz', 'logistic', 1e-4, 0.2012969656371),
    ('ijcnn1.gz', 'logistic', 1e-6, 0.1833767141185),
    ('farm_ads.libsvm.gz', 'logistic', 1e-4, 0.03479567630111),
    ('farm_ads.libsvm.gz', 'logistic', 1e-6, 0.003677562293913),
]
LONG = [
    ('news20.libsvm.gz', 'softmax', 1e-3, 0.10570063632, 16),
    ('news20.libsvm.gz', 'softmax', 1e-4, 0.214719531955),
]
ALL = os.environ.get('DML_OPTIMA') == 'all'
TIGHT = {'gradient_tolerance': 1e-9, 'loss_tolerance': 0, 'max_steps': 20000}


def assert_optimal(result, optimum):
    excess = result['loss'] - optimum
    assert excess <= 1e-9 * max(abs(optimum), 1e-3), f'{excess:.3e} above the optimum: {result}'
    assert excess >= -1e-8 * max(abs(optimum), 1e-3), f'{excess:.3e} below the optimum: {result}'


def one_row_in(step, path, target):
    with gzip.open(target, 'wt', compresslevel=1) as file:
        file.writelines(f'{line}\n' for line in lines_of(path)[::step])
    return target


def reaches_the_reference(data, objective, l2, optimum, step, folder):
    path = shared(data)
    if step > 1:
        path = one_row_in(step, path, folder / data)
    job = write_job(folder, data=[path], objective=objective, l2=l2, **TIGHT)
    assert_optimal(train(job), optimum)


for data, objective, l2, optimum, *step in REFERENCE + (LONG if ALL else []):
    step, = step or [1]
    function = functools.partial(reaches_the_reference, data, objective, l2, optimum, step)
    rows = f' (one row in {step})' if step > 1 else ''
    function.__name__ = f'{data}{rows} {objective} l2={l2:g} reaches the reference'
    test(function)


def standardised(path, header, label_scale, target):
    """Writes the CSV file with columns shifted and scaled to mean 0 and population deviation 1
    (constant ones 0), the last column multiplied by label_scale."""
    lines = lines_of(path)[1 if header else 0:]
    *columns, label = zip(*(map(float, line.split(',')) for line in lines))
    scaled = []
    for column in columns:
        mean = math.fsum(column) / len(column)
        deviation = math.sqrt(math.fsum((x - mean) ** 2 for x in column) / len(column))
        scaled.append([(x - mean) / deviation if deviation else 0.0 for x in column])
    with gzip.open(target, 'wt', compresslevel=1) as file:
        for *row, y in zip(*scaled, label):
            file.write(','.join(map(repr, row)) + f',{y * label_scale!r}\n')


@test
def covtype_softmax_on_standardised_columns_reaches_the_reference(folder):
    whole = folder / 'whole.csv.gz'
    standardised(shared('covtype.20k.csv.gz'), False, 1, whole)
    for step, optimum in ((10, 0.616728202996), *([(1, 0.655990071241)] if ALL else [])):
        data = one_row_in(step, whole, folder / f'covtype-{step}.csv.gz')
        job = write_job(folder, data=[data], objective='softmax', l2=1e-4, **TIGHT)
        assert_optimal(train(job, '--fresh'), optimum)


@test
def cal_housing_squared_on_standardised_columns_reaches_the_reference(folder):
    standardised(shared('cal_housing.csv.gz'), True, 1e-5, folder / 'housing.csv.gz')
    job = write_job(folder, data=['housing.csv.gz'], objective='squared', l2=1e-3, **TIGHT)
    assert_optimal(train(job), 0.2429177998095)


@test
def the_shipped_example_reaches_its_optimum(folder):
    # The loss at the minimum of what examples/wdbc.conf sets over all rows, by optimum.py.
    optimum = 0.07576914480200615
    job = SOURCE / 'examples/wdbc.conf'
    settings = [word for key, value in TIGHT.items() for word in ('--set', f'{key}={value}')]
    result = train(job, '--state', folder / 'state', *settings, '--set', 'holdout={}')
    assert_optimal(result, optimum)


sys.exit(main())
