#!/usr/bin/env python3
"""Crossed columns of tables: the optimum of the matrix that is written out, scored alike everywhere."""

import collections
import json
import math
import random
import sys

from bins import bin_edges
from harness import BAD_DATA, CONFIG, dml, lines_of, long_test, main, shared, test, train, write_job
from optimum import minimum
from sweeps import killed

HEADER = ['age', 'color', 'town', 'y']
EXACT = {'gradient_tolerance': 1e-10, 'loss_tolerance': 0, 'max_steps': 3000}
BINS, LEAST, L2 = 3, 5, 0.01


def cells(rows=250, seed=1, colors='red green blue odd'.split()):
    """Rows of a number and two texts, whose combinations say more than they say alone."""
    rng = random.Random(seed)
    table = []
    for _ in range(rows):
        age = rng.randrange(18, 80)
        color = rng.choices(colors, [9, 9, 9, 1, 2][:len(colors)])[0]
        town = rng.choice(['N', 'S'])
        margin = (color == 'red') * (3 if town == 'N' else -3) + (age > 50) * (town == 'S') - 0.4
        label = 'yes' if margin + rng.gauss(0, 1) > 0 else 'no'
        row = ['' if rng.random() < 0.1 else cell for cell in (age, color, town)]
        table.append([*row, label])
    return table


def write_table(path, rows, header=HEADER, order=range(4)):
    lines = [header] + rows
    path.write_text(''.join(','.join(str(row[i]) for i in order) + '\n' for row in lines))
    return path


class Matrix:
    """What the manuals say that rows become, in plain Python: from rows of training, for any rows."""

    def __init__(self, rows, crosses, rare=1):
        self.crosses = crosses
        self.value = 2.0 ** -(int(math.log2(len(crosses))) // 2)
        ages = sorted(float(row[0]) for row in rows if row[0] != '')
        self.edges = bin_edges(ages, BINS)
        mean = math.fsum(ages) / len(ages)
        self.mean = mean
        counts = [collections.Counter(row[i] for row in rows) for i in range(3)]
        self.rare = [{text for text in counts[i] if i and text != '' and counts[i][text] < rare}
                     for i in range(3)]
        self.known = None
        names = collections.Counter(name for row in rows for name in self.row(row))
        self.known = sorted(name for name in names
                            if '*' not in name or names[name] >= LEAST)

    def part(self, row, i):
        name, cell = HEADER[i], row[i]
        if cell == '':
            return f'{name}=(missing)'
        if i:
            return f'{name}={"(rare)" if cell in self.rare[i] else cell}'
        at = sum(edge <= float(cell) for edge in self.edges)
        low = f'[{self.edges[at - 1]:g}' if at else '(-inf'
        high = f'{self.edges[at]:g}' if at < len(self.edges) else 'inf'
        return f'{name}={low}, {high})'

    def row(self, row):
        """Values by the names of features."""
        parts = [self.part(row, i) for i in range(3)]
        values = {'age': self.mean if row[0] == '' else float(row[0]), **dict.fromkeys(parts, 1.0)}
        for cross in self.crosses:
            values[' * '.join(parts[i] for i in cross)] = self.value
        return {k: v for k, v in values.items() if self.known is None or k in self.known}

    def rows(self, rows):
        out = []
        for row in rows:
            values = self.row(row)
            out.append([values.get(name, 0.0) for name in self.known] + [1.0])
        return out


def job_of(folder, **settings):
    settings = {'data': ['data.csv'], 'l2': L2, 'cross_least': LEAST, **EXACT, **settings}
    settings['csv'] = {'bins': BINS, **settings.get('csv', {})}
    return write_job(folder, **settings)


def weights_of(state):
    export = json.loads(dml('export', state, '--format', 'json').stdout)
    return {f['name']: f['weights'][0] for f in export['features']}, export['intercepts'][0]


def predicted(model, data):
    finished = dml('predict', model, data)
    assert finished.status == 0, finished
    return [float(line) for line in finished.stdout.splitlines()]


PAIRS = [(0, 1), (0, 2), (1, 2)]
LISTS = {  # of the job, and the columns
    'pairs': (['pairs'], PAIRS),
    'by name and number': (['town * color', '1*2'], [(1, 2), (0, 1)]),
    'three columns': (['pairs', 'age*color*town'], [*PAIRS, (0, 1, 2)]),
}


@test
def the_optimum_is_that_of_the_matrix_written_out(folder):
    rows, new = cells(), cells(100, seed=2, colors='red green blue odd new'.split())
    write_table(folder / 'data.csv', rows)
    write_table(folder / 'new.csv', new)
    for name, (texts, crosses) in LISTS.items():
        for rare in (1, 15):
            matrix = Matrix(rows, crosses, rare)
            best = minimum(matrix.rows(rows), [1 if row[3] == 'yes' else -1 for row in rows], L2)
            result = train(job_of(folder, cross=texts, csv={'category_least': rare}), '--fresh')
            assert math.isclose(result['loss'], best, rel_tol=1e-9), (name, rare, result, best)
            weight, intercept = weights_of(folder / 'job.state')
            assert sorted(weight) == matrix.known, (name, rare, sorted(weight), matrix.known)
            for row, p in zip(new, predicted(folder / 'job.state', folder / 'new.csv')):
                margin = intercept + math.fsum(value * weight[feature]
                                               for feature, value in matrix.row(row).items())
                assert math.isclose(p, 1 / (1 + math.exp(-margin)), rel_tol=1e-9), (name, row)


@test
def files_and_packs_are_scored_alike(folder):
    write_table(folder / 'data.csv', cells())
    write_table(folder / 'new.csv', cells(100, seed=2))
    write_table(folder / 'other.csv', cells(100, seed=2), order=[2, 3, 0, 1])
    result = train(job_of(folder, cross=['pairs'], test=['new.csv']))
    for name in ('new.csv', 'other.csv'):
        figures = dml('evaluate', folder / 'job.state', folder / name, '--json').json
        assert figures['loss'] == result['test']['loss'], (name, figures, result)


@test
def any_division_of_the_work_and_the_rows_gives_one_model(folder):
    rows = cells(400)
    write_table(folder / 'data.csv', rows)
    for i in range(3):
        write_table(folder / f'part{i}.csv', rows[i * 150:(i + 1) * 150])
    job = job_of(folder, cross=['pairs', 'age*color*town'])
    ways = [(), ('--set', 'replicas=3', '--set', 'shards=2'), ('--set', 'threads=3'),
            ('--set', 'data={"part0.csv", "part1.csv", "part2.csv"}'),
            ('--set', 'cross={"3*2*1", "age*town", "pairs", "town*color"}')]
    results = [train(job, '--fresh', *way)['model_sha256'] for way in ways]
    assert len(set(results)) == 1, results


@test
def a_run_that_is_killed_ends_with_the_same_model(folder):
    write_table(folder / 'data.csv', cells(400))
    job = job_of(folder, cross=['pairs'], checkpoint_seconds=0)
    expected = train(job, '--state', folder / 'quiet.state')['model_sha256']
    killed('run', job, 'model_publish:1')
    assert train(job)['model_sha256'] == expected


WAYS = {
    'hashed texts': {'csv': {'hash': 8}},
    'a holdout': {'holdout': 0.3, 'early_stopping': 500},
    'folds': {'holdout': 0.3, 'folds': 3, 'l2': [0.1, 0.01]},
    'standardised': {'standardise': True, 'l1': 1e-3},
    'minibatches': {'optimizer': 'downpour', 'downpour': {'epochs': 2}},
    'tiles': {'strip_columns': 8},
    'several classes': {'objective': 'softmax'},
    'a network': {'objective': 'network', 'network': {'layers': [4]}, 'max_steps': 20},
}


@test
def crosses_go_together_with_everything_else(folder):
    """Whatever is trained is read back, row by row, before it goes live."""
    write_table(folder / 'data.csv', cells(400))
    for name, settings in WAYS.items():
        results = [train(job_of(folder, cross=['pairs'], **{
            'gradient_tolerance': 1e-5, **settings}), '--fresh', '--set', f'replicas={n}')
            for n in (1, 2)]
        assert results[0]['model_sha256'] == results[1]['model_sha256'], (name, results)
        names = json.loads((folder / 'job.state/models/current/model.json').read_text())
        assert any(' * ' in feature for feature in names['feature_names']), (name, names)


@test
def columns_that_a_file_lacks_are_crossed_as_missing_ones(folder):
    rows = cells(300)
    write_table(folder / 'a.csv', rows[:150])
    write_table(folder / 'b.csv', rows[150:], order=[1, 3])
    empty = [['', row[1], '', row[3]] for row in rows[150:]]
    write_table(folder / 'c.csv', empty)
    lacking = train(job_of(folder, cross=['pairs'], data=['a.csv', 'b.csv'],
                           csv={'header': 'yes'}), '--fresh')
    present = train(job_of(folder, cross=['pairs'], data=['a.csv', 'c.csv']), '--fresh')
    assert math.isclose(lacking['loss'], present['loss'], rel_tol=1e-9), (lacking, present)
    assert lacking['values'] == present['values'] and lacking['features'] == present['features']


@test
def nights_start_from_crosses_and_tell_which_vanished(folder):
    job = job_of(folder, cross=['pairs'], holdout=0.3, gate=['loss <= 2 * live'],
                 gradient_tolerance=1e-7, vanished='keep', csv={'label': 'y'})
    write_table(folder / 'data.csv', cells(400))
    first = dml('retrain', job, '--json')
    assert first.status == 0, first
    rows = [row for row in cells(400, seed=3) if row[1] != 'red']
    write_table(folder / 'data.csv', rows, order=[2, 1, 3, 0])
    second = dml('retrain', job, '--json')
    assert second.status == 0 and second.json['published'], second
    names = json.loads((folder / 'job.state/models/current/model.json').read_text())['feature_names']
    assert any('color=red * town=' in name for name in names), names
    assert 'color=red' in names, names


@test
def a_model_says_what_it_crosses(folder):
    write_table(folder / 'data.csv', cells())
    train(job_of(folder, cross=['pairs']))
    model = json.loads((folder / 'job.state/models/1/model.json').read_text())
    assert model['preparation']['crosses'] == [[1, 2], [1, 3], [2, 3]], model['preparation']
    assert model['preparation']['cross_value'] == 1, model['preparation']
    train(job_of(folder), '--fresh')
    model = json.loads((folder / 'job.state/models/2/model.json').read_text())
    assert 'crosses' not in model['preparation'], model


@test
def other_settings_make_another_set_of_the_same_packs(folder):
    write_table(folder / 'data.csv', cells())
    train(job_of(folder))
    for settings in ({'cross': ['pairs']}, {'cross': ['color*town']},
                     {'cross': ['pairs'], 'cross_least': 1}):
        finished = dml('run', job_of(folder, **settings), '--fresh')
        assert 'its pack is used again' in finished.stderr, finished
        assert 'merged 1 pack' in finished.stderr, finished


@test
def what_cannot_be_crossed_is_an_error_that_says_why(folder):
    write_table(folder / 'data.csv', cells())
    for text, settings, status, why in (
            ('color*twon', {}, BAD_DATA, 'no column "twon": give names, or numbers from 1, with * '
                                         'between them; did you mean `town`?'),
            ('color*y', {}, CONFIG, 'column 4 (y) is no feature: it is the label'),
            ('color*color', {}, CONFIG, 'has column 2 (color) twice'),
            ('color*', {}, CONFIG, 'is one column'),
            ('color', {}, CONFIG, 'allowed: pairs, or columns'),
            ('color*9', {}, BAD_DATA, 'no column "9"'),
            ('color*0', {}, BAD_DATA, 'no column "0"'),
            ('age*color', {'csv': {'bins': 'off'}}, CONFIG, 'set csv.bins'),
            ('pairs', {'csv': {'bins': 'off', 'skip': ['town']}}, CONFIG, 'no two columns')):
        job = job_of(folder, cross=[text], **settings)
        for command in ('check', 'run'):
            finished = dml(command, job)
            assert finished.status == status and why in finished.stderr, (text, command, finished)
            assert 'key `cross`' in finished.stderr, finished


@test
def check_says_what_crosses_cost(folder):
    write_table(folder / 'data.csv', cells())
    job = job_of(folder, cross=['pairs', 'age*color*town'])
    assert '# crosses: 4; a row has up to so many values beside 4 others' in \
        dml('check', job).stdout, dml('check', job)
    answer = dml('check', job, '--json').json
    assert answer['crosses'] == 4 and answer['crosses_row_bytes'] == 32, answer
    assert 'crosses' not in dml('check', job_of(folder), '--json').json
    (folder / 'rows.libsvm').write_text(''.join(f'{i % 2} 1:{i}\n' for i in range(20)))
    finished = dml('run', job_of(folder, data=['rows.libsvm'], cross=['pairs']))
    assert 'key `cross`: has no effect: the data is libsvm' in finished.stderr, finished


@test
def of_many_possible_combinations_those_that_occur_are_kept(folder):
    """10^8 are possible of two columns, 3 times as many of three."""
    rng = random.Random(5)
    lines = ['a,b,c,y']
    for i in range(20000):
        a, b = rng.randrange(10000), rng.randrange(10000)
        lines.append(f'a{a},b{b if i % 2 else a % 7},c{i % 3},{"yes" if rng.random() < 0.5 else "no"}')
    (folder / 'data.csv').write_text('\n'.join(lines) + '\n')
    job = write_job(folder, data=['data.csv'], cross=['a*b', 'a*b*c'], cross_least=2, max_steps=3,
                    csv={'categories': ['a', 'b', 'c']})
    result = train(job)
    counted = [collections.Counter(tuple(line.split(',')[:n]) for line in lines[1:])
               for n in (2, 3)]
    single = sum(len({line.split(',')[i] for line in lines[1:]}) for i in range(3))
    kept = sum(count >= 2 for counter in counted for count in counter.values())
    assert result['features'] == single + kept, (result, single, kept)


@long_test
def pairs_lift_a_raw_table_near_boosted_trees(folder):
    """Adult: boosted trees have an area of .927; l2 is that which nobody set."""
    names = ['age', 'work', 'weight', 'school', 'years', 'married', 'job', 'relation', 'race', 'sex',
             'gain', 'loss', 'hours', 'country', 'income']
    for part, file in (('train', 'adult.data.gz'), ('test', 'adult.test.gz')):
        lines = [line.rstrip('.').replace(', ', ',') for line in lines_of(shared(file))]
        lines = [line for line in lines if line.count(',') == 14]
        (folder / f'{part}.csv').write_text('\n'.join([','.join(names), *lines]) + '\n')
    plain = {'data': ['train.csv'], 'test': ['test.csv']}
    before = train(write_job(folder, **plain), '--fresh')
    after = train(write_job(folder, cross=['pairs'], csv={'bins': 256}, **plain), '--fresh')
    assert after['test']['auc'] >= 0.92 > before['test']['auc'], (before['test'], after['test'])
    assert after['test']['loss'] < before['test']['loss'] - 0.01, (before['test'], after['test'])


if __name__ == '__main__':
    sys.exit(main())
