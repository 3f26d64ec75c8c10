#!/usr/bin/env python3
"""What is found does not depend on the unit of the labels: rates, counts and amounts of any size."""

import json
import math
import random
import sys

from harness import dml, main, test, train, write_job

AGES, SEXES = (30, 50, 70), (0, 1)
UNITS = (1e-9, 1, 1e6)


def write_table(path, rows, header):
    path.write_text('\n'.join([header, *(','.join(map(repr, row)) for row in rows)]) + '\n')
    return path.name


def coefficients(folder, name='job'):
    """{column: weight} of the current model, and the intercept as ''."""
    model = json.loads(dml('export', folder / f'{name}.state', '--json').stdout)
    return {'': model['intercepts'][0],
            **{feature['name']: feature['weights'][0] for feature in model['features']}}


def made_rows(label, count=200, seed=1):
    rng = random.Random(seed)
    rows = []
    for _ in range(count):
        a, b = round(rng.uniform(-1, 1), 3), round(rng.uniform(-1, 1), 3)
        rows.append((a, b, label(a - b / 2, rng)))
    return rows


LABELS = {'poisson': lambda margin, rng: round(math.exp(margin + rng.gauss(0, 0.5)), 4),
          'gamma': lambda margin, rng: round(math.exp(margin + rng.gauss(0, 0.5)) + 1e-3, 4),
          'tweedie': lambda margin, rng: rng.choice((0, 1, 2)) * round(math.exp(margin), 4),
          'squared': lambda margin, rng: round(margin + rng.gauss(0, 0.5), 4)}


@test
def rates_give_the_model_of_counts_with_their_exposure(folder):
    rng = random.Random(2)
    rows = [(age, sex, rng.randrange(100, 400) * 1_000_000) for age in AGES for sex in SEXES]
    counts = [(*row, round(row[2] * 1e-9 * math.exp(row[0] / 30 + row[1] / 2) * rng.uniform(0.8, 1.2)
                           + 1, 3)) for row in rows]
    rates = [(*row[:3], row[3] / row[2]) for row in counts]
    found = {}
    for name, table, csv, more in (
            ('counts', counts, {'label': 'y'}, {'exposure': 'people'}),
            ('rates', rates, {'label': 'y', 'weight': 'people'}, {})):
        data = write_table(folder / f'{name}.csv', table, 'age,sex,people,y')
        result = train(write_job(folder, name, data=[data], objective='poisson', l2=0, csv=csv, **more))
        assert result['converged'] and result['gap_estimate'] < 1e-5 * result['loss'], result
        found[name] = coefficients(folder, name)
    for column, weight in found['counts'].items():
        assert math.isclose(weight, found['rates'][column], rel_tol=1e-4), found


@test
def every_unit_of_a_label_ends_at_the_optimum(folder):
    for objective in ('poisson', 'gamma', 'tweedie'):
        rows, first = made_rows(LABELS[objective]), None
        for unit in UNITS:
            data = write_table(folder / 'd.csv', [(a, b, y * unit) for a, b, y in rows], 'a,b,y')
            job = write_job(folder, data=[data], objective=objective, l2=0)
            result = train(job, '--fresh', '--publish')
            assert result['converged'], (objective, unit, result)
            found = coefficients(folder)
            found[''] -= math.log(unit)
            first = first or found
            for column, weight in found.items():
                assert abs(weight - first[column]) < 1e-3, (objective, unit, found, first)


@test
def labels_that_hardly_differ_are_fitted_as_well(folder):
    """The null model's loss is 5e-8 here, far below that of a label which differs by itself."""
    rows = [(a, b, 100 * math.exp(1e-4 * y)) for a, b, y in made_rows(LABELS['squared'])]
    logs = [(a, b, 1e4 * math.log(y / 100)) for a, b, y in rows]
    train(write_job(folder, 'logs', objective='squared', l2=0,
                    data=[write_table(folder / 'logs.csv', logs, 'a,b,y')]))
    awaited = coefficients(folder, 'logs')
    data = write_table(folder / 'd.csv', rows, 'a,b,y')
    for objective in ('gamma', 'poisson', 'tweedie'):
        result = train(write_job(folder, data=[data], objective=objective, l2=0), '--fresh', '--publish')
        assert result['converged'], result
        found = coefficients(folder)
        for column in 'ab':
            assert abs(1e4 * found[column] - awaited[column]) < 1e-2, (objective, found, awaited)


def predictions(folder, data, result):
    finished = dml('predict', folder / result['model'], data)
    assert finished.status == 0, finished
    return [float(line) for line in finished.stdout.split()]


@test
def predictions_scale_with_the_labels_by_defaults(folder):
    labels = {'huber': LABELS['squared'], 'quantile': LABELS['squared'], **LABELS}
    for objective, label in labels.items():
        rows, found = made_rows(label), {}
        for unit in UNITS:
            data = write_table(folder / 'd.csv', [(a, b, y * unit) for a, b, y in rows], 'a,b,y')
            result = train(write_job(folder, data=[data], objective=objective), '--fresh', '--publish')
            assert result['converged'], (objective, unit, result)
            found[unit] = [value / unit for value in predictions(folder, folder / data, result)]
        size = max(map(abs, found[1]))
        for unit in UNITS:
            assert all(abs(x - y) < 1e-3 * size for x, y in zip(found[unit], found[1])), \
                (objective, unit, found[unit][:5], found[1][:5])


@test
def predictions_of_networks_scale_with_the_labels(folder):
    """To the bit where the unit is a power of two, with which arithmetic is exact. The loss and the
    start of others have logarithms and powers, which are not."""
    exact = {'huber': LABELS['squared'], 'quantile': LABELS['squared'], 'squared': LABELS['squared']}
    for loss, label in (*exact.items(), *((name, LABELS[name]) for name in LABELS if name not in exact)):
        rows, found = made_rows(label), {}
        for unit in (1, 2.0**-30, 2.0**20):
            data = write_table(folder / 'd.csv', [(a, b, y * unit) for a, b, y in rows], 'a,b,y')
            job = write_job(folder, data=[data], objective='network', early_stopping='off',
                            network={'layers': 4, 'loss': loss})
            result = train(job, '--fresh', '--publish')
            assert result['converged'], (loss, unit, result)
            found[unit] = [value / unit for value in predictions(folder, folder / data, result)]
        size = max(map(abs, found[1]))
        for unit, scaled in found.items():
            assert all(abs(x - y) <= (1e-9 if loss in exact else 1e-2) * size
                       for x, y in zip(scaled, found[1])), (loss, unit, scaled[:5], found[1][:5])


@test
def minibatches_scale_with_the_labels(folder):
    """To the bit where all arithmetic with the unit is exact."""
    exact = ('squared', 'huber', 'quantile')
    jobs = [(loss, {'objective': loss}) for loss in (*exact, 'poisson', 'gamma', 'tweedie')]
    jobs.append(('squared', {'objective': 'network', 'early_stopping': 'off',
                             'network': {'layers': 4, 'loss': 'squared'}}))
    for loss, more in jobs:
        rows, found = made_rows(LABELS.get(loss, LABELS['squared'])), {}
        for unit in (1, 2.0**-30, 2.0**20):
            data = write_table(folder / 'd.csv', [(a, b, y * unit) for a, b, y in rows], 'a,b,y')
            result = train(write_job(folder, data=[data], optimizer='downpour', **more), '--fresh',
                           '--publish')
            found[unit] = [value / unit for value in predictions(folder, folder / data, result)]
        size = max(map(abs, found[1]))
        for unit, scaled in found.items():
            assert all(abs(x - y) <= (1e-9 if loss in exact else 1e-4) * size
                       for x, y in zip(scaled, found[1])), (more, unit, scaled[:5], found[1][:5])


@test
def a_line_of_any_slope_is_found_by_defaults(folder):
    data = write_table(folder / 'd.csv', [(x, 100_000 * x) for x in range(1, 21)], 'x,y')
    for objective in ('quantile', 'huber', 'squared'):
        result = train(write_job(folder, data=[data], objective=objective), '--fresh', '--publish')
        assert result['converged'], result
        assert math.isclose(coefficients(folder)['x'], 1e5, rel_tol=1e-2), (objective, result)


@test
def labels_of_one_number_are_predicted_at_every_tau_and_in_every_unit(folder):
    for value in (90, -1e-6, 1e12, 0):
        data = write_table(folder / 'd.csv', [(a, b, value) for a, b, _ in made_rows(LABELS['squared'])], 'a,b,y')
        for settings in ({'objective': 'huber'}, *({'objective': 'quantile', 'quantile': {'tau': tau}}
                                                   for tau in (0.01, 0.5, 0.9))):
            result = train(write_job(folder, data=[data], **settings), '--fresh')
            assert result['converged'], (value, settings, result)
            assert all(math.isclose(found, value, rel_tol=1e-8, abs_tol=1e-8 * (not value))
                       for found in predictions(folder, folder / data, result)), (value, settings)


@test
def labels_of_which_most_are_one_number_are_as_wide_as_the_others_next_to_them(folder):
    """And not as the furthest one, or 1."""
    rng = random.Random(8)
    for unit in (1, 1e-9):
        table = [(rng.gauss(0, 1), rng.gauss(0, 1), unit * (7 if i % 5 else rng.gauss(7, 1))) for i in range(400)]
        table[0] = 0, 0, 1e9 * unit
        data = write_table(folder / 'd.csv', table, 'a,b,y')
        for objective, key, share in ('quantile', 'epsilon', 2e-4), ('huber', 'delta', 1):
            result = train(write_job(folder, data=[data], objective=objective), '--fresh')
            model = json.loads((folder / result['model'] / 'model.json').read_text())
            width = model['objective_parameters'][key] / share / unit
            assert result['converged'] and 0.1 < width < 8, (unit, objective, model['objective_parameters'])
            assert 0.1 < 1 / (400 * unit * result['l2']) < 8 or objective == 'huber', (unit, result)


@test
def labels_that_are_their_offsets_and_a_constant_have_no_spread(folder):
    """Though the differences of most are rounded; it is left to nobody to raise a huge l2."""
    rng = random.Random(9)
    for constant, size in ((3, 5), (-0.1, 1e6), (0, 5)):
        offsets = [size * rng.gauss(0, 1) for _ in range(300)]
        data = write_table(folder / 'd.csv', [(rng.gauss(0, 1), e, e + constant) for e in offsets], 'a,e,y')
        for settings in ({'objective': 'huber'}, {'objective': 'quantile', 'quantile': {'tau': 0.9}}):
            result = train(write_job(folder, data=[data], offset='e', **settings), '--fresh')
            assert result['converged'] and result['l2'] < 1, (constant, settings, result)
            found = predictions(folder, folder / data, result)
            assert all(math.isclose(y, e + constant, rel_tol=1e-7, abs_tol=1e-6)
                       for y, e in zip(found, offsets)), (constant, settings)


@test
def a_row_of_weight_3_is_three_rows_for_what_labels_decide(folder):
    rng = random.Random(7)
    rows = [(a, b, y, rng.choice((1, 1, 1, 5))) for a, b, y in made_rows(LABELS['squared'])]
    repeated = [row[:3] for row in rows for _ in range(row[3])]
    for objective in ('quantile', 'huber'):
        found = []
        for table, header, csv in ((rows, 'a,b,y,w', {'label': 'y', 'weight': 'w'}),
                                   (repeated, 'a,b,y', {'label': 'y'})):
            data = write_table(folder / 'd.csv', table, header)
            result = train(write_job(folder, data=[data], objective=objective, csv=csv), '--fresh')
            model = json.loads((folder / result['model'] / 'model.json').read_text())
            found.append((model['objective_parameters'], result['l2']))
        assert found[0][0] == found[1][0], (objective, found)
        assert math.isclose(found[0][1], found[1][1], rel_tol=1e-12), (objective, found)


if __name__ == '__main__':
    sys.exit(main())
