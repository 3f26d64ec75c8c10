#!/usr/bin/env python3
"""Models of networks: what they predict is what their layers make of a row, and they serve as linear
models do, for scoring, for the gate and as a start."""

import csv
import importlib.util
import json
import math
import pathlib
import random
import re
import sys

from harness import (BAD_DATA, Skip, dml, main, read_safetensors, test, train, words, write_job)

ROOT = pathlib.Path(__file__).resolve().parents[2]
ACTIVATIONS = {
    'tanh': math.tanh,
    'relu': lambda a: max(a, 0),
    'gelu': lambda a: a / 2 * (1 + math.tanh(math.sqrt(2 / math.pi) * (a + 0.044715 * a ** 3))),
}


# ---- data ----

def rings(folder, name='rings.libsvm', rows=240, seed=1, features=5):
    """Three classes, by how far a row is from 0; some values are 0 and not stored."""
    rng = random.Random(seed)
    with open(folder / name, 'w') as file:
        for _ in range(rows):
            values = {j: round(rng.gauss(0, 1), 3) for j in range(1, features + 1)
                      if rng.random() < 0.8}
            distance = sum(v * v for v in values.values())
            label = str(1 + (distance > 2) + (distance > 4))
            file.write(label + ''.join(f' {j}:{v}' for j, v in values.items()) + '\n')
    return folder / name


def ring_job(folder, network=None, **settings):
    data = rings(folder)
    return write_job(folder, **{'data': [data.name], 'objective': 'network', 'l2': 1e-3,
                                'network': {'layers': [6, 4], **(network or {})},
                                'early_stopping': 'off', 'max_steps': 12, **settings})


def read_rows(path):
    """Of each line its label, and its values by feature id."""
    rows = []
    for line in path.read_text().splitlines():
        label, *pairs = line.split()
        rows.append((label, {int(j): float(v) for j, v in (pair.split(':') for pair in pairs)}))
    return rows


# ---- an implementation of its own ----

class Network:
    """Reads a model's files, and computes margins from what they hold."""

    def __init__(self, folder):
        self.about = json.loads((folder / 'model.json').read_text())
        arrays = read_safetensors(folder / 'model.safetensors')
        layers = len(self.about['network']['layers']) + 1
        self.weights = []
        for i in range(1, layers + 1):
            (into, out), flat = arrays[f'W{i}']
            self.weights.append([flat[j * out:(j + 1) * out] for j in range(into)])
        self.biases = [arrays[f'b{i}'][1] for i in range(1, layers + 1)]
        self.rank = {feature: r for r, feature in enumerate(arrays['feature_id'][1])}
        self.activation = ACTIVATIONS[self.about['network']['activation']]

    def margins(self, values):
        """Of a row, given its values by feature id; others are 0."""
        into = [0] * len(self.weights[0])
        for feature, value in values.items():
            if feature in self.rank:
                into[self.rank[feature]] = value
        for i, (weight, bias) in enumerate(zip(self.weights, self.biases)):
            sums = [math.fsum([b, *(x * row[k] for x, row in zip(into, weight) if x)])
                    for k, b in enumerate(bias)]
            into = sums if i + 1 == len(self.weights) else [self.activation(a) for a in sums]
        return into


def current(job):
    return job.with_suffix('.state') / 'models/current'


def numbers(text):
    return [[float(word) for word in line.split()] for line in text.splitlines()]


def assert_close(found, expected, tolerance=1e-9):
    assert len(found) == len(expected), (len(found), len(expected))
    for row, (a, b) in enumerate(zip(found, expected)):
        assert len(a) == len(b) and all(math.isclose(x, y, rel_tol=tolerance, abs_tol=tolerance)
                                        for x, y in zip(a, b)), (row, a, b)


def softmax(margins):
    most = max(margins)
    total = sum(math.exp(m - most) for m in margins)
    return [math.exp(m - most) / total for m in margins]


# ---- scoring ----

@test
def predictions_are_what_the_layers_make_of_a_row(folder):
    for activation in ACTIVATIONS:
        precision = 'float' if activation == 'relu' else 'double'  # predictions are never in float
        job = ring_job(folder, {'activation': activation, 'precision': precision})
        train(job, '--fresh')
        network = Network(current(job))
        assert network.about['network']['precision'] == precision, network.about
        data = rings(folder, 'new.libsvm', rows=50, seed=2, features=6)  # the 6th is new
        expected = [network.margins(values) for _, values in read_rows(data)]
        state = job.with_suffix('.state')
        assert_close(numbers(dml('predict', state, data, '--margins').stdout), expected)
        assert_close(numbers(dml('predict', state, data).stdout), [softmax(m) for m in expected])
        labels = dml('predict', state, data, '--labels').stdout.splitlines()
        classes = network.about['classes']
        assert labels == [classes[m.index(max(m))] for m in expected], activation


@test
def a_row_has_the_same_bits_whatever_rows_come_with_it(folder):
    job = ring_job(folder, {'layers': [9], 'activation': 'gelu', 'precision': 'float'})
    train(job)
    data = rings(folder, 'new.libsvm', rows=700, seed=3)
    lines = data.read_text().splitlines()
    together = dml('predict', job.with_suffix('.state'), data, '--margins').stdout.splitlines()
    for first in 0, 255, 256, 300, 699:
        one = folder / 'one.libsvm'
        one.write_text(lines[first] + '\n')
        alone = dml('predict', job.with_suffix('.state'), one, '--margins').stdout
        assert alone == together[first] + '\n', (first, alone, together[first])


@test
def figures_are_those_of_the_predictions(folder):
    job = ring_job(folder, holdout=['0.25'])
    result = train(job)
    network = Network(current(job))
    data = rings(folder, 'new.libsvm', rows=200, seed=4)
    rows = read_rows(data)
    classes = network.about['classes']
    losses, right = [], 0
    for label, values in rows:
        margins = network.margins(values)
        losses.append(-math.log(softmax(margins)[classes.index(label)]))
        right += classes[margins.index(max(margins))] == label
    found = dml('evaluate', job.with_suffix('.state'), data, '--json').json
    assert math.isclose(found['loss'], sum(losses) / len(rows), rel_tol=1e-9), found
    assert found['accuracy'] == right / len(rows), (found, right)
    assert sum(map(sum, found['confusion'])) == len(rows), found
    # The rows that were held out are scored in the same way.
    everything = dml('evaluate', job.with_suffix('.state'), folder / 'rings.libsvm', '--json').json
    train_loss = everything['loss'] * 240 - result['holdout']['loss'] * result['holdout']['examples']
    trained = 240 - result['holdout']['examples']
    penalty = 1e-3 / 2 * sum(w * w for layer in network.weights for row in layer for w in row)
    assert result['loss'] - penalty < train_loss / trained + 1e-6, (result, penalty, train_loss)


@test
def a_table_is_prepared_for_a_network_as_for_a_linear_model(folder):
    rng = random.Random(5)
    rows = [['size', 'colour', 'age', 'price']]
    for _ in range(300):
        size, colour, age = rng.gauss(10, 3), rng.choice(['red', 'green', 'blue']), rng.random()
        price = size * (2 if colour == 'red' else 1) + age
        rows.append([f'{size:.3f}', colour, '' if rng.random() < 0.1 else f'{age:.3f}',
                     f'{price:.4f}'])
    with open(folder / 'table.csv', 'w', newline='') as file:
        csv.writer(file).writerows(rows)
    job = write_job(folder, data=['table.csv'], objective='network', csv={'label': 'price'},
                    network={'layers': [5], 'loss': 'squared'}, max_steps=15)
    result = train(job)
    network = Network(current(job))
    rank = {name: r for r, name in enumerate(network.about['feature_names'])}
    ids = {r: feature for feature, r in network.rank.items()}
    mean = network.about['preparation']['columns'][2]['mean']
    new = [['4.5', 'red', '0.25'], ['11', 'blue', ''], ['7', 'purple', '0.5'], ['', 'green', '1']]
    expected = []
    for size, colour, age in new:
        values = {}
        for name, text in ('size', size), ('age', age):
            values[name] = float(text or (mean if name == 'age' else
                                          network.about['preparation']['columns'][0]['mean']))
            if not text:
                values[f'{name}=(missing)'] = 1
        values[f'colour={colour}'] = 1
        expected.append(network.margins({ids[rank[n]]: v for n, v in values.items() if n in rank}))
    with open(folder / 'new.csv', 'w', newline='') as file:
        csv.writer(file).writerows([rows[0][:3], *new])
    found = dml('predict', job.with_suffix('.state'), folder / 'new.csv')
    assert_close(numbers(found.stdout), expected)
    # Packs of the run and the file itself are scored alike.
    whole = dml('evaluate', job.with_suffix('.state'), folder / 'table.csv', '--json').json
    assert 'unseen_features' not in whole and result['holdout']['rmse'] > 0, (whole, result)


# ---- other programs ----

def recipe():
    """The lines of dml-tasks(7) for networks."""
    text = (ROOT / 'man/dml-tasks.7').read_text()
    block, = [block for block in re.findall(r'\.Bd[^\n]*\n(.*?)\.Ed', text, re.DOTALL)
              if 'W{' in block]
    return block


@test
def the_lines_for_numpy_predict_the_same(folder):
    if not all(importlib.util.find_spec(name) for name in ('safetensors', 'numpy')):
        raise Skip('the Python packages safetensors and numpy are not installed')
    import numpy
    for activation in ACTIVATIONS:
        job = ring_job(folder, {'activation': activation})
        train(job, '--fresh')
        data = rings(folder, 'new.libsvm', rows=40, seed=6)
        x = numpy.zeros((40, 5))
        for i, (_, values) in enumerate(read_rows(data)):
            for j, value in values.items():
                x[i, j - 1] = value
        names = {'x': x}
        exec(recipe().replace('select.state/models/current', str(current(job))), names)
        found = dml('predict', job.with_suffix('.state'), data, '--margins')
        assert_close(numbers(found.stdout), names['margins'].tolist(), 1e-12)


@test
def a_network_cannot_be_exported_and_the_message_says_what_to_do(folder):
    job = ring_job(folder, max_steps=1)
    train(job)
    for form in ['--format', 'liblinear'], ['--format', 'tsv'], ['--json'], ['--top', '3']:
        refused = dml('export', job.with_suffix('.state'), *form, '-o', folder / 'out')
        assert refused.status == BAD_DATA and 'dml-tasks(7)' in refused.stderr, refused
        assert not (folder / 'out').exists()


@test
def a_report_of_a_network_shows_no_weights(folder):
    job = ring_job(folder, max_steps=1)
    train(job)
    report = dml('report', job.with_suffix('.state'), '-o', folder / 'report.html')
    assert report.status == 0, report
    assert 'api/v1/weights' not in (folder / 'report.html').read_text().split('<script')[1]


# ---- night after night ----

@test
def a_network_goes_on_from_the_last_one(folder):
    job = ring_job(folder, max_steps=30)
    first = train(job)
    losses = train(job, '--start', current(job), '--state', folder / 'b.state', '--set',
                   'max_steps=1')
    assert losses['loss'] <= first['loss'] + 1e-12, (first, losses)
    # Other columns, and another class: a new one knows nothing yet.
    lines = (folder / 'rings.libsvm').read_text().splitlines()
    (folder / 'rings.libsvm').write_text('\n'.join(
        [re.sub(' 2:', ' 20:', line) for line in lines] + ['9 1:9 7:9']) + '\n')
    later = train(job, '--start', current(job), '--state', folder / 'c.state')
    assert later['start']['model_sha256'] == first['model_sha256'], later
    network = Network(folder / 'c.state/models/current')
    assert network.about['classes'] == ['1', '2', '3', '9'], network.about
    assert set(network.rank) == {1, 3, 4, 5, 7, 20} and later['loss'] < first['loss'] + 0.3, later


@test
def a_feature_that_vanished_is_kept_if_the_job_says_so(folder):
    job = ring_job(folder, max_steps=20)
    train(job)
    before = Network(current(job))
    data = folder / 'rings.libsvm'
    data.write_text(re.sub(r' 3:\S+', '', data.read_text()))
    for keep in 'drop', 'keep':
        state = folder / f'{keep}.state'
        train(job, '--start', current(job), '--state', state,
              *words({'vanished': keep, 'max_steps': 3}))
        after = Network(state / 'models/current')
        assert (3 in after.rank) == (keep == 'keep'), keep
        if keep == 'keep':
            assert after.weights[0][after.rank[3]] == before.weights[0][before.rank[3]]
            found = dml('predict', state, data, '--margins')
            assert_close(numbers(found.stdout), [after.margins(v) for _, v in read_rows(data)])


@test
def other_layers_are_no_start_and_refused(folder):
    job = ring_job(folder, max_steps=3)
    train(job)
    for more, why in (({'network.layers': '5'}, 'hidden layers { 6, 4 } of tanh'),
                      ({'network.activation': 'relu'}, 'hidden layers { 6, 4 } of relu'),
                      ({}, 'the job no hidden layers')):
        other = job if more else write_job(folder, 'linear', data=['rings.libsvm'],
                                           objective='softmax', max_steps=3)
        finished = dml('run', other, '--json', '--fresh', '--start', current(job), '--state',
                       folder / 'other.state', *words(more))
        assert finished.status == BAD_DATA and why in finished.stderr, finished
        assert not finished.stdout, finished


@test
def the_gate_compares_networks(folder):
    job = ring_job(folder, holdout=['0.25'], gate=['loss <= 9 * live', 'accuracy > 0.1'],
                   max_steps=25)
    first = dml('retrain', job, '--json')
    assert first.status == 0, first
    data = folder / 'rings.libsvm'
    data.write_text(data.read_text() + '3 1:4 2:4\n' * 3)
    second = dml('retrain', job, '--json')
    assert second.status == 0 and second.json['run'] == 2, second
    loss = second.json['gate'][0]
    assert loss['holds'] and loss['new'] == second.json['holdout']['loss'], second
    data.write_text(data.read_text() + '3 1:4 2:4\n')
    refused = dml('retrain', job, '--json', '--set', 'gate=loss < 0.0001 * live')
    assert refused.status == BAD_DATA and 'is refused' in refused.stderr, refused
    assert current(job).resolve().name == '2'


sys.exit(main())
