#!/usr/bin/env python3
"""Weights of rows and of classes: what they count, where they come from, and what is refused."""

import gzip
import json
import math
import random
import sys

import optimum
from harness import BAD_DATA, CONFIG, USAGE, dml, main, test, train, write_job

CLOSE = {'gradient_tolerance': 1e-11, 'loss_tolerance': 0}


def made_rows(objective, dense, rows, seed=1):
    """LIBSVM lines of 12 features, and whole-number weights from 0 to 4. Labels are two or three
    classes, counts, or numbers."""
    source = random.Random(seed)
    lines, weights = [], []
    for _ in range(rows):
        x = {j: round(source.gauss(0, 1), 3) for j in range(1, 13)
             if dense or source.random() < 0.3}
        margin = sum(v * (j - 6) for j, v in x.items()) / 4 + source.gauss(0, 1.5)
        if objective in ('logistic', 'squared_hinge'):
            label = int(margin > 0.5)
        elif objective == 'softmax':
            label = min(2, max(0, int(margin + 1.5)))
        else:
            label = int(math.exp(margin / 2)) if objective == 'poisson' else round(margin, 3)
        lines.append(f'{label} ' + ' '.join(f'{j}:{v}' for j, v in x.items()) + '\n')
        weights.append(source.randrange(5))
    return lines, weights


def write_data(folder, name, lines, weights=None):
    (folder / name).write_text(''.join(lines))
    if weights is not None:
        (folder / f'{name}.weights').write_text(''.join(f'{w}\n' for w in weights))


def coefficients(folder, name='job'):
    model = folder / f'{name}.state/models/1'
    table = dml('export', '--format', 'tsv', model).stdout.splitlines()[1:]
    return [float(line.split('\t')[-2]) for line in table]


def assert_near(one, other, tolerance):
    assert len(one) == len(other), (one, other)
    scale = max(abs(v) for v in one)
    for a, b in zip(one, other):
        assert abs(a - b) <= tolerance * scale, (one, other)


@test
def whole_weights_are_repeated_rows(folder):
    cases = [('logistic', False, 'auto'), ('logistic', True, 'none'), ('squared', True, 'auto'),
             ('softmax', False, 'none'), ('softmax', True, 'auto'), ('squared_hinge', True, 'none'),
             ('huber', False, 'block'), ('poisson', True, 'auto'),
             ('logistic', True, 'diagonal')]
    for number, (objective, dense, precondition) in enumerate(cases):
        lines, weights = made_rows(objective, dense, 2000)
        write_data(folder, 'data', lines, weights)
        write_data(folder, 'repeated', [line for line, w in zip(lines, weights) for _ in range(w)])
        settings = {'objective': objective, 'precondition': precondition, 'l2': 1e-3,
                    'intercept': objective != 'softmax', **CLOSE}
        weighted = train(write_job(folder, f'one{number}', data=['data'], weights=['data.weights'],
                                   **settings))
        repeated = train(write_job(folder, f'two{number}', data=['repeated'], **settings))
        assert weighted['weights'] == {'sum': sum(weights), 'files': ['data.weights']}, weighted
        assert weighted['examples'] == sum(w > 0 for w in weights) and repeated['weights'] is None
        assert abs(weighted['loss'] / repeated['loss'] - 1) < 1e-12, (weighted, repeated)
        assert_near(coefficients(folder, f'one{number}'), coefficients(folder, f'two{number}'), 1e-7)


def model_of(folder, name, **settings):
    return train(write_job(folder, name, **settings), '--fresh')['model_sha256']


@test
def rows_of_weight_0_leave_no_trace_in_sparse_data(folder):
    lines, weights = made_rows('softmax', False, 600)
    rest = [(line, w) for line, w in zip(lines, weights) if w]
    odd = ['7 1:1e200 99:3\n', '0 3:-1e300\n', '9 2:5 1000000:1\n']
    for j, line in enumerate(odd):
        lines.insert(200 * j, line)
        weights.insert(200 * j, 0)
    write_data(folder, 'data', lines, weights)
    write_data(folder, 'rest', *zip(*rest))
    write_data(folder, 'ones', lines, [int(w > 0) for w in weights])
    write_data(folder, 'plain', [line for line, _ in rest])
    for number, settings in enumerate([
            {'precondition': 'none'}, {'precondition': 'block'}, {'precondition': 'diagonal'},
            {'standardise': True}, {'l1': 1e-3}, {'class_weight': ['1 = 3', '2 = 0']},
            {'holdout': 0.2, 'early_stopping': 3},
            {'optimizer': 'downpour'},
            {'objective': 'network', 'network': {'layers': 5}, 'precondition': 'kronecker'},
            {'objective': 'network', 'network': {'layers': 5}, 'standardise': True}]):
        settings = {'objective': 'softmax', 'l2': 1e-3, 'max_steps': 15, **settings}
        for one, other in ('data', 'rest'), ('ones', 'plain'):
            weighted = {'weights': [f'{other}.weights']} if other == 'rest' else {}
            found = [model_of(folder, f'{one}{number}', data=[one], weights=[f'{one}.weights'],
                              **settings),
                     model_of(folder, f'{other}{number}', data=[other], **weighted, **settings)]
            assert found[0] == found[1], (settings, one)


@test
def rows_of_weight_0_leave_no_trace_in_tables(folder):
    rng = random.Random(8)
    rows = []
    for i in range(500):
        x, weight = rng.gauss(3, 50), rng.choice([0, 1, 1, 2.5])
        cells = (['', '1e308', '-1e308'][i % 3], f'only{i}', 'z') if weight == 0 else (
            '' if i % 7 == 0 else f'{x:.3f}', 'abc'[i % 3], 'yn'[x + rng.gauss(0, 40) > 3])
        rows.append((weight, ','.join(map(str, (weight, *cells))) + '\n'))
    head = 'w,number,code,label\n'
    write_data(folder, 'all.csv', [head, *(row for _, row in rows)])
    write_data(folder, 'rest.csv', [head, *(row for weight, row in rows if weight)])
    for number, settings in enumerate([{}, {'csv.bins': 4}, {'csv.category_least': 3},
                                       {'standardise': True}, {'precondition': 'diagonal'}]):
        csv = {'label': 'label', 'weight': 'w',
               **{k[4:]: v for k, v in settings.items() if k.startswith('csv.')}}
        settings = {k: v for k, v in settings.items() if not k.startswith('csv.')}
        found = [model_of(folder, f'{name}{number}', data=[f'{name}.csv'], l2=1e-3, csv=csv,
                          objective='logistic', **settings) for name in ('all', 'rest')]
        assert found[0] == found[1], (settings, csv)


@test
def the_rows_of_a_class_that_weighs_0_may_hold_anything(folder):
    lines, weights = made_rows('softmax', True, 400)
    odd = [line.replace(' 1:', ' 1:1e200 13:') if line[0] == '2' else line for line in lines]
    settings = {'data': ['data'], 'objective': 'softmax', 'l2': 1e-3, 'standardise': True,
                'class_weight': ['2 = 0']}
    write_data(folder, 'data', odd)
    result = train(write_job(folder, **settings))
    assert result['converged'] and abs(coefficients(folder)[0]) < 1e3, result


@test
def missing_numbers_take_the_mean_of_repeated_rows(folder):
    rng = random.Random(5)
    rows, weights = [], []
    for i in range(400):
        x = rng.gauss(3, 50)
        weights.append(rng.randrange(5))
        cell = '' if i % 7 == 0 else f'{x:.3f}'
        rows.append(f'{cell},{rng.gauss(0, 1):.3f},{"yn"[x + rng.gauss(0, 40) > 3]}\n')
    head = 'a,b,label\n'
    write_data(folder, 'data', [head, *rows], weights)
    write_data(folder, 'repeated', [head, *(row for row, w in zip(rows, weights)
                                            for _ in range(w))])
    weighted = train(write_job(folder, 'one', data=['data'], weights=['data.weights'], l2=1e-3,
                               **CLOSE))
    repeated = train(write_job(folder, 'two', data=['repeated'], l2=1e-3, **CLOSE))
    assert abs(weighted['loss'] / repeated['loss'] - 1) < 1e-12, (weighted, repeated)
    means = [json.loads((folder / f'{name}.state/models/1/model.json').read_text())
             ['preparation']['columns'][0]['mean'] for name in ('one', 'two')]
    plain = [float(row.split(',')[0]) for row in rows if row[0] != ',']
    assert means[0] == means[1] and abs(means[0] - sum(plain) / len(plain)) > 0.1, means


def newton(rows, signs, weights, l2):
    """The minimum of the weighted mean of log(1 + exp(-margin)) + l2/2 |w|^2, on its own."""
    n, total = len(rows[0]), math.fsum(weights)
    w = [0.0] * n
    for _ in range(50):
        gradient = [l2 * v for v in w[:-1]] + [0.0]
        hessian = [[l2 if i == j < n - 1 else 0.0 for j in range(n)] for i in range(n)]
        for x, s, v in zip(rows, signs, weights):
            p = optimum.sigmoid(-s * math.fsum(a * b for a, b in zip(x, w)))
            for i in range(n):
                gradient[i] -= v / total * s * p * x[i]
                for j in range(n):
                    hessian[i][j] += v / total * p * (1 - p) * x[i] * x[j]
        step = optimum.solve(hessian, gradient)
        w = [a - b for a, b in zip(w, step)]
        if max(map(abs, step)) < 1e-13:
            break
    return w


@test
def l1_leaves_the_weights_that_repeated_rows_leave(folder):
    lines, weights = made_rows('logistic', False, 2000)
    write_data(folder, 'data', lines, weights)
    write_data(folder, 'repeated', [line for line, w in zip(lines, weights) for _ in range(w)])
    settings = {'l1': 0.03, **CLOSE}
    weighted = train(write_job(folder, data=['data'], weights=['data.weights'], **settings))
    repeated = train(write_job(folder, 'repeated', data=['repeated'], **settings))
    assert 0 < weighted['nonzero'] < 12 and weighted['nonzero'] == repeated['nonzero'], weighted
    assert abs(weighted['loss'] / repeated['loss'] - 1) < 1e-12, (weighted, repeated)
    assert_near(coefficients(folder), coefficients(folder, 'repeated'), 1e-6)


@test
def balanced_classes_end_at_the_optimum_of_their_weights(folder):
    source = random.Random(3)
    rows, signs = [], []
    for _ in range(800):
        x = [round(source.gauss(0, 1), 3) for _ in range(4)]
        rows.append(x + [1.0])
        signs.append(1 if x[0] - x[1] + source.gauss(0, 1) > 2 else -1)
    positive = signs.count(1)
    assert 20 < positive < 160
    write_data(folder, 'data.csv', ['a,b,c,d,y\n'] + [
        ','.join(map(str, x[:-1])) + (',yes\n' if s > 0 else ',no\n') for x, s in zip(rows, signs)])
    of = {1: 800 / (2 * positive), -1: 800 / (2 * (800 - positive))}
    expected = newton(rows, signs, [of[s] for s in signs], 1e-2)
    settings = {'data': ['data.csv'], 'l2': 1e-2, **CLOSE}
    result = train(write_job(folder, class_weight='balanced', **settings))
    assert abs(result['weights']['sum'] - 800) < 1e-9, result
    assert result['weights']['classes'] == ['balanced'], result
    assert_near(coefficients(folder), expected, 1e-7)
    listed = [f'yes = {of[1]!r}', f'no = {of[-1]!r}']
    same = train(write_job(folder, 'listed', class_weight=listed, **settings))
    assert same['model_sha256'] == result['model_sha256'], (same, result)
    other = train(write_job(folder, 'other', class_weight=['yes = 3'], **settings))
    weights = [3 if s > 0 else 1 for s in signs]
    assert other['weights']['sum'] == sum(weights), other
    assert_near(coefficients(folder, 'other'), newton(rows, signs, weights, 1e-2), 1e-7)


def write_table(folder, name, rows, columns=('a', 'b', 'w', 'y')):
    (folder / name).write_text(''.join(
        ','.join(str(row[column]) for column in columns) + '\n'
        for row in [dict(zip(columns, columns)), *rows]))


@test
def a_column_of_weights_is_no_feature_and_counts_wherever_it_is(folder):
    source = random.Random(8)
    rows = []
    for _ in range(900):
        row = {'a': round(source.gauss(0, 1), 3), 'b': round(source.gauss(0, 1), 3),
               'w': source.randrange(4)}
        row['y'] = 'yes' if row['a'] - row['b'] + source.gauss(0, 1) > 0 else 'no'
        rows.append(row)
    write_table(folder, 'data.csv', rows[:400])
    write_table(folder, 'more.csv', rows[400:600], ('w', 'b', 'y', 'a'))
    write_table(folder, 'test.csv', rows[600:], ('y', 'w', 'a', 'b'))
    write_table(folder, 'plain.csv', rows[600:], ('a', 'b', 'y'))
    settings = {'data': ['data.csv', 'more.csv'], 'csv': {'weight': 'w', 'label': 'y'}, 'l2': 1e-2,
                **CLOSE}
    result = train(write_job(folder, test=['test.csv'], holdout=['plain.csv'], **settings))
    assert result['weights'] == {'sum': sum(r['w'] for r in rows[:600]), 'column': 'w'}, result
    assert result['features'] == 2, result
    expected = newton([[r['a'], r['b'], 1.0] for r in rows[:600]],
                      [1 if r['y'] == 'yes' else -1 for r in rows[:600]],
                      [r['w'] for r in rows[:600]], 1e-2)
    assert_near(coefficients(folder), expected, 1e-7)
    assert result['test']['weight'] == sum(r['w'] for r in rows[600:]), result
    assert 'weight' not in result['holdout'], result
    model = folder / 'job.state/models/1'
    for name, of in ('test', 'test'), ('plain', 'holdout'):
        again = dml('evaluate', model, folder / f'{name}.csv', '--json').json
        assert again['loss'] == result[of]['loss'], (again, result)
    (folder / 'new.csv').write_text('b,w,a\n1,,2\n1,x,2\n')
    predicted = dml('predict', model, folder / 'new.csv')
    assert predicted.status == 0 and len(set(predicted.stdout.split())) == 1, predicted
    (folder / 'more.csv').write_text('a,b,y\n1,2,yes\n')
    assert_refused(folder / 'job.conf', BAD_DATA, 'more.csv:1', 'take the weight from')
    write_data(folder, 'libsvm', made_rows('logistic', False, 9)[0])
    assert_refused(write_job(folder, 'other', data=['libsvm'], csv={'weight': '2'}), CONFIG,
                   '`csv.weight`', 'use `weights`')
    assert_refused(write_job(folder, 'both', data=['data.csv'], csv={'weight': 'w'},
                             test=['test.csv'], test_weights=['data.csv']), CONFIG, '`csv.weight`')


@test
def standardised_columns_are_those_of_the_weighted_rows(folder):
    lines, weights = made_rows('logistic', True, 1500)
    lines = [' '.join([line.split()[0], *(f'{j}:{float(v) * 10 ** (int(j) % 5) + int(j)}' for j, v in
                                          (word.split(':') for word in line.split()[1:]))]) + '\n'
             for line in lines]
    write_data(folder, 'data', lines, weights)
    write_data(folder, 'repeated', [line for line, w in zip(lines, weights) for _ in range(w)])
    settings = {'standardise': True, 'l2': 1e-2, **CLOSE}
    for precondition in 'none', 'diagonal', 'block':
        one, two = f'one-{precondition}', f'two-{precondition}'
        weighted = train(write_job(folder, one, data=['data'], weights=['data.weights'],
                                   precondition=precondition, **settings))
        repeated = train(write_job(folder, two, data=['repeated'], precondition=precondition,
                                   **settings))
        assert abs(weighted['loss'] / repeated['loss'] - 1) < 1e-12, (weighted, repeated)
        assert_near(coefficients(folder, one), coefficients(folder, two), 1e-6)


@test
def weights_far_apart_end_at_their_optimum(folder):
    source = random.Random(5)
    rows, signs, weights, lines = [], [], [], []
    for i in range(600):
        x = [round(source.gauss(0, 1), 3) for _ in range(3)] + [float(i % 50 == 0)]
        rows.append(x + [1.0])
        signs.append(1 if x[0] + x[1] / 2 + source.gauss(0, 1) > 0 else -1)
        weights.append(10 ** source.uniform(-6, 6))
        lines.append(f'{signs[-1]} ' + ' '.join(f'{j + 1}:{v}' for j, v in enumerate(x)) + '\n')
    write_data(folder, 'data', lines, weights)
    expected = newton(rows, signs, weights, 1e-2)
    for precondition in 'auto', 'none':
        job = write_job(folder, precondition, data=['data'], weights=['data.weights'], l2=1e-2,
                        precondition=precondition, **CLOSE)
        train(job)
        assert_near(coefficients(folder, precondition), expected, 1e-7)


@test
def workers_and_files_do_not_change_the_bits(folder):
    lines, _ = made_rows('softmax', False, 6000)
    weights = [f'{math.exp(i % 97 - 48) / 3:.17g}' for i in range(6000)]
    write_data(folder, 'data', lines, weights)
    for name, part in ('part1', slice(0, 2500)), ('part2', slice(2500, None)):
        write_data(folder, name, lines[part], weights[part])
    models = set()
    for number, (replicas, shards, threads, portion, files) in enumerate(
            [(1, 1, 1, 1, 1), (3, 2, 1, 1, 2), (2, 1, 2, 5, 1), (1, 2, 2, 3, 2)]):
        data = ['data'] if files == 1 else ['part1', 'part2']
        job = write_job(folder, f'job{number}', data=data, objective='softmax', l2=1e-4,
                        weights=[f'{name}.weights' for name in data], class_weight='balanced',
                        replicas=replicas, shards=shards, threads=threads, portion_chunks=portion)
        models.add(train(job)['model_sha256'])
    assert len(models) == 1, models


@test
def only_ratios_of_weights_matter_and_ones_change_nothing(folder):
    lines, weights = made_rows('logistic', False, 1000)
    for name, times in ('one', 1), ('eight', 8), ('flat', 0):
        write_data(folder, name, lines, [times * w if times else 1 for w in weights])
    write_data(folder, 'plain', lines)
    models = {name: train(write_job(folder, f'job-{name}', data=[name], l2=1e-3,
                                    **({} if name == 'plain' else {'weights': [f'{name}.weights']})))
              for name in ('one', 'eight', 'flat', 'plain')}
    assert models['one']['model_sha256'] == models['eight']['model_sha256']
    assert models['flat']['model_sha256'] == models['plain']['model_sha256']
    assert models['flat']['weights'] is None
    assert models['one']['model_sha256'] != models['plain']['model_sha256']


@test
def figures_are_weighted_by_rows(folder):
    lines, weights = made_rows('logistic', False, 1500)
    write_data(folder, 'data', lines[:1000], weights[:1000])
    write_data(folder, 'other', lines[1000:], weights[1000:])
    write_data(folder, 'repeated', [line for line, w in zip(lines[1000:], weights[1000:])
                                    for _ in range(w)])
    settings = {'data': ['data'], 'weights': ['data.weights'], 'l2': 1e-3, 'class_weight': '1 = 2'}
    weighted = train(write_job(folder, test=['other'], test_weights=['other.weights'],
                               holdout=['other'], holdout_weights=['other.weights'], **settings))
    repeated = train(write_job(folder, 'repeated', test=['repeated'], holdout=['repeated'],
                               **settings))
    plain = train(write_job(folder, 'plain', test=['other'], **settings))
    assert weighted['test']['weight'] == sum(weights[1000:]), weighted
    for name in 'loss', 'accuracy', 'auc':
        for of in 'test', 'holdout':
            assert abs(weighted[of][name] - repeated[of][name]) < 1e-12, (name, weighted, repeated)
        assert plain['test'][name] != weighted['test'][name], (name, plain, weighted)
    assert 'weight' not in plain['test']
    evaluated = dml('evaluate', folder / 'job.state', folder / 'other', '--json', '--set',
                    f'weights={folder}/other.weights')
    for name in 'weight', 'loss', 'accuracy', 'auc', 'confusion':
        assert evaluated.json[name] == weighted['test'][name], (name, evaluated, weighted)
    twice = dml('evaluate', folder / 'job.state', folder / 'other', folder / 'data', '--json', '--set',
                f'weights={{ "{folder}/other.weights", "{folder}/data.weights" }}')
    assert twice.json['weight'] == sum(weights), twice


@test
def evaluate_refuses_weights_that_do_not_fit(folder):
    lines, weights = made_rows('logistic', False, 100)
    write_data(folder, 'data', lines, weights)
    train(write_job(folder, data=['data'], l2=1e-3))
    (folder / 'short').write_text('1\n2\n')
    for words, status, said in (
            (['evaluate', 'job.state', 'data', 'data', '--set', 'weights=data.weights'], USAGE,
             '1 file of weights for 2 files of data'),
            (['evaluate', 'job.state', 'data', '--set', 'weights=none'], BAD_DATA, 'no file matches'),
            (['evaluate', 'job.state', 'data', '--set', 'weights=short'], BAD_DATA, 'short'),
            (['predict', 'job.state', 'data', '--set', 'weights=data.weights'], USAGE, 'allowed: '),
            (['evaluate', 'job.state', 'data', '--set', 'l2=1'], USAGE, 'allowed: labels, weights, ')):
        finished = dml(*words, cwd=folder)
        assert finished.status == status and said in finished.stderr, finished
    (folder / 'table.csv').write_text('a,w,y\n' + ''.join(f'{i},{i % 3},{i % 2}\n' for i in range(40)))
    train(write_job(folder, 'table', data=['table.csv'], csv={'weight': 'w'}, l2=1e-3))
    finished = dml('evaluate', 'table.state', 'table.csv', '--set', 'weights=short', cwd=folder)
    assert finished.status == USAGE and 'from a column of the data, w' in finished.stderr, finished


@test
def the_holdout_stops_early_by_its_weighted_loss(folder):
    """Of a share and of files, and rows of weight 0 take no part."""
    lines, weights = made_rows('logistic', False, 3000)
    bad = [line.replace('0 ', '1 ', 1) if line[0] == '0' else line.replace('1 ', '0 ', 1)
           for line in lines[2500:]]
    write_data(folder, 'data', lines[:2000], weights[:2000])
    write_data(folder, 'held', lines[2000:2500] + bad, [1] * 500 + [0] * 500)
    write_data(folder, 'clean', lines[2000:2500])
    settings = {'data': ['data'], 'weights': ['data.weights'], 'early_stopping': 3, 'l2': 1e-4}
    mixed = train(write_job(folder, holdout=['held'], holdout_weights=['held.weights'], **settings))
    clean = train(write_job(folder, 'clean', holdout=['clean'], **settings))
    assert mixed['model_sha256'] == clean['model_sha256'], (mixed, clean)
    for one in mixed, clean:
        loss = one['early_stopping']['holdout_loss']
        assert abs(loss - one['holdout']['loss']) < 1e-12, one
    (folder / 'zeros').write_text('0\n' * 500)
    assert_refused(write_job(folder, 'zero', holdout=['clean'], holdout_weights=['zeros'],
                             **settings), BAD_DATA, 'early_stopping', 'a weight other than 0')
    share = train(write_job(folder, 'share', holdout=0.2, **settings))
    assert abs(share['early_stopping']['holdout_loss'] - share['holdout']['loss']) < 1e-12, share


@test
def retrain_and_the_gate_know_weights(folder):
    lines, weights = made_rows('logistic', False, 1200)
    write_data(folder, 'data', lines[:1000], weights[:1000])
    write_data(folder, 'held', lines[1000:], weights[1000:])
    job = write_job(folder, data=['data'], weights=['data.weights'], holdout=['held'],
                    holdout_weights=['held.weights'], gate=['loss <= live + 0.01'], l2=1e-3)
    first = dml('retrain', job, '--json')
    assert first.status == 0, first
    models = {json.loads((folder / 'job.state/models/current/model.json').read_text())
              ['model_sha256']}
    write_data(folder, 'data', lines[:1000], [w + 1 for w in weights[:1000]])
    changed = dml('retrain', job, '--json')
    assert changed.status == 0, changed
    models.add(json.loads((folder / 'job.state/models/current/model.json').read_text())
               ['model_sha256'])
    assert len(models) == 2, models


@test
def folds_of_weighted_rows_are_those_of_repeated_rows(folder):
    """Equal rows have one hash, so they are in the same fold."""
    lines, weights = made_rows('logistic', False, 1500)
    write_data(folder, 'data', lines, weights)
    write_data(folder, 'repeated', [line for line, w in zip(lines, weights) for _ in range(w)])
    settings = {'l2': [0.1, 0.001], 'folds': 3, **CLOSE}
    tables = []
    for data, more in ('data', {'weights': ['data.weights']}), ('repeated', {}):
        result = train(write_job(folder, f'job-{data}', data=[data], **more, **settings))
        tables.append([value for row in result['path']
                       for value in (row['loss'], *row['folds']['losses'])])
    assert len(tables[0]) == 8 and len(tables[1]) == 8, tables
    for a, b in zip(*tables):
        assert abs(a / b - 1) < 1e-8, tables


@test
def a_compressed_file_of_weights_is_read(folder):
    lines, weights = made_rows('logistic', False, 300)
    write_data(folder, 'data', lines, weights)
    with gzip.open(folder / 'packed.gz', 'wt') as file:
        file.write((folder / 'data.weights').read_text())
    plain = train(write_job(folder, data=['data'], weights=['data.weights']))
    packed = train(write_job(folder, 'packed', data=['data'], weights=['packed.gz']))
    assert plain['model_sha256'] == packed['model_sha256']


def assert_refused(job, status, *words):
    refused = dml('run', job)
    assert refused.status == status and all(word in refused.stderr for word in words), refused


@test
def what_makes_no_sense_is_refused_with_a_reason(folder):
    lines, _ = made_rows('logistic', False, 4, seed=2)
    assert {line[0] for line in lines} == {'0', '1'}, lines
    cases = [('1\n2\n3\n', 'has only 3 weights'), ('1\n2\n3\n4\n5\n', 'has 5 weights'),
             ('1\n2\n\n-3\n4\n', 'weights:4: "-3"'), ('1\n2\nnan\n4\n', 'weights:3: "nan"'),
             ('1\n2\n1e308\n4\n', '1e308'), ('', 'weights'), ('0\n0\n0\n0\n', 'weight of 0')]
    write_data(folder, 'data', lines)
    for number, (text, word) in enumerate(cases):
        (folder / 'weights').write_text(text)
        assert_refused(write_job(folder, f'job{number}', data=['data'], weights=['weights']),
                       BAD_DATA, word)
    (folder / 'weights').write_text('1\n2\n3\n4\n')
    refuse = lambda *words, status=CONFIG, **settings: assert_refused(  # noqa: E731
        write_job(folder, **{'data': ['data'], **settings}), status, *words)
    refuse('`weights`', '2 files of weights for 1 file of `data`', weights=['weights', 'weights'])
    refuse('`weights`', 'no file matches', weights=['none'], status=BAD_DATA)
    refuse('`test_weights`', 'no `test`', test_weights=['weights'])
    refuse('`holdout_weights`', 'share', holdout=0.5, holdout_weights=['weights'])
    refuse('`class_weight`', 'squared', class_weight='balanced', objective='squared')
    refuse('`class_weight`', 'combined', class_weight=['balanced', '1 = 2'])
    refuse('`class_weight`', 'LABEL = WEIGHT', class_weight=['1'])
    refuse('`class_weight`', 'LABEL = WEIGHT', class_weight=['1 = -1'])
    refuse('label "7" of class_weight', '"0", "1"', class_weight=['7 = 2'], status=BAD_DATA)
    refuse('have a weight of 0', class_weight=['0 = 0', '1 = 0'], status=BAD_DATA)


sys.exit(main())
