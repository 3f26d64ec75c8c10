#!/usr/bin/env python3
"""Trained in standardised columns, a model is at the optimum of the loss that is regularised so, and
speaks of the columns as they are; with a diagonal preconditioner it is at the optimum of the loss as
it is. Both are checked by the gradient there, computed here from the definition."""

import functools
import math
import random
import re
import sqlite3
import sys

from harness import CONFIG, dml, main, read_safetensors, test, train, words, write_job

TIGHT = {'gradient_tolerance': 1e-10, 'loss_tolerance': 0, 'max_steps': 3000}
L2 = 1e-3


# ---- data ----

def table(rows=150, seed=3):
    """Columns far from 0, of 1e5 and of 1e-4, mostly 0, and constant."""
    rng = random.Random(seed)
    x = [[1e4 + 3 * rng.gauss(0, 1), 1e5 * rng.gauss(0, 1), 1e-4 * rng.gauss(0, 1) + 5e-4,
          rng.choice([0, 0, 0, 0, 1]), 7] for _ in range(rows)]
    margins = [(row[0] - 1e4) / 3 + row[1] / 1e5 - (row[2] - 5e-4) / 1e-4 + 2 * row[3]
               + rng.gauss(0, 2) for row in x]
    return x, margins


def labelled(objective):
    x, margins = table()
    if objective == 'squared':
        return x, [round(1000 * m + 5e4, 3) for m in margins]
    if objective == 'softmax':
        return x, [min(2, max(0, int(m / 2 + 1.5))) for m in margins]
    return x, [1 if m > 0 else -1 for m in margins]


def job_of(folder, objective, sparse=False, **settings):
    x, y = labelled(objective)
    if sparse:
        text = ''.join(f'{label} ' + ' '.join(f'{j}:{v!r}' for j, v in enumerate(row, 1) if v)
                       + '\n' for row, label in zip(x, y))
    else:
        text = ''.join(','.join(map(repr, [*row, label])) + '\n' for row, label in zip(x, y))
    (folder / 'data').write_text(text)
    shape = {'format': 'libsvm'} if sparse else {'format': 'csv', 'csv': {'header': 'no'}}
    return write_job(folder, data=['data'], objective=objective, **shape,
                     **{'l2': L2, **TIGHT, **settings})


# ---- the model, and what it should be ----

def model_of(folder):
    """Weights by output and feature, in the order of the ids, and intercepts."""
    arrays = read_safetensors(next((folder / 'job.state').glob('models/[0-9]*/model.safetensors')))
    _, flat = arrays['weight']
    order = sorted(range(5), key=lambda i: arrays['feature_id'][1][i])
    outputs = len(flat) // 5
    weights = [[flat[k * 5 + i] for i in order] for k in range(outputs)]
    return weights, arrays['bias'][1] if 'bias' in arrays else [0.0] * outputs


def derivatives(objective, margins, label):
    if objective == 'squared':
        return [margins[0] - label]
    if objective == 'logistic':
        return [-label / (1 + math.exp(label * margins[0]))]
    top = max(margins)
    exps = [math.exp(m - top) for m in margins]
    return [e / sum(exps) - (k == label) for k, e in enumerate(exps)]


def moments(x):
    means = [math.fsum(c) / len(c) for c in zip(*x)]
    deviations = [math.sqrt(math.fsum((v - m) ** 2 for v in c) / len(c))
                  for c, m in zip(zip(*x), means)]
    return means, [d if d > 1e-9 * abs(m) else 1.0 for d, m in zip(deviations, means)]


def largest_slope(objective, weights, biases, standardised, intercept=True):
    """By the weights of standardised columns. Regularised are those, or the weights as they are."""
    x, y = labelled(objective)
    means, deviations = moments(x)
    rows = [derivatives(objective, [math.fsum(a * b for a, b in zip(w, row)) + c
                                    for w, c in zip(weights, biases)], label)
            for row, label in zip(x, y)]
    worst = 0.0
    for k, w in enumerate(weights):
        for j, weight in enumerate(w):
            shift = means[j] if intercept else 0
            slope = math.fsum(d[k] * (row[j] - shift) for d, row in zip(rows, x)) / len(x)
            unit = deviations[j] ** 2 if standardised else 1
            worst = max(worst, abs(slope + L2 * weight * unit) / deviations[j])
        if intercept:
            worst = max(worst, abs(math.fsum(d[k] for d in rows)) / len(x))
    return worst


SIZE = {'logistic': 1, 'softmax': 1, 'squared': 5e4}  # of a derivative


def at_the_optimum(folder, objective, sparse, **settings):
    intercept = settings.get('intercept', True)
    job = job_of(folder, objective, sparse, **settings)
    result = train(job)
    assert result['converged'], result
    slope = largest_slope(objective, *model_of(folder), settings.get('standardise', False),
                          intercept)
    # Columns that are not shifted have slopes of their means, thousands of deviations.
    assert slope <= (1e-8 if intercept else 1e-6) * SIZE[objective], f'{slope}: {result}'
    return result


FORMS = [{'standardise': True, 'precondition': 'none'},
         {'standardise': True, 'precondition': 'block'},
         {'standardise': True, 'precondition': 'diagonal'},
         {'precondition': 'diagonal'}]

for objective in 'logistic', 'squared', 'softmax':
    for sparse in False, True:
        def behaviour(folder, objective=objective, sparse=sparse):
            for number, form in enumerate(FORMS):
                inside = folder / str(number)
                inside.mkdir()
                result = at_the_optimum(inside, objective, sparse, **form)
                kind = result['preconditioner']['kind']
                assert kind == form['precondition'], result
        behaviour.__name__ = (f'{objective}_on_{"sparse" if sparse else "dense"}_rows_ends_at_the_'
                              'optimum_of_standardised_columns')
        test(behaviour)


@test
def without_an_intercept_columns_are_scaled_and_not_shifted(folder):
    for number, form in enumerate(FORMS):
        inside = folder / str(number)
        inside.mkdir()
        at_the_optimum(inside, 'logistic', False, intercept=False, **form)


@test
def with_l1_a_diagonal_ends_where_plain_columns_do_in_far_fewer_steps(folder):
    job = job_of(folder, 'logistic', l1=1e-3, l2=0, gradient_tolerance=1e-8, max_steps=20000)
    diagonal = train(job, *words({'precondition': 'diagonal'}), '--state', folder / 'diagonal')
    assert train(job, '--state', folder / 'auto')['preconditioner']['kind'] == 'diagonal'
    assert diagonal['converged'] and diagonal['evaluations'] <= 80, diagonal
    plain = train(job, *words({'precondition': 'none', 'max_steps': 300}))
    assert diagonal['loss'] <= plain['loss'] * (1 + 1e-12), (diagonal, plain)
    assert diagonal['nonzero'] < 5, diagonal


@test
def the_bound_on_the_gap_holds_in_scaled_columns(folder):
    for l2 in 0, 1e-4:
        job = job_of(folder, 'logistic', l1=1e-2, l2=l2, intercept=False, precondition='diagonal')
        least = train(job, '--fresh')
        for steps in range(1, 30, 4):
            result = train(job, '--fresh', *words({'max_steps': steps}))
            gap = result['loss'] - least['loss']
            assert result['gap_bound'] >= gap - 1e-12, (l2, steps, gap, result)
        assert least['gap_bound'] <= 1e-4 * least['loss'], least


@test
def the_loss_is_that_of_the_model_and_of_its_standardised_weights(folder):
    job = job_of(folder, 'logistic', standardise=True)
    result = train(job)
    weights, _ = model_of(folder)
    _, deviations = moments(labelled('logistic')[0])
    scored = dml('evaluate', folder / 'job.state', folder / 'data', '--json').json
    norm = math.fsum((w * d) ** 2 for w, d in zip(weights[0], deviations))
    loss = scored['log_loss'] + L2 / 2 * norm
    assert abs(loss - result['loss']) <= 1e-9 * loss, (loss, result)


@test
def it_needs_few_evaluations_where_plain_columns_need_hundreds(folder):
    job = job_of(folder, 'logistic')
    for form in ({'precondition': 'diagonal'}, {'standardise': True, 'precondition': 'none'}):
        result = train(job, '--fresh', *words({**form, 'gradient_tolerance': 1e-6}))
        assert result['evaluations'] <= 60, result
    plain = train(job, '--fresh', *words({'precondition': 'none', 'gradient_tolerance': 1e-6,
                                          'max_steps': 200}))
    assert plain['evaluations'] > 200, plain


# ---- starting and going on ----

@test
def a_run_starts_from_a_model_of_any_columns(folder):
    """The model speaks of the columns as they are, whatever it was trained in."""
    job = job_of(folder, 'logistic')
    train(job, *words({'precondition': 'block'}), '--state', folder / 'plain')
    train(job, *words({'precondition': 'diagonal'}), '--state', folder / 'diagonal')
    train(job, *words({'standardise': 'true'}), '--state', folder / 'standardised')
    for start, settings in (('plain', {'precondition': 'diagonal'}),
                            ('diagonal', {'precondition': 'diagonal'}),
                            ('diagonal', {'precondition': 'none'}),
                            ('standardised', {'standardise': 'true', 'precondition': 'none'})):
        result = train(job, '--fresh', '--start', folder / start,
                       *words({**settings, 'gradient_tolerance': 1e-7, 'max_steps': 3}),
                       '--state', folder / 'next')
        assert result['converged'], (start, settings, result)


@test
def a_run_that_reached_its_limit_goes_on_to_the_same_bits(folder):
    for number, form in enumerate(FORMS):
        inside = folder / str(number)
        inside.mkdir()
        job = job_of(inside, 'logistic', **form, gradient_tolerance=1e-7)
        whole = train(job, '--state', inside / 'whole')
        train(job, *words({'max_steps': 2}))
        parts = train(job)
        assert parts['steps'] == whole['steps'] > 2, (parts, whole)
        assert parts['model_sha256'] == whole['model_sha256'], (parts, whole)


@test
def early_stopping_keeps_the_best_point_in_columns_as_they_are(folder):
    job = job_of(folder, 'logistic', standardise=True, precondition='none', holdout='0.3',
                 early_stopping=2, l2=0)
    result = train(job)
    with sqlite3.connect(folder / 'job.state/dml.db') as store:
        best, = store.execute('SELECT min(holdout_loss) FROM steps').fetchone()
    scored = result['holdout']['log_loss']
    assert abs(scored - best) <= 1e-9 * best, (scored, best, result)


# ---- what cannot be ----

def refused(job, *settings, status=CONFIG):
    finished = dml('run', job, *words(dict(settings)))
    assert finished.status == status, finished
    return finished.stderr


@test
def what_is_neither_true_nor_false_is_refused(folder):
    error = refused(job_of(folder, 'logistic', standardise='yes please'))
    assert 'standardise' in error and 'true' in error, error


@test
def a_column_whose_squares_are_no_numbers_is_named(folder):
    (folder / 'big.csv').write_text('a,b,label\n1e300,1,1\n-1e300,2,0\n3,4,1\n4,2,0\n')
    job = write_job(folder, data=['big.csv'], standardise=True, csv={'header': 'yes'})
    error = refused(job, status=65)
    assert re.search(r'column a\b.*too large', error), error
    assert not list((folder / 'job.state').glob('models/*')), 'a model was written'


if __name__ == '__main__':
    sys.exit(main())
