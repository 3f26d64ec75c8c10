#!/usr/bin/env python3
"""Raw tables: categories, missing cells, columns by name, from one job file to predictions."""

import csv
import gzip
import json
import math
import random
import sys

from bins import bin_edges
from harness import (BAD_DATA, dml, main, shared, test, train, write_job)

COLORS = ['red', 'green', 'blue, dark', 'a=b', '"quoted"', 'grün', '(missing)', '(rare)']


def table(rows, seed=1, missing=0.1):
    """Rows of age, color, size, town, label; a cell may be missing."""
    rng = random.Random(seed)
    out = []
    for _ in range(rows):
        age, color = rng.randrange(18, 80), rng.choice(COLORS)
        size, town = round(rng.gauss(0, 10), 2), rng.choice('NSEW')
        margin = 0.1 * (age - 50) + COLORS.index(color) - 3 + 0.1 * size + rng.gauss(0, 1)
        row = [age, color, size, town]
        row = [rng.choice(['', '?', 'NA']) if rng.random() < missing else cell for cell in row]
        out.append([*row, 'yes' if margin > 0 else 'no'])
    return out


HEADER = ['age', 'color', 'size', 'town', 'label']


def write_table(path, rows, header=HEADER, order=None):
    with open(path, 'w', newline='') as file:
        writer = csv.writer(file, lineterminator='\n')
        for row in ([header] if header else []) + rows:
            writer.writerow([row[i] for i in order] if order else row)
    return path


def trained(folder, header=HEADER, **settings):
    write_table(folder / 'data.csv', table(400), header)
    finished = dml('run', write_job(folder, data=['data.csv'], l2=1e-3, **settings))
    assert finished.status == 0, finished
    assert 'taken for categories: color, town' in finished.stderr, finished
    return folder / 'job.state'


def model_of(state):
    return json.loads((state / 'models/1/model.json').read_text())


def predicted(model, data, *arguments):
    finished = dml('predict', model, data, *arguments)
    assert finished.status == 0, finished
    return finished.stdout.splitlines()


def codes(folder, door, labels):
    """Rows whose number tells their label, written as a door has them."""
    rows = [(k % len(labels) * 3 + 1, labels[k % len(labels)]) for k in range(60)]
    path = folder / f'codes.{door}'
    lines = {'csv': lambda x, y: f'{x},{y}', 'libsvm': lambda x, y: f'{y} 1:{x}',
             'jsonl': lambda x, y: json.dumps({'x': x, 'y': y})}[door]
    path.write_text(('x,y\n' if door == 'csv' else '') + ''.join(lines(*row) + '\n' for row in rows))
    return path, [y for _, y in rows]


@test
def labels_keep_what_their_numbers_would_lose(folder):
    """Zeros before them, and digits beyond 2^53; by all doors, and where the number counts."""
    labels = ['007', '7', '0', '00', '9007199254740993', '9007199254740992']
    for door in 'csv', 'libsvm', 'jsonl':
        data, expected = codes(folder, door, labels)
        result = train(write_job(folder, door, data=[data.name], objective='softmax', l2=1e-9))
        state = folder / f'{door}.state'
        assert sorted(model_of(state)['classes']) == sorted(labels), door
        assert predicted(state, data, '--labels') == expected, door
        assert dml('evaluate', state, data, '--json').json['accuracy'] == 1, door
    data, expected = codes(folder, 'csv', ['010', '009', '2'])
    train(write_job(folder, 'least', data=[data.name], objective='squared', l2=0))
    train(write_job(folder, 'levels', data=[data.name], objective='ordinal', l2=1e-3))
    assert abs(float(dml('evaluate', folder / 'least.state', data, '--json').json['rmse'])) < 6
    assert model_of(folder / 'levels.state')['classes'] == ['2', '9', '10']
    codes(folder, 'csv', ['7', '8'])  # a model that never met a code takes 07 for 7
    train(write_job(folder, 'plain', data=[data.name], objective='logistic', l2=1e-9))
    codes(folder, 'csv', ['07', '08'])
    assert dml('evaluate', folder / 'plain.state', data, '--json').json['accuracy'] == 1


@test
def a_line_of_names_among_the_rows_is_no_row(folder):
    """Of numbers or of texts, where only that it stands again says that it names columns."""
    for name, rows in ('numbers', ['1,a', '2,b']), ('texts', ['p,a', 'q,b']):
        lines = ['cap,kind', *rows * 4] * 3
        (folder / 'data.csv').write_text('\n'.join(lines) + '\n')
        job = write_job(folder, name, data=['data.csv'], objective='logistic')
        refused = dml('pack', job)
        assert refused.status == BAD_DATA and 'data.csv:10: the header line is repeated here' in refused.stderr, refused
        assert dml('pack', job, '--set', 'bad_lines=2', '--json').json['examples'] == 24
    (folder / 'data.csv').write_bytes(b'ca\0p,kind\n1,2\nca\0p,kind\n3,4\n')  # damage is no end of a text
    refused = dml('pack', write_job(folder, data=['data.csv'], objective='squared'))
    assert refused.status == BAD_DATA and 'data.csv:3: the header line is repeated here' in refused.stderr, refused


def predictions(state, data, *arguments):
    return predicted(state / 'models/1', data, *arguments)


def exported(state):
    return json.loads(dml('export', state / 'models/1', '--format', 'json').stdout)


def margins(state, data):
    return [math.log(p / (1 - p)) for p in map(float, predictions(state, data))]


@test
def a_table_with_texts_and_missing_cells_is_trained_on_and_scored(folder):
    state = trained(folder)
    model = model_of(state)
    names = model['feature_names']
    assert names[0] == 'age' and 'color=blue, dark' in names and 'age=(missing)' in names, names
    assert 'color="(missing)"' in names and 'color=(missing)' in names, names
    kinds = [column['kind'] for column in model['preparation']['columns']]
    assert kinds == ['number', 'category', 'number', 'category', 'label'], kinds
    write_table(folder / 'new.csv', table(100, seed=2))
    figures = dml('evaluate', state / 'models/1', folder / 'new.csv', '--json').json
    assert figures['examples'] == 100 and figures['auc'] > 0.9, figures


@test
def predictions_are_those_of_the_preparation_in_the_model(folder):
    state = trained(folder)
    model = model_of(state)
    export = exported(state)
    weight = {f['name']: f['weights'][0] for f in export['features']}
    mean = {c['name']: c.get('mean') for c in model['preparation']['columns']}
    rows = table(50, seed=3, missing=0.3)
    write_table(folder / 'new.csv', rows)
    for row, margin in zip(rows, margins(state, folder / 'new.csv')):
        expected = export['intercepts'][0]
        for name, cell in zip(HEADER[:4], row):
            gone = cell in ('', '?', 'NA')
            if name in ('age', 'size'):
                expected += weight[name] * (mean[name] if gone else float(cell))
                expected += weight[f'{name}=(missing)'] if gone else 0
            else:
                text = '(missing)' if gone else cell
                text = f'"{text}"' if not gone and cell in ('(missing)', '(rare)') else text
                expected += weight[f'{name}={text}']
        assert abs(expected - margin) < 1e-9, (row, expected, margin)


@test
def a_table_with_decimal_commas_gives_the_model_of_one_with_points(folder):
    rows = [[size, town, label] for _, _, size, town, label in table(400, missing=0)]
    write_table(folder / 'points.csv', rows, ['size', 'town', 'label'])
    text = (folder / 'points.csv').read_text().replace(',', ';').replace('.', ',')
    (folder / 'commas.csv').write_text(text)
    plain = train(write_job(folder, data=['points.csv'], l2=1e-3), '--fresh')
    refused = dml('run', write_job(folder, data=['commas.csv'], l2=1e-3), '--fresh')
    assert refused.status == BAD_DATA and 'csv.decimal = ","' in refused.stderr, refused
    assert 'until all but digits' not in refused.stderr, refused  # one reason, not two
    result = train(write_job(folder, data=['commas.csv'], l2=1e-3, csv={'decimal': ','}), '--fresh')
    assert result['model_sha256'] == plain['model_sha256'], (result, plain)
    assert predicted(folder / result['model'], folder / 'commas.csv') == \
        predicted(folder / plain['model'], folder / 'points.csv')
    (folder / 'bars.csv').write_text(text.replace(';', '!'))
    assert predicted(folder / result['model'], folder / 'bars.csv', '--set', 'csv.delimiter=!') \
        == predicted(folder / plain['model'], folder / 'points.csv')


@test
def texts_of_several_lines_are_cells(folder):
    rows = table(400)
    write_table(folder / 'plain.csv', rows)
    for row in rows:
        row[1] = row[1].replace(' ', '\n')
    write_table(folder / 'lines.csv', rows)
    models = [train(write_job(folder, data=[data], l2=1e-3), '--fresh')['model']
              for data in ('plain.csv', 'lines.csv')]
    names = json.loads((folder / models[1] / 'model.json').read_text())['feature_names']
    assert 'color=blue,\ndark' in names and 'color=blue, dark' not in names, names
    scored = [predicted(folder / model, folder / data)
              for model, data in zip(models, ('plain.csv', 'lines.csv'))]
    assert all(abs(float(a) - float(b)) < 1e-4 for a, b in zip(*scored)), scored


@test
def a_header_above_texts_alone_is_warned_of_and_told(folder):
    rows = [[town, 'big' if size > 0 else 'small', label]
            for _, _, size, town, label in table(100, missing=0)]
    write_table(folder / 'texts.csv', rows, ['town', 'size', 'label'])
    finished = dml('run', write_job(folder, data=['texts.csv']))
    assert finished.status == BAD_DATA, finished
    assert 'texts.csv:1: this line is taken for a row, although none of its texts occurs again' \
        in finished.stderr, finished
    assert 'is a third label, beside "label" and "' in finished.stderr, finished
    assert finished.stderr.count('set csv.header = yes') == 2, finished
    write_table(folder / 'bare.csv', rows, None)
    finished = dml('run', write_job(folder, data=['bare.csv']))
    assert finished.status == 0 and 'taken for a row' not in finished.stderr, finished


@test
def means_are_those_of_the_training_rows_however_files_split_them(folder):
    rows = table(600)
    write_table(folder / 'one.csv', rows)
    write_table(folder / 'a.csv', rows[:250])
    write_table(folder / 'b.csv', rows[250:], order=[3, 4, 0, 2, 1])
    hashes = set()
    for data in (['one.csv'], ['a.csv', 'b.csv']):
        result = train(write_job(folder, data=data, l2=1e-3), '--fresh')
        hashes.add(result['model_sha256'])
        preparation = json.loads(
            (folder / result['model'] / 'model.json').read_text())['preparation']
        ages = [row[0] for row in rows if row[0] not in ('', '?', 'NA')]
        assert abs(preparation['columns'][0]['mean'] - sum(ages) / len(ages)) < 1e-5, preparation
    assert len(hashes) == 1, hashes


@test
def columns_are_found_by_name_in_any_order(folder):
    state = trained(folder)
    rows = table(50, seed=4)
    plain = predictions(state, write_table(folder / 'new.csv', rows))
    order = [4, 2, 0, 3, 1]
    assert predictions(state, write_table(folder / 'turned.csv', rows, order=order)) == plain
    more = [[*row, 'x'] for row in rows]
    data = write_table(folder / 'more.csv', more, [*HEADER, 'note'])
    finished = dml('predict', state / 'models/1', data)
    assert finished.stdout.splitlines() == plain, finished
    assert finished.stderr.count('note') == 1 and 'ignored' in finished.stderr, finished
    unlabelled = [row[:4] for row in rows]
    data = write_table(folder / 'bare.csv', unlabelled, HEADER[:4], order=[3, 2, 1, 0])
    assert predictions(state, data) == plain


@test
def a_column_that_lacks_is_named(folder):
    state = trained(folder)
    data = write_table(folder / 'less.csv', table(5), order=[0, 1, 3, 4])
    for command in 'predict', 'evaluate':
        finished = dml(command, state / 'models/1', data)
        assert finished.status == BAD_DATA and not finished.stdout, finished
        assert 'less.csv:1: the column "size" is missing' in finished.stderr, finished
    job = write_job(folder, data=['data.csv', 'less.csv'], l2=1e-3, missing_columns='error')
    finished = dml('run', job, '--fresh')
    assert finished.status == BAD_DATA and 'the column "size" is missing' in finished.stderr


@test
def texts_that_training_did_not_have_add_nothing_and_are_counted(folder):
    state = trained(folder)
    known = write_table(folder / 'known.csv', [[30, 'red', 1, 'N', 'yes']])
    unknown = write_table(folder / 'unknown.csv', [[30, 'mauve', 1, 'Q', 'yes']])
    export = exported(state)
    weight = {f['name']: f['weights'][0] for f in export['features']}
    both = [margins(state, data)[0] for data in (known, unknown)]
    assert abs(both[0] - both[1] - weight['color=red'] - weight['town=N']) < 1e-9, both
    assert dml('evaluate', state / 'models/1', unknown, '--json').json['unseen_features'] == 2
    finished = dml('predict', state / 'models/1', unknown)
    assert '2 ' in finished.stderr and 'training did not have' in finished.stderr, finished
    unknown = write_table(folder / 'unknown.csv', [[30, 'café', 1, 'N', 'yes']])
    said = dml('predict', state / 'models/1', unknown).stderr
    assert 'such as "café" in column ' in said and 'is not UTF-8' not in said, said
    unknown.write_bytes(unknown.read_text().encode('latin-1'))
    assert 'which is not UTF-8' in dml('predict', state / 'models/1', unknown).stderr


@test
def a_number_that_training_never_missed_takes_its_mean(folder):
    write_table(folder / 'data.csv', table(200, missing=0))
    train(write_job(folder, data=['data.csv'], l2=1e-3))
    state = folder / 'job.state'
    mean = model_of(state)['preparation']['columns'][0]['mean']
    missed = write_table(folder / 'missed.csv', [['', 'red', 1, 'N', 'yes']])
    filled = write_table(folder / 'filled.csv', [[repr(mean), 'red', 1, 'N', 'yes']])
    assert predictions(state, missed) == predictions(state, filled)
    figures = dml('evaluate', state / 'models/1', missed, '--json').json
    assert 'unseen_features' not in figures, figures


@test
def the_mean_of_a_column_far_from_0_has_all_its_digits(folder):
    """A mean of 24 bits would be up to 64 seconds away from times of today."""
    rows = [[1_700_000_000 + 3 * i, 2 * (i % 3), i] for i in range(20)]
    write_table(folder / 'data.csv', rows, ['t', 'z', 'y'])
    new = write_table(folder / 'new.csv', [['', 2]], ['t', 'z'])
    result = train(write_job(folder, objective='squared', data=['data.csv']))
    preparation = model_of(folder / 'job.state')['preparation']
    assert preparation['columns'][0]['mean'] == 1_700_000_028.5, preparation
    assert abs(float(predicted(folder / result['model'], new)[0]) - 9.5) < 0.01
    result = train(write_job(folder, objective='squared', data=['data.csv'], csv={'weight': 'z'}))
    preparation = json.loads((folder / result['model'] / 'model.json').read_text())['preparation']
    mean = sum(z * t for t, z, _ in rows) / sum(z for _, z, _ in rows)
    assert math.isclose(preparation['columns'][0]['mean'], mean, rel_tol=1e-15), preparation


@test
def the_holdout_is_scored_as_its_rows_would_be_alone(folder):
    write_table(folder / 'data.csv', table(400))
    write_table(folder / 'held.csv', table(100, seed=5), order=[1, 0, 4, 3, 2])
    result = train(write_job(folder, data=['data.csv'], holdout='held.csv', l2=1e-3,
                             early_stopping=50))
    figures = dml('evaluate', folder / 'job.state/models/1', folder / 'held.csv', '--json').json
    assert result['holdout'].pop('rows')
    assert result['holdout'] == figures, (result['holdout'], figures)


@test
def a_text_in_a_column_of_numbers_is_named_with_advice(folder):
    rows = table(60)
    rows[40][0] = '4o'
    write_table(folder / 'data.csv', rows)
    finished = dml('run', write_job(folder, data=['data.csv']))
    assert finished.status == BAD_DATA, finished
    for word in ('data.csv:42: column 1 (age) holds "4o"', 'csv.categories', 'csv.missing',
                 'csv.skip'):
        assert word in finished.stderr, finished
    result = train(write_job(folder, data=['data.csv'], csv={'missing': ['4o', 'NA', '?']}))
    assert result['examples'] == 60, result


@test
def a_category_stays_one_where_a_later_file_has_numbers(folder):
    write_table(folder / 'a.csv', table(100, missing=0))
    write_table(folder / 'b.csv', [[*row[:3], k % 4, row[4]] for k, row in
                                   enumerate(table(100, seed=7))])
    train(write_job(folder, data=['a.csv', 'b.csv'], l2=1e-3))
    names = model_of(folder / 'job.state')['feature_names']
    assert 'town=N' in names and 'town=3' in names, names


@test
def kinds_are_as_the_job_says(folder):
    write_table(folder / 'data.csv', [[k % 3, k % 5, 'yes' if k % 7 < 3 else 'no']
                                      for k in range(100)], ['code', 'size', 'label'])
    train(write_job(folder, data=['data.csv'], l2=1e-3, csv={'categories': ['code']}))
    names = model_of(folder / 'job.state')['feature_names']
    assert sorted(names) == ['code=0', 'code=1', 'code=2', 'size'], names
    write_table(folder / 'text.csv', [['x', k % 5, k % 2] for k in range(9)],
                ['code', 'size', 'label'])
    finished = dml('run', write_job(folder, data=['text.csv'], csv={'numbers': ['code']}))
    assert finished.status == BAD_DATA and 'text.csv:2: column 1 (code)' in finished.stderr, finished


@test
def rare_texts_share_a_feature_in_training_and_when_scored(folder):
    rows = table(300, missing=0)
    for k, text in enumerate(['lime', 'teal', 'teal', 'plum', 'plum', 'plum']):
        rows[k * 7][1] = text
    write_table(folder / 'data.csv', rows)
    held = write_table(folder / 'held.csv', [[30, text, 1, 'N', 'yes'] for text in
                                             ('lime', 'teal', 'plum', 'mauve')] + table(50, seed=9))
    result = train(write_job(folder, data=['data.csv'], l2=1e-3, holdout=['held.csv'],
                             early_stopping=500, csv={'category_least': 3}))
    state = folder / 'job.state'
    names = model_of(state)['feature_names']
    assert 'color=(rare)' in names and 'color=plum' in names and 'color=lime' not in names, names
    lime, teal, plum, mauve = margins(state, held)[:4]
    weight = {f['name']: f['weights'][0] for f in exported(state)['features']}
    assert lime == teal and abs(lime - mauve - weight['color=(rare)']) < 1e-9, (lime, mauve, weight)
    assert result['holdout'].pop('rows')
    assert result['holdout'] == dml('evaluate', state / 'models/1', held, '--json').json
    assert result['holdout']['unseen_features'] == 1 + sum(
        cell in ('', '?', 'NA') for row in table(50, seed=9) for cell in (row[1], row[3])), result


@test
def hashed_categories_keep_no_names_and_score_alike(folder):
    state = trained(folder, csv={'hash': 3})
    model = model_of(state)
    assert model['preparation']['hash'] == 3, model['preparation']
    hashed = [name for name in model['feature_names'] if '#' in name]
    assert hashed and all(name.split('#')[0] in ('color', 'town') for name in hashed), hashed
    assert all(int(name.split('#')[1]) < 8 for name in hashed), hashed
    assert not any('=' in name for name in model['feature_names'] if '(missing)' not in name)
    figures = dml('evaluate', state / 'models/1', folder / 'data.csv', '--json').json
    assert figures['auc'] > 0.85 and 'unseen_features' not in figures, figures


@test
def numbers_in_bins_add_the_weights_of_their_bins(folder):
    rows = table(400)
    order = [3, 1, 4, 0, 2]
    hashes = set()
    for first, data in (('data.csv', ['data.csv']), ('a.csv', ['a.csv', 'b.csv'])):
        split = 400 if first == 'data.csv' else 150
        write_table(folder / first, rows[:split])
        write_table(folder / 'b.csv', rows[split:], order=order)
        result = train(write_job(folder, data=data, l2=1e-3, csv={'bins': 4}), '--fresh')
        hashes.add(result['model_sha256'])
    assert len(hashes) == 1, hashes
    state = folder / 'job.state'
    age = model_of(state)['preparation']['columns'][0]
    present = sorted(int(row[0]) for row in rows if row[0] not in ('', '?', 'NA'))
    assert age['edges'] == bin_edges(present, 4), age
    weight = {f['name']: f['weights'][0] for f in exported(state)['features']}
    low, high = (f'age=(-inf, {age["edges"][0]:g})', f'age=[{age["edges"][2]:g}, inf)')
    data = write_table(folder / 'new.csv', [[age['edges'][0] - 1, 'red', 1, 'N', 'yes'],
                                            [age['edges'][2], 'red', 1, 'N', 'yes'],
                                            ['', 'red', 1, 'N', 'yes']])
    below, above, gone = margins(state, data)
    years = age['edges'][2] - age['edges'][0] + 1
    assert abs(above - below - weight['age'] * years - weight[high] + weight[low]) < 1e-9
    expected = below + weight['age'] * (age['mean'] - age['edges'][0] + 1) - weight[low] + \
        weight['age=(missing)']
    assert abs(gone - expected) < 1e-9, (gone, expected)


@test
def a_column_of_names_is_refused_unless_it_is_meant(folder):
    rows = [[f'customer {k}', k % 5, 'yes' if k * 7 % 11 < 5 else 'no'] for k in range(200)]
    write_table(folder / 'data.csv', rows, ['who', 'size', 'label'])
    finished = dml('run', write_job(folder, data=['data.csv'], l2=1e-2))
    assert finished.status == BAD_DATA, finished
    for word in ('column 1 (who) holds 200 different texts in 200 rows', 'csv.skip',
                 'csv.categories'):
        assert word in finished.stderr, finished
    result = train(write_job(folder, data=['data.csv'], l2=1e-2, csv={'categories': ['who']}))
    assert result['features'] == 201, result
    result = train(write_job(folder, data=['data.csv'], l2=1e-2, csv={'skip': ['who']}), '--fresh')
    assert result['features'] == 1, result


@test
def a_column_with_missing_cells_alone_does_no_harm(folder):
    write_table(folder / 'data.csv', [['', k % 5, 'yes' if k * 7 % 11 < 5 else 'no']
                                      for k in range(100)], ['gone', 'size', 'label'])
    assert train(write_job(folder, data=['data.csv'], l2=1e-2))['converged']
    assert len(predictions(folder / 'job.state', folder / 'data.csv')) == 100


@test
def a_column_that_is_empty_in_all_training_rows_is_warned_of(folder):
    cells = {'no': lambda i: '', 'words': lambda i: '?', 'some': lambda i: '' if i % 9 else '3', 'zero': lambda i: '0'}
    for wanted, warned in (['some', 'zero'], None), (['no', 'some'], 'rows.csv: column 2 (no) is empty in all rows'), \
            (['no', 'zero', 'words'], 'rows.csv: 2 columns are empty in all rows that are trained on, such as column 2 (no)'):
        rows = [','.join([str(i), *(cells[name](i) for name in wanted), str(int(i * i % 11 > 4))]) for i in range(120)]
        (folder / 'rows.csv').write_text('\n'.join([','.join(['size', *wanted, 'label']), *rows]) + '\n')
        for settings in {}, {'holdout': 0.3}, {'csv': {'categories': wanted}}:
            finished = dml('run', '--fresh', write_job(folder, data=['rows.csv'], l2=1e-2, **settings))
            assert finished.status == 0, finished
            assert warned in finished.stderr if warned else 'empty in all' not in finished.stderr, (settings, finished)


@test
def a_text_that_is_too_long_is_named(folder):
    rows = table(60)
    rows[30][1] = 'x' * 1000000
    write_table(folder / 'data.csv', rows)
    finished = dml('run', write_job(folder, data=['data.csv'], l2=1e-2))
    assert finished.status == BAD_DATA and len(finished.stderr) < 3000, finished
    assert 'data.csv:32: column 2 (color) holds a text of 1000000 bytes' in finished.stderr


@test
def names_and_texts_that_are_no_utf_8_are_kept_apart(folder):
    rows = b''.join(b'%s,%d,%s\n' % (text, k % 9, b'yes' if k % 3 else b'no')
                    for k in range(30) for text in (b'\xff\xfe', b'\xe9', 'é'.encode()))
    (folder / 'data.csv').write_bytes(b'n\xe9,size,label\n' + rows)
    train(write_job(folder, data=['data.csv'], l2=1e-3))
    names = model_of(folder / 'job.state')['feature_names']
    assert len(names) == 4 and 'né=é' in names, names
    assert predictions(folder / 'job.state', folder / 'data.csv')


@test
def the_same_model_whoever_trains_a_table(folder):
    write_table(folder / 'data.csv', table(500))
    hashes = set()
    for settings in ({}, {'replicas': 3, 'shards': 2}, {'threads': 1, 'portion_chunks': 1}):
        result = train(write_job(folder, data=['data.csv'], l2=1e-3, **settings), '--fresh')
        hashes.add(result['model_sha256'])
    assert len(hashes) == 1, hashes


@test
def the_raw_adult_table_needs_three_lines(folder):
    data, raw = shared('adult.data.gz'), shared('adult.test.gz')
    result = train(write_job(folder, data=[data], l2=1e-4))
    assert result['converged'] and result['examples'] == 32561, result
    text = gzip.open(raw, 'rt').read().replace('K.\n', 'K\n')
    (folder / 'adult.test').write_text(text)
    state = folder / 'job.state'
    figures = dml('evaluate', state / 'models/1', folder / 'adult.test', '--json').json
    assert figures['auc'] >= 0.9055 and figures['accuracy'] >= 0.853, figures
    assert len(predictions(state, raw)) == 16281
    train(write_job(folder, data=[data], l2=1e-4, csv={'bins': 32}), '--fresh')
    figures = dml('evaluate', state / 'models/2', folder / 'adult.test', '--json').json
    assert figures['auc'] >= 0.912, figures


sys.exit(main())
