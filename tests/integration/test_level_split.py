#!/usr/bin/env python3
"""Without a penalty a level that training never saw means the same whatever the way to the optimum
was: levels are centred over their rows, also those that are within others."""

import itertools
import json
import math
import random
import sys

from harness import dml, main, test, train, write_job
from summaries import write_csv

WAYS = [{'precondition': way, 'standardise': scaled}
        for way, scaled in itertools.product(('none', 'diagonal', 'block'), (False, True))]
EXACT = {'l2': 0, 'gradient_tolerance': 1e-10, 'loss_tolerance': 0}


def predictions(folder, rows, unseen, ways=WAYS, **settings):
    """Of the rows that were trained on, and of others, by each way to the optimum."""
    write_csv(folder / 'rows.csv', rows)
    write_csv(folder / 'unseen.csv', unseen)
    found = []
    for way in ways:
        result = train(write_job(folder, data=['rows.csv'], **{**EXACT, **settings, **way}), '--fresh')
        said = dml('predict', result['model'], folder / 'unseen.csv')
        assert said.status == 0, said
        found.append([float(word) for word in said.stdout.split()])
    return found


def assert_alike(found, relative=1e-5):
    for one, other in itertools.combinations(found, 2):
        assert all(math.isclose(a, b, rel_tol=relative, abs_tol=1e-9)
                   for a, b in zip(one, other, strict=True)), found


@test
def the_prediction_for_an_unseen_text_is_that_of_the_mean_effect(folder):
    counts = {'A': (1, 3), 'B': (18, 22), 'C': (190, 210)}
    rows = [{'town': town, 'y': y} for town, labels in counts.items() for y in labels]
    found = predictions(folder, rows, [{'town': 'D'}, {'town': 'A'}], objective='poisson')
    assert_alike(found)
    assert math.isclose(found[0][0], 20, rel_tol=1e-5) and math.isclose(found[0][1], 2, rel_tol=1e-5)
    # Three times as many rows of A: the mean is of rows, and weights are rows.
    often = predictions(folder, [row for row in rows for _ in range(3 if row['town'] == 'A' else 1)],
                        [{'town': 'D'}], objective='poisson')
    heavy = [{'w': 3 if row['town'] == 'A' else 1, **row} for row in rows]
    weighted = predictions(folder, heavy, [{'town': 'D'}], objective='poisson', csv={'weight': 'w'})
    mean = math.exp((3 * math.log(2) + math.log(20) + math.log(200)) / 5)
    assert_alike(often + weighted)
    assert math.isclose(often[0][0], mean, rel_tol=1e-5), (often, mean)


def table(count=400):
    rng, rows = random.Random(1), []
    for _ in range(count):
        town, colour, x = rng.randrange(6), rng.randrange(3), rng.gauss(0, 1)
        margin = 0.3 * town - 0.4 * colour + 0.3 * x + 0.5 * (town == colour == 0)
        rows.append({'town': f't{town}', 'colour': f'c{colour}', 'county': f'k{town // 2}', 'x': round(x, 3),
                     'title': ' '.join(rng.choice(('good', 'bad', 'old', 'new')) for _ in range(2)),
                     'y': margin, 'noise': rng.random()})
    return rows


def labelled(rows, loss):
    def label(row):
        chance = 1 / (1 + math.exp(-row['y']))
        if loss == 'poisson':
            return int(math.exp(row['y']) * -math.log(row['noise']))
        if loss == 'squared':
            return row['y'] + row['noise']
        return (row['noise'] < chance) + (row['noise'] < 0.4 * chance) * (loss != 'logistic')
    return [{**{name: row[name] for name in row if name not in ('y', 'noise')}, 'y': label(row)}
            for row in rows]


UNSEEN = [{'town': town, 'colour': colour, 'county': county, 'x': 0.5, 'title': title}
          for town, colour, county, title in [('zz', 'c0', 'k1', 'good bad'), ('t0', 'zz', 'k0', 'strange'),
                                              ('zz', 'zz', 'k2', 'bad'), ('t0', 'c1', 'k0', 'old old'),
                                              ('t0', 'c1', 'zz', 'new')]]


@test
def categories_that_are_within_others_crosses_bins_and_words_mean_the_same_by_every_way(folder):
    for loss in 'poisson', 'squared', 'logistic', 'softmax', 'proportional_odds':
        rows = labelled(table(), loss)
        for settings in ({}, {'cross': ['town*colour']}, {'csv': {'bins': 4}},
                         {'csv': {'text': ['title']}}):
            if loss == 'softmax' and settings:
                continue
            skip = {} if 'csv' in settings and 'text' in settings['csv'] else {'skip': ['title']}
            csv = {**settings.get('csv', {}), **skip}
            found = predictions(folder, rows, UNSEEN, WAYS[::2], objective=loss,
                                **{**settings, 'csv': csv})
            assert_alike(found, 1e-4)


@test
def crosses_that_are_within_other_crosses_mean_the_same_by_every_way(folder):
    crosses = [['town*colour', 'colour*county'], ['colour*county', 'town*colour'], ['pairs'],
               ['town*colour', 'town*county', 'town*colour*county']]
    for loss, cross in itertools.product(('poisson', 'squared'), crosses):
        found = predictions(folder, labelled(table(), loss), UNSEEN, WAYS[::2], objective=loss, cross=cross,
                            csv={'skip': ['title']})
        assert_alike(found, 1e-4)


@test
def margins_of_training_rows_and_the_loss_stay(folder):
    rows = labelled(table(), 'poisson')
    write_csv(folder / 'rows.csv', rows)
    job = write_job(folder, data=['rows.csv'], objective='poisson', cross=['town*colour'],
                    csv={'skip': ['title']}, **EXACT)
    result = train(job)
    measured = json.loads(dml('evaluate', result['model'], folder / 'rows.csv', '--json').stdout)
    assert math.isclose(measured['loss'], result['loss'], rel_tol=1e-12), (measured, result['loss'])


@test
def a_model_that_was_split_stays_as_it_is_to_the_bit(folder):
    for loss in 'poisson', 'squared', 'logistic', 'softmax', 'proportional_odds':
        write_csv(folder / 'rows.csv', labelled(table(), loss))
        for settings in {}, {'cross': ['town*colour', 'colour*county', 'town*county']}:
            job = write_job(folder, data=['rows.csv'], objective=loss, csv={'skip': ['title']},
                            **settings, **EXACT)
            first = train(job, '--fresh')
            again = train(job, '--fresh', '--start', first['model'], '--set', 'max_steps=0')
            assert first['model_sha256'] == again['model_sha256'], (loss, settings)


@test
def cells_that_are_missing_and_levels_of_few_rows_change_nothing(folder):
    rng = random.Random(6)
    rows = labelled(table(), 'poisson')
    for row in rows:
        row['town'] = '' if rng.random() < 0.2 else row['town'] if rng.random() < 0.95 else 'rare'
    for csv in {'skip': ['title']}, {'skip': ['title', 'county'], 'category_least': 30}:
        assert_alike(predictions(folder, rows, UNSEEN, WAYS[::2], objective='poisson', csv=csv), 1e-4)


if __name__ == '__main__':
    sys.exit(main())
