#!/usr/bin/env python3
"""Compares what onnxruntime answers for exported models, and what libdml answers from C and from
Python, with `predict`, on every loss and on tables with categories, bins, crosses and missing cells,
networks, offsets, calibrations and thresholds. Needs onnxruntime and numpy, and is started in the
folder of the build. Prints the largest difference, relative to 1 or the value."""

import argparse
import csv
import json
import math
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy
import onnxruntime

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'python'))

import dml as library  # noqa: E402

NAMES = 'age', 'income', 'city', 'job', 'value', 'exposed', 'shift', 'label'
ROWS = 600


def make_rows(seed, kind):
    draw = random.Random(seed)
    for _ in range(ROWS):
        age, income = draw.randint(18, 80), draw.lognormvariate(3, 1)
        city, job = draw.choice(['Rome', 'Oslo', 'New York', '(missing)', 'a,"b"']), draw.choice('abcdefg')
        score = (age - 45) / 20 + (city == 'Rome') - (job in 'ab') * (age > 50) + draw.gauss(0, 1)
        label = {'two': 'yes' if score > 0 else 'no', 'three': ('low', 'mid', 'high')[(score > -.5) + (score > .8)],
                 'ordered': str((score > -.5) + (score > .8)), 'count': str(int(math.exp(min(score, 3)))),
                 'positive': repr(math.exp(score) + .1), 'number': repr(score),
                 'lists': ' '.join(name for name, on in zip('pqr', (score > 0, age > 40, job == 'a')) if on)}[kind]
        cells = [str(age), repr(income), city, job, str(draw.choice([0, 0, 0, 5, 9])),
                 repr(draw.uniform(.5, 3)), repr(draw.gauss(0, .2)), label]
        for i in (0, 1, 2, 3):
            if draw.random() < .05:
                cells[i] = ''
        yield cells


CASES = {  # name: (labels, lines of the job)
    'logistic': ('two', ''),
    'logistic, bins, pairs': ('two', 'csv { bins = 8 }\ncross = { "pairs" }'),
    'logistic, platt, f1, class weights':
        ('two', 'calibrate = platt\nthreshold = f1\nholdout = 0.2\nclass_weight = balanced'),
    'logistic, isotonic': ('two', 'calibrate = isotonic\nholdout = 0.2'),
    'logistic, offset': ('two', 'offset = shift'),
    'logistic, monotone': ('two', 'csv { bins = 8 }\nmonotone = { "age = rising" }'),
    'squared_hinge': ('two', 'objective = squared_hinge'),
    'smooth_hinge': ('two', 'objective = smooth_hinge'),
    'softmax': ('three', 'objective = softmax'),
    'softmax, temperature, bins': ('three', 'objective = softmax\ncalibrate = temperature\nholdout = 0.2\ncsv { bins = 8 }'),
    'softmax, crosses': ('three', 'objective = softmax\ncross = { "city*job" }'),
    'one_vs_rest': ('three', 'objective = one_vs_rest'),
    'ordinal': ('ordered', 'objective = ordinal'),
    'proportional_odds': ('ordered', 'objective = proportional_odds'),
    'multilabel, thresholds': ('lists', 'objective = multilabel\nmultilabel { separator = " " }\nthreshold = f1\nholdout = 0.2'),
    'multilabel, isotonic': ('lists', 'objective = multilabel\nmultilabel { separator = " " }\ncalibrate = isotonic\nholdout = 0.2'),
    'squared': ('number', 'objective = squared'),
    'huber': ('number', 'objective = huber'),
    'quantile': ('number', 'objective = quantile'),
    'poisson, exposure': ('count', 'objective = poisson\nexposure = exposed'),
    'gamma, bins': ('positive', 'objective = gamma\ncsv { bins = 8 }'),
    'tweedie': ('count', 'objective = tweedie'),
    'network tanh': ('two', 'objective = network\nnetwork { layers = { 6, 4 } }\nmax_steps = 20'),
    'network relu, classes, bins':
        ('three', 'objective = network\ncsv { bins = 8 }\nnetwork { layers = { 6 }\n activation = relu }\nmax_steps = 20'),
    'network gelu, numbers':
        ('number', 'objective = network\nnetwork { layers = { 6 }\n activation = gelu\n loss = squared }\nmax_steps = 20'),
    'network, ordered, crosses':
        ('ordered', 'objective = network\ncross = { "city*job" }\nnetwork { layers = { 5 }\n loss = ordinal }\nmax_steps = 20'),
}


def run(dml, *arguments):
    finished = subprocess.run([str(word) for word in (dml, *arguments)], capture_output=True, text=True)
    if finished.returncode:
        sys.exit(f'{arguments}: {finished.stderr}')
    return finished.stdout


def write(path, rows):
    with open(path, 'w', newline='') as file:
        csv.writer(file).writerows([NAMES, *rows])


def feeds(session, rows):
    """What the model asks for, of the same rows."""
    given = {}
    for wanted in session.get_inputs():
        name = 'value' if wanted.name == 'column value 2' else wanted.name  # an output has the name
        column = [row[NAMES.index(name)] for row in rows]
        given[wanted.name] = numpy.array(column, dtype=object) if 'string' in wanted.type else \
            numpy.array([float(cell) if cell else math.nan for cell in column])
    return given


def predictions(dml, model, data, option):
    lines = run(dml, 'predict', model, data, *option).splitlines()
    return numpy.array([[float(word) for word in line.split()] for line in lines])


def difference(a, b):
    return float(numpy.max(numpy.abs(a - b) / numpy.maximum(1, numpy.abs(b)))) if a.size else 0


def in_c(model, data, option):
    """What the example for C prints."""
    with open(data) as rows:
        finished = subprocess.run(['examples/library/score', *option, model], stdin=rows, text=True,
                                  capture_output=True)
    if finished.returncode:
        sys.exit(f'score: {finished.stderr}')
    return numpy.array([[float(word) for word in line.split()] for line in finished.stdout.splitlines()])


def of_library(dml, model, data, rows):
    """The worst difference of the library's answers, from C and from Python."""
    dicts, worst = [dict(zip(NAMES[:-1], row)) for row in rows], 0
    with library.open(model) as opened:
        ways = [([], opened.predict_values(dicts)), (['--margins'], opened.predict_margins(dicts))]
        if opened.describe()['probabilities']:
            ways.append((['--probabilities'], opened.predict_proba(dicts)))
        for option, answers in ways:
            wanted = predictions(dml, model, data, option)
            answers = numpy.array(answers)
            if answers.ndim == 1:
                answers = answers[:, None]
            worst = max(worst, difference(answers, wanted), difference(in_c(model, data, option), wanted))
    return worst


def compare(dml, folder, name, labels, lines):
    write(folder / 'train.csv', make_rows(1, labels))
    rows = list(make_rows(2, labels))
    rows[0][2] = rows[1][3] = 'never seen'
    write(folder / 'test.csv', rows)
    (folder / 'job.conf').write_text('data = { "train.csv" }\n' + lines + '\n')
    run(dml, 'run', folder / 'job.conf', '--fresh', '-q')
    model, data = folder / 'job.state', folder / 'test.csv'
    run(dml, 'export', model, '--onnx', '-o', folder / 'model.onnx')
    session = onnxruntime.InferenceSession(folder / 'model.onnx')
    outputs = dict(zip((output.name for output in session.get_outputs()), session.run(None, feeds(session, rows))))
    worst = difference(outputs['margins'], predictions(dml, model, data, ['--margins']))
    if 'probabilities' in outputs:
        worst = max(worst, difference(outputs['probabilities'], predictions(dml, model, data, ['--probabilities'])))
    if 'value' in outputs:
        worst = max(worst, difference(outputs['value'][:, None], predictions(dml, model, data, [])))
    if 'label' in outputs:
        same = list(outputs['label']) == run(dml, 'predict', model, data, '--labels').splitlines()
        worst = worst if same else math.inf
    if 'labels' in outputs:
        classes = [json.loads(line)['classes'] for line in
                   run(dml, 'predict', model, data, '--labels', '--json').splitlines()]
        names = run(dml, 'predict', model, data, '--header', '--probabilities').splitlines()[0].split()
        found = [[name for name, on in zip(names, row) if on] for row in outputs['labels']]
        worst = worst if found == classes else math.inf
    libraries = of_library(dml, model, data, rows)
    print(f'{worst:9.2e} {libraries:9.2e}  {name}', flush=True)
    return max(worst, libraries)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--dml', default='./dml-coordinator')
    parser.add_argument('--only', default='', help='cases whose name has this text')
    options = parser.parse_args()
    worst = 0
    for name, (labels, lines) in CASES.items():
        if options.only in name:
            with tempfile.TemporaryDirectory() as folder:
                worst = max(worst, compare(options.dml, Path(folder), name, labels, lines))
    print(f'{worst:9.2e}  the worst')
    return worst > 1e-12


if __name__ == '__main__':
    sys.exit(main())
