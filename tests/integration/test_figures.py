#!/usr/bin/env python3
"""Figures of a model on labelled data: of `evaluate`, of a run's holdout and of the gate."""

import math
import sys

from harness import BAD_DATA, USAGE, dml, main, small_data, small_job, test, train, write_job


def class_rows(count, shift=0):
    """Rows of three classes with texts for labels, which two numbers tell apart badly."""
    rows = []
    for k in range(count):
        a, b = (k * 37 + shift) % 19, k * 53 % 23
        rows.append(f'{("red", "green", "blue")[(a + b + k % 5) // 3 % 3]},{a},{b}')
    return 'colour,a,b\n' + '\n'.join(rows) + '\n'


def class_job(folder, name='job', **settings):
    (folder / 'data.csv').write_text(class_rows(300))
    return write_job(folder, name, data=['data.csv'], objective='softmax', l2=1e-3,
                     csv={'label': 'colour'}, **settings)


def share(part, whole):
    return part / whole if whole else 0


def area(scores, positives):
    pairs = [(p > q) + (p == q) / 2 for p, y in zip(scores, positives) if y
             for q, z in zip(scores, positives) if not z]
    return sum(pairs) / len(pairs)


def average_precision(scores, positives):
    total = 0
    for threshold in set(scores):
        above = [y for p, y in zip(scores, positives) if p >= threshold]
        here = sum(y for p, y in zip(scores, positives) if p == threshold)
        total += here * sum(above) / len(above)
    return total / sum(positives)


def check_class(figures, name, chances, labels, predicted):
    truth = [label == name for label in labels]
    hits = sum(y and p == name for y, p in zip(truth, predicted))
    expected = {'precision': share(hits, predicted.count(name)),
                'recall': share(hits, sum(truth)),
                'f1': share(2 * hits, predicted.count(name) + sum(truth)),
                'auc': area(chances, truth), 'average_precision': average_precision(chances, truth)}
    assert figures['class'] == name and figures['examples'] == sum(truth), figures
    assert (figures['precision'] is None) == (name not in predicted), (figures, predicted)
    for figure, value in expected.items():
        assert math.isclose(figures[figure] or 0, value, rel_tol=1e-12), (name, figures, value)
    return expected


@test
def figures_of_several_classes_follow_from_the_predictions(folder):
    train(class_job(folder))
    (folder / 'new.csv').write_text(class_rows(200, shift=3))
    state, data = folder / 'job.state', folder / 'new.csv'
    figures = dml('evaluate', state, data, '--json').json
    labels = [line.split(',')[0] for line in data.read_text().splitlines()[1:]]
    chances = [[float(word) for word in line.split()]
               for line in dml('predict', state, data).stdout.splitlines()]
    names = [entry['class'] for entry in figures['classes']]
    assert sorted(names) == ['blue', 'green', 'red'], names
    predicted = [names[row.index(max(row))] for row in chances]
    matrix = [[sum(y == label and p == answer for y, p in zip(labels, predicted))
               for answer in names] for label in names]
    assert figures['confusion'] == matrix, (figures, matrix)
    each = [check_class(figures['classes'][k], name, [row[k] for row in chances], labels, predicted)
            for k, name in enumerate(names)]
    for figure, macro in (('precision', 'macro_precision'), ('recall', 'macro_recall'),
                          ('f1', 'macro_f1'), ('auc', 'auc'),
                          ('average_precision', 'average_precision')):
        mean = math.fsum(one[figure] for one in each) / 3
        assert math.isclose(figures[macro], mean, rel_tol=1e-12), (macro, figures, mean)
    brier = math.fsum((p - (names[k] == label)) ** 2 for row, label in zip(chances, labels)
                      for k, p in enumerate(row)) / len(labels)
    assert math.isclose(figures['brier'], brier, rel_tol=1e-12), (figures, brier)


@test
def the_table_has_a_line_a_class_and_the_confusion_matrix(folder):
    train(class_job(folder))
    finished = dml('evaluate', folder / 'job.state', folder / 'data.csv')
    figures = dml('evaluate', folder / 'job.state', folder / 'data.csv', '--json').json
    lines = [line.split() for line in finished.stdout.splitlines()]
    assert ['examples', '300'] in lines, finished
    for name, row in zip(('blue', 'green', 'red'), figures['confusion']):
        assert [name, *(str(count) for count in row)] in lines, (row, finished)
        assert sum(line[:2] == [name, str(sum(row))] for line in lines) >= 1, finished


@test
def the_same_rows_in_another_order_have_the_same_figures(folder):
    train(class_job(folder))
    head, *rows = (folder / 'data.csv').read_text().splitlines()
    (folder / 'turned.csv').write_text('\n'.join([head, *reversed(rows)]) + '\n')
    given, turned = (dml('evaluate', folder / 'job.state', folder / name, '--json').stdout
                     for name in ('data.csv', 'turned.csv'))
    assert given == turned, (given, turned)


@test
def what_data_of_one_class_leaves_undefined_is_null(folder):
    train(small_job(folder))
    lines = (folder / 'small.libsvm').read_text().splitlines(True)
    (folder / 'one').write_text(''.join(line for line in lines if line.startswith('1 ')))
    figures = dml('evaluate', folder / 'job.state', folder / 'one', '--json').json
    assert figures['auc'] is None and figures['average_precision'] == 1, figures
    assert 'auc               not defined\n' in dml('evaluate', folder / 'job.state',
                                                    folder / 'one').stdout


@test
def evaluate_refuses_data_none_of_whose_labels_was_trained_on(folder):
    train(small_job(folder))
    data = small_data(folder, 'other.libsvm')
    data.write_text(''.join('7 ' + line.split(' ', 1)[1]
                            for line in data.read_text().splitlines(True)))
    finished = dml('evaluate', folder / 'job.state', data, '--json')
    assert finished.status == BAD_DATA and not finished.stdout, finished
    assert 'other.libsvm: none of the 60 labels' in finished.stderr, finished
    assert '(-1, 1)' in finished.stderr, finished


@test
def the_gate_compares_every_figure_that_the_objective_has(folder):
    for gate, status in (('f1 >= 0', 0), ('brier <= 0.0001', BAD_DATA), ('log_loss <= 9', 0)):
        (folder / 'small.libsvm').unlink(missing_ok=True)
        job = small_job(folder, holdout=0.3, gate=[gate, 'average_precision >= 0'])
        finished = dml('retrain', job, '--json', '--fresh')
        assert finished.status == status, finished
        conditions = {each['condition']: each for each in finished.json['gate']}
        assert conditions[gate]['new'] == finished.json['holdout'][gate.split()[0]], finished


@test
def jobs_tell_what_changed_and_sort_by_a_figure(folder):
    small_data(folder, 'more.libsvm', rows=100, seed=2)
    small_job(folder)
    for l2 in 10, 1e-3, 0.1:
        train(write_job(folder, data=['small.libsvm'], holdout='0.3', test=['more.libsvm'], l2=l2))
    small_data(folder, rows=80)
    train(write_job(folder, data=['small.libsvm'], l2=0.1))
    state = folder / 'job.state'
    runs = dml('jobs', state, '--json').json['folders'][0]['runs']
    assert runs[0]['changed'] is None, runs
    assert runs[1]['changed'] == {'l2': {'from': 10.0, 'to': 1e-3}}, runs
    assert set(runs[3]['changed']) == {'holdout', 'test', 'data'}, runs
    assert 'classes' not in runs[0]['test'] and runs[3]['holdout'] is None, runs
    table = dml('jobs', state, COLUMNS='80').stdout
    assert '      changed: l2 0.001 -> 0.1\n' in table and ', the data\n' in table, table
    assert f'      test: loss {runs[0]["test"]["loss"]:.5g}, ' in table, table
    assert all(len(line) <= 80 for line in table.splitlines()[1:]), table
    for figure, best in ('loss', min), ('auc', max):
        order = dml('jobs', state, '--json', '--sort', figure).json['folders'][0]['runs']
        values = [run['holdout'][figure] for run in order[:3]]
        assert values == sorted(values, reverse=best is max), (figure, values)
        assert order[3]['run'] == 4, order
    finished = dml('jobs', state, '--sort', 'acuracy')
    assert finished.status == USAGE and 'did you mean `accuracy`' in finished.stderr, finished


@test
def figures_of_numbers_follow_from_the_predictions(folder):
    rows = [f'{k * 31 % 17 / 3 + 1990} 1:{k % 7} 2:{k % 5}' for k in range(100)]
    (folder / 'data').write_text('\n'.join(rows) + '\n')
    train(write_job(folder, data=['data'], objective='squared', l2=1e-3))
    figures = dml('evaluate', folder / 'job.state', folder / 'data', '--json').json
    values = [float(line) for line in dml('predict', folder / 'job.state',
                                          folder / 'data').stdout.split()]
    labels = [float(row.split()[0]) for row in rows]
    squares = math.fsum((v - y) ** 2 for v, y in zip(values, labels))
    middle = math.fsum(labels) / 100
    expected = {'rmse': math.sqrt(squares / 100), 'deviance': squares / 200,
                'mae': math.fsum(abs(v - y) for v, y in zip(values, labels)) / 100,
                'r2': 1 - squares / math.fsum((y - middle) ** 2 for y in labels)}
    for figure, value in expected.items():
        assert math.isclose(figures[figure], value, rel_tol=1e-10), (figure, figures, value)
    assert 'classes' not in figures and 'coverage' not in figures, figures


if __name__ == '__main__':
    sys.exit(main())
