#!/usr/bin/env python3
"""Penalties and bounds of single columns: the optimum of coordinate descent or by its conditions, for
columns of all kinds; weights that are at a bound to the bit; and runs that are divided, killed, resumed
and started from models beyond the bounds."""

import json
import math
import pathlib
import random

from descent import minimiser
from harness import CONFIG, dml, main, read_safetensors, test, train, write_job
from wide import killed_at, wide_data, wide_job

TIGHT = {'gradient_tolerance': 1e-10, 'loss_tolerance': 0, 'max_steps': 3000}
NUMBERS, TEXTS = ['a', 'b', 'c'], ['p', 'q', 'r']


def table(objective, rows=80, seed=3):
    """Rows of three numbers and a text, and their labels."""
    rng = random.Random(seed)
    cells = [[round(rng.gauss(0, 1), 3) for _ in NUMBERS] + [rng.choice(TEXTS)]
             for _ in range(rows)]
    margins = [row[0] - 0.6 * row[1] + (row[3] == 'q') + rng.gauss(0, 1) for row in cells]
    if objective == 'squared':
        return cells, [round(2 * m, 3) for m in margins]
    if objective == 'softmax':
        return cells, [int(m > -0.5) + int(m > 0.9) for m in margins]
    return cells, [1 if m > 0 else -1 for m in margins]


def rows_of(cells):
    """A number, or a column of zeros and ones for each text."""
    return [[*row[:3], *(float(row[3] == text) for text in TEXTS)] for row in cells]


def write_table(folder, cells, labels):
    text = ','.join([*NUMBERS, 'kind', 'y']) + '\n'
    text += ''.join(','.join(map(str, [*row, y])) + '\n' for row, y in zip(cells, labels))
    (folder / 'data.csv').write_text(text)


def job_of(folder, cells, labels, objective='logistic', **settings):
    write_table(folder, cells, labels)
    return write_job(folder, data=['data.csv'], objective=objective, **{**TIGHT, **settings})


def weights_of(result):
    """[column][output] in the order of rows_of(), and the intercepts behind."""
    folder = pathlib.Path(result['model'])
    tensors = {name: numbers for name, (_, numbers) in
               read_safetensors(folder / 'model.safetensors').items()}
    names = result_names(folder)
    outputs = range(len(tensors['weight']) // len(names))
    order = [*NUMBERS, *(f'kind={text}' for text in TEXTS)]
    return [[tensors['weight'][k * len(names) + names.index(name)] for k in outputs]
            for name in order] + [list(tensors['bias'])]


def result_names(folder):
    return json.loads((folder / 'model.json').read_text())['feature_names']


def assert_near(found, expected, within=1e-6):
    for j, (own, other) in enumerate(zip(found, expected)):
        for x, y in zip(own, other):
            assert math.isclose(x, y, abs_tol=within), (j, own, other)


FACTORS = [0, 2.5, 1, 0.1, 0.1, 0.1]
RULES = ['a = 0', 'b = 2.5', 'kind = 0.1']


@test
def factors_of_columns_multiply_the_penalty(folder):
    for objective, outputs in (('logistic', 1), ('squared', 1), ('softmax', 3)):
        cells, labels = table(objective)
        free = 0.2 if outputs > 1 else 0  # of classes alike, weights together are not determined
        expected, _ = minimiser(rows_of(cells), labels, objective, 0, 0.02, True, outputs,
                                factors=[free, *FACTORS[1:]])
        for settings in ({}, {'precondition': 'none'}, {'shards': 2, 'replicas': 3})[:3 if outputs == 1 else 1]:
            result = train(job_of(folder, cells, labels, objective, l2=0.02,
                                  penalty=[f'a = {free}', *RULES[1:]], **settings), '--fresh')
            found = weights_of(result)
            if objective == 'softmax':  # its intercepts together do not count
                expected = [row if j < 6 else [b - expected[6][0] for b in row]
                            for j, row in enumerate(expected)]
                found[6] = [b - found[6][0] for b in found[6]]
            assert_near(found, expected)


@test
def columns_are_numbers_or_ranges_of_ids_where_there_are_no_names(folder):
    cells, labels = table('logistic')
    lines = [f'{y} ' + ' '.join(f'{j + 1}:{x}' for j, x in enumerate(row)) + '\n'
             for row, y in zip(rows_of(cells), labels)]
    (folder / 'data.libsvm').write_text(''.join(lines))
    by_ids = write_job(folder, 'ids', data=['data.libsvm'], l2=0.02, **TIGHT,
                       penalty=['1 = 0', '2 = 2.5', '4-6 = 0.1'])
    by_names = job_of(folder, cells, labels, l2=0.02, penalty=RULES)
    by_numbers = job_of(folder, cells, labels, l2=0.02, penalty=['1 = 0', '2=2.5', '4 = 0.1'])
    hashes = {train(job, '--fresh')['loss'] for job in (by_ids, by_names, by_numbers)}
    assert max(hashes) - min(hashes) < 1e-12, hashes


@test
def a_factor_of_one_changes_little_and_any_workers_nothing(folder):
    cells, labels = table('logistic')
    plain = train(job_of(folder, cells, labels, l2=0.02), '--fresh')
    ones = train(job_of(folder, cells, labels, l2=0.02, penalty=['a = 1']), '--fresh')
    assert_near(weights_of(plain), weights_of(ones), 1e-9)
    hashes = {train(job_of(folder, cells, labels, l2=0.02, penalty=RULES, **settings),
                    '--fresh')['model_sha256']
              for settings in ({}, {'shards': 3}, {'replicas': 3, 'threads': 2})}
    assert len(hashes) == 1, hashes


@test
def minibatches_have_the_factors_too(folder):
    cells, labels = table('logistic', rows=600)
    strong = {'l2': 5, 'optimizer': 'downpour', 'downpour': {'epochs': 20}, 'csv': {'label': 'y'}}
    sizes = {}
    for factor in (0, 1):
        result = train(job_of(folder, cells, labels, penalty=[f'a = {factor}'], **strong), '--fresh')
        sizes[factor] = abs(weights_of(result)[0][0])
    assert sizes[0] > 5 * sizes[1], sizes


@test
def rules_that_say_nothing_are_errors(folder):
    cells, labels = table('logistic')
    for rules, words in ((['z = 2'], 'no column "z"'), (['a = -1'], 'is not valid'),
                         (['a'], 'is not valid'), (['a = nan'], 'is not valid'),
                         (['a = 1', '1 = 2'], 'given twice'), (['y = 2'], 'not a column that'),
                         (['b = 1', 'kind = 1e7'], 'is not valid')):
        finished = dml('run', job_of(folder, cells, labels, l2=0.1, penalty=rules))
        assert finished.status == CONFIG and words in finished.stderr, finished
        assert 'job.conf' in finished.stderr and '`penalty`' in finished.stderr, finished
    finished = dml('check', job_of(folder, cells, labels, objective='network', penalty=['a = 2']))
    assert finished.status == CONFIG and 'linear models' in finished.stderr, finished
    finished = dml('check', job_of(folder, cells, labels, l2=0, penalty=['a = 2']))
    assert finished.status == 0 and 'no effect without l2' in finished.stderr, finished


# ---- bounds ----

LIMITS = [(-math.inf, 0.25), (0, math.inf), (0.1, 0.1), (-0.2, 0.2), (-0.2, 0.2), (-0.2, 0.2)]
BOUNDS = ['a = [-inf, 0.25]', 'b = [0, inf]', 'c = [0.1, 0.1]', 'kind = [-0.2,0.2]']


def at_bounds(found):
    return {(j, k) for j, row in enumerate(found[:6]) for k, w in enumerate(row) if w in LIMITS[j]}


@test
def the_optimum_is_within_the_bounds_and_at_them_to_the_bit(folder):
    for objective, outputs in (('logistic', 1), ('squared', 1), ('softmax', 3)):
        cells, labels = table(objective)
        for l1, factors in ((0, None), (0.01, [1, 1, 1, 0.5, 0.5, 0.5])):
            expected, _ = minimiser(rows_of(cells), labels, objective, l1, 0.02, True, outputs,
                                    factors=factors, bounds=LIMITS)
            rules = {'penalty': ['kind = 0.5']} if factors else {}
            for settings in ({}, {'precondition': 'none'}, {'shards': 2, 'replicas': 3}):
                result = train(job_of(folder, cells, labels, objective, l2=0.02, l1=l1,
                                      bounds=BOUNDS, **rules, **settings), '--fresh')
                found = weights_of(result)
                assert_near(found[:6], expected[:6])
                assert at_bounds(found) == at_bounds(expected), (found, expected)
                assert result['active_bounds']['count'] == len(at_bounds(found)) > 3, result
                assert settings or result['evaluations'] <= 40, result


@test
def bounds_keep_beside_offsets_of_rows(folder):
    rng = random.Random(6)
    for objective in 'logistic', 'squared':
        cells, labels = table(objective)
        offsets = [round(rng.gauss(0, 1.5), 3) for _ in cells]
        expected, _ = minimiser(rows_of(cells), labels, objective, 0, 0.02, True, bounds=LIMITS,
                                offsets=offsets)
        (folder / 'data.csv').write_text(','.join([*NUMBERS, 'kind', 'o', 'y']) + '\n' + ''.join(
            ','.join(map(str, [*row, offset, y])) + '\n'
            for row, offset, y in zip(cells, offsets, labels)))
        for settings in ({}, {'precondition': 'none'}, {'shards': 2, 'replicas': 3}):
            job = write_job(folder, data=['data.csv'], objective=objective, offset='o', l2=0.02,
                            bounds=BOUNDS, **TIGHT, **settings)
            found = weights_of(train(job, '--fresh'))
            assert_near(found, expected)
            assert at_bounds(found) == at_bounds(expected), (found, expected)


LINKS = {'poisson': lambda y, m: math.exp(m) - y, 'gamma': lambda y, m: 1 - y * math.exp(-m),
         'squared': lambda y, m: m - y, 'logistic': lambda y, m: -y / (1 + math.exp(y * m))}


def derivatives_of(rows, labels, weights, found, objective, l2, standard):
    """Of F by the weights and the intercept."""
    total, sums = math.fsum(weights), [[] for _ in found]
    for row, y, weight in zip(rows, labels, weights):
        full = [*row, 1.0]
        margin = math.fsum(x * w for x, w in zip(full, found))
        slope = weight * LINKS[objective](y, margin) / total
        for own, x in zip(sums, full):
            own.append(slope * x)
    return [math.fsum(own) + l2 * (standard[j] ** 2 * found[j] if j < len(rows[0]) else 0)
            for j, own in enumerate(sums)]


def deviations(rows, weights):
    total = math.fsum(weights)
    found = []
    for column in zip(*rows):
        mean = math.fsum(w * x for w, x in zip(weights, column)) / total
        found.append(math.sqrt(math.fsum(w * (x - mean) ** 2
                                         for w, x in zip(weights, column)) / total))
    return found


@test
def every_loss_meets_the_conditions_of_the_optimum_and_multipliers_are_its_derivatives(folder):
    rng = random.Random(8)
    cells, _ = table('squared', rows=300)
    weights = [rng.choice([1, 2, 5]) for _ in cells]
    margins = [0.4 * row[0] - 0.3 * row[1] + 0.2 * (row[3] == 'q') for row in cells]
    labels = {'poisson': [int(rng.expovariate(1) * math.exp(m)) for m in margins],
              'gamma': [round(rng.gammavariate(2, math.exp(m)), 6) + 0.001 for m in margins],
              'squared': [m + rng.gauss(0, 1) for m in margins],
              'logistic': [1 if m + rng.gauss(0, 1) > 0 else -1 for m in margins]}
    text = [f'{",".join(map(str, row))},{w},' for row, w in zip(cells, weights)]
    for objective, y in labels.items():
        for standardise in False, True:
            (folder / 'data.csv').write_text(','.join([*NUMBERS, 'kind', 'w', 'y']) + '\n' + ''.join(
                f'{line}{label!r}\n' for line, label in zip(text, y)))
            job = write_job(folder, data=['data.csv'], csv={'weight': 'w'}, objective=objective,
                            l2=0.01, standardise=standardise, bounds=BOUNDS, **TIGHT)
            result = train(job, '--fresh')
            found = [row[0] for row in weights_of(result)]
            rows = rows_of(cells)
            standard = deviations(rows, weights) if standardise else [1] * 6
            slopes = derivatives_of(rows, y, weights, found, objective, 0.01, standard)
            for j, (w, slope) in enumerate(zip(found, slopes)):
                low, high = LIMITS[j] if j < 6 else (-math.inf, math.inf)
                assert low <= w <= high, (j, w)
                assert abs(slope) < 1e-8 or (w == low and slope > 0) or (w == high and slope < 0), (
                    objective, j, w, slope)
            names = [*NUMBERS, *(f'kind={text}' for text in TEXTS)]
            for bound in result['active_bounds']['weights']:
                j = names.index(bound['feature'])
                assert found[j] == bound['bound'] and found[j] in LIMITS[j], bound
                assert math.isclose(bound['multiplier'], abs(slopes[j]), abs_tol=1e-7), (
                    bound, slopes)
            assert result['evaluations'] <= 40, result
            described = json.loads((pathlib.Path(result['model']) / 'model.json').read_text())
            assert described['result']['active_bounds'] == result['active_bounds'], described


@test
def a_start_beyond_the_bounds_comes_to_the_same_optimum(folder):
    cells, labels = table('logistic')
    free = train(job_of(folder, cells, labels, l2=0.02), '--fresh')
    job = job_of(folder, cells, labels, l2=0.02, bounds=BOUNDS)
    cold = train(job, '--fresh')
    warm = train(job, '--fresh', '--start', free['model'])
    assert abs(warm['loss'] - cold['loss']) < 1e-12, (warm, cold)
    assert at_bounds(weights_of(warm)) == at_bounds(weights_of(cold))


@test
def paths_and_folds_keep_to_the_bounds(folder):
    cells, labels = table('logistic', rows=200)
    job = job_of(folder, cells, labels, l2=[0.1, 0.01], folds=3, bounds=BOUNDS)
    result = train(job, '--fresh')
    alone = train(job_of(folder, cells, labels, l2=result['l2'], bounds=BOUNDS), '--fresh')
    assert at_bounds(weights_of(result)) == at_bounds(weights_of(alone))
    assert_near(weights_of(result), weights_of(alone))


def bounded_wide_job(folder, **settings):
    return wide_job(folder, bounds=['1-9000 = [0, 0.03]'], penalty=['1-50 = 0'], **settings)[0]


@test
def any_workers_and_any_losses_give_the_same_bits(folder):
    job = bounded_wide_job(folder, l1=1e-4)
    quiet = train(job, '--state', folder / 'quiet.state')
    assert quiet['active_bounds']['count'] > 1000, quiet
    one = train(job, '--set', 'shards=1', '--set', 'replicas=3', '--state', folder / 'one.state')
    assert one['model_sha256'] == quiet['model_sha256'], (one, quiet)
    assert one['active_bounds'] == quiet['active_bounds']
    for number, point in enumerate(['state_attempt:1', 'send_EVALUATE:6', 'receive_FLUSHED:9']):
        state = folder / f'{number}.state'
        killed_at(point, job, '--state', state)
        again = train(job, '--state', state)
        assert again['restarts']['coordinator'] == 1, again
        assert again['model_sha256'] == quiet['model_sha256'], point
        assert again['active_bounds'] == quiet['active_bounds'], point
    lost = train(job, '--state', folder / 'lost.state', DML_FAILPOINT='shard.receive_PROGRAM:9:kill',
                 DML_FAILPOINT_ONCE=str(folder / 'fired'))
    assert lost['restarts']['shard'] >= 1 and lost['model_sha256'] == quiet['model_sha256'], lost
    first = train(job, '--set', 'max_steps=4', '--state', folder / 'limit.state')
    on = train(job, '--state', folder / 'limit.state')
    assert (on['continues'], on['model_sha256']) == (first['run'], quiet['model_sha256']), (on, quiet)


@test
def more_weights_than_a_working_set_has_keep_to_bounds_too(folder):
    job = write_job(folder, data=[wide_data(folder)], l2=1e-3, gradient_tolerance=1e-8,
                    loss_tolerance=0, bounds=['1-9000 = [-0.02, 0.02]'])
    result = train(job)
    assert result['reason'] == 'gradient tolerance' and result['active_bounds']['count'] > 100, result
    tensors = read_safetensors(pathlib.Path(result['model']) / 'model.safetensors')
    assert max(map(abs, tensors['weight'][1])) == 0.02


@test
def a_job_that_asks_for_a_device_has_the_same_bits(folder):
    cells, labels = table('logistic')
    for settings in {'bounds': BOUNDS}, {'l1': 0.01}:
        hashes = {train(job_of(folder, cells, labels, l2=0.02, device=device, **settings),
                        '--fresh')['model_sha256'] for device in ('cpu', 'emulated')}
        assert len(hashes) == 1, (settings, hashes)


@test
def bounds_that_cannot_be_are_errors(folder):
    cells, labels = table('logistic')
    for rule in ('a = [1, 0]', 'a = [nan, 1]', 'a = [0 1]', 'a = 0', 'a = [inf, inf]', 'a = [,1]',
                 'a = [-inf, -inf]', 'a = [0, 1', '= [0, 1]'):
        finished = dml('check', job_of(folder, cells, labels, bounds=[rule]))
        assert finished.status == CONFIG and 'job.conf:' in finished.stderr, (rule, finished)
        assert '[LOW, HIGH]' in finished.stderr and '`bounds`' in finished.stderr, finished
    for settings, words in (({'optimizer': 'downpour'}, 'minibatches'), ({'objective': 'network'},
                                                                         'linear models')):
        finished = dml('check', job_of(folder, cells, labels, bounds=['a = [0, 1]'], **settings))
        assert finished.status == CONFIG and words in finished.stderr, finished
    for rules, words in ((['z = [0, 1]'], 'no column "z"'), (['y = [0, 1]'], 'not a column that is'),
                         (['a = [0, 1]', '1 = [0, 2]'], '"1" is given twice')):
        job = job_of(folder, cells, labels, bounds=rules)
        for command in 'check', 'run':
            finished = dml(command, job)
            assert finished.status == CONFIG and words in finished.stderr, (command, finished)
            assert f'{job}:' in finished.stderr and '`bounds`' in finished.stderr, finished


if __name__ == '__main__':
    main()
