#!/usr/bin/env python3
"""l1: the optimum and the zeros of coordinate descent, for every objective; and runs that are
divided, killed, resumed, stopped early and started from a dense model."""

import functools
import math
import pathlib
import random
import sqlite3
import sys

from descent import minimiser
from harness import CONFIG, USAGE, dml, main, read_safetensors, test, train, write_job
from wide import killed_at, wide_data, wide_job

TIGHT = {'gradient_tolerance': 1e-9, 'loss_tolerance': 0, 'max_steps': 3000}


def table(objective, rows=70, columns=7, seed=3):
    """Rows that a few columns decide, and labels of the objective."""
    rng = random.Random(seed)
    x = [[round(rng.gauss(0, 1), 3) for _ in range(columns)] for _ in range(rows)]
    margins = [1.5 * row[0] - row[1] + 0.3 + rng.gauss(0, 1) for row in x]
    if objective == 'squared':
        return x, [round(3 * m, 3) for m in margins]
    if objective == 'softmax':
        return x, [int(m > -0.7) + int(m > 0.9) for m in margins]
    return x, [1 if m > 0 else -1 for m in margins]


def job_of(folder, x, labels, objective='logistic', **settings):
    text = ''.join(','.join(map(repr, [*row, y])) + '\n' for row, y in zip(x, labels))
    (folder / 'data.csv').write_text(text)
    return write_job(folder, data=['data.csv'], csv={'header': 'no'}, objective=objective,
                     **{**TIGHT, **settings})


def tensors_of(result):
    tensors = read_safetensors(pathlib.Path(result['model']) / 'model.safetensors')
    return {name: numbers for name, (_, numbers) in tensors.items()}


def weights_of(result, columns):
    """[column][output]; the model has a row an output."""
    tensors = tensors_of(result)
    at = {number: i for i, number in enumerate(tensors['feature_id'])}
    outputs = range(len(tensors['weight']) // len(at))
    return [[tensors['weight'][k * len(at) + at[j + 1]] if j + 1 in at else 0.0 for k in outputs]
            for j in range(columns)]


def is_plus_zero(value):
    return value == 0 and math.copysign(1, value) > 0


def assert_same_support(found, expected, gradient, l1):
    """Where the optimum is strict: a weight that is 0 there has a gradient well below l1."""
    for j, row in enumerate(found):
        for k, weight in enumerate(row):
            if abs(expected[j][k]) > 1e-6:
                assert weight != 0 and abs(weight - expected[j][k]) <= 1e-5, (j, k, weight)
            elif abs(gradient[j][k]) < l1 * (1 - 1e-6):
                assert is_plus_zero(weight), (j, k, weight, gradient[j][k])


def value_of(x, labels, objective, l1, l2, w):
    """F, by its definition."""
    total = 0.0
    for row, y in zip(x, labels):
        m = [math.fsum([*(v * w[j][k] for j, v in enumerate(row)), w[-1][k]])
             for k in range(len(w[0]))]
        if objective == 'softmax':
            total += math.log(math.fsum(math.exp(v) for v in m)) - m[y]
        elif objective == 'squared':
            total += (m[0] - y) ** 2 / 2
        elif objective == 'squared_hinge':
            total += max(0, 1 - y * m[0]) ** 2
        else:
            total += math.log1p(math.exp(-y * m[0]))
    flat = [v for row in w[:-1] for v in row]
    return (total / len(x) + l2 / 2 * math.fsum(v * v for v in flat)
            + l1 * math.fsum(map(abs, flat)))


def ends_where_coordinate_descent_ends(objective, l1, l2, intercept, folder):
    x, labels = table(objective)
    outputs = 3 if objective == 'softmax' else 1
    w, gradient = minimiser(x, labels, objective, l1, l2, intercept, outputs)
    optimum = value_of(x, labels, objective, l1, l2, w)
    result = train(job_of(folder, x, labels, objective, l1=l1, l2=l2, intercept=intercept))
    assert result['reason'] == 'gradient tolerance', result
    assert abs(result['loss'] - optimum) <= 1e-10 * optimum, (result, optimum)
    found = weights_of(result, len(x[0]))
    assert_same_support(found, w, gradient, l1)
    assert result['nonzero'] == sum(v != 0 for row in found for v in row), (result, found)
    assert 0 < result['nonzero'] < len(x[0]) * outputs, 'some weights are zero, and some are not'
    assert result['l1'] == l1 and result['l2'] == l2, result
    bound = result['gap_bound']
    assert bound is None if intercept else 0 <= bound <= 1e-7 * optimum, result


for objective in 'logistic', 'squared', 'softmax', 'squared_hinge':
    for l2, intercept in (0, True), (0.05, True), (0, False), (0.05, False):
        function = functools.partial(ends_where_coordinate_descent_ends, objective,
                                     0.3 if objective == 'squared' else 0.06, l2, intercept)
        function.__name__ = (f'{objective} with l2={l2:g}, {"an" if intercept else "no"} intercept '
                             'ends where coordinate descent ends')
        test(function)


# ---- extreme penalties and data ----

@test
def an_l1_that_zeroes_all_leaves_the_intercept(folder):
    x, labels = table('logistic')
    result = train(job_of(folder, x, labels, l1=1e6))
    share = sum(y > 0 for y in labels) / len(labels)
    bias = tensors_of(result)['bias'][0]
    assert all(is_plus_zero(v) for v, in weights_of(result, len(x[0]))), result
    assert result['nonzero'] == 0 and result['reason'] == 'gradient tolerance', result
    assert abs(bias - math.log(share / (1 - share))) <= 1e-6, bias
    assert result['evaluations'] <= 12, result
    without = train(job_of(folder, x, labels, intercept=False), '--fresh', '--set', 'l1=1e20')
    assert without['nonzero'] == 0 and without['steps'] == 0, without
    assert without['gap_bound'] == 0, without


@test
def a_tiny_l1_changes_nothing_that_can_be_seen(folder):
    x, labels = table('logistic')
    plain = train(job_of(folder, x, labels, l2=1e-3, precondition='none'))
    tiny = train(job_of(folder, x, labels, l2=1e-3, l1=1e-300), '--fresh')
    assert abs(plain['loss'] - tiny['loss']) <= 1e-12 * plain['loss'], (plain, tiny)
    assert tiny['nonzero'] == len(x[0]) and plain['nonzero'] is None, (plain, tiny)


@test
def columns_that_are_equal_constant_or_zero_do_no_harm(folder):
    x, labels = table('logistic')
    w, _ = minimiser(x, labels, 'logistic', 0.04, 0, True)
    optimum = value_of(x, labels, 'logistic', 0.04, 0, w)
    more = [[*row, row[0], row[1], 1.0, 0.0, 5.0] for row in x]
    result = train(job_of(folder, more, labels, l1=0.04))
    assert result['reason'] == 'gradient tolerance', result
    assert abs(result['loss'] - optimum) <= 1e-10 * optimum, (result, optimum)
    assert [v for v, in weights_of(result, len(more[0]))[-3:]] == [0, 0, 0], result


@test
def badly_scaled_columns_are_penalised_as_they_are_unless_standardised(folder):
    x, labels = table('logistic', rows=150)
    scales = [1, 300, 1, 1, 0.01, 1, 1]
    x = [[v * scale for v, scale in zip(row, scales)] for row in x]
    w, gradient = minimiser(x, labels, 'logistic', 0.02, 0, True)
    optimum = value_of(x, labels, 'logistic', 0.02, 0, w)
    job = job_of(folder, x, labels, l1=0.02)
    result = train(job)
    assert abs(result['loss'] - optimum) <= 1e-9 * optimum, (result, optimum)
    assert_same_support(weights_of(result, len(x[0])), w, gradient, 0.02)
    columns = list(zip(*x))
    means = [math.fsum(column) / len(column) for column in columns]
    units = [math.sqrt(math.fsum((v - mean) ** 2 for v in column) / len(column))
             for column, mean in zip(columns, means)]
    scaled = [[(v - mean) / unit for v, mean, unit in zip(row, means, units)] for row in x]
    w, gradient = minimiser(scaled, labels, 'logistic', 0.02, 0, True)
    optimum = value_of(scaled, labels, 'logistic', 0.02, 0, w)
    result = train(job, '--fresh', '--set', 'standardise=true')
    assert abs(result['loss'] - optimum) <= 1e-10 * optimum, (result, optimum)
    found = [[v * unit for v in row] for row, unit in zip(weights_of(result, len(x[0])), units)]
    assert_same_support(found, w, gradient, 0.02)


@test
def the_bound_on_the_gap_holds_in_scaled_columns(folder):
    x, labels = table('logistic', rows=150)
    scales = [1, 30, 1, 0.1, 0.03, 1, 1]
    x = [[v * scale for v, scale in zip(row, scales)] for row in x]
    for l2 in 0, 1e-3:
        job = job_of(folder, x, labels, l1=0.02, l2=l2, intercept=False)
        least = train(job, '--fresh')
        assert 0 <= least['gap_bound'] <= 1e-6 * least['loss'], least
        for form in 'auto', 'none', 'diagonal':
            for steps in range(0, 8):
                early = train(job, '--fresh', '--set', f'max_steps={steps}', '--set',
                              f'precondition={form}')
                assert early['gap_bound'] >= early['loss'] - least['loss'] - 1e-12, (form, early)


@test
def an_l1_that_is_no_weight_of_a_penalty_is_refused(folder):
    x, labels = table('logistic')
    for value in '-1', 'nan', 'inf', 'much', '1e21', '{ 0.1, much }':
        finished = dml('run', job_of(folder, x, labels), '--set', f'l1={value}')
        assert finished.status == USAGE and 'key `l1`' in finished.stderr, finished
        (folder / 'bad.conf').write_text(f'data = data.csv\nl1 = {value}\n')
        finished = dml('run', folder / 'bad.conf')
        assert finished.status == CONFIG and 'bad.conf:2: key `l1`' in finished.stderr, finished


@test
def a_block_is_refused_and_working_sets_can_be_left_out(folder):
    x, labels = table('logistic')
    job = job_of(folder, x, labels, l1=0.04)
    assert train(job)['preconditioner']['kind'] == 'working set'
    assert train(job, '--set', 'precondition=none', '--fresh')['preconditioner']['kind'] == 'none'
    refused = dml('run', job, '--fresh', '--set', 'precondition=block')
    assert refused.status == CONFIG and 'l1' in refused.stderr, refused


@test
def second_derivatives_of_few_rows_are_not_dear(folder):
    """Their terms take longer than products of a pass, but not than its messages."""
    rng = random.Random(4)
    x = [[rng.gauss(0, 1) for _ in range(10)] for _ in range(120)]
    x = [[*row, *(v + 0.01 * rng.gauss(0, 1) for v in row)] for row in x]
    labels = [sum(row[0] + row[1] + rng.gauss(0, 1) > border for border in (-1, 1)) for row in x]
    job = job_of(folder, x, labels, 'softmax', l1=1e-4, l2=1e-7, gradient_tolerance=1e-5)
    pairs = train(job, '--set', 'precondition=none')
    ours = train(job, '--fresh')
    assert 5 * ours['evaluations'] < pairs['evaluations'], (ours, pairs)
    assert ours['loss'] <= pairs['loss'] * (1 + 1e-6), (ours, pairs)


# ---- the same bits ----

def wide(folder, **settings):
    return wide_job(folder, **{'l2': 0, 'l1': 2e-3, 'intercept': False, **settings})


@test
def a_run_from_a_dense_model_gives_the_same_bits_however_it_is_divided(folder):
    job, _ = wide(folder)
    dense = train(job, '--set', 'l1=0', '--set', 'l2=1e-3', '--state', folder / 'dense.state')
    found = set()
    for number, (shards, replicas, threads) in enumerate([(1, 1, 1), (3, 1, 2), (2, 3, 1)]):
        for start in [], ['--start', dense['model']]:
            result = train(job, *start, '--state', folder / f'{number}{len(start)}.state',
                           '--set', f'shards={shards}', '--set', f'replicas={replicas}',
                           '--set', f'threads={threads}')
            found.add((len(start), result['model_sha256'], result['nonzero'], result['gap_bound']))
    assert len(found) == 2, found


@test
def a_warm_start_ends_at_the_same_optimum_with_the_same_zeros(folder):
    x, labels = table('logistic', rows=200, columns=20)
    job = job_of(folder, x, labels, l1=0.02)
    cold = train(job)
    dense = train(job, '--set', 'l1=0', '--state', folder / 'dense.state')
    for model in cold['model'], dense['model']:
        warm = train(job, '--fresh', '--start', model)
        assert abs(warm['loss'] - cold['loss']) <= 1e-10 * cold['loss'], (warm, cold)
        assert warm['nonzero'] == cold['nonzero'], (warm, cold)


@test
def a_killed_run_goes_on_to_the_same_model(folder):
    job, _ = wide(folder)
    quiet = train(job, '--state', folder / 'quiet.state')
    for number, point in enumerate(['state_attempt:1', 'send_EVALUATE:6', 'receive_FLUSHED:9']):
        state = folder / f'{number}.state'
        killed_at(point, job, '--state', state)
        again = train(job, '--state', state)
        assert again['model_sha256'] == quiet['model_sha256'], point
        assert again['restarts']['coordinator'] == 1, again
        assert again['nonzero'] == quiet['nonzero'] > 0, again


@test
def a_lost_shard_changes_nothing(folder):
    job, _ = wide(folder)
    quiet = train(job, '--state', folder / 'quiet.state')
    result = train(job, '--state', folder / 'lost.state', DML_FAILPOINT='shard.receive_PROGRAM:9:kill',
                   DML_FAILPOINT_ONCE=str(folder / 'fired'))
    assert result['restarts']['shard'] >= 1, result
    assert result['model_sha256'] == quiet['model_sha256'], result


# ---- several outputs ----

def classes_of(folder, **settings):
    """Rows in several chunks, a weight a class."""
    return wide(folder, objective='softmax', intercept=True, max_steps=40, **settings)


@test
def working_sets_of_several_outputs_give_the_same_bits_however_they_are_divided(folder):
    (job, _), found = classes_of(folder), set()
    plain = train(job, '--set', 'precondition=none', '--set', 'max_steps=200', '--state',
                  folder / 'plain.state')
    for number, (shards, replicas, threads) in enumerate([(1, 1, 1), (3, 1, 2), (2, 3, 1)]):
        result = train(job, '--state', folder / f'{number}.state', '--set', f'shards={shards}',
                       '--set', f'replicas={replicas}', '--set', f'threads={threads}')
        found.add((result['model_sha256'], result['evaluations'], result['nonzero']))
        assert result['preconditioner']['kind'] == 'working set', result
        assert result['preconditioner']['refreshes'] >= 3, result
    assert len(found) == 1, found
    assert abs(result['loss'] - plain['loss']) <= 1e-6 * plain['loss'], (result, plain)


@test
def working_sets_of_several_outputs_outlive_the_loss_of_each_role(folder):
    job, _ = classes_of(folder, shards=2, replicas=2)
    quiet = train(job, '--state', folder / 'quiet.state')
    for point in 'shard.receive_PROGRAM:9:kill', 'replica.receive_EVALUATE:4:kill':
        state, role = folder / f'{point[:5]}.state', point.split('.')[0]
        result = train(job, '--state', state, DML_FAILPOINT=point,
                       DML_FAILPOINT_ONCE=str(folder / f'fired.{role}'))
        assert result['restarts'][role] >= 1, result
        assert result['model_sha256'] == quiet['model_sha256'], point
    killed_at('send_EVALUATE:5', job, '--state', folder / 'killed.state')
    again = train(job, '--state', folder / 'killed.state')
    assert again['restarts']['coordinator'] == 1, again
    assert again['model_sha256'] == quiet['model_sha256'], again


@test
def working_sets_of_several_outputs_serve_other_losses_and_scaled_columns(folder):
    data = wide_data(folder, label=lambda rng: rng.choice([1, 2, 3]))
    for objective in 'one_vs_rest', 'ordinal', 'softmax':
        job = write_job(folder, data=[data], objective=objective, l1=0.02, l2=1e-3, standardise=True,
                        **TIGHT)
        plain = train(job, '--fresh', '--set', 'precondition=none')
        result = train(job, '--fresh')
        assert result['preconditioner']['refreshes'] >= 3, (objective, result)
        assert abs(result['loss'] - plain['loss']) <= 1e-10 * plain['loss'], (result, plain)
        assert result['evaluations'] <= plain['evaluations'], (objective, result, plain)


@test
def a_run_goes_on_from_its_limit_but_not_with_another_l1(folder):
    job, _ = wide(folder, max_steps=2)
    whole = train(job, '--set', 'max_steps=9', '--state', folder / 'whole.state')
    first = train(job)
    other = train(job, '--set', 'l1=1e-3', '--state', folder / 'other.state')
    assert other['nonzero'] > first['nonzero'], (other, first)
    on = train(job, '--set', 'max_steps=9')
    assert (on['continues'], on['model_sha256']) == (first['run'], whole['model_sha256']), (on, whole)
    anew = train(job, '--set', 'l1=1e-3')
    assert 'continues' not in anew and anew['model_sha256'] == other['model_sha256'], anew


@test
def early_stopping_keeps_the_best_point_and_its_zeros(folder):
    job, _ = wide(folder, holdout=['0.2'], early_stopping=3, max_steps=200, l1=1e-4)
    stopped = train(job)
    best = stopped['early_stopping']['best_step']
    assert stopped['reason'] == 'early stopping' and best < stopped['steps'], stopped
    shorter = train(job, '--set', 'early_stopping=off', '--set', f'max_steps={best}', '--fresh')
    for member in 'model_sha256', 'loss', 'gradient_max', 'nonzero', 'gap_bound':
        assert stopped[member] == shorter[member], (member, stopped, shorter)


@test
def live_and_past_reports_say_how_many_weights_are_left(folder):
    x, labels = table('logistic')
    job = job_of(folder, x, labels, l1=0.04)
    result = train(job)
    status = dml('status', job, '--json').json
    runs = dml('jobs', job, '--json').json
    for told in status, runs['folders'][0]['runs'][0]:
        assert (told['l1'], told['nonzero']) == (0.04, result['nonzero']), told
    text = dml('run', job, '--fresh').stdout
    assert f'{result["nonzero"]} weights with l1 = 0.04' in text, text
    with sqlite3.connect(folder / 'job.state/dml.db') as database:
        losses = [loss for loss, in database.execute('SELECT loss FROM steps WHERE run = 1')]
    assert losses == sorted(losses, reverse=True), 'F never rises'


if __name__ == '__main__':
    sys.exit(main())
