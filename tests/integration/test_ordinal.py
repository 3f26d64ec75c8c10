#!/usr/bin/env python3
"""Ordered classes: the optimum that Newton finds from the definition, whatever the preconditioner, the
same bits over replicas, shards, threads and kills, and what needs an order."""

import json
import math
import random
import sys

from harness import BAD_DATA, CONFIG, dml, main, test, train, write_job
from optimum import log1p_exp, sigmoid, solve
from wide import killed_at, wide_data

L2, FEATURES, ROWS, CLASSES = 1e-2, 3, 700, 4
THRESHOLDS = CLASSES - 1
NAMES = ['poor', 'fair', 'good', 'fine']  # not in the order of the alphabet
EXACT = {'gradient_tolerance': 1e-11, 'loss_tolerance': 0, 'max_steps': 5000}


def draw_rows():
    """(class, values): columns with means, and far apart in scale."""
    source = random.Random(12)
    rows = []
    for _ in range(ROWS):
        x = [round(source.gauss(mean, scale), 5) for mean, scale in [(0, 1), (30, 10), (-0.1, 0.05)]]
        margin = x[0] + (x[1] - 30) / 8 - 15 * (x[2] + 0.1) + source.gauss(0, 1.5)
        rows.append((sum(margin > limit for limit in (-2, 0, 1.5)), x))
    return rows


def write_data(folder, rows, label, name='data.csv', weights=None):
    with open(folder / name, 'w') as file:
        for i, (y, x) in enumerate(rows):
            cells = [*map(repr, x), *([str(weights[i])] if weights else []), label(y)]
            file.write(','.join(cells) + '\n')
    return folder / name


def margins_of(w, x):
    m = math.fsum(a * b for a, b in zip(w, x))
    return [m + b for b in w[FEATURES:]]


def loss_of(w, rows):
    """The mean over the rows of the sum of a logistic loss for each threshold."""
    return math.fsum(log1p_exp(-m if k < y else m)
                     for y, x in rows for k, m in enumerate(margins_of(w, x))) / len(rows)


def newton(rows, penalty):
    """The minimum of the loss + Σ penalty·w²/2, and where it is: weights, then intercepts."""
    n = FEATURES + THRESHOLDS
    w, penalty = [0.0] * n, [*penalty] + [0] * THRESHOLDS

    def value(w):
        return loss_of(w, rows) + math.fsum(p * a * a for p, a in zip(penalty, w)) / 2

    for _ in range(100):
        gradient = [p * a for p, a in zip(penalty, w)]
        hessian = [[penalty[i] * (i == j) for j in range(n)] for i in range(n)]
        for y, x in rows:
            for k, m in enumerate(margins_of(w, x)):
                at = [*range(FEATURES), FEATURES + k]
                of = [*x, 1]
                slope, second = sigmoid(m) - (k < y), sigmoid(m) * sigmoid(-m)
                for i, a in zip(at, of):
                    gradient[i] += slope * a / len(rows)
                    for j, b in zip(at, of):
                        hessian[i][j] += second * a * b / len(rows)
        step = solve(hessian, gradient)
        if math.fsum(a * b for a, b in zip(step, gradient)) < 1e-20:
            break
        size = 1.0
        while value([a - size * b for a, b in zip(w, step)]) > value(w) + 1e-15:
            size /= 2
        w = [a - size * b for a, b in zip(w, step)]
    return value(w), w


def probabilities(w, x):
    above = [1, *map(sigmoid, margins_of(w, x)), 0]
    return [a - b for a, b in zip(above, above[1:])]


@test
def training_ends_at_the_optimum_of_the_definition_and_predicts_it(folder):
    rows = draw_rows()
    data = write_data(folder, rows, str)
    optimum, w = newton(rows, [L2] * FEATURES)
    for precondition in ('none', 'diagonal', 'block', 'auto'):
        job = write_job(folder, data=[data], objective='ordinal', l2=L2, precondition=precondition,
                        **EXACT)
        result = train(job, '--fresh')
        assert abs(result['loss'] - optimum) <= 1e-11 * optimum, (precondition, result, optimum)
    state = folder / 'job.state'
    lines = [json.loads(line) for line in dml('predict', state, data, '--json').stdout.splitlines()]
    guessed = []
    for line, (_, x) in zip(lines, rows):
        expected = probabilities(w, x)
        assert max(abs(a - b) for a, b in zip(line['probabilities'], expected)) < 1e-7, line
        assert math.isclose(math.fsum(line['probabilities']), 1, rel_tol=1e-12), line
        guessed.append(sum(m > 0 for m in margins_of(w, x)))
        assert line['class'] == str(guessed[-1]), line
    figures = dml('evaluate', state, data, '--json').json
    right = sum(g == y for g, (y, _) in zip(guessed, rows)) / ROWS
    error = sum(abs(g - y) for g, (y, _) in zip(guessed, rows)) / ROWS
    assert math.isclose(figures['loss'], loss_of(w, rows), rel_tol=1e-8), figures
    assert math.isclose(figures['accuracy'], right) and math.isclose(figures['mae'], error), figures
    assert 'rmse' not in figures and 'auc' not in figures, figures


@test
def standardised_columns_share_their_shift_with_all_thresholds(folder):
    rows = draw_rows()
    data = write_data(folder, rows, str)
    mean = [math.fsum(x[j] for _, x in rows) / ROWS for j in range(FEATURES)]
    spread = [math.fsum((x[j] - mean[j]) ** 2 for _, x in rows) / ROWS for j in range(FEATURES)]
    optimum, w = newton(rows, [L2 * s for s in spread])
    for precondition in ('none', 'auto'):
        job = write_job(folder, data=[data], objective='ordinal', l2=L2, standardise='true',
                        precondition=precondition, **EXACT)
        result = train(job, '--fresh')
        assert abs(result['loss'] - optimum) <= 1e-11 * optimum, (precondition, result, optimum)
    shown = json.loads(dml('export', folder / 'job.state', '--format', 'json').stdout)
    found = [feature['weights'][0] for feature in shown['features']] + shown['intercepts']
    for a, b in zip(found, w):
        assert math.isclose(a, b, rel_tol=1e-5), (found, w)
    thresholds = [-b for b in shown['intercepts']]
    assert thresholds == sorted(thresholds), shown


@test
def l1_makes_weights_zero_and_leaves_thresholds_free(folder):
    rows = draw_rows()
    data = write_data(folder, rows, str)
    l1 = 0.05
    result = train(write_job(folder, data=[data], objective='ordinal', l1=l1, standardise='true',
                             **{**EXACT, 'gradient_tolerance': 1e-8}))
    assert result['converged'], result
    shown = json.loads(dml('export', folder / 'job.state', '--format', 'json').stdout)
    w = [feature['weights'][0] for feature in shown['features']] + shown['intercepts']
    gradient = [0.0] * len(w)
    for y, x in rows:
        for k, m in enumerate(margins_of(w, x)):
            slope = (sigmoid(m) - (k < y)) / ROWS
            gradient[FEATURES + k] += slope
            for j in range(FEATURES):
                gradient[j] += slope * x[j]
    for j in range(FEATURES):
        values = [x[j] for _, x in rows]
        mean = math.fsum(values) / ROWS
        bound = l1 * math.sqrt(math.fsum((v - mean) ** 2 for v in values) / ROWS)
        if w[j]:
            assert abs(gradient[j] + math.copysign(bound, w[j])) < 1e-5 * bound, (j, gradient, w)
        else:
            assert abs(gradient[j]) <= bound, (j, gradient, w)
    assert max(map(abs, gradient[FEATURES:])) < 1e-6, gradient


@test
def a_row_of_weight_3_counts_as_three_rows(folder):
    rows = draw_rows()[:200]
    weights = [i % 4 for i in range(len(rows))]
    once = write_data(folder, rows, str, 'once.csv', weights)
    often = write_data(folder, [row for row, times in zip(rows, weights) for _ in range(times)], str)
    results = [train(write_job(folder, name, data=[data], objective='ordinal', l2=L2, **EXACT, **more))
               for name, data, more in [('once', once, {'csv': {'weight': '4', 'label': '5'}}),
                                        ('often', often, {})]]
    assert math.isclose(results[0]['loss'], results[1]['loss'], rel_tol=1e-12), results


@test
def texts_have_the_order_that_the_job_gives_them(folder):
    rows = draw_rows()
    number = write_job(folder, 'number', data=[write_data(folder, rows, str, 'number.csv')],
                       objective='ordinal', l2=L2)
    text = write_job(folder, 'text', data=[write_data(folder, rows, NAMES.__getitem__, 'text.csv')],
                     objective='ordinal', l2=L2, ordinal={'order': NAMES})
    assert train(number)['model_sha256'] == train(text)['model_sha256']
    state = folder / 'text.state'
    labels = dml('predict', state, folder / 'text.csv', '--labels').stdout.split()
    numbers = dml('predict', folder / 'number.state', folder / 'number.csv', '--labels').stdout.split()
    assert labels == [NAMES[int(k)] for k in numbers], (labels[:5], numbers[:5])
    assert dml('predict', state, folder / 'text.csv', '--header').stdout.splitlines()[0].split() == NAMES
    shown = dml('export', state, '--format', 'tsv').stdout.splitlines()
    assert [line.split('\t')[0] for line in shown[4:]] == [f'(intercept >= {n})' for n in NAMES[1:]]
    top = dml('export', state, '--top', '2').stdout
    assert 'towards class fine; negative ones towards poor' in top, top
    assert '(intercept >= fair)' in top, top
    refused = dml('export', state, '--format', 'liblinear')
    assert refused.status == BAD_DATA and 'for the objective ordinal' in refused.stderr, refused


@test
def what_has_no_order_and_what_cannot_be_is_refused(folder):
    rows = draw_rows()
    write_data(folder, rows, NAMES.__getitem__)
    head = 'data = data.csv\nobjective = ordinal\n'
    for text, status, error in [
            ('', BAD_DATA, 'data.csv: row 1: the label "'),
            ('', BAD_DATA, 'is a text, and texts have no order; list the labels from low to high'),
            ('ordinal { order = { "poor", "good", "fine" } }', BAD_DATA,
             'the label "fair" is not listed in `ordinal.order`'),
            ('ordinal { order = { "poor", "poor" } }', CONFIG, 'lists the label poor twice'),
            ('ordinal { order = { "1", "1.0" } }', CONFIG, 'lists the label 1.0 twice'),
            ('intercept = false', CONFIG,
             'key `intercept`: objective = ordinal has an intercept between each two classes'),
            ('ordinal { ordre = { "poor" } }', CONFIG, ':3: key `ordre`: there is no such key in ordinal'),
            ('csv { positive = "fine" }', CONFIG, 'key `csv.positive`: needs an objective with two'),
            ('holdout = 0.2\ngate = "auc >= 0.5"', CONFIG, 'figures of ordinal: ')]:
        (folder / 'job.conf').write_text(head + text + '\n')
        finished = dml('run', folder / 'job.conf')
        assert finished.status == status and error in finished.stderr, (text, finished)
    (folder / 'job.conf').write_text('data = data.csv\nordinal { order = { "poor", "fair" } }\n')
    finished = dml('check', folder / 'job.conf')
    assert finished.status == CONFIG, finished
    assert 'key `ordinal.order`: is for another objective' in finished.stderr, finished


@test
def retrain_goes_on_from_the_same_classes_and_compares_their_error(folder):
    rows = draw_rows()
    data = write_data(folder, rows, str)
    job = write_job(folder, data=[data], objective='ordinal', l2=L2, holdout='0.2',
                    gate=['mae <= 0.8', 'mae <= 1.3 * live'])
    first = dml('retrain', job, '--json')
    assert first.status == 0, first
    write_data(folder, rows + rows[:1], str)
    second = dml('retrain', job, '--json')
    assert second.status == 0 and second.json['steps'] < first.json['steps'], (first, second)
    write_data(folder, rows + [(4, x) for _, x in rows[:40]], str)  # another class
    third = dml('retrain', job, '--json')
    assert third.status == 0, third
    assert 'its classes are not those of the data, or in another order' in third.stderr, third


def write_wide(folder):
    """More parameters than a shard of three has, so that thresholds lie on the last alone."""
    return folder / wide_data(folder, label=lambda rng: rng.randrange(5))


@test
def a_model_has_the_same_bits_over_replicas_shards_and_threads(folder):
    wide = write_wide(folder)
    for form, settings in [('plain', {'l2': L2}),
                           ('centred', {'l2': L2, 'standardise': 'true', 'precondition': 'diagonal'}),
                           ('l1', {'l1': 1e-3, 'precondition': 'diagonal'})]:
        hashes = set()
        for replicas, shards, threads in [(1, 1, 1), (3, 2, 1), (2, 3, 2)]:
            job = write_job(folder, f'{form}-{replicas}-{shards}', data=[wide], objective='ordinal',
                            replicas=replicas, shards=shards, threads=threads, max_steps=15, **settings)
            hashes.add(train(job)['model_sha256'])
        assert len(hashes) == 1, (form, hashes)


@test
def a_model_has_the_same_bits_whoever_is_killed(folder):
    wide = write_wide(folder)
    job = write_job(folder, data=[wide], objective='ordinal', l2=L2, standardise='true', replicas=2,
                    shards=2, max_steps=8, checkpoint_seconds=0)
    quiet = train(job, '--state', folder / 'quiet.state')
    killed_at('send_EVALUATE:5', job, '--state', folder / 'c.state')
    assert train(job, '--state', folder / 'c.state')['model_sha256'] == quiet['model_sha256']
    result = train(job, '--state', folder / 's.state', DML_FAILPOINT='shard1.receive_PROGRAM:5:kill',
                   DML_FAILPOINT_ONCE=str(folder / 'fired'))
    assert result['restarts']['shard'] >= 1, result
    assert result['model_sha256'] == quiet['model_sha256'], result


sys.exit(main())
