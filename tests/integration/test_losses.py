#!/usr/bin/env python3
"""Losses of one margin: each ends at the optimum that damped Newton finds from its definition, is
scored as defined, and has the same bits over replicas, shards, threads and kills."""

import json
import math
import random
import signal
import sqlite3
import sys

from harness import BAD_DATA, CONFIG, COORDINATOR, Process, dml, main, test, train, write_job
from optimum import solve

L2, FEATURES, ROWS = 1e-2, 4, 1500


class Loss:
    """A loss by its definition: `of(m, y)` is (loss, derivative, second derivative)."""

    def __init__(self, objective, of, label, link=lambda m: m, **parameters):
        self.objective, self.of, self.label, self.link = objective, of, label, link
        self.parameters = parameters

    def write_job(self, folder, data, name='job', **settings):
        if self.parameters:
            settings[self.objective] = self.parameters
        return write_job(folder, name, data=[data], objective=self.objective, l2=L2,
                         gradient_tolerance=1e-10, loss_tolerance=0, **settings)


def huber(delta):
    def of(m, y):
        r = m - y
        if abs(r) <= delta:
            return r * r / 2, r, 1
        return delta * (abs(r) - delta / 2), math.copysign(delta, r), 0
    return of


def quantile(tau, epsilon):
    def of(m, y):
        r = m - y
        if abs(r) < epsilon:
            return r * r / (4 * epsilon) + (0.5 - tau) * r + epsilon / 4, \
                r / (2 * epsilon) + 0.5 - tau, 1 / (2 * epsilon)
        return ((1 - tau) * r, 1 - tau, 0) if r > 0 else (-tau * r, -tau, 0)
    return of


def smooth_hinge(m, y):
    z = m * y
    if 0 < z < 1:
        return (1 - z) ** 2 / 2, y * (z - 1), 1
    return (0, 0, 0) if z >= 1 else (0.5 - z, -y, 0)


def side(margin, source):
    return 1 if margin - 1.5 + source.gauss(0, 0.3) > 0 else -1


def skewed(margin, source):
    """A value with some that are far off."""
    return round(margin + source.gauss(0, 1) + (source.random() < 0.1) * source.gauss(20, 30), 3)


def count(margin, source):
    """Drawn from the distribution of Poisson with this logarithm of the mean."""
    limit, product, k = math.exp(-math.exp(margin)), source.random(), 0
    while product > limit:
        product *= source.random()
        k += 1
    return k


def amount(margin, source):
    """A value above 0 of this mean, about."""
    return round(math.exp(margin) * source.gammavariate(2, 0.5), 6) + 1e-6


def amounts(margin, source):
    """The sum of a few amounts; often 0."""
    return round(math.fsum(source.gammavariate(2, 0.5) for _ in range(count(margin - 1, source))), 6)


def poisson(m, y):
    mean = math.exp(m)
    return mean - y + (y * (math.log(y) - m) if y else 0), mean - y, mean


def gamma(m, y):
    ratio = y * math.exp(-m)
    return ratio - 1 - math.log(ratio), 1 - ratio, ratio


def tweedie(p):
    a, b = 2 - p, p - 1

    def of(m, y):
        up, down = math.exp(a * m), y * math.exp(-b * m)
        return up / a + down / b - y ** a / (a * b), up - down, a * up + b * down
    return of


LOSSES = [
    Loss('huber', huber(0.75), skewed, delta=0.75),
    Loss('quantile', quantile(0.8, 0.5), skewed, tau=0.8, epsilon=0.5),
    Loss('smooth_hinge', smooth_hinge, side),
    Loss('poisson', poisson, count, math.exp),
    Loss('gamma', gamma, amount, math.exp),
    Loss('tweedie', tweedie(1.4), amounts, math.exp, power=1.4),
]


def write_data(folder, loss, name='data'):
    source = random.Random(4)
    rows = []
    for _ in range(ROWS):
        x = [round(source.uniform(-1, 1), 3) for _ in range(FEATURES)]
        margin = sum(v * (i - 1.2) for i, v in enumerate(x)) * 0.4 + 1.5
        rows.append((loss.label(margin, source), x))
    with open(folder / name, 'w') as file:
        for y, x in rows:
            file.write(f'{y!r} ' + ' '.join(f'{i + 1}:{v}' for i, v in enumerate(x)) + '\n')
    return folder / name, rows


def margin_of(w, x):
    return math.fsum([*(a * b for a, b in zip(w, x)), w[-1]])


def value(loss, rows, w):
    return (math.fsum(loss.of(margin_of(w, x), y)[0] for y, x in rows) / len(rows)
            + L2 / 2 * math.fsum(a * a for a in w[:-1]))


def newton(loss, rows):
    """The minimum of a smooth convex function, and where it is."""
    n = FEATURES + 1
    w = [0.0] * n
    w[-1] = 1.0
    now = value(loss, rows, w)
    for _ in range(200):
        gradient = [L2 * a for a in w[:-1]] + [0.0]
        hessian = [[1e-9 * (i == j) + L2 * (i == j < n - 1) for j in range(n)] for i in range(n)]
        for y, x in rows:
            _, slope, second = loss.of(margin_of(w, x), y)
            x = x + [1.0]
            for i in range(n):
                gradient[i] += slope * x[i] / len(rows)
                for j in range(n):
                    hessian[i][j] += second * x[i] * x[j] / len(rows)
        if max(map(abs, gradient)) < 1e-11:
            break
        step = solve(hessian, gradient)
        size = 1.0
        while True:
            trial = [a - size * b for a, b in zip(w, step)]
            then = value(loss, rows, trial)
            if then <= now + 1e-14 * abs(now):
                break
            size /= 2
            assert size > 1e-12, 'Newton does not get on'
        w, now = trial, then
    return now, w


@test
def a_loss_ends_at_the_optimum_that_newton_finds_and_predicts_it(folder):
    for loss in LOSSES:
        (folder / loss.objective).mkdir()
        data, rows = write_data(folder / loss.objective, loss)
        result = train(loss.write_job(folder / loss.objective, data))
        optimum, w = newton(loss, rows)
        found = result['loss']
        assert abs(found - optimum) <= 1e-10 * optimum, (loss.objective, found, optimum)
        state = folder / loss.objective / 'job.state'
        predictions = [float(line) for line in dml('predict', state, data).stdout.split()]
        for prediction, (_, x) in zip(predictions, rows):
            expected = loss.link(margin_of(w, x))
            assert abs(prediction - expected) < 1e-6 * (1 + abs(expected)), (loss.objective, x)
        figures = dml('evaluate', state, data, '--json').json
        penalty = L2 / 2 * math.fsum(a * a for a in w[:-1])
        assert abs(figures['loss'] - (found - penalty)) <= 1e-7 * found, (loss.objective, figures)


@test
def a_parameter_of_a_loss_is_in_the_section_of_its_objective(folder):
    for text, error in [
            ('objective = huber\nhuber { delta = 0 }',
             ':3: key `huber.delta`: "0" is out of range; allowed: auto, or a number from 1e-100 to 1e+100'),
            ('objective = huber\nhuber { detla = 3 }', ':3: key `detla`: there is no such key in huber'),
            ('delta = 3', ':2: key `delta`: belongs to the section huber; write huber { delta = VALUE'),
            ('huber { delta = 3 }',
             'key `huber.delta`: is for another objective; write objective = huber, or remove it')]:
        (folder / 'job.conf').write_text('data = a\n' + text + '\n')
        finished = dml('check', folder / 'job.conf')
        assert finished.status == CONFIG and error in finished.stderr, finished


@test
def another_parameter_is_another_run(folder):
    data, _ = write_data(folder, LOSSES[0])
    job = LOSSES[0].write_job(folder, data)
    first = train(job, '--set', 'max_steps=2')
    assert train(job, '--set', 'huber.delta=3')['run'] != first['run']


@test
def a_model_holds_the_parameters_of_its_loss_and_needs_them(folder):
    loss = LOSSES[0]
    data, _ = write_data(folder, loss)
    train(loss.write_job(folder, data))
    path = (folder / 'job.state/models/current').resolve() / 'model.json'
    model = json.loads(path.read_text())
    assert model['objective_parameters'] == loss.parameters, model
    for parameters in ({}, {'delta': -1}, {'delta': 'x'}):
        model['objective_parameters'] = parameters
        del model['json_sha256']
        path.write_text(json.dumps(model))
        finished = dml('evaluate', folder / 'job.state', data)
        assert finished.status == BAD_DATA, finished
        assert 'objective_parameters has no `delta` of huber' in finished.stderr, finished
        model['json_sha256'] = ''


@test
def a_label_that_a_loss_does_not_allow_is_named_with_its_row(folder):
    (folder / 'data').write_text('1 1:1\n2 1:2\n-1 2:1\n0 1:3\n')
    (folder / 'good').write_text('1 1:1\n2 1:2\n1 2:1\n1 1:3\n')
    for objective, row, label in [('poisson', 3, -1), ('tweedie', 3, -1), ('gamma', 3, -1)]:
        job = write_job(folder, data=[folder / 'data'], objective=objective)
        finished = dml('run', job)
        assert finished.status == BAD_DATA, finished
        error = f'data: row {row}: the label is {label}; objective = {objective} needs a number'
        assert error in finished.stderr, finished
    (folder / 'data').write_text('1 1:1\n0 1:2\n')
    finished = dml('run', job)  # gamma
    assert finished.status == BAD_DATA and 'row 2: the label is 0;' in finished.stderr, finished
    for key in ('holdout', 'test'):  # before the training, and not after it
        job = write_job(folder, data=[folder / 'good'], objective='gamma', **{key: [folder / 'data']})
        finished = dml('run', job)
        assert finished.status == BAD_DATA and 'row 2: the label is 0;' in finished.stderr, finished
    job = write_job(folder, data=[folder / 'good'], objective='gamma', l2=0.1)
    train(job)
    finished = dml('evaluate', folder / 'job.state', folder / 'data')
    assert finished.status == BAD_DATA, finished
    assert 'data:2: the label is 0; a model for gamma needs' in finished.stderr, finished
    assert dml('predict', folder / 'job.state', folder / 'data').status == 0


@test
def a_label_of_weight_0_may_be_any(folder):
    good = ''.join(f'{y},{x},1.5\n' for y, x in [(1, 1), (3, 2), (2, 1), (5, 3)])
    losses = []
    for text in (good, good + '-1,2,0\n'):
        (folder / 'data.csv').write_text('y,x,w\n' + text)
        job = write_job(folder, data=[folder / 'data.csv'], objective='poisson', l2=0,
                        csv={'label': 'y', 'weight': 'w'})
        trained = train(job, '--fresh')['loss']
        figures = dml('evaluate', folder / 'job.state', folder / 'data.csv', '--json').json
        assert abs(figures['loss'] - trained) <= 1e-12 * trained, (figures, trained)
        losses.append(figures['loss'])
    assert abs(losses[0] - losses[1]) <= 1e-9 * losses[0], losses


@test
def a_prediction_that_is_beyond_all_numbers_is_refused(folder):
    (folder / 'data').write_text('1 1:1\n2 1:2\n3 1:3\n')
    (folder / 'far').write_text('1 1:1\n2 1:20000\n')
    train(write_job(folder, data=[folder / 'data'], objective='poisson'))
    finished = dml('predict', folder / 'job.state', folder / 'far')
    assert finished.status == BAD_DATA, finished
    assert ':2: the values are too large for this model' in finished.stderr, finished


@test
def rows_beyond_all_numbers_are_bad_lines_of_their_file(folder):
    (folder / 'data.csv').write_text('x,y\n1,1\n2,2\n3,3\n')
    job = write_job(folder, data=[folder / 'data.csv'], objective='poisson')
    train(job)
    state, far = folder / 'job.state', folder / 'far.csv'
    far.write_text('x,y\n1,1\n\n20000,2\nodd,3\n30000,1\n2,2\n')
    for command in 'predict', 'evaluate':
        finished = dml(command, state, far, '--set', 'bad_lines=2')
        assert finished.status == BAD_DATA, finished
        assert 'far.csv:6: the values are too large for this model' in finished.stderr, finished
        assert 'one more malformed line than the 2 that bad_lines allows' in finished.stderr
    finished = dml('predict', state, far, '--set', 'bad_lines=3')
    assert finished.status == 0, finished
    lines = finished.stdout.split('\n')
    assert [bool(line) for line in lines[:5]] == [True, False, False, False, True], lines
    for number in 4, 5, 6:
        assert f'skipped: {far}:{number}: ' in finished.stderr, finished
    objects = dml('predict', state, far, '--set', 'bad_lines=3', '--json').stdout.split()
    assert objects[1:4] == ['null'] * 3 and len(objects) == 5, objects
    figures = dml('evaluate', state, far, '--set', 'bad_lines=3', '--json').json
    assert figures['examples'] == 2, figures


def write_wide(folder, loss):
    """Three blocks of parameters, so that shards have some."""
    source = random.Random(7)
    with open(folder / 'wide', 'w') as file:
        for _ in range(1200):
            columns = sorted(source.sample(range(1, 12001), 12))
            file.write(f'{loss.label(source.uniform(0, 3), source)!r} '
                       + ' '.join(f'{c}:{source.uniform(-1, 1):.4f}' for c in columns) + '\n')
    return folder / 'wide'


@test
def a_loss_has_the_same_bits_over_replicas_shards_and_threads(folder):
    for loss in LOSSES:
        place = folder / loss.objective
        place.mkdir()
        wide = write_wide(place, loss)
        hashes = set()
        for replicas, shards, threads in [(1, 1, 1), (3, 2, 1), (2, 3, 2)]:
            job = loss.write_job(place, wide, f'job-{replicas}-{shards}', replicas=replicas,
                                 shards=shards, threads=threads, max_steps=25)
            hashes.add(train(job)['model_sha256'])
        assert len(hashes) == 1, (loss.objective, hashes)


@test
def a_loss_has_the_same_bits_whoever_is_killed(folder):
    for loss in (loss for loss in LOSSES if loss.objective in ('huber', 'poisson')):
        place = folder / loss.objective
        place.mkdir()
        job = loss.write_job(place, write_wide(place, loss), replicas=2, shards=2, max_steps=15,
                             checkpoint_seconds=0)
        quiet = train(job, '--state', place / 'quiet.state')
        # The coordinator at the start, which it computes again, in the middle and at the end.
        for number, point in enumerate(['send_EVALUATE:1', 'send_EVALUATE:9', 'send_READ:1']):
            state = place / f'{number}.state'
            process = Process(COORDINATOR, 'run', job, '--state', state,
                              DML_FAILPOINT=f'coordinator.{point}:kill')
            finished = process.wait()
            process.end()
            assert finished.status == -signal.SIGKILL, finished
            assert train(job, '--state', state)['model_sha256'] == quiet['model_sha256'], point
        for point in ('receive_PROGRAM:1', 'receive_PROGRAM:9'):
            result = train(job, '--fresh', '--state', place / f'{point}.state',
                           DML_FAILPOINT=f'shard0.{point}:kill',
                           DML_FAILPOINT_ONCE=str(place / f'{point}.fired'))
            assert result['restarts']['shard'] >= 1, result
            assert result['model_sha256'] == quiet['model_sha256'], point


@test
def the_live_model_is_evaluated_by_the_parameters_of_the_new_one(folder):
    loss = LOSSES[0]
    data, _ = write_data(folder, loss)
    job = write_job(folder, data=[data], holdout='0.3', gate=['loss <= 1.1 * live'],
                    objective='huber', huber={'delta': 0.1})
    assert dml('retrain', job, '--json').status == 0
    with open(data, 'a') as file:
        file.write('1.5 1:0.1\n')
    finished = dml('retrain', job, '--json', '--set', 'huber.delta=5')
    assert finished.status == 0, finished  # by its own parameter the live model's loss is far less
    live, new = finished.json['holdout_live'], finished.json['holdout']
    assert 1 < live['loss'] / new['loss'] < 1.1, (live, new)


@test
def one_vs_rest_is_a_logistic_model_for_each_class(folder):
    source = random.Random(8)
    rows = []
    for _ in range(900):
        x = [round(source.uniform(-1, 1), 3) for _ in range(3)]
        scores = [x[0] + source.gauss(0, 1), x[1] - x[0] + source.gauss(0, 1), x[2]]
        rows.append((scores.index(max(scores)), x))

    def write(name, labels):
        with open(folder / name, 'w') as file:
            for label, (_, x) in zip(labels, rows):
                file.write(f'{label} ' + ' '.join(f'{i + 1}:{v}' for i, v in enumerate(x)) + '\n')
        return folder / name

    settings = {'l2': L2, 'gradient_tolerance': 1e-10, 'loss_tolerance': 0}
    data = write('all', [y for y, _ in rows])
    whole = train(write_job(folder, data=[data], objective='one_vs_rest', **settings))
    found = [json.loads(line) for line in
             dml('predict', folder / 'job.state', data, '--json').stdout.splitlines()]
    loss = 0
    for k in range(3):
        one = write(f'of-{k}', [1 if y == k else -1 for y, _ in rows])
        loss += train(write_job(folder, f'job-{k}', data=[one], objective='logistic',
                                **settings))['loss']
        chances = dml('predict', folder / f'job-{k}.state', one).stdout.split()
        for line, chance in zip(found, chances):
            assert abs(line['probabilities'][k] - float(chance)) < 1e-7, (k, line, chance)
    assert abs(whole['loss'] - loss) <= 1e-10 * loss, (whole['loss'], loss)
    shown = dml('predict', folder / 'job.state', data, '--probabilities')
    assert shown.stdout == dml('predict', folder / 'job.state', data).stdout, shown
    for line in found:
        assert int(line['class']) == line['probabilities'].index(max(line['probabilities'])), line
    figures = dml('evaluate', folder / 'job.state', data, '--json').json
    right = sum(int(line['class']) == y for line, (y, _) in zip(found, rows)) / len(rows)
    assert figures['accuracy'] == right and 'log_loss' not in figures, figures


@test
def a_smoothed_quantile_has_its_share_of_the_labels_below(folder):
    loss = next(loss for loss in LOSSES if loss.objective == 'quantile')
    data, rows = write_data(folder, loss)
    for tau in (0.1, 0.5, 0.95):
        train(write_job(folder, data=[data], objective='quantile', quantile={'tau': tau}), '--fresh')
        path = (folder / 'job.state/models/current').resolve() / 'model.json'
        parameters = json.loads(path.read_text())['objective_parameters']
        spread = sorted(y for y, _ in rows)
        quartiles = spread[len(rows) * 3 // 4] - spread[len(rows) // 4]
        assert math.isclose(parameters['epsilon'], 2e-4 * quartiles, rel_tol=0.05), parameters
        figures = dml('evaluate', folder / 'job.state', data, '--json').json
        assert abs(figures['coverage'] - tau) < 0.01, figures
        values = [float(line) for line in dml('predict', folder / 'job.state', data).stdout.split()]
        pinball = math.fsum(max(tau * (y - v), (tau - 1) * (y - v))
                            for v, (y, _) in zip(values, rows)) / len(rows)
        assert math.isclose(figures['pinball'], pinball, rel_tol=1e-12), (figures, pinball)


@test
def a_trial_that_is_too_long_is_given_up_for_its_loss_alone(folder):
    with open(folder / 'data', 'w') as file:
        source = random.Random(3)
        for _ in range(300):
            x = source.uniform(0, 40)
            file.write(f'{count(x / 12, source)} 1:{x:.3f} 2:{source.uniform(-20, 20):.3f}\n')
    hashes = set()
    for replicas in (1, 2):
        job = write_job(folder, f'job-{replicas}', data=[folder / 'data'], objective='poisson',
                        precondition='none', replicas=replicas)
        hashes.add(train(job)['model_sha256'])
        with sqlite3.connect(folder / f'job-{replicas}.state/dml.db') as store:
            outcomes = store.execute('SELECT outcome, loss FROM evaluations').fetchall()
        assert ('rejected', None) in outcomes, outcomes
    assert len(hashes) == 1, hashes


sys.exit(main())
