#!/usr/bin/env python3
"""What `export --onnx` writes: a graph that answers what `predict` does."""

import csv
import importlib.util
import json
import math
import re
import sys

from harness import BAD_DATA, SOURCE, USAGE, Skip, dml, main, small_job, test, train, write_job
from onnx_graph import Graph

NAMES = 'age', 'value', 'city', 'job', 'label'
ROWS = [(str(20 + i * 37 % 60), str((i * 11 % 23) / 4), ('Oslo', 'Rome', 'a,"b"', '(missing)')[i % 4],
         'abc'[i * 7 % 3], ('no', 'yes', 'maybe')[(i * 37 % 60 > 25) + (i * 5 % 13 > 7)]) for i in range(160)]


def write_table(path, rows):
    with open(path, 'w', newline='') as file:
        csv.writer(file, lineterminator='\n').writerows([NAMES, *rows])
    return path


def holes(rows):
    """The same rows, of which some lack a cell."""
    return [[*row[:i % 4], '', *row[i % 4 + 1:]] if i % 9 == 0 else row for i, row in enumerate(rows)]


def predicted(model, data, *options):
    finished = dml('predict', model, data, *options)
    assert finished.status == 0, finished
    return finished.stdout.splitlines()


def exported(folder, model):
    finished = dml('export', model, '--onnx', '-o', folder / 'model.onnx')
    assert finished.status == 0 and not finished.stderr, finished
    return Graph(folder / 'model.onnx')


def given(graph, cells):
    """The inputs of a row."""
    row = dict(zip(NAMES, cells))
    row['column value 2'] = row['value']  # the name of an answer of other models
    return {name: row[name] if name in ('city', 'job') else float(row[name] or 'nan')
            for name in graph.inputs}


def compare(folder, graph, model, rows, *options):
    """Each answer with what `predict` prints."""
    data = write_table(folder / 'asked.csv', rows)
    answers = [graph.answer(given(graph, row)) for row in rows]
    for name, option in ('margins', '--margins'), ('probabilities', '--probabilities'):
        if name in graph.outputs:
            lines = [[float(word) for word in line.split()] for line in predicted(model, data, option)]
            for answer, line in zip(answers, lines):
                assert all(math.isclose(a, b, rel_tol=1e-13, abs_tol=1e-13)
                           for a, b in zip(answer[name], line, strict=True)), (name, answer, line)
    if 'label' in graph.outputs:
        assert [answer['label'] for answer in answers] == predicted(model, data, '--labels')
    return answers


def trained(folder, rows=None, whole=False, **job):
    rows = rows or ROWS
    write_table(folder / 'table.csv', rows if whole else holes(rows))
    job.setdefault('objective', 'softmax')
    train(write_job(folder, 'job', data=['table.csv'], **job))
    return folder / 'job.state'


STRANGE = [('33', '1', 'Atlantis', 'z', 'no'), ('', '', '', '', 'no'), ('-1e6', '1e6', 'Rome', 'NA', 'no')]


@test
def a_table_with_bins_crosses_and_missing_cells_is_answered_alike(folder):
    model = trained(folder, csv={'bins': 5}, cross=['pairs'])
    compare(folder, exported(folder, model), model, holes(ROWS)[:30] + STRANGE)


@test
def a_number_without_bins_is_crossed_where_it_is_missing(folder):
    rows = [(row[0], '7', *row[2:]) for row in ROWS]
    model = trained(folder, rows, csv={'bins': 5}, cross=['pairs'], cross_least=1)
    names = {feature['name'] for feature in json.loads(
        dml('export', model, '--format', 'json').stdout)['features'] if 'name' in feature}
    assert any(' * value=(missing)' in name for name in names), names
    compare(folder, exported(folder, model), model, holes(rows)[:30] + STRANGE)


@test
def a_calibrated_model_of_two_classes_has_its_probabilities_and_threshold(folder):
    rows = [(*row[:4], 'yes' if row[4] == 'yes' else 'no') for row in ROWS]
    for calibrate in 'platt', 'isotonic':
        model = trained(folder, rows, objective='logistic', calibrate=calibrate, threshold='f1',
                        holdout=0.3, class_weight='balanced')
        compare(folder, exported(folder, model), model, holes(rows)[:25] + STRANGE)


@test
def a_network_is_answered_alike(folder):
    for activation in 'tanh', 'relu', 'gelu':
        model = trained(folder, objective='network', max_steps=9,
                        network={'layers': [4, 3], 'activation': activation})
        compare(folder, exported(folder, model), model, holes(ROWS)[:8] + STRANGE)


@test
def ordered_classes_and_numbers_are_answered_alike(folder):
    rows = [(*row[:4], str(len(row[4]) % 4)) for row in ROWS]
    model = trained(folder, rows, objective='ordinal')
    compare(folder, exported(folder, model), model, rows[:20])
    model = trained(folder, rows, whole=True, objective='poisson', exposure='age')
    graph = exported(folder, model)
    answers = compare(folder, graph, model, rows[:20])
    values = [float(line) for line in predicted(model, folder / 'asked.csv')]
    assert all(math.isclose(answer['value'], value, rel_tol=1e-13)
               for answer, value in zip(answers, values, strict=True)), (answers, values)


@test
def a_model_without_a_table_takes_its_features_by_rising_id(folder):
    train(small_job(folder))
    graph = exported(folder, folder / 'job.state')
    ids = [int(word) for word in graph.about['feature_ids'].split(',')]
    assert graph.inputs == ['features'] and graph.about['objective'] == 'logistic', graph.about
    chances = predicted(folder / 'job.state', folder / 'small.libsvm', '--probabilities')
    for line, chance in zip(open(folder / 'small.libsvm', encoding='utf-8'), chances, strict=True):
        values = dict(word.split(':') for word in line.split()[1:])
        answer = graph.answer({'features': [float(values.get(str(i), 0)) for i in ids]})
        assert all(math.isclose(a, float(b), rel_tol=1e-13)
                   for a, b in zip(answer['probabilities'], chance.split(), strict=True)), answer


@test
def texts_that_a_model_does_not_keep_are_told_of(folder):
    rows = [(*row[:2], f'town {i}' if i % 20 == 0 else row[2], *row[3:]) for i, row in enumerate(ROWS)]
    model = trained(folder, rows, csv={'category_least': 5})
    finished = dml('export', model, '--onnx', '-o', folder / 'model.onnx')
    assert finished.status == 0 and 'city=(rare)' in finished.stderr, finished
    graph = Graph(folder / 'model.onnx')
    compare(folder, graph, model, [row for row in rows if 'town' not in row[2]][:10])


def recipe():
    """The lines of dml-tasks(7), as they stand there."""
    page = (SOURCE / 'man/dml-tasks.7').read_text()
    return re.search(r'\n(import numpy, onnxruntime.*?)\n\.Ed', page, re.DOTALL)[1].replace('\\e', '\\')


@test
def the_recipe_of_the_manual_answers_what_predict_does(folder):
    for package in 'numpy', 'onnxruntime', 'pandas':
        if not importlib.util.find_spec(package):
            raise Skip(f'{package} is not installed')
    import pandas
    count, towns = 300, ['Oslo', ' Rome', 'Bonn  ', '  ', 'a "b", c']
    frame = pandas.DataFrame({
        'flag': [i % 3 == 0 for i in range(count)], 'town': [towns[i * 7 % 5] for i in range(count)],
        'grade': [[1.0, 2.0, None][i % 3] for i in range(count)], 'size': [i * 37 % 60 / 4 for i in range(count)],
        'single': pandas.Series([i % 10 / 10 for i in range(count)], dtype='float32'),
        'level': pandas.Series([[1, 2, None][i % 3] for i in range(count)], dtype='Int64'),
        'hole': [None if i % 6 == 0 else i % 11 / 2 for i in range(count)],
        'y': [('no', 'yes')[i % 3 == 0 or i % 7 == 2 or i * 7 % 5 == 1] for i in range(count)]})
    frame.to_csv(folder / 'table.csv', index=False)
    files = ['table.csv']
    if importlib.util.find_spec('pyarrow'):
        frame.to_parquet(folder / 'table.parquet', index=False)
        files.append('table.parquet')
    for file in files:
        train(write_job(folder, file, data=[file], csv={'categories': ['grade', 'level'], 'label': 'y'}))
        finished = dml('export', folder / f'{file}.state', '--onnx', '-o', folder / 'people.onnx')
        assert finished.status == 0, finished
        lines = predicted(folder / f'{file}.state', folder / file, '--probabilities')
        labels = predicted(folder / f'{file}.state', folder / file, '--labels')
        for given_frame in frame, pandas.read_csv(folder / 'table.csv'):
            names = {'frame': given_frame}
            exec(recipe().replace('people.onnx', str(folder / 'people.onnx')), names)  # pylint: disable=exec-used
            assert names['labels'].tolist() == labels
            for found, line in zip(names['probabilities'].tolist(), lines, strict=True):
                assert all(math.isclose(a, float(b), rel_tol=1e-12) for a, b in zip(found, line.split(), strict=True)), \
                    (file, found, line)


@test
def what_onnx_cannot_say_is_refused_by_name(folder):
    days = [(*row[:3], f'2024-05-{i % 28 + 1:02}', row[4]) for i, row in enumerate(ROWS)]
    for key, rows, words in (('dates', days, 'column 4 (job) holds dates'),
                             ('text', ROWS, 'column 4 (job) is a text'),
                             ('hash', ROWS, 'is hashed (csv.hash)')):
        model = trained(folder, rows, csv={key: 10 if key == 'hash' else ['job']})
        finished = dml('export', model, '--onnx', '-o', folder / 'no.onnx')
        assert finished.status == BAD_DATA and words in finished.stderr, finished
        assert not (folder / 'no.onnx').exists()
    assert dml('export', model, '--onnx', '--json').status == USAGE


if __name__ == '__main__':
    sys.exit(main())
