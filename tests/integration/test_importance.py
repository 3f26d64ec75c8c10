#!/usr/bin/env python3
"""What columns bring to the score of a model, against sums over the rows of the table."""

import csv
import json
import math
import random
import sys

from harness import (BAD_DATA, UNAVAILABLE, USAGE, dml, main, small_job, test, train, write_job)

CITIES = ['Paris', 'Rome', 'Oslo', '']


def write_table(path, label, seed=4, rows=400):
    """Numbers, some of them missing, a category, and a weight for each row."""
    rng = random.Random(seed)
    with open(path, 'w', newline='') as file:
        writer = csv.writer(file)
        writer.writerow(['age', 'city', 'noise', 'amount', 'label'])
        for _ in range(rows):
            age, city, noise = rng.randint(20, 70), rng.choice(CITIES), rng.gauss(1000, 3)
            score = .08 * (age - 45) + 2 * (city == 'Rome') + rng.gauss(0, 1)
            writer.writerow(['' if rng.random() < .1 else age, city, f'{noise:.3f}',
                             rng.choice([.5, 1, 2]), label(score)])
    with open(path, newline='') as file:
        return list(csv.DictReader(file))


def importance(state, *more):
    finished = dml('export', state, '--importance', '--json', *more)
    assert finished.status == 0, finished
    return finished.json


def weights_of(state):
    """By feature, a weight for each output."""
    model = json.loads(dml('export', state, '--format', 'json').stdout)
    return {feature['name']: feature['weights'] for feature in model['features']}


def contributions(weights, rows, outputs):
    """Of each column, of each row and output, what it adds to the score."""
    def number(row, name):
        known = [(float(r[name]), float(r['amount'])) for r in rows if r[name]]
        mean = sum(x * w for x, w in known) / sum(w for _, w in known)
        value, missing = (float(row[name]), 0) if row[name] else (mean, 1)
        gap = weights.get(f'{name}=(missing)', [0] * outputs)
        return [value * weights[name][k] + missing * gap[k] for k in range(outputs)]
    return {'age': [number(row, 'age') for row in rows],
            'city': [weights[f'city={row["city"] or "(missing)"}'] for row in rows],
            'noise': [number(row, 'noise') for row in rows]}


def expected(weights, rows, outputs):
    """The deviation and the share of each column, by their definition."""
    weight = [float(row['amount']) for row in rows]
    total = sum(weight)
    parts = contributions(weights, rows, outputs)

    def covariance(a, b):
        mean_a, mean_b = (sum(w * x for w, x in zip(weight, side)) / total for side in (a, b))
        return sum(w * (x - mean_a) * (y - mean_b) for w, x, y in zip(weight, a, b)) / total
    score = [[sum(parts[name][i][k] for name in parts) for i in range(len(rows))]
             for k in range(outputs)]
    variance = sum(covariance(side, side) for side in score)
    found = {}
    for name, part in parts.items():
        sides = [[row[k] for row in part] for k in range(outputs)]
        found[name] = (math.sqrt(sum(covariance(side, side) for side in sides)),
                       sum(covariance(side, all_) for side, all_ in zip(sides, score)) / variance)
    return found


def check(found, awaited):
    assert [column['column'] for column in found['columns']] == \
        sorted(awaited, key=lambda name: -awaited[name][0]), found
    for column in found['columns']:
        deviation, share = awaited[column['column']]
        assert math.isclose(column['deviation'], deviation, rel_tol=1e-9), (column, deviation)
        assert math.isclose(column['share'], share, rel_tol=1e-9, abs_tol=1e-12), (column, share)
    assert math.isclose(sum(column['share'] for column in found['columns']), 1, rel_tol=1e-9)


@test
def columns_bring_the_deviation_of_the_sum_over_all_their_features(folder):
    rows = write_table(folder / 'rows.csv', lambda score: 'yes' if score > 0 else 'no')
    job = write_job(folder, data=['rows.csv'], csv={'weight': 'amount', 'positive': 'yes'})
    train(job)
    found = importance(folder / 'job.state')
    assert (found['rows'], found['training_rows'], found['more']) == (400, 400, 0), found
    check(found, expected(weights_of(folder / 'job.state'), rows, 1))
    assert {column['column']: column['features'] for column in found['columns']} == \
        {'age': 2, 'city': 4, 'noise': 1}, found
    lines = dml('export', folder / 'job.state', '--importance').stdout.splitlines()
    assert lines[0].split() == ['deviation', 'share', 'features', 'column'], lines
    assert [line.split()[-1] for line in lines[1:]] == \
        [column['column'] for column in found['columns']], lines


@test
def what_all_margins_have_alike_brings_nothing_to_softmax(folder):
    rows = write_table(folder / 'rows.csv', lambda score: ['low', 'mid', 'high'][
        min(2, max(0, round(score + 1)))])
    job = write_job(folder, data=['rows.csv'], objective='softmax', csv={'weight': 'amount'})
    train(job)
    weights = {name: [w - sum(each) / 3 for w in each]
               for name, each in weights_of(folder / 'job.state').items()}
    check(importance(folder / 'job.state'), expected(weights, rows, 3))


@test
def crosses_bins_and_parts_of_dates_are_columns_of_their_own_or_of_their_number(folder):
    rng = random.Random(1)
    lines = ['a,b,x,day,label'] + [
        f'{rng.choice("uvw")},{rng.choice("st")},{rng.randint(0, 99)},2024-0{rng.randint(1, 9)}-11,'
        f'{rng.choice(["yes", "no"])}' for _ in range(200)]
    (folder / 'rows.csv').write_text('\n'.join(lines) + '\n')
    job = write_job(folder, data=['rows.csv'], cross=['a*b'], cross_least=1,
                    csv={'bins': 4, 'dates': ['day']})
    train(job)
    found = {column['column']: column['features']
             for column in importance(folder / 'job.state')['columns']}
    assert found['a'] == 3 and found['b'] == 2 and found['a * b'] == 6, found
    assert found['x'] == 5, 'the number and its bins'
    assert found['day.month'] == 9, found


@test
def it_has_the_same_bits_with_any_number_of_workers(folder):
    job = small_job(folder)
    texts = []
    for replicas in 1, 3:
        train(job, '--fresh', '--set', f'replicas={replicas}', '--set', f'threads={replicas}')
        texts.append(dml('export', folder / 'job.state', '--importance', '--json').stdout)
    assert texts[0] == texts[1] and json.loads(texts[0])['columns'], texts


@test
def rows_that_are_gone_and_networks_are_refused_with_what_to_do(folder):
    job = small_job(folder)
    train(job)
    state = folder / 'job.state'
    refused = dml('export', state, '--importance', '--top', '3')
    assert refused.status == USAGE and 'exclude each other' in refused.stderr, refused
    for file in (state / 'packs').glob('*.set'):
        file.unlink()
    refused = dml('export', state, '--importance')
    assert refused.status == UNAVAILABLE and '--top N' in refused.stderr, refused
    train(job, '--set', 'objective=network', '--set', 'network.layers=2', '--set', 'max_steps=3',
          '--state', folder / 'network.state')
    refused = dml('export', folder / 'network.state', '--importance')
    assert refused.status == BAD_DATA and 'network' in refused.stderr, refused


if __name__ == '__main__':
    sys.exit(main())
