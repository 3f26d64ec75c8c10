#!/usr/bin/env python3
"""The threshold that is found on the holdout, kept in the model, and used wherever classes are
predicted."""

import json
import math
import sys

from harness import (BAD_DATA, CONFIG, COORDINATOR, USAGE, dml, main, run, test, train,
                     write_job)
from responses import (calibration_error, counts, labels_of, made_job, predicted, quality, shuffled,
                       write_rows)


def cost(chances, positive, threshold, of_positive, of_negative):
    hits, above = counts(chances, positive, threshold)
    return of_positive * (above - hits) + of_negative * (sum(positive) - hits)


def expected(rule, chances, positive):
    """The threshold by going through all of them."""
    scores = sorted(set(chances), reverse=True)
    figure, _, least = rule.partition(' >= ')
    if figure == 'recall':
        return next(s for s in scores if quality(chances, positive, s)[figure] >= float(least))
    if figure == 'precision':
        return min(s for s in scores if quality(chances, positive, s)[figure] >= float(least))
    if figure == 'cost':
        return min(scores, key=lambda s: (cost(chances, positive, s, 1, 5), -s))
    return max(scores, key=lambda s: (quality(chances, positive, s)['f1'], s))


@test
def each_rule_finds_the_threshold_that_a_search_of_all_finds(folder):
    made_job(folder)
    positive, hashes = labels_of(folder / 'held'), set()
    for rule in 'f1', 'recall >= 0.9', 'precision >= 0.8', 'cost':
        job = made_job(folder, threshold=rule, cost={'false_positive': 1, 'false_negative': 5})
        result = train(job, '--fresh')
        chances = predicted(folder / 'job.state', folder / 'held')
        threshold = expected(rule, chances, positive)
        assert result['threshold'] == {'rule': rule, 'probabilities': [threshold]}, result
        figures = result['holdout']
        assert figures['threshold'] == threshold, figures
        for figure, value in quality(chances, positive, threshold).items():
            assert figures[figure] == value, (figure, figures, value)
        hashes.add(result['model_sha256'])
    assert len(hashes) == 1, hashes  # the weights do not depend on it


@test
def the_model_keeps_it_for_labels_and_figures(folder):
    train(made_job(folder, threshold='recall >= 0.9'))
    state, new = folder / 'job.state', folder / 'new'
    model = json.loads((state / 'models/1/model.json').read_text())
    threshold = model['threshold']['probabilities'][0]
    assert 0 < threshold < 0.3, model['threshold']
    chances = predicted(state, new)
    labels = dml('predict', state, new, '--labels').stdout.split()
    assert labels == [str(int(p >= threshold)) for p in chances]
    piped = run(COORDINATOR, 'predict', state, '-', '--labels', stdin=open(new))
    assert piped.stdout.split() == labels, piped
    both = [json.loads(line) for line in
            dml('predict', state, new, '--probabilities', '--json').stdout.splitlines()]
    assert [one['class'] for one in both] == labels
    assert [one['probabilities'][1] for one in both] == chances
    figures = dml('evaluate', state, new, '--json').json
    assert figures['threshold'] == threshold, figures
    for figure, value in quality(chances, labels_of(new), threshold).items():
        assert figures[figure] == value, (figure, figures)
    hits, above = counts(chances, labels_of(new), threshold)
    assert figures['confusion'][1][1] == hits and \
        figures['confusion'][0][1] == above - hits, figures
    assert f'threshold         {threshold:.10g}\n' in dml('evaluate', state, new).stdout


@test
def a_number_needs_no_holdout_and_auto_is_the_sign_of_the_margin(folder):
    plain = train(made_job(folder, 'plain', holdout=[]))
    assert plain['threshold'] is None if 'threshold' in plain else True
    model = json.loads((folder / 'plain.state/models/1/model.json').read_text())
    assert 'threshold' not in model, model
    margins = predicted(folder / 'plain.state', folder / 'new', '--margins')
    labels = dml('predict', folder / 'plain.state', folder / 'new', '--labels').stdout.split()
    assert labels == [str(int(m > 0)) for m in margins]
    fixed = train(made_job(folder, 'fixed', holdout=[], threshold=0.2, test=['new']))
    assert fixed['model_sha256'] == plain['model_sha256'] and fixed['test']['threshold'] == 0.2
    chances = predicted(folder / 'fixed.state', folder / 'new')
    labels = dml('predict', folder / 'fixed.state', folder / 'new', '--labels').stdout.split()
    assert labels == [str(int(p >= 0.2)) for p in chances] and '1' in labels


@test
def no_order_of_held_out_rows_or_files_changes_a_bit(folder):
    made_job(folder)
    lines = shuffled(folder / 'held', 'turned').read_text().splitlines(True)
    for i in range(3):
        (folder / f'part{i}').write_text(''.join(lines[i::3]))
    for rule in 'f1', 'precision >= 0.8':
        found = [train(made_job(folder, threshold=rule, holdout=held), '--fresh')['threshold']
                 for held in (['held'], ['turned'], ['part2', 'part0', 'part1'])]
        assert found[0] == found[1] == found[2], found


@test
def weights_of_held_out_rows_count_as_repeated_rows(folder):
    made_job(folder)
    lines = (folder / 'held').read_text().splitlines(True)
    weights = [i * 5 % 4 for i in range(len(lines))]
    (folder / 'weights').write_text(''.join(f'{w}\n' for w in weights))
    (folder / 'repeated').write_text(''.join(l for l, w in zip(lines, weights) for _ in range(w)))
    for rule in 'f1', 'recall >= 0.8':
        found = [train(made_job(folder, threshold=rule, **held), '--fresh')['threshold']
                 for held in ({'holdout_weights': ['weights']}, {'holdout': ['repeated']})]
        assert found[0] == found[1], found


@test
def what_cannot_be_found_is_refused_or_told(folder):
    for settings, words in (
            ({'threshold': 'f1', 'holdout': []}, 'is found on rows that are held out'),
            ({'calibrate': 'platt', 'holdout': []}, 'is found on rows that are held out'),
            ({'threshold': 'auc >= 1'}, 'allowed: auto, a probability'),
            ({'threshold': 1.5}, 'allowed: auto, a probability'),
            ({'threshold': 0.5, 'objective': 'softmax'}, 'two classes, or lists of classes'),
            ({'calibrate': 'platt', 'objective': 'squared_hinge'}, 'and probabilities'),
            ({'calibrate': 'plat'}, 'platt'),
            ({'threshold': 'cost', 'cost': {'false_positive': 0, 'false_negative': 0}},
             'both costs are 0')):
        finished = dml('run', made_job(folder, **settings))
        assert finished.status == CONFIG and words in finished.stderr, (settings, finished)
    held = folder / 'negatives'
    held.write_text(''.join(line for line in (folder / 'held').read_text().splitlines(True)
                            if line[0] == '0'))
    finished = dml('run', made_job(folder, threshold='f1', holdout=['negatives']), '--json')
    assert finished.status == 0 and 'no row of the class "1"' in finished.stderr, finished
    assert finished.json['threshold']['probabilities'] == [0.5], finished


@test
def lists_have_a_threshold_for_each_class(folder):
    for name, seed in ('data', 1), ('held', 2):
        one, other = ((write_rows(folder, f'{name}{k}', 1200, seed, -1.5 - k).read_text()
                       .splitlines()) for k in range(2))
        with open(folder / name, 'w') as file:
            for a, b in zip(one, other):
                has = ','.join(c for c, line in (('7', a), ('20', b)) if line[0] == '1')
                file.write(f'{has} {a.split(" ", 1)[1]}\n')
    job = write_job(folder, data=['data'], holdout=['held'], objective='multilabel',
                    threshold='f1', calibrate='platt', l2=1e-4)
    result = train(job)
    chances = [[float(word) for word in line.split()] for line in
               dml('predict', folder / 'job.state', folder / 'held').stdout.splitlines()]
    lists = [line.split(' ')[0].split(',') for line in (folder / 'held').read_text().splitlines()]
    thresholds = result['threshold']['probabilities']
    for k, name in enumerate(['7', '20']):
        positive = [name in one for one in lists]
        own = [row[k] for row in chances]
        assert thresholds[k] == expected('f1', own, positive), (name, thresholds)
        assert abs(math.fsum(own) - sum(positive)) < 2, name  # calibrated, but for the smoothing
        assert result['holdout']['classes'][k]['f1'] == \
            quality(own, positive, thresholds[k])['f1'], result['holdout']
    labels = dml('predict', folder / 'job.state', folder / 'held', '--labels').stdout.split('\n')
    assert labels[:-1] == [','.join(n for n, p, t in zip(['7', '20'], row, thresholds) if p >= t)
                           for row in chances]


@test
def the_gate_evaluates_at_the_threshold_of_each_model(folder):
    job = made_job(folder, threshold='recall >= 0.9', gate=['recall >= 0.9'])
    first = dml('retrain', job, '--json')
    assert first.status == 0 and first.json['published'], first
    write_rows(folder, 'more', 2000, 9)
    job = made_job(folder, data=['data', 'more'], threshold=0.5,
                   gate=['recall >= live - 0.01', 'loss <= 1.1 * live'])
    second = dml('retrain', job, '--json')
    assert second.status == BAD_DATA and not second.json['published'], second
    assert second.json['holdout_live']['threshold'] < 0.3, second
    assert second.json['holdout']['threshold'] == 0.5, second
    live = json.loads((folder / 'job.state/models/current/model.json').read_text())
    assert live['threshold']['rule'] == 'recall >= 0.9', live['threshold']


@test
def another_threshold_goes_on_with_the_run_and_a_kill_at_its_end_changes_nothing(folder):
    whole = train(made_job(folder, 'whole', threshold='f1', calibrate='isotonic'))
    for place in 'score', 'model_publish', 'model_published', 'run_ended':
        job = made_job(folder, threshold='f1', calibrate='isotonic')
        killed = dml('run', job, '--fresh', DML_FAILPOINT=f'coordinator.{place}:1:kill')
        assert killed.status == -9, (place, killed)
        again = train(job)
        assert again['threshold'] == whole['threshold'], (place, again)
        assert again['model_sha256'] == whole['model_sha256'], (place, again)
    job = made_job(folder, threshold='f1')
    assert dml('run', job, '--fresh', DML_FAILPOINT='coordinator.score:1:kill').status == -9
    other = train(made_job(folder, threshold='recall >= 0.9'))
    assert other['restarts']['coordinator'] == 1, other
    assert other['threshold']['rule'] == 'recall >= 0.9', other


@test
def curves_are_those_of_all_thresholds_in_any_order_of_rows(folder):
    train(made_job(folder, threshold='f1'))
    state, new = folder / 'job.state', folder / 'new'
    figures = dml('evaluate', state, new, '--json')
    assert figures.stdout == dml('evaluate', state, shuffled(new, 'turned'), '--json').stdout
    figures, curves = figures.json, figures.json['curves']
    chances, positive = predicted(state, new), labels_of(new)
    assert math.isclose(figures['calibration_error'], calibration_error(chances, positive),
                        rel_tol=1e-9), figures
    points = curves['points']
    negatives = len(positive) - sum(positive)
    for threshold, recall, precision, rate, share in zip(
            *(points[name] for name in ('threshold', 'recall', 'precision', 'false_positive_rate',
                                        'share'))):
        hits, above = counts(chances, positive, threshold)
        assert (recall, precision) == (hits / sum(positive), hits / above), threshold
        assert (rate, share) == ((above - hits) / negatives, above / len(positive)), threshold
    assert points['recall'][-1] == points['share'][-1] == 1 and len(points['recall']) <= 202
    for k, row in enumerate(curves['thresholds'], 1):
        assert row['threshold'] == expected(f'recall >= {k / 10}', chances, positive), row
        assert {name: row[name] for name in ('precision', 'recall', 'f1')} == \
            quality(chances, positive, row['threshold']), row
    for k, row in enumerate(curves['gains'], 1):
        most = sorted(zip(chances, positive), reverse=True)[:k * len(positive) // 10]
        assert math.isclose(row['recall'], sum(y for _, y in most) / sum(positive),
                            rel_tol=1e-12), row
        assert math.isclose(row['lift'], row['recall'] / (k / 10), rel_tol=1e-12), row
    for row in curves['reliability']:
        inside = [(p, y) for p, y in zip(chances, positive) if row['from'] <= p < row['to']]
        assert row['examples'] == len(inside), row
        assert math.isclose(row['frequency'], sum(y for _, y in inside) / len(inside)), row
    table = dml('evaluate', state, new, '--curves').stdout
    for words in 'threshold          precision', '\nshare ', 'probability   frequency':
        assert words in table, (words, table)
    assert '\nshare ' not in dml('evaluate', state, new).stdout
    (folder / 'one').write_text(''.join(
        line for line in new.read_text().splitlines(True) if line[0] == '1'))
    finished = dml('evaluate', state, folder / 'one', '--curves')
    assert finished.status == 0 and 'there are no curves' in finished.stderr, finished
    finished = dml('predict', state, new, '--curves')
    assert finished.status == USAGE and 'takes no option' in finished.stderr, finished


@test
def a_gate_asks_for_the_calibration(folder):
    job = made_job(folder, gate=['calibration_error <= 1e-9'])
    finished = dml('retrain', job, '--json')
    assert finished.status == BAD_DATA, finished
    assert finished.json['gate'][0]['new'] == finished.json['holdout']['calibration_error']


@test
def runs_and_paths_leave_curves_out(folder):
    result = train(made_job(folder, l2=[1e-2, 1e-4]))
    assert 'curves' in result['holdout'], result['holdout']
    assert all('loss' in row['holdout'] and 'curves' not in row['holdout']
               for row in result['path']), result['path']
    runs = dml('jobs', folder / 'job.state', '--json').json['folders'][0]['runs']
    assert all('curves' not in run['holdout'] for run in runs), runs


@test
def a_damaged_threshold_is_refused(folder):
    train(made_job(folder, threshold='f1'))
    path = folder / 'job.state/models/1/model.json'
    model = json.loads(path.read_text())
    del model['json_sha256']
    for bad in {'rule': 'f1', 'probabilities': [0.1, 0.2]}, {'probabilities': ['x']}, []:
        path.write_text(json.dumps({**model, 'threshold': bad}))
        finished = dml('predict', folder / 'job.state', folder / 'new')
        assert finished.status == BAD_DATA and '`threshold` is not' in finished.stderr, finished


sys.exit(main())
