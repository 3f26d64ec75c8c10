#!/usr/bin/env python3
"""Proportional odds: estimates, errors and statistics are those of an independent implementation, and
the same bits however the work is divided and whoever dies."""

import json
import math
import random
import sys
from pathlib import Path

from divided import DIVISIONS
from harness import CONFIG, dml, main, read_safetensors, test, train, words, write_job
from optimum import log1p_exp, sigmoid
from sweeps import killed

ROWS, CLASSES = 400, 5
EXACT = {'gradient_tolerance': 1e-11, 'loss_tolerance': 0, 'max_steps': 5000}

# By Newton's method with numpy, and the inverse of the second derivatives; HC0 and clusters by the scores
# of rows, of clusters with statsmodels' factor. OrderedModel of statsmodels 0.15.0 has the same
# likelihood, AIC and BIC to 1e-15 and the same estimates to 2e-9; its errors, from numerical
# derivatives, differ by 2e-7. Thresholds with the sign turned.
NAMES = ['(intercept >= 1)', '(intercept >= 2)', '(intercept >= 3)', '(intercept >= 4)', 'a', 'b', 'c',
         'd']
WEIGHTS_FIRST = NAMES[4:] + NAMES[:4]
CANNED = {
    'rows': {
        'estimate': [-36.78224409242, -38.46145354421, -38.69425502779, -39.7834552366, 0.1636454317102,
                     0.3684412937517, -0.5843957778304, 1.217201974761],
        'error': [10.9880453953, 11.00135551798, 11.00252216115, 11.00986564648, 0.03337051303724,
                  0.108224685407, 0.1841908008281, 0.3192254957171],
        'statistic': [-3.347478352079, -3.496064960482, -3.516853177938, -3.613436940469, 4.9038931924,
                      3.404410854753, -3.172773967013, 3.812984837024],
        'p': [0.0008155035679732, 0.0004721737356276, 0.0004366952648916, 0.0003021648686754,
              9.395559064979e-07, 0.0006630693909938, 0.001509900262828, 0.0001372985389335],
    },
    'fit': {'log_likelihood': -554.2707611216, 'deviance': 1108.541522243, 'null_deviance': 1168.682090531,
            'pearson': 1602.245281971, 'aic': 1124.541522243, 'bic': 1156.47323862,
            'freedom': 392, 'null_freedom': 396},
    'HC0': [11.11875849642, 11.12701990071, 11.12547264217, 11.12909616976, 0.03576160773588,
            0.1096429825787, 0.1826520595521, 0.3197322378909],
    'cluster': [10.99162614901, 10.99232808173, 10.98881274147, 10.98657093389, 0.03907288881085,
                0.1089368728654, 0.2248818041857, 0.2229128151162],
}


def draw_rows(rows=ROWS):
    """(class, values): columns with means, and far apart in scale; the middle class has few rows."""
    rng = random.Random(5)
    made = []
    for _ in range(rows):
        x = [round(10 * rng.random(), 3), round(100 + 3 * rng.random(), 3), rng.randrange(2),
             round(rng.random() - 0.5, 4)]
        noise = rng.random()
        margin = 0.2 * x[0] + 0.5 * (x[1] - 101.5) - 0.7 * x[2] + 1.1 * x[3]
        margin += math.log(noise / (1 - noise))
        made.append((sum(margin > limit for limit in (-0.5, 1, 1.3, 2.5)), x))
    return made


def write_rows(folder, rows, **extra):
    """Columns y, a to d, and those of `extra`."""
    names = ['y', 'a', 'b', 'c', 'd', *extra]
    lines = [[y, *x, *(cells[i] for cells in extra.values())] for i, (y, x) in enumerate(rows)]
    (folder / 'data.csv').write_text(''.join(','.join(map(str, line)) + '\n'
                                             for line in [names, *lines]))


def job_of(folder, *, extra={}, csv={}, **settings):
    write_rows(folder, draw_rows(), **extra)
    return write_job(folder, data=['data.csv'], objective='proportional_odds',
                     csv={'label': 'y', **csv}, **{'summary': 'robust', **settings})


def summary_of(model, *options):
    finished = dml('summary', model, '--json', *options)
    assert finished.status == 0, finished
    table = json.loads(finished.stdout)
    return table, {row['name']: row for row in table['rows']}


def covariance_of(result):
    return json.loads((Path(result['model']) / 'summary.json').read_text())['covariance']


def off(found, expected):
    return max(abs(a / b - 1) for a, b in zip(found, expected, strict=True))


def loss_of(w, rows):
    """The mean over the rows of minus the logarithm of the probability of the label."""
    losses = []
    for y, x in rows:
        margins = [math.fsum(a * b for a, b in zip(w, x)) + bias for bias in w[len(x):]]
        above = [1, *map(sigmoid, margins), 0]
        losses.append(-math.log(above[y] - above[y + 1]))
    return math.fsum(losses) / len(rows)


@test
def probabilities_have_a_log_loss_and_a_brier_score(folder):
    for classes in 2, CLASSES:
        rows = [(min(y, classes - 1), x) for y, x in draw_rows()]
        write_rows(folder, rows)
        result = train(write_job(folder, data=['data.csv'], objective='proportional_odds',
                                 csv={'label': 'y'}, l2=0.001), '--fresh')
        said = dml('predict', result['model'], folder / 'data.csv')
        chances = [[float(word) for word in line.split()] for line in said.stdout.splitlines()]
        figures = json.loads(dml('evaluate', result['model'], folder / 'data.csv', '--json').stdout)
        loss = -math.fsum(math.log(chance[y]) for chance, (y, _) in zip(chances, rows)) / ROWS
        brier = math.fsum((p - (k == y)) ** 2 for chance, (y, _) in zip(chances, rows)
                          for k, p in enumerate(chance)) / ROWS
        assert math.isclose(figures['log_loss'], loss, rel_tol=1e-9), (figures, loss)
        assert math.isclose(figures['brier'], brier, rel_tol=1e-9), (figures, brier)
        assert math.isclose(figures['loss'], loss, rel_tol=1e-9), (figures, loss)


@test
def figures_are_those_of_statsmodels(folder):
    for standardise in False, True:
        job = job_of(folder, standardise=standardise)
        result = train(job, '--fresh')
        table, rows = summary_of(result['model'])
        assert list(rows) == NAMES, list(rows)
        for member, expected in CANNED['rows'].items():
            found = [rows[name][member] for name in NAMES]
            assert off(found, expected) < (1e-7 if member == 'p' else 1e-8), (standardise, member, found, expected)
        for member, expected in CANNED['fit'].items():
            assert off([table['fit'][member]], [expected]) < 1e-10, (member, table['fit'])
        _, robust = summary_of(result['model'], '--robust')
        found = [robust[name]['error'] for name in NAMES]
        assert off(found, CANNED['HC0']) < 1e-8, (standardise, found)
        assert table['test'] == 'z' and table['ratio'] == 'odds ratio', table
        assert off([rows['a']['ratio']], [math.exp(rows['a']['estimate'])]) < 1e-12, rows['a']


@test
def columns_that_follow_from_others_have_no_error(folder):
    rows = draw_rows()
    job = job_of(folder, extra={'e': [3 * x[0] - x[3] + 2 for _, x in rows], 'f': [7] * ROWS})
    result = train(job)
    table, rows = summary_of(result['model'])
    assert [name for name in rows if rows[name].get('aliased')] == ['e', 'f'], rows
    for member in 'estimate', 'error':
        found = [rows[name][member] for name in NAMES]
        assert off(found, CANNED['rows'][member]) < 1e-8, (member, found)
    assert table['fit']['freedom'] == ROWS - len(NAMES), table['fit']


@test
def errors_of_clusters_are_those_of_an_independent_implementation(folder):
    rng = random.Random(11)
    names = [f's{rng.randrange(60) ** 2 // 60}' for _ in range(ROWS)]
    job = job_of(folder, extra={'g': names}, summary_cluster='g')
    table, rows = summary_of(train(job)['model'], '--cluster', 'g')
    found = [rows[name]['error'] for name in NAMES]
    assert off(found, CANNED['cluster']) < 1e-8, found
    single = covariance_of(train(job_of(folder, extra={'g': range(ROWS)}, summary_cluster='g',
                                        l2=0.1), '--fresh'))
    assert off(single['clustered'], single['robust']) < 1e-9, single


@test
def the_optimum_is_that_of_the_definition_whatever_the_way(folder):
    w = [CANNED['rows']['estimate'][NAMES.index(name)] for name in WEIGHTS_FIRST]
    optimum = loss_of(w, draw_rows())
    for settings in ({'precondition': 'none', 'standardise': True}, {'precondition': 'diagonal'},
                     {'precondition': 'block'}, {'directions': 20, 'precondition': 'diagonal'},
                     {'device': 'emulated'}):
        job = job_of(folder, summary='none', l2=0, **EXACT, **settings)
        result = train(job, '--fresh')
        assert abs(result['loss'] - optimum) <= 1e-10 * optimum, (settings, result, optimum)
    figures = dml('evaluate', folder / 'job.state', folder / 'data.csv', '--json').json
    assert math.isclose(figures['loss'], optimum, rel_tol=1e-9) and 'mae' in figures, figures


@test
def two_classes_are_those_of_a_logistic_model(folder):
    rows = [(int(y > 2), x) for y, x in draw_rows()]
    found = []
    for objective in 'proportional_odds', 'logistic':
        write_rows(folder, rows)
        job = write_job(folder, data=['data.csv'], objective=objective, csv={'label': 'y'},
                        summary='robust')
        table, named = summary_of(train(job, '--fresh')['model'])
        found.append([row[member] for row in named.values() for member in ('estimate', 'error')] +
                     [table['fit'][member] for member in ('null_deviance', 'deviance', 'pearson')])
    assert off(*found) < 1e-9, found


@test
def a_row_of_weight_3_counts_as_three_rows(folder):
    rows = draw_rows()
    weights = [i % 4 for i in range(ROWS)]
    weighted = train(job_of(folder, extra={'w': weights}, csv={'weight': 'w'}, summary='model'))
    write_rows(folder, [row for row, times in zip(rows, weights) for _ in range(times)])
    often = train(write_job(folder, 'often', data=['data.csv'], objective='proportional_odds',
                            csv={'label': 'y'}, summary='model'))
    one, other = (summary_of(result['model']) for result in (weighted, often))
    for member in 'estimate', 'error':
        found = [[rows[name][member] for name in NAMES] for rows in (one[1], other[1])]
        assert off(*found) < 1e-9, (member, found)
    assert off(*([table['fit']['deviance']] for table in (one[0], other[0]))) < 1e-12, one[0]


@test
def a_class_of_one_row_in_many_has_its_threshold(folder):
    rows = [(2 * (y > 1), x) for y, x in draw_rows(20000)]
    rows[77] = (1, rows[77][1])
    write_rows(folder, rows)
    job = write_job(folder, data=['data.csv'], objective='proportional_odds', csv={'label': 'y'},
                    summary='robust')
    result = train(job)
    table, named = summary_of(result['model'])
    low, high = (named[f'(intercept >= {k})']['estimate'] for k in (1, 2))
    assert result['converged'] and 0 < low - high < 1e-3, (low, high)
    # The slope of F by the threshold: the row has 1/(e^gap - 1), and all others a logistic one.
    w = [named[name]['estimate'] for name in 'abcd']
    slope = 0
    for y, x in rows:
        margin = math.fsum(a * b for a, b in zip(w, x))
        slope += sigmoid(margin + low) if y == 0 else -sigmoid(-margin - low) if y == 1 else 0
    assert off([slope], [1 / math.expm1(low - high)]) < 1e-6, (slope, low - high)


@test
def offsets_move_the_margins_of_all_thresholds(folder):
    rows = draw_rows()
    slope = CANNED['rows']['estimate'][NAMES.index('a')]
    write_rows(folder, rows, o=[slope * x[0] for _, x in rows])
    job = write_job(folder, data=['data.csv'], objective='proportional_odds', summary='model',
                    csv={'label': 'y', 'skip': ['a']}, offset='o')
    table, named = summary_of(train(job)['model'])
    for name in NAMES:
        if name != 'a':
            expected = CANNED['rows']['estimate'][NAMES.index(name)]
            assert math.isclose(named[name]['estimate'], expected, rel_tol=1e-6), (name, named[name])
    assert table['fit']['null_deviance'] is None, table['fit']


@test
def a_penalty_draws_weights_and_leaves_thresholds_free(folder):
    job = job_of(folder, l2=0.05, **EXACT)
    result = train(job)
    arrays = read_safetensors(Path(result['model']) / 'model.safetensors')
    w = [*arrays['weight'][1], *arrays['bias'][1]]
    rows = draw_rows()

    def value(w):
        return loss_of(w, rows) + 0.025 * math.fsum(a * a for a in w[:4])

    here = value(w)
    assert math.isclose(here, result['loss'] + 0.025 * math.fsum(a * a for a in w[:4]),
                        rel_tol=1e-9) or math.isclose(here, result['loss'], rel_tol=1e-9), result
    for i in range(len(w)):
        step = 1e-4 * max(abs(w[i]), 1e-2) / (100 if i == 1 else 1)
        both = [value([a + s * step * (j == i) for j, a in enumerate(w)]) for s in (1, -1)]
        assert min(both) > here - 1e-13, (i, both, here)
    covariance = covariance_of(result)
    assert covariance['trace'] < len(w) and not covariance['aliased'], covariance


@test
def errors_have_the_same_bits_however_the_work_is_divided(folder):
    job = job_of(folder)
    found = {json.dumps(covariance_of(train(job, '--fresh', *words(divided))))
             for divided in [*DIVISIONS, {'shards': 3}, {'device': 'emulated'}]}
    assert len(found) == 1, found


@test
def a_model_has_the_same_bits_whoever_is_killed(folder):
    job = job_of(folder, replicas=2, checkpoint_seconds=0)
    quiet = train(job, '--state', folder / 'quiet')
    for visit in 6, 14, 20:
        state = folder / f'{visit}.state'
        killed('run', job, f'receive_RESULT:{visit}', '--state', state)
        result = train(job, '--state', state)
        assert result['model_sha256'] == quiet['model_sha256'], visit
        assert covariance_of(result) == covariance_of(quiet), visit
    for number, rule in enumerate(['shard0.covariance_done:1', 'replica1.receive_EVALUATE:4']):
        result = train(job, '--state', folder / f's{number}', DML_FAILPOINT=f'{rule}:kill',
                       DML_FAILPOINT_ONCE=str(folder / f'fired{number}'))
        assert (folder / f'fired{number}.0').exists(), rule
        assert covariance_of(result) == covariance_of(quiet), rule


@test
def what_its_loss_cannot_is_refused(folder):
    for settings, why in [({'start': 'downpour'}, 'out of order'),
                          ({'optimizer': 'downpour'}, 'out of order'),
                          ({'intercept': False}, 'an intercept between each two classes')]:
        said = dml('run', job_of(folder, summary='none', **settings))
        assert said.status == CONFIG and why in said.stderr, (settings, said)
    write_rows(folder, draw_rows())
    job = write_job(folder, data=['data.csv'], objective='network',
                    network={'layers': 3, 'loss': 'proportional_odds'}, csv={'label': 'y'})
    said = dml('run', job)
    assert said.status == CONFIG and 'only for linear models' in said.stderr, said


if __name__ == '__main__':
    sys.exit(main())
