#!/usr/bin/env python3
"""Contributions of columns to margins, against sums over the features of each column in Python."""

import csv
import importlib.util
import io
import json
import math
import pathlib
import random
import sys

from harness import (SOURCE, USAGE, Skip, dml, main, read_safetensors, small_job, test, train, write_job)

sys.path.insert(0, str(SOURCE / 'python'))

TOWNS = ['Rome', 'Oslo', 'Bern, old', '']


def write_table(path, label, seed=1, rows=400):
    rng = random.Random(seed)
    with open(path, 'w', newline='') as file:
        writer = csv.writer(file)
        writer.writerow(['age', 'town', 'year', 'note', 'amount', 'label'])
        for _ in range(rows):
            age, town = rng.randint(10, 80), rng.choice(TOWNS)
            note = ' '.join(rng.choice(['red', 'blue', 'green']) for _ in range(rng.randint(0, 4)))
            score = .05 * (age - 45) + (town == 'Rome') - note.count('red') + rng.gauss(0, 1)
            writer.writerow(['' if rng.random() < .1 else age, town, f'{2000 + rng.gauss(20, 3):.2f}', note,
                             rng.choice([.5, 1, 2]), label(score)])
    with open(path, newline='') as file:
        return list(csv.DictReader(file))


TABLE = {'cross': ['town*age'], 'csv': {'bins': 5, 'text': ['note'], 'text_values': 'count', 'weight': 'amount'}}


def mean_of(rows, values):
    weights = [float(row['amount']) for row in rows]
    known = [(w, x) for w, x in zip(weights, values) if x is not None]
    return math.fsum(w * x for w, x in known) / math.fsum(w for w, _ in known)


def has_part(row, part):
    """Whether a row has what the name of a level, a bin or a missing cell says."""
    column, what = part.split('=', 1)
    if what == '(missing)' or not row[column]:
        return what == '(missing)' and not row[column]
    if what[0] not in '[(':
        return row[column] == what
    low, high = map(float, what[1:-1].split(', '))
    return low <= float(row[column]) < high


def value_of(row, feature, means):
    """The value of the feature of that name in a row."""
    if '=' not in feature:
        return float(row[feature]) if row[feature] else means[feature]
    if feature.startswith('note='):
        return row['note'].split().count(feature[5:])
    return float(all(has_part(row, part) for part in feature.split(' * ')))


def column_of(feature):
    return ' * '.join(part.split('=')[0] for part in feature.split(' * '))


def expected(state, trained, rows, output=0):
    """Of each row, by column, what it contributes to a margin; and the base."""
    model = json.loads(dml('export', state, '--format', 'json').stdout)
    means = {name: mean_of(trained, [float(row[name]) if row[name] else None for row in trained])
             for name in ('age', 'year')}
    found, base = [{} for _ in rows], model['intercepts'][output]
    for feature in model['features']:
        name, weight = feature['name'], feature['weights'][output]
        mean = mean_of(trained, [value_of(row, name, means) for row in trained])
        base += weight * mean
        for row, sums in zip(rows, found):
            sums.setdefault(column_of(name), []).append(weight * (value_of(row, name, means) - mean))
    return [{name: math.fsum(terms) for name, terms in sums.items()} for sums in found], base


def explained(state, data, *options):
    finished = dml('predict', state, data, '--json', '--explain', *options)
    assert finished.status == 0, finished
    return [json.loads(line) for line in finished.stdout.splitlines()]


def contributions(answer):
    return {each['column']: each['contribution'] for each in answer['contributions']}


def assert_close(found, awaited, tolerance=1e-12):
    assert found.keys() == awaited.keys(), (found, awaited)
    for name, value in awaited.items():
        assert abs(found[name] - value) <= tolerance * max(1, abs(value)), (name, found[name], value)


@test
def columns_contribute_the_distance_of_their_features_from_the_training_means(folder):
    trained = write_table(folder / 'rows.csv', lambda score: 'yes' if score > 0 else 'no')
    rows = write_table(folder / 'new.csv', lambda score: 'yes', seed=2, rows=50)
    train(write_job(folder, data=['rows.csv'], l2=1e-3, **TABLE))
    awaited, base = expected(folder / 'job.state', trained, rows)
    answers = explained(folder / 'job.state', folder / 'new.csv')
    assert set(awaited[0]) == {'age', 'town', 'year', 'note', 'age * town'}, awaited[0]
    for answer, sums in zip(answers, awaited, strict=True):
        assert_close(contributions(answer), sums)
        assert abs(answer['base'] - base) < 1e-11, (answer, base)
        total = answer['base'] + sum(contributions(answer).values())
        assert abs(total - answer['margin']) <= 1e-12 * max(1, abs(answer['base'])), (answer, total)
        sizes = [abs(each['contribution']) for each in answer['contributions']]
        assert sizes == sorted(sizes, reverse=True), answer


@test
def csv_has_all_columns_or_the_largest_and_the_rest(folder):
    write_table(folder / 'rows.csv', lambda score: 'yes' if score > 0 else 'no')
    train(write_job(folder, data=['rows.csv'], l2=1e-3, **TABLE))
    data = folder / 'rows.csv'
    answers = explained(folder / 'job.state', data)
    every = dml('predict', folder / 'job.state', data, '--explain', '--header', '--columns', 'label,year,margin')
    rows = list(csv.DictReader(io.StringIO(every.stdout)))
    assert list(rows[0]) == ['label', 'year', 'margin', 'base', 'contribution:age', 'contribution:town',
                             'contribution:year', 'contribution:note', 'contribution:age * town'], rows[0]
    for row, answer in zip(rows, answers, strict=True):
        assert {name: float(row[f'contribution:{name}']) for name in contributions(answer)} == contributions(answer)
        assert float(row['margin']) == answer['margin'] and float(row['base']) == answer['base']
    largest = dml('predict', folder / 'job.state', data, '--explain=2', '--header')
    for row, answer in zip(csv.DictReader(io.StringIO(largest.stdout)), answers, strict=True):
        assert list(row) == ['margin', 'base', 'column_1', 'contribution_1', 'column_2', 'contribution_2', 'rest']
        for place in 1, 2:
            assert row[f'column_{place}'] == answer['contributions'][place - 1]['column'], (row, answer)
        rest = sum(each['contribution'] for each in answer['contributions'][2:])
        assert abs(float(row['rest']) - rest) < 1e-12, (row, answer)
    some = explained(folder / 'job.state', data)[0]
    one = json.loads(dml('predict', folder / 'job.state', data, '--explain=1', '--json').stdout.splitlines()[0])
    assert one['contributions'] == some['contributions'][:1] and 'rest' in one, (one, some)


@test
def each_margin_of_several_classes_is_explained(folder):
    def label(score):
        return ['low', 'mid', 'high'][min(2, max(0, round(score + 1)))]
    trained = write_table(folder / 'rows.csv', label)
    for objective in 'softmax', 'ordinal':
        order = {'ordinal': {'order': ['low', 'mid', 'high']}} if objective == 'ordinal' else {}
        job = write_job(folder, objective, data=['rows.csv'], objective=objective, l2=1e-3, **order, **TABLE)
        train(job)
        state = folder / f'{objective}.state'
        answers = explained(state, folder / 'rows.csv')
        header, *lines = csv.reader(io.StringIO(dml('predict', state, folder / 'rows.csv', '--explain',
                                                    '--header').stdout))
        for answer, line in zip(answers, lines, strict=True):
            cells = dict(zip(header, line, strict=True))
            for each in answer['explanations']:
                name, total = each['class'], each['base'] + sum(contributions(each).values())
                assert abs(total - answer[f'margin:{name}']) < 1e-11, (answer, total)
                assert float(cells[f'base:{name}']) == each['base']
                assert float(cells[f'contribution:{name}:town']) == contributions(each)['town']
        if objective == 'softmax':
            classes = [each['class'] for each in answers[0]['explanations']]
            for output, name in enumerate(classes):
                awaited, _ = expected(state, trained, trained[:20], output)
                for answer, sums in zip(answers, awaited):
                    assert_close(contributions(answer['explanations'][output]), sums)


@test
def an_offset_is_beside_the_contributions(folder):
    rng = random.Random(3)
    rows = ['x,years,claims'] + [f'{rng.gauss(0, 1):.3f},{rng.choice([.5, 1, 3])},{rng.randint(0, 3)}'
                                 for _ in range(200)]
    (folder / 'rows.csv').write_text('\n'.join(rows) + '\n')
    train(write_job(folder, data=['rows.csv'], objective='poisson', exposure='years'))
    answers = explained(folder / 'job.state', folder / 'rows.csv', '--columns', 'margin,years')
    for answer in answers:
        assert list(contributions(answer)) == ['x'], answer
        total = answer['base'] + contributions(answer)['x'] + math.log(float(answer['years']))
        assert abs(total - answer['margin']) < 1e-12, (answer, total)


@test
def those_of_networks_add_up_and_rows_that_are_bad_have_none(folder):
    write_table(folder / 'rows.csv', lambda score: 'yes' if score > 0 else 'no')
    layers = {'layers': [6, 4], 'loss': 'logistic'}
    train(write_job(folder, data=['rows.csv'], objective='network', network=layers, l2=1e-3, max_steps=30, **TABLE))
    data = folder / 'new.csv'
    data.write_text('age,town,year,note\n30,Rome,2020,red blue\nold,Rome,2020,red\n,Lima,2019.5,\n')
    options = '--set', 'bad_lines=1'
    first, bad, last = explained(folder / 'job.state', data, *options)
    assert bad is None, bad
    for answer in first, last:
        assert set(contributions(answer)) == {'age', 'town', 'year', 'note', 'age * town'}, answer
        total = answer['base'] + sum(contributions(answer).values())
        assert abs(total - answer['margin']) < 1e-12, (answer, total)
    finished = dml('predict', folder / 'job.state', data, '--explain=1', *options)
    assert [line.count(',') for line in finished.stdout.splitlines()] == [4] * 3, finished


@test
def means_have_the_same_bits_with_any_number_of_workers(folder):
    job = small_job(folder)
    files = []
    for workers in 1, 3:
        result = train(job, '--fresh', *[word for key in ('replicas', 'shards', 'threads')
                                         for word in ('--set', f'{key}={workers}')])
        files.append(read_safetensors(pathlib.Path(result['model']) / 'model.safetensors'))
    assert files[0] == files[1] and len(files[0]['mean'][1]) == len(files[0]['feature_id'][1]), files


@test
def a_model_without_means_is_refused_and_so_are_options_that_contradict(folder):
    job = small_job(folder, strip_columns=4)
    train(job)
    data = next(folder.glob('*.libsvm'), None) or folder / 'data.txt'
    refused = dml('predict', folder / 'job.state', data, '--explain')
    assert refused.status == USAGE and 'does not have the means of its features' in refused.stderr, refused
    assert dml('predict', folder / 'job.state', data).status == 0
    for options, words in ((['--explain=none'], '1 to 1000000'), (['--explain=0'], '1 to 1000000'),
                           (['--explain', '--margins'], 'excludes')):
        refused = dml('predict', folder / 'job.state', data, *options)
        assert refused.status == USAGE and words in refused.stderr, refused


@test
def python_explains_rows_as_predict_does(folder):
    import dml as package
    rows = write_table(folder / 'rows.csv', lambda score: ['low', 'mid', 'high'][min(2, max(0, round(score + 1)))])
    train(write_job(folder, data=['rows.csv'], objective='softmax', l2=1e-3, **TABLE))
    cells = [{name: (float(row[name]) if row[name] else None) if name in ('age', 'year') else row[name]
              for name in ('age', 'town', 'year', 'note')} for row in rows]
    with package.open(folder / 'job.state') as model:
        found = model.explain(cells)
        margins = model.predict_margins(cells)
    for row, answer, each in zip(found.contributions, explained(folder / 'job.state', folder / 'rows.csv'), margins,
                                 strict=True):
        for output, explanation in enumerate(answer['explanations']):
            assert dict(zip(found.columns, row[output])) == contributions(explanation), (row, answer)
            assert found.base[output] == explanation['base']
            assert each[output] == answer[f'margin:{explanation["class"]}'], (each, answer)


@test
def python_returns_frames_and_arrays_and_names_the_row_that_is_refused(folder):
    if not all(importlib.util.find_spec(name) for name in ('numpy', 'pandas')):
        raise Skip('the Python packages numpy and pandas are not installed')
    import numpy
    import pandas
    import dml as package
    write_table(folder / 'rows.csv', lambda score: 'yes' if score > 0 else 'no')
    train(write_job(folder, data=['rows.csv'], l2=1e-3, **TABLE))
    frame = pandas.read_csv(folder / 'rows.csv')
    with package.open(folder / 'job.state') as model:
        found = model.explain(frame)
        shown = found.frame()
        assert isinstance(found.base, float) and found.contributions.shape == (len(frame), 5), found
        assert list(shown.columns) == found.columns and shown.shape == (len(frame), 5), shown
        total = found.base + shown.sum(axis=1).to_numpy()
        assert numpy.abs(total - model.predict_margins(frame)).max() < 1e-11
        assert model.explain(frame.iloc[:0]).contributions.shape == (0, 5)
        try:
            model.explain([[30, 'Rome', 2020, 'red'], [float('inf'), 'Rome', 2020, 'red']],
                          columns=['age', 'town', 'year', 'note'])
            raise AssertionError('an infinite number was explained')
        except package.Error as error:
            assert error.row == 1 and error.code == -65, error


if __name__ == '__main__':
    sys.exit(main())
