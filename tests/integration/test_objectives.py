#!/usr/bin/env python3
"""Objectives that are not in every other test: each ends at an optimum found by another method, with
the same bits over replicas and shards, and is scored and exported as its row says."""

import json
import math
import random
import shutil
import sys

from harness import BAD_DATA, CONFIG, Skip, dml, main, run, test, train, write_job
from optimum import solve

L2, FEATURES, ROWS = 1e-2, 6, 4000


def write_data(folder, name='data.libsvm'):
    """Two classes that overlap, with some rows on the wrong side."""
    source = random.Random(4)
    rows = []
    for _ in range(ROWS):
        x = [round(source.uniform(-2, 2), 3) for _ in range(FEATURES)]
        margin = sum(v * (i - 2.2) for i, v in enumerate(x)) - 0.7 + source.gauss(0, 2)
        rows.append((1 if margin > 0 else -1, x))
    with open(folder / name, 'w') as file:
        for y, x in rows:
            file.write(f'{y} ' + ' '.join(f'{i + 1}:{v}' for i, v in enumerate(x)) + '\n')
    return folder / name, rows


def margin_of(w, x):
    return math.fsum([*(a * b for a, b in zip(w, x)), w[-1]])


def hinge(w, rows):
    loss = math.fsum(max(0, 1 - y * margin_of(w, x)) ** 2 for y, x in rows) / len(rows)
    return loss + L2 / 2 * math.fsum(a * a for a in w[:-1])


def newton(rows):
    """The minimum of a function that is quadratic between kinks: Newton steps over the rows that are
    short of their margin, until these stay the same."""
    n = FEATURES + 1
    w = [0.0] * n
    before = None
    for _ in range(100):
        short = [(y, x + [1.0]) for y, x in rows if y * margin_of(w, x) < 1]
        if short == before:
            return w
        before = short
        scale = 2 / len(rows)
        matrix = [[scale * math.fsum(x[i] * x[j] for _, x in short) + (L2 if i == j < n - 1 else 0)
                   for j in range(n)] for i in range(n)]
        w = solve(matrix, [scale * math.fsum(y * x[i] for y, x in short) for i in range(n)])
    raise AssertionError('Newton does not end')


def squared_hinge_job(folder, data, name='job', **settings):
    return write_job(folder, name, data=[data], objective='squared_hinge', l2=L2,
                     gradient_tolerance=1e-10, loss_tolerance=0, **settings)


@test
def squared_hinge_ends_at_the_optimum_that_newton_finds(folder):
    data, rows = write_data(folder)
    result = train(squared_hinge_job(folder, data))
    optimum = hinge(newton(rows), rows)
    assert abs(result['loss'] - optimum) <= 1e-10 * optimum, (result['loss'], optimum)


@test
def squared_hinge_ends_where_liblinear_ends(folder):
    program = shutil.which('liblinear-train')
    if not program:
        raise Skip('liblinear-train is not installed (package liblinear-tools)')
    data, rows = write_data(folder)
    result = train(squared_hinge_job(folder, data, intercept=False))
    cost = 1 / (len(rows) * L2)
    finished = run(program, '-s', '2', '-c', repr(cost), '-e', '1e-9', '-q', data, folder / 'theirs')
    assert finished.status == 0, finished
    head, weights = (folder / 'theirs').read_text().split('\nw\n')
    sign = 1 if 'label 1 -1' in head else -1
    theirs = hinge([sign * float(w) for w in weights.split()] + [0.0], rows)
    assert abs(result['loss'] - theirs) <= 1e-9 * theirs, (result['loss'], theirs)


@test
def squared_hinge_has_the_same_bits_over_replicas_and_shards(folder):
    source = random.Random(7)
    with open(folder / 'wide', 'w') as file:  # three blocks of parameters, so that shards have some
        for _ in range(1500):
            columns = sorted(source.sample(range(1, 12001), 12))
            file.write(f'{source.choice((0, 1))} '
                       + ' '.join(f'{c}:{source.uniform(-1, 1):.4f}' for c in columns) + '\n')
    hashes = set()
    for replicas, shards in [(1, 1), (3, 2), (2, 3)]:
        job = squared_hinge_job(folder, folder / 'wide', f'job-{replicas}-{shards}',
                                replicas=replicas, shards=shards, max_steps=25)
        hashes.add(train(job)['model_sha256'])
    assert len(hashes) == 1, hashes


@test
def squared_hinge_predicts_margins_and_has_accuracy_auc_and_loss(folder):
    data, rows = write_data(folder)
    job = squared_hinge_job(folder, data)
    train(job)
    margins = [float(line) for line in dml('predict', folder / 'job.state', data).stdout.split()]
    w = newton(rows)
    assert len(margins) == len(rows)
    for margin, (_, x) in zip(margins, rows):
        assert abs(margin - margin_of(w, x)) < 1e-6, (margin, margin_of(w, x))
    first = dml('predict', folder / 'job.state', data, '--json').stdout.splitlines()[0]
    assert json.loads(first) == {'margin': margins[0]}, first
    figures = dml('evaluate', folder / 'job.state', data, '--json').json
    right = sum((margin > 0) == (y > 0) for margin, (y, _) in zip(margins, rows)) / len(rows)
    loss = math.fsum(max(0, 1 - y * m) ** 2 for m, (y, _) in zip(margins, rows)) / len(rows)
    margin_has = {'loss', 'accuracy', 'auc', 'average_precision', 'precision', 'recall', 'f1',
                  'macro_precision', 'macro_recall', 'macro_f1', 'classes', 'confusion', 'curves'}
    assert figures.keys() == {'examples'} | margin_has, figures
    assert figures['accuracy'] == right and abs(figures['loss'] - loss) < 1e-12, figures


@test
def liblinear_predicts_the_classes_of_an_exported_squared_hinge(folder):
    program = shutil.which('liblinear-predict')
    data, rows = write_data(folder)
    train(squared_hinge_job(folder, data))
    exported = dml('export', folder / 'job.state', '--format', 'liblinear')
    assert exported.status == 0 and 'solver_type L2R_L2LOSS_SVC\n' in exported.stdout, exported
    if not program:
        raise Skip('liblinear-predict is not installed (package liblinear-tools)')
    (folder / 'exported').write_text(exported.stdout)
    finished = run(program, data, folder / 'exported', folder / 'classes')
    assert finished.status == 0, finished
    margins = dml('predict', folder / 'job.state', data).stdout.split()
    expected = ['1' if float(margin) > 0 else '-1' for margin in margins]
    assert (folder / 'classes').read_text().split() == expected


@test
def a_gate_on_a_figure_that_the_objective_lacks_names_those_that_it_has(folder):
    data, _ = write_data(folder)
    job = squared_hinge_job(folder, data, holdout='0.2', gate=['rmse <= 1'])
    finished = dml('run', job)
    assert finished.status == CONFIG, finished
    assert 'figures of squared_hinge: loss, accuracy, precision, recall, f1' in finished.stderr, finished


@test
def a_model_of_an_unknown_objective_is_refused_by_name(folder):
    data, _ = write_data(folder)
    train(squared_hinge_job(folder, data))
    path = (folder / 'job.state/models/current').resolve() / 'model.json'
    path.write_text(path.read_text().replace('squared_hinge', 'cubic_hinge'))
    finished = dml('evaluate', folder / 'job.state', data)
    assert finished.status == BAD_DATA
    assert 'does not know the objective `cubic_hinge`' in finished.stderr


sys.exit(main())
