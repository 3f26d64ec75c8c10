#!/usr/bin/env python3
"""Lists of l2: a path of runs, the choice among them, and sweeps that were broken off."""

import contextlib
import json
import os
import shutil
import signal
import sqlite3
import sys

from harness import AGAIN, ALL, CONFIG, COORDINATOR, Process, dml, is_stopped, main, some, test, \
    train, write_job
from sweeps import killed, rows_of, table_of, write_rows

VALUES = [0.3, 0.03, 0.003, 0.0003]


def path_job(folder, **settings):
    if not (folder / 'rows.libsvm').exists():
        write_rows(folder / 'rows.libsvm', 400, 1)
    return write_job(folder, **{'data': ['rows.libsvm'], 'l2': VALUES, 'holdout': '0.3',
                                'precondition': 'none', 'shards': 1, **settings})


def quiet(folder, job):
    return train(job, '--state', folder / 'quiet.state')


# ---- what it gives ----

@test
def each_value_is_a_run_from_the_one_before_and_the_best_on_the_holdout_goes_live(folder):
    result = train(path_job(folder, l2=[0.003, 0.3, 0.0003, 0.03]))
    path = result['path']
    assert [row['l2'] for row in path] == VALUES, path
    losses = [row['holdout_loss'] for row in path]
    best = losses.index(min(losses))
    assert [row['chosen'] for row in path] == [i == best for i in range(4)], path
    assert result['run'] == path[best]['run'] and result['sweep']['runs'] == 4, result
    state = folder / 'job.state'
    assert os.readlink(state / 'models/current') == str(result['run'])
    assert rows_of(state, 'SELECT sweep, member, start_run FROM runs ORDER BY run') == \
        [(1, 0, 0), (1, 1, 1), (1, 2, 2), (1, 3, 3)]
    assert rows_of(state, "SELECT json_extract(settings, '$.l2') FROM runs ORDER BY run") == \
        [(value,) for value in VALUES]


@test
def the_models_of_a_path_are_those_of_single_runs_in_fewer_evaluations(folder):
    write_rows(folder / 'rows.libsvm', 600, 1, features=40, decades=1.5)
    few = {'loss_tolerance': 0, 'gradient_tolerance': 1e-8}
    path = train(path_job(folder, **few))['path']
    alone = [train(path_job(folder, l2=value, **few), '--state', folder / f'{value}.state')
             for value in VALUES]
    for row, single in zip(path, alone):
        assert abs(row['loss'] - single['loss']) < 1e-12, (row, single)
    ours, cold = (sum(row['evaluations'] for row in rows) for rows in (path, alone))
    assert ours < 0.7 * cold, f'{ours} evaluations, {cold} from zero'


@test
def a_table_shows_the_values_and_check_says_how_many_runs_there_will_be(folder):
    job = path_job(folder)
    assert '# 4 runs: 4 values of l2' in dml('check', job).stdout
    lines = dml('run', job, '--quiet').stdout.splitlines()
    head = next(i for i, line in enumerate(lines) if line.split()[:3] == ['l2', 'loss', 'holdout'])
    rows = lines[head + 1:]
    assert [float(line.split()[0]) for line in rows] == VALUES, lines
    assert sum('chosen' in line for line in rows) == 1, lines


@test
def a_list_without_a_holdout_is_refused_with_what_to_add(folder):
    write_rows(folder / 'rows.libsvm', 400, 1)
    finished = dml('check', write_job(folder, data=['rows.libsvm'], l2=VALUES))
    assert finished.status == CONFIG and 'also set `holdout`' in finished.stderr, finished


# ---- workers ----

@test
def the_same_workers_serve_all_runs(folder):
    train(path_job(folder))
    query = 'SELECT role, count(DISTINCT pid), count(DISTINCT run) FROM processes GROUP BY role'
    assert rows_of(folder / 'job.state', query) == [('replica', 1, 4), ('shard', 1, 4)]


def stands_still(process):
    with open(f'/proc/{process.pid}/stat') as file:
        return file.read().rpartition(')')[2].split()[0] == 'T'


@test
def workers_that_die_between_two_runs_are_replaced(folder):
    job = path_job(folder)
    expected = table_of(quiet(folder, job))
    process = Process(COORDINATOR, 'run', job, '--json',
                      DML_FAILPOINT='coordinator.run_ended:2:stop')
    process.until(lambda: stands_still(process), 'it stands between two runs')
    workers = [pid for pid in process.survivors() if pid != process.pid]
    assert len(workers) == 2, workers
    for pid in workers:
        os.kill(pid, signal.SIGKILL)
    process.signal(signal.SIGCONT)
    finished = process.wait(60)
    process.end()
    assert finished.status == 0 and table_of(finished.json) == expected, finished
    query = 'SELECT role, count(DISTINCT pid) FROM processes GROUP BY role'
    assert rows_of(folder / 'job.state', query) == [('replica', 2), ('shard', 2)]
    assert finished.json['restarts']['shard'] == 0, finished


@test
def workers_end_soon_after_a_coordinator_that_dies_between_two_runs(folder):
    process = Process(COORDINATOR, 'run', path_job(folder),
                      DML_FAILPOINT='coordinator.run_ended:2:kill')
    try:
        process.wait()
        assert process.deserted(), process.survivors()
    finally:
        process.end()


# ---- sweeps that were broken off ----

KILLS = ['sweep_begun:1', 'sweep_ended:1', 'run_ended:1', 'run_ended:3', 'run_ended:4',
         'start_written:1', 'start_written:3', 'model_published:2', 'epoch_write:3',
         'publish_decided:1', 'publish_settled:1', 'store_committed_full:9']


@test
def a_sweep_that_was_killed_anywhere_gives_the_table_of_the_quiet_one(folder):
    job = path_job(folder)
    expected = table_of(quiet(folder, job))
    for kill in some(KILLS):
        state = folder / f'{kill}.state'
        killed('run', job, kill, '--state', state)
        result = train(job, '--state', state)
        assert table_of(result) == expected, (kill, result['path'])
        if kill != 'publish_settled:1':
            assert len(rows_of(state, 'SELECT run FROM runs')) == 4, kill


@test
def prune_leaves_a_sweep_that_was_killed_all_that_it_goes_on_with(folder):
    job = path_job(folder, keep_models=1)
    expected = table_of(quiet(folder, job))
    for kill in 'run_ended:2', 'sweep_ended:1', 'publish_decided:1':
        state = folder / f'{kill}.state'
        train(job, '--state', state, '--set', 'l2=0.5')  # a decision comes before the sweep
        killed('run', job, kill, '--state', state)
        pruned = dml('prune', state)
        assert pruned.status == 0, pruned
        result = train(job, '--state', state)
        assert table_of(result) == expected, (kill, pruned, result['path'])
        if kill == 'run_ended:2':
            assert len(rows_of(state, 'SELECT run FROM runs')) == 5, kill


@test
def a_sweep_that_was_cancelled_goes_on_with_the_same_command(folder):
    job = path_job(folder)
    expected = quiet(folder, job)
    process = Process(COORDINATOR, 'run', job, '--json',
                      DML_FAILPOINT='coordinator.start_written:2:stop')
    process.until(lambda: is_stopped(process.pid), 'it stops at the start of the second run')
    process.popen.send_signal(signal.SIGTERM)
    process.popen.send_signal(signal.SIGCONT)
    finished = process.wait()
    assert finished.status == AGAIN, finished
    assert table_of(train(job)) == table_of(expected)


@test
def another_list_or_other_data_begins_another_sweep_and_the_log_says_why(folder):
    killed('run', path_job(folder), 'run_ended:2')
    finished = dml('run', path_job(folder, l2=VALUES[:3]), '--json')
    assert 'sweep 1 is unfinished, but has another `l2`: a new sweep starts' in finished.stderr
    assert len(finished.json['path']) == 3, finished
    killed('run', path_job(folder), 'run_ended:2')
    write_rows(folder / 'rows.libsvm', 10, 2, 'a')
    finished = dml('run', path_job(folder), '--json')
    assert 'sweep 1 is unfinished, but has other data: a new sweep starts' in finished.stderr
    killed('run', path_job(folder), 'run_ended:2')
    finished = dml('run', path_job(folder), '--json', '--fresh')
    assert finished.json['sweep']['number'] == 5, finished.json


# ---- limits that are raised ----

LATER = ['run_ended:1', 'run_ended:3', 'sweep_ended:1', 'publish_decided:1', 'epoch_write:2']


def short_path(folder, **settings):
    return path_job(folder, max_steps=4, loss_tolerance=0, gradient_tolerance=1e-9, **settings)


@test
def a_limit_that_is_raised_lets_each_run_go_on_from_its_last_step(folder):
    job = short_path(folder)
    few = train(job)
    assert {row['reason'] for row in few['path']} == {'step limit'}, few['path']
    finished = dml('run', job, '--json', '--set', 'max_steps=300')
    assert 'run 5 goes on from the end of run 1; step 4 is durable' in finished.stderr, finished
    more = finished.json
    assert more['sweep']['number'] == 1 and [row['run'] for row in more['path']] == [5, 6, 7, 8]
    assert all(a['loss'] > b['loss'] and b['converged'] for a, b in zip(few['path'], more['path']))
    state = folder / 'job.state'
    assert os.readlink(state / 'models/current') == str(few['run']) and not more['published']
    assert not list((state / 'shards').iterdir()), 'checkpoints of what has converged are kept'
    assert train(job, '--set', 'max_steps=300')['sweep']['number'] == 2, 'nothing was left to do'


@test
def a_sweep_that_is_killed_beyond_a_raised_limit_gives_the_table_of_the_quiet_one(folder):
    for folds in (2, 'off') if ALL else (2,):
        job = short_path(folder, folds=folds)
        place = folder / f'{folds}.state'
        train(job, '--state', place)
        expected = table_of(train(job, '--state', place, '--set', 'max_steps=300'))
        for kill in some(LATER):
            state = folder / f'{folds}.{kill}.state'
            first = train(job, '--state', state)
            killed('run', job, kill, '--state', state, '--set', 'max_steps=300')
            result = train(job, '--state', state, '--set', 'max_steps=300')
            assert result['sweep']['number'] == 1, (folds, kill, result['sweep'])
            assert table_of(result) == expected, (folds, kill, result['path'])
            models = {entry.name for entry in (state / 'models').iterdir()}
            runs = [row['run'] for row in first['path'] + result['path']]
            assert models == {'current', *map(str, runs)}, (folds, kill, models)


@test
def without_their_checkpoints_a_new_sweep_begins(folder):
    job = short_path(folder)
    train(job)
    shutil.rmtree(folder / 'job.state/shards')
    assert train(job, '--set', 'max_steps=300')['sweep']['number'] == 2


# ---- retrain ----

def nights(folder, **settings):
    return path_job(folder, data=['rows*.libsvm'], gate=['loss <= 1.5 * live'], **settings)


@test
def a_clock_that_goes_back_makes_no_decided_sweep_open_again(folder):
    job = path_job(folder, l2=VALUES[:2])
    train(job)
    with contextlib.closing(sqlite3.connect(folder / 'job.state/dml.db')) as store, store:
        store.execute('UPDATE sweeps SET ended_ms = ended_ms + 3600000')   # ahead, and then set
    again = train(job)
    assert again['sweep']['number'] == 2 and again['run'] > 2, again['sweep']


@test
def the_gate_sees_the_winner_and_nothing_is_done_without_new_data(folder):
    job = nights(folder)
    first = dml('retrain', job, '--json').json
    assert first['published'] and len(first['gate']) == 1 and len(first['path']) == 4, first
    assert 'no new data since run' in dml('retrain', job).stdout
    write_rows(folder / 'rows2.libsvm', 200, 2)
    second = dml('retrain', job, '--json').json
    state = folder / 'job.state'
    assert rows_of(state, 'SELECT start_run FROM runs WHERE run = 5') == [(first['run'],)]
    published = [first['run'], second['run']]
    assert rows_of(state, 'SELECT run FROM publications') == [(run,) for run in published]
    kept = {int(path.name) for path in (state / 'models').iterdir() if path.name != 'current'}
    assert kept == {first['run'], 5, 6, 7, 8}, f'{kept}: models of an earlier path are kept'
    assert dml('rollback', job).status == 0
    assert os.readlink(state / 'models/current') == str(first['run'])


@test
def an_unfinished_sweep_is_finished_on_its_own_data_before_new_data_is_trained_on(folder):
    job = nights(folder)
    expected = dml('retrain', job, '--json', '--state', folder / 'quiet.state').json
    state = folder / 'job.state'
    for place in 'run_ended:2', 'sweep_ended:1':
        killed('retrain', job, place)
    write_rows(folder / 'rows2.libsvm', 200, 2)
    finished = dml('retrain', job, '--json')
    assert finished.status == 0, finished
    results = [result for (result,) in rows_of(state, 'SELECT result FROM sweeps ORDER BY sweep')]
    assert len(results) == 2
    assert table_of(json.loads(results[0])) == table_of(expected)
    assert rows_of(state, 'SELECT count(*), max(sweep) FROM runs') == [(8, 2)]
    assert [kind for (kind,) in rows_of(state, 'SELECT kind FROM publications')] == \
        ['published'] * 2


@test
def a_sweep_that_new_data_interrupts_is_finished_from_its_packs(folder):
    job = nights(folder)
    killed('retrain', job, 'run_ended:2')
    write_rows(folder / 'rows2.libsvm', 200, 2)
    finished = dml('retrain', job, '--json')
    assert 'sweep 1 is unfinished; finishing it first' in finished.stderr, finished
    state = folder / 'job.state'
    assert rows_of(state, 'SELECT sweep, count(*) FROM runs GROUP BY sweep') == [(1, 4), (2, 4)]
    data = rows_of(state, 'SELECT DISTINCT sweep, data FROM runs ORDER BY sweep')
    assert len(data) == 2, data


@test
def runs_that_start_anew_each_start_from_the_live_model_after_a_kill_too(folder):
    """Each value from the live model: with early stopping where a run ends depends on its start."""
    job = nights(folder, early_stopping=3, l2=VALUES[:3])
    assert dml('retrain', job).status == 0
    write_rows(folder / 'rows2.libsvm', 200, 2)
    state = folder / 'job.state'
    hashes = []
    for number, place in enumerate((None, 'run_ended:1', 'run_ended:2')):
        copy = folder / f'{number}.state'
        shutil.copytree(state, copy, symlinks=True)
        if place:
            killed('retrain', job, place, '--state', copy)
        finished = dml('retrain', job, '--json', '--state', copy)
        assert finished.status == 0, finished
        hashes.append([row['model_sha256'] for row in finished.json['path']])
        assert rows_of(copy, "SELECT count(DISTINCT start_model), min(start_model > '') FROM runs "
                             'WHERE sweep = 2') == [(1, 1)]
    assert hashes[0] == hashes[1] == hashes[2], hashes


if __name__ == '__main__':
    sys.exit(main())
