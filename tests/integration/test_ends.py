#!/usr/bin/env python3
"""How a run ends that does not converge, or cannot begin: what is said, the status, and what is
left."""

import math
import operator
import random
import re
import signal
import subprocess
import sys
import time

from exact_fits import least_squares
from harness import (AGAIN, BAD_DATA, COORDINATOR, USAGE, dml, main, small_job, test, train,
                     write_job)

TOO_LARGE = '1e160 1:1\n-1e160 1:2\n1e160 1:3\n'
SMALL = '1 1:1\n-1 1:2\n1 1:3\n'


def labels_job(folder, text, **settings):
    (folder / 'd.libsvm').write_text(text)
    return write_job(folder, **{'data': ['d.libsvm'], 'objective': 'squared', 'l2': 0, **settings})


def raw_table(folder, **settings):
    """Two columns, one in millions and one in thousandths."""
    lines = ['size,share,label']
    lines += [f'{1e6 * (1 + i % 7)},{1e-3 * (1 + i % 5)},{i % 3}' for i in range(40)]
    (folder / 'raw.csv').write_text('\n'.join(lines) + '\n')
    return write_job(folder, data=['raw.csv'], objective='squared', l2=0,
                     **{'precondition': 'none', **settings})


@test
def labels_too_large_to_be_squared_are_bad_data_and_give_no_model(folder):
    job = labels_job(folder, TOO_LARGE)
    for _ in range(2):  # a run that ended so is not taken up
        finished = dml('run', job, '--json')
        assert finished.status == BAD_DATA, finished
        assert '1e+160' in finished.stderr and 'no model was written' in finished.stderr, finished
        result = finished.json
        assert result['reason'] == 'not finite' and result['loss'] is None, result
        assert result['converged'] is False and 'model' not in result, result
    assert not list(folder.glob('job.state/models/*'))
    assert not list(folder.glob('job.state/shards/*'))
    runs = dml('jobs', folder / 'job.state', '--json').json['folders'][0]['runs']
    assert [run['reason'] for run in runs] == ['not finite'] * 2, runs


@test
def retrain_publishes_nothing_without_a_finite_start_and_trains_when_the_data_is_mended(folder):
    job = labels_job(folder, SMALL)
    assert dml('retrain', job).status == 0
    labels_job(folder, TOO_LARGE)
    for _ in range(2):
        finished = dml('retrain', job)
        assert finished.status == BAD_DATA and '1e+160' in finished.stderr, finished
        assert (folder / 'job.state/models/current').resolve().name == '1'
    labels_job(folder, SMALL.replace('-1', '-2'))
    result = dml('retrain', job, '--json').json
    assert result['published'] is True and result['converged'] is True, result


@test
def labels_whose_squares_are_numbers_are_trained_on(folder):
    result = train(labels_job(folder, TOO_LARGE.replace('160', '150')))
    assert abs(result['loss'] / (4e300 / 9) - 1) < 1e-6, result


@test
def the_step_limit_says_that_the_run_has_not_converged_and_what_to_do(folder):
    job = raw_table(folder, max_steps=1)
    finished = dml('run', job, '--json')
    assert finished.status == 0, finished
    result = finished.json
    assert result['converged'] is False and result['reason'] == 'step limit', result
    said = ' '.join(result['shortfall'])
    for text in ('times gradient_tolerance', 'differ by 10^9', '`size`', '`share`',
                 'standardise = true', 'raise max_steps (1): the same command goes on'):
        assert text in said, (text, said)
        assert text in finished.stderr, (text, finished)
    status = dml('status', job, '--json').json
    assert status['converged'] is False and status['shortfall'] == result['shortfall'], status


def far_from_the_optimum(job, *texts, status=0):
    """Runs a job that ends by a tolerance, and is not converged; the result."""
    finished = dml('run', job, '--json', '--fresh')
    result = finished.json
    assert result['reason'].endswith('tolerance') and result['converged'] is False, result
    assert result['loss'] >= result['gap_estimate'] > 1e-6 * result['loss'], result
    for text in texts:
        assert text in ' '.join(result['shortfall']), (text, result)
        assert text in finished.stderr, (text, finished)
    status = dml('status', job, '--json').json
    assert status['converged'] is False and status['shortfall'] == result['shortfall'], status
    runs = dml('jobs', job.with_suffix('.state'), '--json').json['folders'][0]['runs']
    assert runs[-1]['converged'] is False, runs
    finished = dml('run', job, '--strict', '--fresh')
    assert finished.status == 1 and '--strict' in finished.stderr, finished
    return result


def near_the_optimum(job, *settings):
    words = [word for setting in settings for word in ('--set', setting)]
    result = train(job, '--fresh', '--strict', *words)
    assert result['converged'] and 'shortfall' not in result, result
    assert result['gap_estimate'] <= 1e-6 * max(result['loss'], 1e-3), result
    return result


@test
def a_time_stamp_beside_codes_is_not_converged_where_the_loss_only_falls_slowly(folder):
    rng = random.Random(3)
    effects = [rng.gauss(0, 1) for _ in range(2500)]
    lines = ['time,postcode,y']
    for _ in range(15000):
        code, seconds = int(2500 * rng.random() ** 2), 1.6e9 + 3e7 * rng.random()
        margin = effects[code] + (seconds - 1.615e9) / 1e7
        lines.append(f'{seconds:.0f},P{code},{int(rng.random() < 1 / (1 + math.exp(-margin)))}')
    (folder / 'd.csv').write_text('\n'.join(lines) + '\n')
    settings = dict(data=['d.csv'], objective='logistic', l2=1e-4, csv={'label': 'y'})
    job = write_job(folder, **settings, loss_tolerance=1e-9, precondition='none')
    raw = far_from_the_optimum(job, 'differ by 10^7', '`time`', 'standardise = true',
                               'loss_tolerance = 0')
    for name, scaled in ('scaled', {'standardise': True}), ('defaults', {}):
        job = write_job(folder, name=name, **settings, **scaled)
        assert near_the_optimum(job)['loss'] < raw['loss'] - 0.05, (name, raw['loss'])


@test
def a_rare_column_of_huge_values_is_not_converged_where_it_stops_all_others(folder):
    rng = random.Random(4)
    weights = [rng.gauss(0, 1) for _ in range(200)]
    lines = []
    for _ in range(3000):
        columns = sorted(rng.sample(range(200), 10))
        label = sum(weights[j] for j in columns) + 0.3 * rng.gauss(0, 1)
        huge = f' 1:{1e12 * (1 + 0.1 * rng.random()):.6g}' if rng.random() < 0.1 else ''
        lines.append(f'{label + 2 * bool(huge):.6g}{huge} '
                     + ' '.join(f'{j + 2}:1' for j in columns))
    (folder / 'd.libsvm').write_text('\n'.join(lines) + '\n')
    job = write_job(folder, data=['d.libsvm'], objective='squared', l2=0, precondition='none',
                    loss_tolerance=1e-9)
    raw = far_from_the_optimum(job, 'differ by 10^12', 'column 1 ', 'standardise = true')
    for settings in ('standardise=true',), ('precondition=auto',):
        assert near_the_optimum(job, *settings)['loss'] < 0.1 * raw['loss'], raw


def twin_columns(folder, distance, others=0, **settings):
    """Two columns that differ by so little, a target that follows the difference, and other columns."""
    rng = random.Random(2)
    lines, rows = [], []
    for _ in range(1000):
        x, z = rng.gauss(0, 1), rng.gauss(0, 1)
        target = x + 0.5 * z + 0.3 * rng.gauss(0, 1)
        rows.append({'a': f'{x:.12g}', 'b': f'{x + distance * z:.12g}', 'y': f'{target:.6g}'})
        rest = ''.join(f' {j}:{rng.gauss(0, 1):.3f}' for j in range(3, 3 + others))
        lines.append(f'{rows[-1]["y"]} 1:{rows[-1]["a"]} 2:{rows[-1]["b"]}{rest}')
    (folder / 'd.libsvm').write_text('\n'.join(lines) + '\n')
    return write_job(folder, data=['d.libsvm'], objective='squared', l2=0, **settings), rows


@test
def nearly_collinear_columns_end_at_their_minimum_or_are_not_converged(folder):
    for distance in 2e-5, 1e-9:
        job, rows = twin_columns(folder, distance, gradient_tolerance=1e-5)
        least = least_squares(rows)[1] / len(rows) / 2
        found = near_the_optimum(job)['loss']
        assert abs(found - least) <= 1e-6 * least, (distance, found, least)
    job, _ = twin_columns(folder, 1e-9, others=70, gradient_tolerance=1e-5)  # too many to be refined
    far_from_the_optimum(job, 'nearly collinear', 'gradient_tolerance = ')


def spectra(folder, **settings):
    """Sixty points on sums of six smooth curves, with little noise, and a label that follows it."""
    rng = random.Random(7)
    lines = []
    for _ in range(600):
        parts = [rng.gauss(0, 1) for _ in range(6)]
        noise = [rng.gauss(0, 1) for _ in range(60)]
        row = [1e-3 * noise[j] + sum(part * math.exp(-(j / 10 - k) ** 2)
                                     for k, part in enumerate(parts)) for j in range(60)]
        margin = 2 * parts[0] - parts[3] + 0.5 * noise[5]
        label = int(rng.random() < 1 / (1 + math.exp(-margin)))
        lines.append(f'{label} ' + ' '.join(f'{j + 1}:{x:.12g}' for j, x in enumerate(row)))
    (folder / 'd.libsvm').write_text('\n'.join(lines) + '\n')
    return write_job(folder, data=['d.libsvm'], objective='logistic', l2=1e-7, **settings)


def assert_end_means_the_optimum(job):
    """Whoever has converged is near what a long run finds, and says how near."""
    words = ('--set', 'gradient_tolerance=0', '--set', 'loss_tolerance=1e-14',
             '--set', 'max_steps=5000')
    least = min(train(job, '--fresh', *words, '--set', f'precondition={form}')['loss']
                for form in ('auto', 'none'))
    result = train(job, '--fresh')
    gap = result['loss'] - least
    assert result['converged'] and gap <= 2e-6 * least, (least, result)
    assert result['gap_estimate'] >= 0.1 * gap, (least, result)


@test
def an_estimate_sees_what_collinear_columns_have_between_them(folder):
    assert_end_means_the_optimum(twin_columns(folder, 1e-2, precondition='none')[0])
    assert_end_means_the_optimum(twin_columns(folder, 1e-6)[0])
    assert_end_means_the_optimum(spectra(folder, precondition='none'))


@test
def an_estimate_sees_that_columns_beyond_the_rows_can_replace_the_intercept(folder):
    """Weights follow the intercept to the same predictions, at the price of the penalty alone."""
    rng = random.Random(11)
    rule = [rng.gauss(0, 1) for _ in range(600)]
    lines = []
    for _ in range(60):
        row = [rng.gauss(0, 1) for _ in range(600)]
        target = 3 + 0.04 * sum(map(operator.mul, rule, row)) + 0.5 * rng.gauss(0, 1)
        lines.append(f'{target:.9g} ' + ' '.join(f'{j}:{x:.9g}' for j, x in enumerate(row, 1)))
    (folder / 'd.libsvm').write_text('\n'.join(lines) + '\n')
    assert_end_means_the_optimum(write_job(folder, data=['d.libsvm'], objective='squared', l2=1e-5,
                                           precondition='none'))


@test
def a_factor_of_where_the_loss_was_far_larger_claims_no_optimum(folder):
    """Rows without a claim are fitted as well as one likes, and hardly curve then."""
    rng = random.Random(5)
    lines = []
    for _ in range(80):
        row = [rng.gauss(0, 1) for _ in range(300)]
        claim = rng.gammavariate(2, 0.5) if rng.random() < 0.6 else 0
        lines.append(f'{claim:.9g} ' + ' '.join(f'{j}:{x:.9g}' for j, x in enumerate(row, 1)))
    (folder / 'd.libsvm').write_text('\n'.join(lines) + '\n')
    assert_end_means_the_optimum(write_job(folder, data=['d.libsvm'], objective='tweedie', l2=1e-5))


@test
def labels_of_a_small_unit_are_not_converged_at_the_start(folder):
    rng = random.Random(5)
    rows = [[rng.gauss(0, 1) for _ in range(3)] for _ in range(200)]
    lines = [f'{1e-6 * (sum(row) + rng.gauss(0, 1)):.6g} '
             + ' '.join(f'{j}:{x:.6g}' for j, x in enumerate(row, 1)) for row in rows]
    job = labels_job(folder, '\n'.join(lines) + '\n', gradient_tolerance=1e-5,
                     precondition='none')
    assert far_from_the_optimum(job, 'gradient_tolerance = ')['steps'] == 0
    near_the_optimum(job, 'gradient_tolerance=1e-12')


@test
def a_delta_beyond_all_labels_is_the_squared_loss(folder):
    rng = random.Random(6)
    points = [(rng.gauss(0, 1), rng.gauss(0, 1)) for _ in range(200)]
    labels_job(folder, ''.join(f'{2 * x - 3 * y + rng.gauss(0, 0.1):.6g} 1:{x:.6g} 2:{y:.6g}\n'
                               for x, y in points))
    job = write_job(folder, data=['d.libsvm'], objective='squared', l2=0)
    least = near_the_optimum(job)['loss']
    for delta in '1e6', '1e16', '1e100':
        for form in 'auto', 'none':
            job = write_job(folder, data=['d.libsvm'], objective='huber', l2=0, precondition=form)
            result = near_the_optimum(job, f'huber.delta={delta}')
            assert result['steps'] > 0 and abs(result['loss'] - least) < 1e-6, (least, result)


@test
def columns_of_one_scale_and_sparse_ones_are_not_blamed(folder):
    for job in (small_job(folder, max_steps=1),
                labels_job(folder, SMALL, max_steps=0, precondition='none')):
        result = train(job, '--fresh')
        assert result['converged'] is False, result
        assert 'scale' not in ' '.join(result['shortfall']), result


def pixels(folder, **settings):
    """A CSV file of 80 columns from 0 to 255, of which the last are hardly ever more than 0."""
    rng = random.Random(9)
    lines = []
    for i in range(400):
        row = [rng.randrange(256) if rng.random() < 0.7 else 0 for _ in range(70)]
        row += [rng.randrange(1, 9) if rng.random() < 0.01 else 0 for _ in range(10)]
        lines.append(','.join(map(str, [i % 3, *row])) + '\n')
    (folder / 'pixels.csv').write_text(''.join(lines))
    return write_job(folder, data=['pixels.csv'], csv={'label': 1, 'header': 'no'}, max_steps=1,
                     **settings)


@test
def a_limit_at_the_optimum_is_where_the_run_has_converged(folder):
    result = train(labels_job(folder, SMALL, max_steps=1, gradient_tolerance=0), '--fresh')
    assert result['reason'] == 'step limit' and result['converged'] is True, result
    assert 'shortfall' not in result, result


@test
def nobody_is_advised_to_standardise_columns_of_one_unit(folder):
    for settings in {'objective': 'softmax', 'precondition': 'none'}, \
                    {'objective': 'network', 'network': {'layers': 3}}:
        finished = dml('run', pixels(folder, **settings), '--json', '--fresh')
        result = finished.json
        assert result['reason'] == 'step limit' and result['shortfall'], result
        assert 'standardise' not in finished.stderr, finished
        assert 'standardise' not in ' '.join(result['shortfall']), result


@test
def columns_that_are_scaled_in_training_are_not_blamed(folder):
    job = raw_table(folder, max_steps=1)
    for settings in ('standardise=true',), ('precondition=diagonal',):
        result = train(job, '--fresh', *(word for s in settings for word in ('--set', s)))
        assert result['converged'] is False, result
        assert 'scale' not in ' '.join(result['shortfall']), result


@test
def strict_gives_status_1_if_the_run_has_not_converged_and_publishes_all_the_same(folder):
    job = small_job(folder, max_steps=1)
    finished = dml('run', job, '--strict')
    assert finished.status == 1 and '--strict' in finished.stderr, finished
    assert 'not converged' in finished.stdout, finished
    assert (folder / 'job.state/models/current').exists()
    finished = dml('run', job, '--strict', '--set', 'max_steps=1000')
    assert finished.status == 0, finished
    assert 'not converged' not in finished.stdout + finished.stderr, finished
    assert dml('check', job, '--strict').status == USAGE


@test
def strict_retraining_under_cron_speaks_only_if_it_has_not_converged(folder):
    job = small_job(folder, max_steps=1)
    assert dml('retrain', job, '--cron', '--fresh').stderr == ''
    finished = dml('retrain', job, '--cron', '--fresh', '--strict')
    assert finished.status == 1 and 'not converged' in finished.stderr, finished
    finished = dml('retrain', job, '--cron', '--fresh', '--strict', '--set', 'max_steps=1000')
    assert (finished.status, finished.stdout, finished.stderr) == (0, '', ''), finished


@test
def a_run_that_goes_on_from_a_limit_misses_no_workers(folder):
    job = small_job(folder, max_steps=2)
    train(job)
    finished = dml('run', job, '--json', '--set', 'max_steps=1000')
    result = finished.json
    assert result['continues'] == 1 and result['converged'] is True, result
    assert result['restarts'] == {'coordinator': 0, 'shard': 0, 'replica': 0}, result
    assert 'lost' not in finished.stderr and 'starting it' not in finished.stderr, finished


@test
def an_l2_that_would_overflow_is_refused_and_the_largest_is_not(folder):
    job = small_job(folder)
    finished = dml('run', job, '--set', 'l2=1e307')
    assert finished.status == USAGE and 'from 0 to 1e+20' in finished.stderr, finished
    result = train(job, '--set', 'l2=1e20')
    assert result['reason'] == 'gradient tolerance' and result['evaluations'] < 100, result


@test
def a_run_that_is_told_to_stop_at_any_instant_ends_by_no_signal(folder):
    job = small_job(folder)
    expected = train(job)['model_sha256']
    # While the system loads a program nobody can handle a signal, so it is started with them blocked.
    all_three = signal.SIGTERM, signal.SIGINT, signal.SIGHUP
    block = lambda: signal.pthread_sigmask(signal.SIG_BLOCK, all_three)
    begun = time.monotonic()
    dml('run', job, '--fresh')
    seconds = time.monotonic() - begun
    for send in range(40):
        with open(folder / 'said', 'w+') as said:
            process = subprocess.Popen([COORDINATOR, 'run', job, '--fresh'], stderr=said,
                                       stdout=subprocess.DEVNULL, preexec_fn=block)
            time.sleep(random.uniform(0, seconds) if send else 0)
            process.send_signal(all_three[send % 3])
            status = process.wait()
        text = (folder / 'said').read_text()
        assert status in (0, AGAIN), (send, status, text)
        assert status == 0 or re.search('the same command (goes on|begins the run again)',
                                        text.splitlines()[-1]), text
    assert train(job, '--fresh')['model_sha256'] == expected


sys.exit(main())
