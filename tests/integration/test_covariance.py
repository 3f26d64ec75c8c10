#!/usr/bin/env python3
"""Standard errors are those of an independent implementation, however the work is divided and
whoever dies; columns that follow from others have none."""

import json
import math
import random
import sys
from fractions import Fraction
from pathlib import Path

from divided import DIVISIONS
from harness import (BAD_DATA, CONFIG, USAGE, dml, main, read_safetensors, test, train, words,
                     write_job)
from sweeps import killed

# By statsmodels 0.15.0: GLM with the log link (of tweedie the power 1.5) and MNLogit. Estimates,
# errors at a dispersion of 1, errors with cov_type='HC0'; the intercept last, of softmax class by
# class. Poisson has the fifth column as var_weights. The HC0 of gamma and tweedie are BMB by numpy,
# of the fitted means and the inverse B of the expected information, as R's sandwich has them;
# statsmodels takes the observed one there.
CANNED = {
    'squared': (
        [0.154606149647, -1.2267708995, 0.356487621809, -0.393134344615, 0.364721136841],
        [0.0165806662546, 0.177479404522, 0.123935894412, 0.122689907289, 0.124205261959],
        [0.00950584854671, 0.104123673414, 0.0714736834256, 0.0716457753701, 0.070502408432]),
    'logistic': (
        [0.121368569094, -1.21666358257, 0.404527072466, -0.101629827692, -0.436706489493],
        [0.0351505874079, 0.37627056198, 0.260715182606, 0.253348489504, 0.257139844438],
        [0.0348751053267, 0.379399742419, 0.259241804021, 0.253187506776, 0.256442139825]),
    'softmax': (
        [0.0835013102262, -1.46901599266, 0.436697221848, 0.200896440575, 0.0492767731465,
         -0.203133531339, 0.256744576595, 0.34316609506, -2.64724075031, -1.08348234109],
        [0.0603023823448, 0.670873086104, 0.44757526004, 0.462076914277, 0.0367516227756,
         0.393485568848, 0.27710176862, 0.272080681629, 0.483930092776, 0.281486057561],
        [0.0693792269583, 0.664856911254, 0.445028885425, 0.470428046981, 0.0360637795564,
         0.40004647978, 0.276936272072, 0.27293497215, 0.58054085313, 0.278478043299]),
    'poisson': (
        [0.209591562377, -1.70418006657, 0.418566404055, -0.591218526359, -1.42075711624],
        [0.0153531042471, 0.155715220409, 0.0934294579804, 0.118619338344, 0.130901687649],
        [0.0187260046223, 0.187212137012, 0.119181206949, 0.145271933903, 0.142716155002]),
    'gamma': (
        [0.163411890116, -1.1136154658, 0.464099007096, -0.183368718102, -0.616568715393],
        [0.0165806662546, 0.177479404522, 0.123935894412, 0.122689907289, 0.124205261959],
        [0.0170299360955, 0.177192441593, 0.127510884372, 0.115208815978, 0.110512716268]),
    'tweedie': (
        [0.184339730026, -1.11418337862, 0.494520503511, -0.208374319366, -1.18720926545],
        [0.0170472655253, 0.180243751099, 0.120196929535, 0.130175035102, 0.137441941667],
        [0.0266608866232, 0.296014921511, 0.204895279757, 0.180088816581, 0.178333944061]),
}


def rows_of(loss, rows=400):
    rng = random.Random(7)
    x, labels = [], []
    for _ in range(rows):
        a, b, c = round(10 * rng.random(), 3), round(rng.random() - 0.5, 3), rng.randrange(3)
        row = [a, b, int(c == 1), int(c == 2), round(1 + rng.random(), 2)]
        margin = 0.15 * a - 1.2 * b + 0.4 * (c == 1) - 0.3 * (c == 2) - 0.6
        noise = rng.random()
        chance = 1 / (1 + math.exp(-margin))
        labels.append({
            'squared': round(margin + 2 * noise, 3),
            'logistic': int(noise < chance),
            'softmax': int(noise < 0.6 * chance) + int(noise < 0.3),
            'poisson': int(math.exp(margin) * 2 * noise),
            'gamma': round(math.exp(margin) * -math.log(noise), 4) + 0.001,
            'tweedie': round(math.exp(margin) * max(0, -math.log(noise) - 0.5), 4)}[loss])
        x.append(row)
    return x, labels


def job_of(folder, loss, *functions, **settings):
    """Columns a to d, and what each function makes of these."""
    x, labels = rows_of(loss)
    names = ['y', 'w', 'a', 'b', 'c', 'd', *(f'e{i}' for i in range(len(functions)))]
    rows = [[y, row[4], *row[:4], *(f(row) for f in functions)] for row, y in zip(x, labels)]
    lines = [','.join(map(str, row)) + '\n' for row in [names, *rows]]
    (folder / 'data.csv').write_text(''.join(lines))
    csv = {'label': 'y', **({'weight': 'w'} if loss == 'poisson' else {'skip': ['w']})}
    return write_job(folder, data=['data.csv'], objective=loss, csv=csv,
                     **{'summary': 'robust', **settings})


def covariance_of(result):
    return json.loads((Path(result['model']) / 'summary.json').read_text())['covariance']


def estimates_of(result):
    arrays = read_safetensors(Path(result['model']) / 'model.safetensors')
    return arrays['weight'][1] + arrays['bias'][1]


def off(found, expected):
    return max(abs(a / b - 1) for a, b in zip(found, expected, strict=True))


def errors(squares, aliased=()):
    return [math.sqrt(square) for i, square in enumerate(squares) if i not in aliased]


def kept(values, found):
    return [value for i, value in enumerate(values) if i not in found['aliased']]


@test
def errors_are_those_of_an_independent_implementation(folder):
    for loss, (estimates, model, robust) in CANNED.items():
        for standardise in False, True:
            result = train(job_of(folder, loss, standardise=standardise), '--fresh')
            found = covariance_of(result)
            aliased = found['aliased']
            assert aliased == ([0, 1, 2, 3, 12] if loss == 'softmax' else []), (loss, aliased)
            weights = estimates_of(result)
            weights = kept(found['estimate'], found) if aliased else weights
            assert off(weights, estimates) < 1e-8, (loss, off(weights, estimates))
            assert off(errors(found['variance'], aliased), model) < 1e-8, (loss, found, model)
            assert off(errors(found['robust'], aliased), robust) < 1e-8, (loss, found, robust)
            assert off([found['trace']], [len(estimates)]) < 1e-9, found
            assert found['expected'] == (loss in ('gamma', 'tweedie')), found


def solved(matrix, right):
    """matrix⁻¹·right, by Gauss."""
    n = len(matrix)
    rows = [list(row) + [b] for row, b in zip(matrix, right)]
    for i in range(n):
        p = max(range(i, n), key=lambda r: abs(rows[r][i]))
        rows[i], rows[p] = rows[p], rows[i]
        rows[i] = [value / rows[i][i] for value in rows[i]]
        for r in range(n):
            if r != i:
                rows[r] = [a - rows[r][i] * b for a, b in zip(rows[r], rows[i])]
    return [row[n] for row in rows]


def penalised_errors(loss, weights, penalty):
    """√diag of (H+L)⁻¹H(H+L)⁻¹, and of (H+L)⁻¹, of a model whose intercept is last."""
    x, labels = rows_of(loss)
    total = sum(row[4] for row in x) if loss == 'poisson' else len(x)
    h = [[0.0] * 5 for _ in range(5)]
    for row in x:
        values = [*row[:4], 1]
        margin = math.fsum(a * b for a, b in zip(values, weights))
        chance = 1 / (1 + math.exp(-margin))
        second = {'squared': 1, 'logistic': chance * (1 - chance), 'gamma': 1,
                  'poisson': row[4] * math.exp(margin)}[loss]
        for i in range(5):
            for j in range(5):
                h[i][j] += second * values[i] * values[j]
    outer = [[h[i][j] + (penalty * total if i == j < 4 else 0) for j in range(5)] for i in range(5)]
    inverse = [solved(outer, [float(i == j) for i in range(5)]) for j in range(5)]
    sandwich = [math.fsum(v[i] * h[i][j] * v[j] for i in range(5) for j in range(5)) for v in inverse]
    return [math.sqrt(s) for s in sandwich], [math.sqrt(inverse[i][i]) for i in range(5)]


@test
def errors_after_l2_are_the_sandwich_and_by_name_those_of_a_prior(folder):
    for loss in 'squared', 'logistic', 'poisson', 'gamma':
        for settings in {}, {'summary_columns': ['*']}:
            result = train(job_of(folder, loss, l2=0.05, **settings), '--fresh')
            sampling, bayesian = penalised_errors(loss, estimates_of(result), 0.05)
            for options, expected in ([], sampling), (['--bayesian'], bayesian):
                table = json.loads(dml('summary', result['model'], '--json', *options).stdout)
                scale = math.sqrt(table['fit']['dispersion'])
                shown = [row['error'] / scale for row in table['rows']]
                assert off(shown[1:] + shown[:1], expected) < 1e-7, (loss, settings, shown, expected)
                assert table['errors'] == ('bayesian' if options else 'model'), table['errors']
    for plain in [], ['--bayesian']:
        result = train(job_of(folder, 'logistic'), '--fresh')
        table = json.loads(dml('summary', result['model'], '--json', *plain).stdout)
        shown = [row['error'] for row in table['rows']]
        assert off(shown[1:] + shown[:1], CANNED['logistic'][1]) < 1e-8, (plain, shown)
    said = dml('summary', result['model'], '--bayesian', '--robust')
    assert said.status == USAGE and 'exclude each other' in said.stderr, said


@test
def errors_after_l2_are_how_far_estimates_vary_from_sample_to_sample(folder):
    """Of one column that is collinear with another: 30 samples of the same truth."""
    rng = random.Random(4)
    x = [(a, a + 0.3 * rng.gauss(0, 1)) for a in (rng.gauss(0, 1) for _ in range(80))]
    found, shown = [], []
    for sample in range(30):
        lines = [f'{a},{b},{a + b + rng.gauss(0, 2)}\n' for a, b in x]
        (folder / 'rows.csv').write_text('a,b,y\n' + ''.join(lines))
        result = train(write_job(folder, data=['rows.csv'], objective='squared', l2=0.3,
                                 summary='model'), '--fresh')
        row = json.loads(dml('summary', result['model'], '--json', '--only', 'a').stdout)['rows'][0]
        found.append(row['estimate'])
        shown.append(row['error'])
    mean = sum(found) / 30
    varied = math.sqrt(sum((value - mean) ** 2 for value in found) / 29)
    assert 0.75 < varied / (sum(shown) / 30) < 1.33, (varied, sum(shown) / 30)


@test
def columns_that_follow_from_others_have_no_error(folder):
    job = job_of(folder, 'gamma', lambda row: 3 * row[0] - row[1] + 2, lambda row: 7, lambda row: 0)
    found = covariance_of(train(job))
    assert found['aliased'] == [4, 5, 6], found
    assert off([found['trace']], [5]) < 1e-9, found
    assert off(kept(found['estimate'], found), CANNED['gamma'][0]) < 1e-8, found
    assert [found['estimate'][i] for i in found['aliased']] == [0, 0, 0], found
    for which, expected in ('variance', CANNED['gamma'][1]), ('robust', CANNED['gamma'][2]):
        assert off(errors(found[which], found['aliased']), expected) < 1e-8, (which, found)


def exact_errors(table):
    """Those of least squares over rows of (x, y), and HC0, in rational numbers."""
    table = [(Fraction(x), Fraction(y)) for x, y in table]
    n, sx, sy = len(table), sum(x for x, _ in table), sum(y for _, y in table)
    sxx, sxy = sum(x * x for x, _ in table), sum(x * y for x, y in table)
    determinant = n * sxx - sx * sx
    slope = (n * sxy - sx * sy) / determinant
    bias = (sy - slope * sx) / n
    rests = [(x, (y - bias - slope * x) ** 2) for x, y in table]
    meat = [sum(r * (n * x - sx) ** 2 for x, r in rests),
            sum(r * (sxx - sx * x) ** 2 for x, r in rests)]
    model = [math.sqrt(n / determinant), math.sqrt(sxx / determinant)]
    return model, [math.sqrt(m / determinant ** 2) for m in meat]


@test
def columns_far_from_zero_keep_the_digits_of_their_errors(folder):
    rng = random.Random(5)
    table = [(rng.uniform(1000, 1003), rng.gauss(0, 1)) for _ in range(5000)]
    (folder / 'data.csv').write_text('y,x\n' + ''.join(f'{y!r},{x!r}\n' for x, y in table))
    found = covariance_of(train(write_job(folder, data=['data.csv'], objective='squared',
                                          summary='robust', csv={'label': 'y'})))
    model, robust = exact_errors(table)
    assert off(errors(found['variance']), model) < 1e-9, off(errors(found['variance']), model)
    assert off(errors(found['robust']), robust) < 1e-7, off(errors(found['robust']), robust)


@test
def a_penalty_leaves_fewer_effective_parameters(folder):
    found = covariance_of(train(job_of(folder, 'logistic', l2=0.1)))
    assert not found['aliased'] and 1 < found['trace'] < 4.5, found
    assert all(a < b for a, b in zip(errors(found['variance'])[:4], CANNED['logistic'][1])), found


@test
def errors_have_the_same_bits_however_the_work_is_divided(folder):
    job = job_of(folder, 'softmax')
    found = {}
    for divided in [*DIVISIONS, {'shards': 3}]:
        found.setdefault(json.dumps(covariance_of(train(job, '--fresh', *words(divided)))),
                         []).append(divided)
    assert len(found) == 1, list(found.values())


@test
def a_job_that_asks_for_a_device_has_the_same_errors(folder):
    for loss in 'squared', 'softmax':
        found = []
        for device in 'cpu', 'emulated':
            result = train(job_of(folder, loss, device=device), '--fresh')
            assert not any(result['restarts'].values()), (loss, device, result['restarts'])
            found.append((result['model_sha256'], covariance_of(result)))
        assert found[0] == found[1], (loss, found)


@test
def errors_outlive_shards_and_replicas(folder):
    job = job_of(folder, 'poisson', replicas=2, checkpoint_seconds=0)
    expected = covariance_of(train(job, '--state', folder / 'quiet'))
    rules = ['shard0.covariance_done:1', 'shard0.factor_done:2', 'shard0.send_SLICE:2',
             'replica1.receive_EVALUATE:8', 'replica0.send_FLUSHED:9']
    rules += [f'shard0.receive_PROGRAM:{visit}' for visit in range(6, 24, 3)]
    for number, rule in enumerate(rules):
        fired = folder / f'{number}.fired'
        result = train(job, '--state', folder / f'{number}.state', DML_FAILPOINT=f'{rule}:kill',
                       DML_FAILPOINT_ONCE=str(fired))
        assert (folder / f'{number}.fired.0').exists(), f'{rule} was never met'
        assert covariance_of(result) == expected, rule


@test
def errors_outlive_coordinators(folder):
    job = job_of(folder, 'poisson', checkpoint_seconds=0)
    expected = covariance_of(train(job, '--state', folder / 'quiet'))
    for visit in 14, 18, 22, 24:
        state = folder / f'{visit}.state'
        killed('run', job, f'receive_RESULT:{visit}', '--state', state)
        assert covariance_of(train(job, '--state', state)) == expected, visit


@test
def a_model_is_measured_where_it_is(folder):
    job = job_of(folder, 'logistic', summary='none', l2=0)
    before = train(job)
    job = job_of(folder, 'logistic', l2=0)
    after = train(job, '--start', before['model'], '--set', 'max_steps=0')
    assert after['model_sha256'] == before['model_sha256'], (before, after)
    assert off(errors(covariance_of(after)['variance']), CANNED['logistic'][1]) < 1e-3, after


@test
def jobs_without_errors_are_refused(folder):
    for settings, why in [({'l1': 0.1}, 'l1'), ({'precondition': 'none'}, 'precondition'),
                          ({'early_stopping': 3, 'holdout': 0.2}, 'early_stopping'),
                          ({'start': 'downpour'}, 'minibatches'),
                          ({'directions': 5}, 'directions')]:
        said = dml('run', job_of(folder, 'logistic', **settings))
        assert said.status == CONFIG and '`summary`' in said.stderr and why in said.stderr, said
    said = dml('run', job_of(folder, 'logistic'), '--set', 'objective=squared_hinge')
    assert said.status == CONFIG and 'not a likelihood' in said.stderr, said
    said = dml('run', job_of(folder, 'softmax'), '--set', 'objective=ordinal')
    assert said.status == CONFIG and 'proportional_odds' in said.stderr, said
    (folder / 'wide').write_text(''.join(
        f'{i % 2} {1 + 3 * i}:1 {2 + 3 * i}:1 {3 + 3 * i}:0.5\n' for i in range(2800)))
    job = write_job(folder, 'wide', data=['wide'], objective='logistic', summary='model')
    said = dml('run', job)
    assert said.status == CONFIG and '8401 parameters' in said.stderr, said
    assert 'at most 8192' in said.stderr and 'csv.category_least' in said.stderr, said


# By statsmodels 0.15.0, cov_type='cluster' with the clusters of clustered_job(): its factor for small
# samples is in. Of softmax class by class, each with its intercept last. Gamma and tweedie by numpy, as above, with the same factor.
CLUSTERED = {
    'squared': [0.00862440931395, 0.0846546392827, 0.0625029695114, 0.0721375528023,
                0.057209408052],
    'logistic': [0.0317747689566, 0.358731496178, 0.23994535217, 0.263261513652, 0.210325495346],
    'softmax': [0.0554391309502, 0.641174787655, 0.338173284242, 0.451287979602, 0.415818623256,
                0.032447744269, 0.355950802335, 0.256108800545, 0.271876117305, 0.257253323974],
    'poisson': [0.0206801546615, 0.168539714848, 0.1080385175, 0.121030503439, 0.135052272418],
    'gamma': [0.0159720491722, 0.132304376318, 0.115218243311, 0.113098820256, 0.0989309226739],
    'tweedie': [0.0254877447183, 0.205530249248, 0.174603010158, 0.166986983187, 0.17699902163],
}


def with_clusters(folder, job, name_of):
    """Adds a column of clusters, g, to the data of job_of()."""
    head, *lines = (folder / 'data.csv').read_text().splitlines()
    lines = [f'{line},{name_of(i)}' for i, line in enumerate(lines)]
    (folder / 'data.csv').write_text('\n'.join([f'{head},g', *lines]) + '\n')
    job.write_text('summary_cluster = g\n' + job.read_text())
    return job


def clustered_job(folder, loss, **settings):
    rng = random.Random(11)
    return with_clusters(folder, job_of(folder, loss, **settings),
                         lambda i: f's{rng.randrange(60) ** 2 // 60}')


@test
def errors_of_clusters_are_those_of_an_independent_implementation(folder):
    for loss, expected in CLUSTERED.items():
        for standardise in False, True:
            result = train(clustered_job(folder, loss, standardise=standardise), '--fresh')
            found = covariance_of(result)
            assert found['clusters'] == {'column': 'g', 'count': 44, 'of_one_row': 0}, found
            table = json.loads(dml('summary', result['model'], '--cluster', 'g', '--json').stdout)
            shown = [row['error'] for row in table['rows'] if 'error' in row]
            shown = [error for i in range(0, len(shown), 5)
                     for error in shown[i + 1:i + 5] + shown[i:i + 1]]
            assert off(shown, expected) < 1e-8, (loss, shown)
            robust = errors(found['robust'], found['aliased'])
            assert off(robust, CANNED[loss][2]) < 1e-8, (loss, found)


@test
def errors_of_clusters_with_a_penalty_are_those_of_an_independent_implementation(folder):
    found = covariance_of(train(clustered_job(folder, 'logistic', l2=0.1)))
    # By numpy: (H + L)^-1 M (H + L)^-1 at the penalised optimum, without a factor.
    expected = [0.030228063840086146, 0.06957953149480023, 0.06683751209006858, 0.07190112917928429,
                0.16837734505805402]
    assert off(errors(found['clustered']), expected) < 1e-8, found


@test
def errors_of_clusters_have_the_same_bits_however_the_work_is_divided(folder):
    job = clustered_job(folder, 'poisson')
    found = {json.dumps(covariance_of(train(job, '--fresh', *words(divided))))
             for divided in [*DIVISIONS, {'shards': 3}]}
    assert len(found) == 1, found


@test
def errors_of_clusters_outlive_coordinators(folder):
    job = clustered_job(folder, 'poisson', checkpoint_seconds=0)
    expected = covariance_of(train(job, '--state', folder / 'quiet'))
    for visit in 14, 24:
        state = folder / f'{visit}.state'
        killed('run', job, f'receive_RESULT:{visit}', '--state', state)
        assert covariance_of(train(job, '--state', state)) == expected, visit


@test
def clusters_of_one_row_are_told_and_scored_rows_need_none(folder):
    job = with_clusters(folder, job_of(folder, 'logistic'), lambda i: i)
    (folder / 'other.csv').write_text('y,a,b,c,d\n1,2,0.5,1,0\n0,1,0.1,0,0\n')
    job.write_text('test = other.csv\n' + job.read_text())
    result = train(job)
    found = covariance_of(result)
    assert found['clusters'] == {'column': 'g', 'count': 400, 'of_one_row': 400}, found
    assert off(found['clustered'], found['robust']) < 1e-9, found
    for settings in {}, {'l2': 0.1}, {'l2': 0.1, 'standardise': True}:
        for loss in 'softmax', 'one_vs_rest':
            place = folder / f'{loss} {len(settings)}'
            place.mkdir()
            job = with_clusters(place, job_of(place, 'softmax', **settings), lambda i: i)
            other = covariance_of(train(job, '--set', f'objective={loss}'))
            both = [kept(other[which], other) for which in ('clustered', 'robust')]
            assert off(*both) < 1e-8, (loss, settings, other)
    said = dml('predict', result['model'], folder / 'other.csv')
    assert said.status == 0 and len(said.stdout.split()) == 2, said
    assert 'Every cluster has one row' in dml('summary', result['model'], '--cluster', 'g').stdout
    said = dml('summary', result['model'], '--cluster', 'b')
    assert said.status == USAGE and 'only for clusters of "g"' in said.stderr, said


@test
def columns_of_clusters_that_say_nothing_are_refused(folder):
    def said_of(name_of, loss='logistic', **settings):
        return dml('run', with_clusters(folder, job_of(folder, loss, **settings), name_of))
    said = said_of(lambda i: 'all')
    assert said.status == CONFIG and 'one cluster' in said.stderr, said
    said = said_of(lambda i: '' if i == 2 else i)
    assert said.status == BAD_DATA, said
    assert 'data.csv:4: column 7 (g): the cluster is empty' in said.stderr, said
    said = said_of(lambda i: i, summary='none')
    assert said.status == CONFIG and '`summary_cluster`' in said.stderr, said
    (folder / 'plain').write_text('1 1:1\n0 2:1\n')
    said = dml('run', write_job(folder, 'plain', data=['plain'], objective='logistic',
                                summary='model', summary_cluster='g'))
    assert said.status == CONFIG and '`summary_cluster`' in said.stderr, said


sys.exit(main())
