#!/usr/bin/env python3
"""Probabilities that are calibrated on the holdout, or corrected for the weights of classes."""

import json
import math
import random
import sys

from harness import CONFIG, dml, main, test, train, write_job
from responses import (calibration_error, isotonic, labels_of, made_job, platt, predicted, shuffled,
                       sigmoid, write_rows)


@test
def platt_is_what_newton_finds_on_the_held_out_rows(folder):
    result = train(made_job(folder, calibrate='platt'))
    plain = train(made_job(folder, 'plain'))
    assert result['model_sha256'] == plain['model_sha256'], result
    state, new = folder / 'job.state', folder / 'new'
    margins = predicted(state, folder / 'held', '--margins')
    assert margins == predicted(folder / 'plain.state', folder / 'held', '--margins')
    slope, offset = platt(margins, labels_of(folder / 'held'))
    found = result['calibration']
    assert found['method'] == 'platt', found
    assert math.isclose(found['outputs'][0]['slope'], slope, rel_tol=1e-9), (found, slope)
    assert math.isclose(found['outputs'][0]['offset'], offset, rel_tol=1e-9), (found, offset)
    for p, m in zip(predicted(state, new), predicted(state, new, '--margins')):
        assert math.isclose(p, sigmoid(slope * m + offset), rel_tol=1e-9), (p, m)


@test
def isotonic_is_the_convex_hull_of_the_held_out_rows(folder):
    train(made_job(folder, calibrate='isotonic'))
    state, held = folder / 'job.state', folder / 'held'
    margins, positive = predicted(state, held, '--margins'), labels_of(held)
    pools = isotonic(margins, positive)
    least = 1 / (len(positive) + 2)
    for p, m in zip(predicted(state, held), margins):
        value = next(v for first, last, v in pools if first <= m <= last)
        assert math.isclose(p, min(max(value, least), 1 - least), rel_tol=1e-12), (p, m, value)
    new = folder / 'new'
    for p, m in zip(predicted(state, new), predicted(state, new, '--margins')):
        below = [v for first, _, v in pools if first <= m][-1:] or [0]
        above = [v for _, last, v in pools if last >= m][:1] or [1]
        between = (min(max(v, least), 1 - least) for v in (below[0], p, above[0]))
        low, p, high = between
        assert low - 1e-12 <= p <= high + 1e-12, (p, m, low, high)


@test
def figures_are_of_the_probabilities_that_predict_prints(folder):
    for settings in ({'calibrate': 'platt'}, {'calibrate': 'isotonic'},
                     {'class_weight': 'balanced'},
                     {'class_weight': 'balanced', 'calibrate': 'platt'}):
        train(made_job(folder, **settings), '--fresh')
        state, new = folder / 'job.state', folder / 'new'
        figures = dml('evaluate', state, new, '--json').json
        chances, positive = predicted(state, new), labels_of(new)
        log_loss = math.fsum(-math.log(p if y else 1 - p)
                             for p, y in zip(chances, positive)) / len(positive)
        brier = math.fsum((p - y) ** 2 for p, y in zip(chances, positive)) / len(positive)
        assert math.isclose(figures['log_loss'], log_loss, rel_tol=1e-12), (settings, figures)
        assert math.isclose(figures['brier'], brier, rel_tol=1e-12), (settings, figures)


@test
def no_order_of_held_out_rows_or_files_changes_a_bit(folder):
    made_job(folder)
    lines = shuffled(folder / 'held', 'turned').read_text().splitlines(True)
    for i in range(3):
        (folder / f'part{i}').write_text(''.join(lines[i::3]))
    for method in 'platt', 'isotonic':
        found = []
        for held in ['held'], ['turned'], ['part2', 'part0', 'part1']:
            train(made_job(folder, calibrate=method, holdout=held), '--fresh')
            model = json.loads((folder / 'job.state/models/current/model.json').read_text())
            found.append(model['calibration'])
        assert found[0] == found[1] == found[2], method


@test
def class_weights_of_a_rare_class_cost_no_calibration(folder):
    write_rows(folder, 'data', 20000, 1, -6.2)
    write_rows(folder, 'held', 10000, 2, -6.2)
    write_rows(folder, 'new', 20000, 3, -6.2)
    positive = labels_of(folder / 'new')
    assert 0.005 < sum(positive) / len(positive) < 0.02, sum(positive)
    errors, labels, hashes = {}, {}, set()
    for name, settings in (('before', {'prior_correction': False}), ('prior', {}),
                           ('platt', {'calibrate': 'platt', 'prior_correction': False}),
                           ('isotonic', {'calibrate': 'isotonic'})):
        result = train(made_job(folder, name, class_weight='balanced', **settings))
        state = folder / f'{name}.state'
        errors[name] = calibration_error(predicted(state, folder / 'new'), positive)
        labels[name] = dml('predict', state, folder / 'new', '--labels').stdout
        hashes.add(result['model_sha256'])
    assert len(hashes) == 1, hashes
    assert errors['before'] > 0.05, errors
    for name in 'prior', 'platt', 'isotonic':
        assert errors[name] < errors['before'] / 5, errors
        assert labels[name] == labels['before'], name  # class weights go on saying what errors cost
    print('# calibration error: ' + ', '.join(f'{k} {v:.5f}' for k, v in errors.items()))


@test
def the_correction_divides_the_odds_by_the_ratio_of_the_weights(folder):
    train(made_job(folder, class_weight=['1 = 8', '0 = 0.5']))
    state, new = folder / 'job.state', folder / 'new'
    model = json.loads((state / 'models/1/model.json').read_text())
    assert model['prior_correction'] == [math.log(0.5 / 8)]
    figures = dml('evaluate', state, new, '--json').json
    assert math.isclose(figures['threshold'], 1 / 17, rel_tol=1e-12), figures
    for p, m in zip(predicted(state, new), predicted(state, new, '--margins')):
        assert math.isclose(p, sigmoid(m - math.log(16)), rel_tol=1e-12), (p, m)
    plain = train(made_job(folder, 'plain', class_weight=['1 = 8', '0 = 0.5'],
                           prior_correction=False))
    model = json.loads((folder / 'plain.state/models/1/model.json').read_text())
    assert 'prior_correction' not in model, model
    assert figures['auc'] == dml('evaluate', folder / 'plain.state', new, '--json').json['auc']
    assert plain['holdout']['loss'] > 1.2 * figures['loss'], (plain, figures)


@test
def balanced_weights_are_those_of_the_rows_that_are_trained_on(folder):
    made_job(folder)
    positive = labels_of(folder / 'data')
    weights = [1 + i % 3 for i in range(len(positive))]
    (folder / 'weights').write_text(''.join(f'{w}\n' for w in weights))
    result = train(made_job(folder, class_weight='balanced', weights=['weights']))
    heavy = sum(w for w, y in zip(weights, positive) if y)
    expected = math.log(heavy / (sum(weights) - heavy))
    assert math.isclose(result['prior_correction'][0], expected, rel_tol=1e-12), result


@test
def a_softmax_divides_each_probability_by_the_weight_of_its_class(folder):
    source = random.Random(4)
    with open(folder / 'three', 'w') as file:
        for _ in range(600):
            x = [round(source.gauss(0, 1), 3) for _ in range(3)]
            scores = [v + source.gauss(0, 1) - 1.5 * k for k, v in enumerate(x)]
            file.write(f'{scores.index(max(scores))} ' +
                       ' '.join(f'{j}:{v}' for j, v in enumerate(x, 1)) + '\n')
    weight = [1, 3, 20]
    settings = {'data': ['three'], 'l2': 1e-3,
                'class_weight': [f'{k} = {w}' for k, w in enumerate(weight)]}
    for name, more in (('soft', {'objective': 'softmax'}),
                       ('net', {'objective': 'network', 'network': {'layers': 4},
                                'max_steps': 20, 'holdout': []})):
        train(write_job(folder, name, **settings, **more))
        state = folder / f'{name}.state'
        rows = [[[float(word) for word in line.split()] for line in
                 dml('predict', state, folder / 'three', *options).stdout.splitlines()]
                for options in ([], ['--margins'])]
        labels = dml('predict', state, folder / 'three', '--labels').stdout.split()
        for chances, margins, label in zip(*rows, labels):
            share = [math.exp(m - max(margins)) / w for m, w in zip(margins, weight)]
            for p, s in zip(chances, share):
                assert math.isclose(p, s / sum(share), rel_tol=1e-12), (name, chances, margins)
            assert label == str(margins.index(max(margins))), (name, label, margins)


def write_three(folder, name, seed, noise=1.0, rows=600):
    """Rows of three classes; with more noise they say less than a model of less noise believes."""
    source = random.Random(seed)
    with open(folder / name, 'w') as file:
        for _ in range(rows):
            x = [round(source.gauss(0, 1), 3) for _ in range(3)]
            scores = [v + source.gauss(0, noise) - k / 2 for k, v in enumerate(x)]
            file.write(f'{scores.index(max(scores))} ' +
                       ' '.join(f'{j}:{v}' for j, v in enumerate(x, 1)) + '\n')
    return folder / name


def softmax_loss(rows, labels, factor):
    """The mean log loss, and its slope by the factor."""
    loss, slope = [], []
    for margins, label in zip(rows, labels):
        parts = [math.exp(factor * (m - max(margins))) for m in margins]
        mean = math.fsum(p * m for p, m in zip(parts, margins)) / math.fsum(parts)
        loss.append(math.log(math.fsum(parts)) + factor * (max(margins) - margins[label]))
        slope.append(mean - margins[label])
    return math.fsum(loss) / len(rows), math.fsum(slope) / len(rows)


@test
def a_temperature_is_where_the_loss_of_a_softmax_is_least(folder):
    held = write_three(folder, 'held', 2, noise=3.0)
    write_three(folder, 'data', 1, noise=0.5)
    labels = [int(line[0]) for line in held.read_text().splitlines()]
    for name, more in (('soft', {'objective': 'softmax'}),
                       ('weighted', {'objective': 'softmax', 'class_weight': ['2 = 3']}),
                       ('net', {'objective': 'network', 'network': {'layers': 4},
                                'max_steps': 20})):
        settings = {'data': ['data'], 'l2': 1e-3, 'calibrate': 'temperature', **more}
        result = train(write_job(folder, name, holdout=['held'], **settings))
        state = folder / f'{name}.state'
        temperature = result['calibration']['temperature']
        shift = result.get('prior_correction', [0, 0, 0])
        rows = [[float(word) + s for word, s in zip(line.split(), shift)] for line in
                dml('predict', state, held, '--margins').stdout.splitlines()]
        low, high = 1e-3, 10.0
        for _ in range(80):
            middle = (low + high) / 2
            low, high = (middle, high) if softmax_loss(rows, labels, middle)[1] < 0 else \
                (low, middle)
        assert math.isclose(temperature, 1 / low, rel_tol=1e-8), (name, temperature, 1 / low)
        assert temperature > 1.3, (name, temperature)  # the model is too sure of itself
        figures = result['holdout']
        for figure, factor in ('log_loss', 1 / temperature), ('loss', 1):
            assert math.isclose(figures[figure], softmax_loss(rows, labels, factor)[0],
                                rel_tol=1e-12), (name, figure, figures)
        chances = [[float(word) for word in line.split()] for line in
                   dml('predict', state, held).stdout.splitlines()]
        loss = -math.fsum(math.log(row[label]) for row, label in zip(chances, labels))
        assert math.isclose(loss / len(labels), figures['log_loss'], rel_tol=1e-12), name
        turned = train(write_job(folder, name, holdout=[shuffled(held, 'turned').name],
                                 **settings), '--fresh')
        assert turned['calibration'] == result['calibration'], (turned, result)
    finished = dml('run', write_job(folder, 'soft', data=['data'], holdout=['held'],
                                    objective='softmax', calibrate='platt'))
    assert finished.status == CONFIG and 'for softmax there is temperature' in finished.stderr, finished
    finished = dml('check', write_job(folder, 'two', data=['data'], holdout=['held'],
                                      calibrate='temperature'))
    assert finished.status == CONFIG, finished
    assert 'for objective = softmax; take platt or isotonic; the objective is logistic' in finished.stderr, \
        finished


@test
def exports_have_the_calibration_or_say_that_they_lack_it(folder):
    train(made_job(folder, calibrate='platt', threshold='f1', class_weight='balanced'))
    state = folder / 'job.state'
    model = json.loads((state / 'models/1/model.json').read_text())
    told = dml('export', state, '--format', 'json')
    exported = json.loads(told.stdout)
    assert not told.stderr, told
    for member in 'prior_correction', 'calibration', 'threshold':
        assert exported[member] == model[member], member
        for name in 'tsv', 'liblinear':
            assert f"not the model's `{member}`" in dml('export', state, '--format',
                                                        name).stderr, name
    train(made_job(folder, 'plain'))
    told = dml('export', folder / 'plain.state', '--format', 'tsv')
    assert told.stderr == '', told


@test
def folds_evaluate_without_a_calibration_that_was_found_on_them(folder):
    job = made_job(folder, calibrate='isotonic', threshold='f1', folds=3, l2=[1e-2, 1e-4])
    result = train(job)
    plain = train(made_job(folder, 'plain', folds=3, l2=[1e-2, 1e-4]))
    assert [v['folds'] for v in result['path']] == [v['folds'] for v in plain['path']], result
    assert result['calibration']['method'] == 'isotonic' and 'threshold' in result, result


@test
def a_warm_start_knows_nothing_of_the_calibration(folder):
    nights = []
    for name, settings in ('with', {'calibrate': 'isotonic', 'threshold': 'f1'}), ('plain', {}):
        state = {'state': folder / f'{name}.state'}
        first = dml('retrain', made_job(folder, name, **state, **settings), '--json').json
        write_rows(folder, 'more', 1500, 9)
        second = dml('retrain', made_job(folder, name, data=['data', 'more'], **state, **settings),
                     '--json').json
        nights.append((first['model_sha256'], second['model_sha256'], second['start']))
    assert nights[0] == nights[1], nights


sys.exit(main())
