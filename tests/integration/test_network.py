#!/usr/bin/env python3
"""Networks: they learn what no linear model can, to the same bits however the work is divided and
whoever is killed on the way."""

import random
import signal
import sys

from harness import (BAD_DATA, CONFIG, COORDINATOR, USAGE, Process, dml, is_stopped, main, pairs_of_words,
                     test, train, words, write_job)

# ---- data that no plane separates ----


def checkerboard(folder, rows=1500, seed=1):
    """Two columns, far from 0 in one of them, whose product decides; and one that is noise."""
    rng = random.Random(seed)
    lines = ['east,north,noise,label']
    for _ in range(rows):
        east, north = rng.uniform(-1, 1), rng.uniform(-1, 1)
        lines.append(f'{50 + east:.4f},{north:.4f},{rng.gauss(0, 0.1):.3f},'
                     f'{"same" if east * north > 0 else "other"}')
    (folder / 'board.csv').write_text('\n'.join(lines) + '\n')
    return 'board.csv'


def board_job(folder, network=None, **settings):
    return write_job(folder, **{'data': [checkerboard(folder)], 'objective': 'network',
                                'network': {'layers': [12], **(network or {})},
                                'holdout': ['0.2'], **settings})


# Enough parameters that three shards have a part of them; a few steps are enough to compare bits.
def wide_job(folder, rows=1500, **settings):
    return write_job(folder, **{'data': [pairs_of_words(folder, rows)], 'objective': 'network',
                                'network': {'layers': [200, 8], 'activation': 'gelu'},
                                'holdout': ['0.2'], 'max_steps': 15,
                                'replicas': 2, 'shards': 2, 'threads': 1, **settings})


# ---- learning ----

@test
def a_network_learns_what_a_linear_model_cannot(folder):
    for activation in ['tanh', 'relu', 'gelu']:
        result = train(board_job(folder, {'activation': activation}), '--fresh')
        assert result['holdout']['accuracy'] > 0.95, (activation, result)
        assert result['network'] == {'layers': [12], 'activation': activation,
                                     'precision': 'double'}, result
        assert result['objective'] == 'softmax' and result['parameters'] == 3 * 12 + 12 + 26, result
    linear = train(board_job(folder), '--fresh', '--set', 'objective=softmax',
                   '--set', 'network.layers=100')
    assert linear['holdout']['accuracy'] < 0.6 and linear['network'] is None, linear


@test
def sparse_rows_are_learnt_as_well(folder):
    job = wide_job(folder, max_steps=200, network={'layers': [16]}, early_stopping=60)
    result = train(job)
    assert result['holdout']['accuracy'] > 0.9, result
    linear = train(job, *words({'objective': 'softmax', 'network.layers': 100}), '--fresh')
    assert linear['holdout']['accuracy'] < 0.65, linear


@test
def single_precision_learns_as_much(folder):
    result = train(board_job(folder, {'precision': 'float'}))
    assert result['holdout']['accuracy'] > 0.95, result
    assert result['network']['precision'] == 'float', result


@test
def any_loss_may_be_that_of_a_network(folder):
    job = board_job(folder, max_steps=40)
    for loss, more in [('logistic', {}), ('one_vs_rest', {}), ('squared_hinge', {}),
                       ('ordinal', {'ordinal.order': '{ other, same }'})]:
        result = train(job, '--fresh', *words({'network.loss': loss, **more}))
        assert result['objective'] == loss and result['holdout']['accuracy'] > 0.9, (loss, result)
    lines = (folder / 'board.csv').read_text().replace('same', '1').replace('other', '0')
    (folder / 'board.csv').write_text(lines)
    for loss in ['squared', 'huber', 'poisson']:
        result = train(job, '--fresh', *words({'network.loss': loss}))
        assert result['objective'] == loss, result
        if loss != 'poisson':
            assert result['holdout']['r2'] > 0.6, (loss, result)


# ---- the same bits ----

@test
def the_model_is_the_same_however_the_work_is_divided(folder):
    job = wide_job(folder)
    divisions = [(1, 1, 1, 0), (2, 3, 2, 1), (3, 2, 1, 7)]
    results = [train(job, '--state', folder / f'{number}.state',
                     *words({'shards': shards, 'replicas': replicas, 'threads': threads,
                             'portion_chunks': portion}))
               for number, (shards, replicas, threads, portion) in enumerate(divisions)]
    assert results[0]['steps'] >= 10, results[0]
    for member in ('model_sha256', 'loss', 'steps', 'early_stopping', 'holdout'):
        assert all(r[member] == results[0][member] for r in results), (member, results)


@test
def devices_make_the_same_model(folder):
    few = {'max_steps': 2, 'shards': 1, 'replicas': 1}
    jobs = [board_job(folder, {'activation': 'relu', 'precision': 'float'}, **few),
            wide_job(folder, rows=300, **few,
                     network={'layers': [24, 8], 'activation': 'gelu'})]
    for job in jobs:
        cpu, emulated = (train(job, '--fresh', '--set', f'device={device}')
                         for device in ('cpu', 'emulated'))
        assert emulated['model_sha256'] == cpu['model_sha256'], (cpu, emulated)


@test
def another_seed_is_another_model(folder):
    job = wide_job(folder, max_steps=2)
    assert train(job)['model_sha256'] != train(job, '--set', 'network.seed=2')['model_sha256']


@test
def killed_processes_cost_nothing(folder):
    job = wide_job(folder, checkpoint_seconds=0)
    quiet = train(job, '--state', folder / 'quiet.state')

    def same(result, where):
        for member in ('model_sha256', 'early_stopping', 'steps', 'loss'):
            assert result[member] == quiet[member], (where, member, result, quiet)

    for number, point in enumerate(['state_step_commit:1', 'send_EVALUATE:7', 'send_READ:1']):
        state = folder / f'{number}.state'
        process = Process(COORDINATOR, 'run', job, '--state', state,
                          DML_FAILPOINT=f'coordinator.{point}:kill')
        finished = process.wait()
        process.end()
        assert finished.status == -signal.SIGKILL, finished
        same(train(job, '--state', state), point)
    for worker in ['shard0.receive_PROGRAM:9', 'replica1.receive_EVALUATE:5']:
        result = train(job, '--state', folder / f'{worker}.state',
                       DML_FAILPOINT=f'{worker}:kill',
                       DML_FAILPOINT_ONCE=str(folder / f'{worker}.fired'))
        assert result['restarts'][worker.split('.')[0][:-1]] >= 1, result
        same(result, worker)


@test
def a_run_that_was_interrupted_goes_on_to_the_same_model(folder):
    job = wide_job(folder, checkpoint_seconds=0)
    quiet = train(job, '--state', folder / 'quiet.state')
    process = Process(COORDINATOR, 'run', job, DML_SHUFFLE='7', DML_PAUSE_US='100000',
                      DML_FAILPOINT='coordinator.state_step_commit:3:stop')
    process.until(lambda: is_stopped(process.pid), 'it stops')
    process.signal(signal.SIGINT)
    process.signal(signal.SIGCONT)
    assert process.wait().status == 75, process.wait()
    result = train(job)
    assert result['restarts']['coordinator'] == 1, result
    assert result['model_sha256'] == quiet['model_sha256'], (result, quiet)


# ---- a first job ----

@test
def a_job_that_says_nothing_else_holds_out_a_tenth_and_stops_early(folder):
    """Labels of noise: whatever is learnt, other rows get worse by it."""
    rng = random.Random(2)
    (folder / 'noise.csv').write_text('a,b,label\n' + ''.join(
        f'{rng.gauss(0, 1):.3f},{rng.gauss(0, 1):.3f},{rng.choice("xy")}\n' for _ in range(400)))
    result = train(write_job(folder, data=['noise.csv'], objective='network'))
    assert result['reason'] == 'early stopping' and result['converged'], result
    assert result['early_stopping']['best_step'] == result['steps'] - 20, result
    assert 20 < result['holdout']['examples'] < 70, result
    assert result['examples'] + result['holdout']['examples'] == 400, result


@test
def a_network_on_columns_of_thousands_is_warned_of(folder):
    checkerboard(folder, rows=300)
    path = folder / 'board.csv'
    head, *lines = path.read_text().splitlines()
    rows = [line.split(',') for line in lines]
    path.write_text('\n'.join([head] + [','.join([str(float(r[0]) * 1e3), *r[1:]]) for r in rows]))
    job = write_job(folder, data=['board.csv'], objective='network', max_steps=3)
    warned = dml('run', job)
    assert warned.status == 0 and 'column east' in warned.stderr, warned
    assert 'standardise = true' in warned.stderr, warned
    scaled = dml('run', job, '--set', 'standardise=true')
    assert 'a network is made for' not in scaled.stderr, scaled


@test
def a_network_whose_loss_is_infinite_at_its_start_is_told_what_to_scale(folder):
    (folder / 'counts.libsvm').write_text(''.join(f'{i % 3} 1:{(i % 7 - 3) * 1e6}\n' for i in range(60)))
    job = write_job(folder, data=['counts.libsvm'], objective='network',
                    network={'layers': [12], 'activation': 'relu', 'loss': 'poisson'}, max_steps=3)
    finished = dml('run', job)
    assert finished.status == BAD_DATA, finished
    assert 'where the run starts: a network is made for values of about 1' in finished.stderr, finished
    assert dml('run', job, '--set', 'standardise=true').status == 0


@test
def values_are_fitted_around_their_mean_in_any_unit(folder):
    rng = random.Random(6)
    points = [(rng.uniform(-1, 1), rng.uniform(-1, 1)) for _ in range(600)]
    for name, scale, offset in [('near', 50, 200), ('far', 5e4, 0), ('off', 1e-3, 7)]:
        (folder / f'{name}.csv').write_text('a,b,value\n' + ''.join(
            f'{a:.4f},{b:.4f},{offset + scale * a * b:.8f}\n' for a, b in points))
    for name in 'near', 'far', 'off':
        job = write_job(folder, data=[f'{name}.csv'], objective='network',
                        network={'layers': [12], 'loss': 'squared'}, max_steps=150)
        result = train(job, '--fresh')
        assert result['holdout']['r2'] > 0.97, (name, result)


@test
def retrain_goes_on_from_the_live_network(folder):
    checkerboard(folder, rows=900)
    head, *lines = (folder / 'board.csv').read_text().splitlines()
    (folder / 'nights').mkdir()
    (folder / 'nights/1.csv').write_text('\n'.join([head, *lines[:800]]) + '\n')
    job = write_job(folder, data=['nights/*.csv'], objective='network', network={'layers': [12]},
                    early_stopping=5)
    first = dml('retrain', job, '--json').json
    (folder / 'nights/2.csv').write_text('\n'.join([head, *lines[800:]]) + '\n')
    second = dml('retrain', job, '--json').json
    assert second['start']['model_sha256'] == first['model_sha256'], second
    assert second['steps'] < first['steps'], (first, second)
    assert second['holdout']['accuracy'] > 0.9, second


# ---- choosing ----

@test
def folds_start_anew_and_tell_what_other_rows_cost(folder):
    """Had a fold started from the model of all rows, it would know the labels of its own."""
    job = write_job(folder, data=[pairs_of_words(folder, rows=300)], objective='network',
                    network={'layers': [16]}, folds=3, early_stopping='off', l2=1e-4,
                    max_steps=60)
    random_labels = random.Random(4)
    path = folder / 'words.libsvm'
    path.write_text(''.join(f'{random_labels.randrange(2)} {line.split(" ", 1)[1]}\n'
                            for line in path.read_text().splitlines()))
    result = train(job)
    accuracy = result['path'][0]['folds']['figures']['accuracy']['mean']
    assert 0.35 < accuracy < 0.65, result


# ---- mistakes ----

@test
def mistakes_say_which_key_and_what_is_allowed(folder):
    job = board_job(folder)
    for setting, why in [('network.layers={ 5, 0 }', 'from 1 to 65536'),
                         ('network.layers={ }', 'an empty list'),
                         ('network.activation=sigmoid', 'tanh, relu, gelu'),
                         ('network.loss=l2', 'softmax'), ('network.precision=half', 'float'),
                         ('network.seed=-1', 'at least 0')]:
        refused = dml('run', job, '--set', setting)
        assert refused.status == USAGE and why in refused.stderr, refused
        assert setting.split('=')[0] in refused.stderr, refused
    for setting, why in [('intercept=false', 'allowed: true'), ('precondition=block', 'none'),
                         ('precondition=diagonal', 'none'), ('huber.delta=2', 'network.loss')]:
        refused = dml('run', job, '--set', setting)
        assert refused.status == CONFIG and why in refused.stderr, refused
    assert not (folder / 'job.state').exists(), 'something was begun'


@test
def layers_that_are_too_large_are_refused_with_the_data_in_view(folder):
    refused = dml('run', board_job(folder, {'layers': [65536] * 6}))
    assert refused.status == BAD_DATA and 'network.layers' in refused.stderr, refused


@test
def check_says_what_will_be_trained(folder):
    shown = dml('check', board_job(folder, {'layers': [12, 7]}))
    assert '# a network: features - 12 - 7 - outputs, with tanh between them, softmax' \
        in shown.stdout, shown
    again = folder / 'again.conf'
    again.write_text(shown.stdout)
    assert dml('check', again).stdout == shown.stdout


sys.exit(main())
