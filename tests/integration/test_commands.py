#!/usr/bin/env python3
"""The commands as people and scripts use them: what they print, how they end, what they leave."""

import gzip
import hashlib
import json
import math
import os
import re
import signal
import socket
import sqlite3
import struct
import sys
import time

from harness import (AGAIN, BAD_DATA, BUILD, REPLICA, SHARD, Process, dml,
                     endless_job, main, run, small_data, small_job, test, train, write_job,
                     COORDINATOR)

RESULT_MEMBERS = {
    'job', 'run', 'reason', 'objective', 'loss', 'gradient_max', 'steps', 'evaluations',
    'shard_rounds', 'history', 'examples', 'features', 'values', 'parameters', 'replicas', 'shards',
    'backup_copies', 'restarts', 'seconds', 'safeguards', 'model', 'model_sha256'}

def read_safetensors(path):
    """The arrays of a model, as a dict of name to (shape, list of numbers)."""
    content = path.read_bytes()
    length = struct.unpack('<Q', content[:8])[0]
    arrays = {}
    for name, what in json.loads(content[8:8 + length]).items():
        if name == '__metadata__':
            continue
        first, end = what['data_offsets']
        raw = content[8 + length + first:8 + length + end]
        kind = {'F64': 'd', 'U64': 'Q'}[what['dtype']]
        arrays[name] = (what['shape'], list(struct.unpack(f'<{len(raw) // 8}{kind}', raw)))
    return arrays


# ---- run ----

@test
def run_prints_one_object_with_every_member(folder):
    job = small_job(folder, test=['small.libsvm'], shards=1, replicas=2)
    result = train(job)
    assert RESULT_MEMBERS <= set(result), RESULT_MEMBERS - set(result)
    assert result['job'] == 'job' and result['objective'] == 'logistic', result
    assert result['reason'] in ('gradient tolerance', 'loss tolerance'), result
    assert (result['examples'], result['features'], result['parameters']) == (60, 20, 21), result
    assert result['values'] == 240 and result['shards'] == 1 and result['replicas'] == 2, result
    assert set(result['restarts']) == {'coordinator', 'shard', 'replica'}, result
    assert set(result['seconds']) >= {'total', 'pack', 'train'}, result
    assert result['test']['examples'] == 60, result
    assert 0 < result['test']['loss'] <= result['loss'], result
    assert 0.5 < result['test']['accuracy'] <= 1 and 0.5 < result['test']['auc'] <= 1, result


@test
def run_prints_a_table_for_people(folder):
    finished = dml('run', small_job(folder))
    assert finished.status == 0, finished
    assert 'tolerance' in finished.stdout and 'loss' in finished.stdout, finished
    assert '\r' not in finished.stderr and '\x1b' not in finished.stderr, finished


@test
def quiet_says_nothing_but_the_result(folder):
    job = small_job(folder)
    finished = dml('run', job, '--quiet', '--json')
    assert finished.status == 0 and finished.stderr == '', finished
    assert finished.stdout.count('\n') == 1, finished
    table = dml('run', job, '--fresh', '--quiet')
    assert table.stderr == '' and 'gradient tolerance' in table.stdout, table
    for command in 'check', 'pack', 'retrain', 'rollback':
        finished = dml(command, job, '--quiet')
        assert finished.stderr == '' and finished.stdout, finished


@test
def the_model_hash_is_that_of_the_parameters(folder):
    result = train(small_job(folder))
    model = folder / 'job.state/models/current'
    assert model.resolve() == (folder / result['model']).resolve(), result['model']
    arrays = read_safetensors(model / 'model.safetensors')
    weight, bias = arrays['weight'], arrays['bias']
    assert weight[0] == [1, 20] and bias[0] == [1], arrays
    assert arrays['feature_id'][1] == list(range(1, 21)), arrays
    parameters = struct.pack('<21d', *(w + 0.0 for w in weight[1] + bias[1]))
    assert hashlib.sha256(parameters).hexdigest() == result['model_sha256'], result
    assert json.loads((model / 'model.json').read_text())['objective'] == 'logistic'


@test
def the_hash_goes_class_by_class_in_the_order_of_original_ids(folder):
    # Features are first seen in falling order, and unequally often.
    rows = [f'{k % 3} {1000 * (k % 7 + 1)}:{(k * 37 % 11) - 5} 9000:1\n' if k % 2 else
            f'{k % 3} {1000 * (k % 5 + 1)}:{(k * 17 % 13) - 6}\n' for k in range(60)]
    (folder / 'data').write_text(''.join(reversed(rows)))
    result = train(write_job(folder, data=['data'], objective='softmax', l2=1e-2))
    arrays = read_safetensors(folder / 'job.state/models/current/model.safetensors')
    ids = arrays['feature_id'][1]
    assert ids == sorted(ids) and len(ids) == 8, ids
    (k, f), weight = arrays['weight']
    assert (k, f) == (3, 8), arrays
    digest = hashlib.sha256()
    for c in range(k):
        row = [*weight[c * f:(c + 1) * f], arrays['bias'][1][c]]
        digest.update(struct.pack(f'<{f + 1}d', *(w + 0.0 for w in row)))
    assert digest.hexdigest() == result['model_sha256']


@test
def an_intercept_is_left_out_on_request(folder):
    result = train(small_job(folder, intercept=False))
    assert result['parameters'] == result['features'] == 20, result
    assert 'bias' not in read_safetensors(folder / 'job.state/models/current/model.safetensors')


def checkpoints_of(folder, run):
    """Files of checkpoints that the state folder keeps of a run."""
    return list((folder / 'job.state/shards').glob(f'{run}/*/step-*'))


@test
def a_run_that_ended_at_its_step_limit_goes_on_when_the_limit_is_raised(folder):
    exact = {'gradient_tolerance': 1e-9, 'loss_tolerance': 0}
    job = small_job(folder, max_steps=3, **exact)
    stopped = train(job)
    assert stopped['reason'] == 'step limit' and stopped['steps'] == 3, stopped
    assert stopped['restarts']['coordinator'] == 0 and checkpoints_of(folder, 1), stopped
    further = train(job, '--set', 'max_steps=1000')
    assert further['reason'] == 'gradient tolerance' and further['run'] == 1, further
    assert further['restarts']['coordinator'] == 1, further
    assert further['seconds']['total'] > stopped['seconds']['total'], (stopped, further)
    at_once = train(small_job(folder, **exact), '--fresh')
    assert at_once['run'] == 2 and at_once['restarts']['coordinator'] == 0, at_once
    assert further['model_sha256'] == at_once['model_sha256'], (further, at_once)
    assert further['evaluations'] == at_once['evaluations'], (further, at_once)


@test
def a_second_run_of_an_ended_job_is_a_new_one(folder):
    job = small_job(folder)
    first, second = train(job), train(job)
    assert (first['run'], second['run']) == (1, 2), (first, second)
    assert first['model_sha256'] == second['model_sha256'], (first, second)


@test
def checkpoints_are_kept_only_while_a_run_can_go_on(folder):
    job = small_job(folder, max_steps=2, checkpoint_seconds=0, gradient_tolerance=1e-9,
                    loss_tolerance=0)
    train(job)
    assert checkpoints_of(folder, 1)
    train(job, '--set', 'max_steps=1000')
    assert not (folder / 'job.state/shards/1').exists()
    assert (folder / 'job.state/models/1/model.safetensors').exists()


@test
def a_run_tells_how_often_something_was_started_again(folder):
    job = small_job(folder, shards=2, checkpoint_seconds=0)
    expected = train(job)
    failpoint = 'shard1.receive_PROGRAM:9:kill'
    result = train(job, '--fresh', DML_FAILPOINT=failpoint)
    assert result['restarts']['shard'] == 1, result
    assert result['restarts']['coordinator'] == result['restarts']['replica'] == 0, result
    assert result['model_sha256'] == expected['model_sha256'], (result, expected)
    table = dml('run', job, '--fresh', DML_FAILPOINT=failpoint).stdout
    assert re.search('^restarts +run 0, shards 1, replicas 0$', table, re.M), table


@test
def a_run_tells_how_many_backup_copies_it_made(folder):
    small_data(folder, rows=3000)
    job = write_job(folder, data=['small.libsvm'], l2=1e-3, replicas=3, portion_chunks=1)
    expected = train(job)
    result = train(job, '--fresh', DML_FAILPOINT='replica0.send_FLUSHED:3:delay:1500')
    assert result['backup_copies'] > 0, result
    assert result['model_sha256'] == expected['model_sha256'], (result, expected)


@test
def a_run_at_its_time_limit_says_so(folder):
    result = train(endless_job(folder, max_seconds=0.5))
    assert result['reason'] == 'time limit', result
    assert result['model_sha256'], result


@test
def data_in_gz_and_zst_give_the_model_of_the_plain_text(folder):
    data = small_data(folder)
    hashes = {train(write_job(folder, 'plain', data=[data.name]))['model_sha256']}
    with gzip.open(folder / 'small.gz', 'wb') as file:
        file.write(data.read_bytes())
    hashes.add(train(write_job(folder, 'gz', data=['small.gz']))['model_sha256'])
    try:
        run('zstd', '-q', data.name, cwd=folder)
        hashes.add(train(write_job(folder, 'zst', data=['small.libsvm.zst']))['model_sha256'])
    except FileNotFoundError:
        print('# zstd is not installed: .zst is not tried')
    assert len(hashes) == 1, hashes


@test
def labels_of_any_spelling_give_the_same_model(folder):
    text = small_data(folder).read_text()
    hashes = set()
    for low, high in ('-1', '1'), ('0', '1'), ('3', '17.5'), ('-1.0', '+1'):
        (folder / 'data').write_text(re.sub(
            r'^(-?1)', lambda m: high if m[1] == '1' else low, text, flags=re.MULTILINE))
        hashes.add(train(write_job(folder, data=['data']), '--fresh')['model_sha256'])
    assert len(hashes) == 1, hashes


@test
def a_first_trial_that_overflows_exp_still_ends_right(folder):
    rows = [f'{1 if (k * 7) % 5 < 2 else -1} 1:{(k % 9 - 4) * 1e4} 2:{(k * 31) % 17 - 8}\n'
            for k in range(200)]
    (folder / 'data').write_text(''.join(rows))
    result = train(write_job(folder, data=['data'], l2=1e-4, loss_tolerance=0,
                             gradient_tolerance=1e-6))
    assert math.isfinite(result['loss']) and 0 < result['loss'] < math.log(2), result
    assert result['reason'] == 'gradient tolerance', result


@test
def columns_scaled_by_1e12_and_1e_12_never_give_nan(folder):
    lines = []
    for line in small_data(folder).read_text().splitlines():
        line = re.sub(r'\b1:(\S+)', lambda m: f'1:{float(m[1]) * 1e12!r}', line)
        lines.append(re.sub(r'\b2:(\S+)', lambda m: f'2:{float(m[1]) * 1e-12!r}', line))
    (folder / 'data').write_text('\n'.join(lines) + '\n')
    for objective in 'logistic', 'squared':
        result = train(write_job(folder, objective, data=['data'], objective=objective, l2=1e-6))
        assert math.isfinite(result['loss']), result
        state = folder / f'{objective}.state'
        arrays = read_safetensors(state / 'models/current/model.safetensors')
        assert all(map(math.isfinite, arrays['weight'][1] + arrays['bias'][1])), arrays


# ---- check, pack, inspect ----

@test
def check_prints_every_setting_as_a_job_file_and_starts_nothing(folder):
    job = small_job(folder)
    finished = dml('check', job, '--set', 'history=7')
    assert finished.status == 0, finished
    assert re.search(r'^history\s*=\s*7\b', finished.stdout, re.MULTILINE), finished
    assert re.search(r'^gradient_tolerance\s*=\s*1e-0?5\b', finished.stdout, re.MULTILINE), finished
    assert not (folder / 'job.state').exists()
    (folder / 'again.conf').write_text(finished.stdout)
    again = dml('check', folder / 'again.conf')
    assert again.status == 0 and again.stdout == finished.stdout, (finished, again)


@test
def run_n_is_check(folder):
    job = small_job(folder)
    assert dml('run', '-n', job).stdout == dml('check', job).stdout
    assert not (folder / 'job.state').exists()


@test
def check_gives_the_settings_as_json(folder):
    settings = dml('check', small_job(folder), '--json').json
    assert settings['objective'] == 'logistic' and settings['l2'] == 1e-3, settings


@test
def a_pack_is_reused_until_its_source_changes(folder):
    job = small_job(folder)
    packs = lambda: {path: path.stat().st_mtime_ns
                     for path in (folder / 'job.state').rglob('*.pack')}
    assert dml('pack', job).status == 0
    first = packs()
    assert len(first) == 1, first
    assert dml('pack', job).status == 0
    assert packs() == first
    before = train(job)['model_sha256']
    assert packs() == first
    small_data(folder, seed=2)
    assert train(job)['model_sha256'] != before
    assert packs() != first


@test
def inspect_says_what_a_pack_holds(folder):
    job = small_job(folder)
    assert dml('pack', job).status == 0
    pack = next((folder / 'job.state').rglob('*.pack'))
    finished = dml('inspect', pack)
    assert finished.status == 0 and 'small.libsvm' in finished.stdout, finished
    what = dml('inspect', pack, '--json').json
    assert what['rows'] == 60 and what['values'] == 240, what


def named_csv(folder, header='a,label,größe,c', name='named.csv'):
    rows = [f'{k % 9},{k * 7 % 5 < 2:d},{k * 31 % 17},{k % 4}' for k in range(60)]
    (folder / name).write_text('\n'.join([header, *rows, '']))
    return write_job(folder, 'named', data=[name], l2=1e-2, csv={'label': 'label'})


@test
def features_have_the_names_of_the_header_wherever_they_are_shown(folder):
    job = named_csv(folder)
    train(job)
    for path in [*folder.rglob('*.pack'), *folder.rglob('*.set')]:
        assert dml('inspect', path, '--json').json['columns'] == ['a', 'größe', 'c'], path
        assert re.search('^columns +a, größe, c$', dml('inspect', path).stdout, re.M), path
    with open(folder / 'named.csv', 'a') as file:
        file.write('1,,2,3\n')
    finished = dml('run', job)
    assert finished.status == BAD_DATA and 'column 2 (label)' in finished.stderr, finished
    named_csv(folder)
    with open(folder / 'named.csv', 'a') as file:
        file.write('1,1,"2,3\n')
    finished = dml('run', job)
    assert finished.status == BAD_DATA and 'column 3 (größe)' in finished.stderr, finished


@test
def predict_refuses_columns_of_other_names_or_missing_ones(folder):
    train(named_csv(folder))
    named_csv(folder, header='größe,label,a,c', name='swapped.csv')
    finished = dml('predict', folder / 'named.state', folder / 'swapped.csv')
    assert finished.status == BAD_DATA and finished.stdout == '', finished
    assert 'column 1 is named "größe", but "a"' in finished.stderr, finished
    (folder / 'short.csv').write_text('a,label,größe\n1,1,2\n')
    finished = dml('predict', folder / 'named.state', folder / 'short.csv')
    assert finished.status == BAD_DATA and 'short.csv:1: 3 columns' in finished.stderr, finished


# ---- predict, evaluate ----

@test
def predict_prints_the_probability_of_the_positive_class(folder):
    job = small_job(folder)
    train(job)
    finished = dml('predict', folder / 'job.state', folder / 'small.libsvm')
    assert finished.status == 0, finished
    arrays = read_safetensors(folder / 'job.state/models/current/model.safetensors')
    weight = dict(zip(arrays['feature_id'][1], arrays['weight'][1]))
    rows = (folder / 'small.libsvm').read_text().splitlines()
    printed = [float(line) for line in finished.stdout.splitlines()]
    assert len(printed) == len(rows) == 60
    for line, probability in zip(rows, printed):
        pairs = (pair.split(':') for pair in line.split()[1:])
        margin = arrays['bias'][1][0] + sum(weight[int(j)] * float(v) for j, v in pairs)
        assert abs(probability - 1 / (1 + math.exp(-margin))) < 1e-12, (line, probability, margin)


@test
def predict_takes_rows_without_labels_and_features_never_seen(folder):
    train(small_job(folder))
    (folder / 'new').write_text('1:0.5 2:1\n1:0.5 2:1 900:3\n')
    finished = dml('predict', folder / 'job.state', folder / 'new')
    assert finished.status == 0, finished
    first, second = finished.stdout.splitlines()
    assert first == second, finished


@test
def predict_gives_a_probability_for_each_class_and_values_for_squared_loss(folder):
    rows = [f'{k % 3} {k % 5 + 1}:1 {k % 3 + 6}:{k % 4}\n' for k in range(60)]
    (folder / 'data').write_text(''.join(rows))
    train(write_job(folder, 'classes', data=['data'], objective='softmax', l2=1e-3))
    for line in dml('predict', folder / 'classes.state', folder / 'data').stdout.splitlines():
        probabilities = [float(word) for word in line.split()]
        assert len(probabilities) == 3 and abs(sum(probabilities) - 1) < 1e-12, line
    train(write_job(folder, 'values', data=['data'], objective='squared', l2=1e-3))
    values = dml('predict', folder / 'values.state', folder / 'data').stdout.splitlines()
    assert len(values) == 60 and all(len(line.split()) == 1 for line in values)


@test
def evaluate_agrees_with_the_predictions(folder):
    train(small_job(folder))
    model, data = folder / 'job.state/models/current', folder / 'small.libsvm'
    figures = dml('evaluate', model, data, '--json').json
    labels = [line.startswith('1') for line in data.read_text().splitlines()]
    chances = [float(line) for line in dml('predict', model, data).stdout.splitlines()]
    loss = -math.fsum(math.log(p if y else 1 - p) for p, y in zip(chances, labels)) / len(labels)
    pairs = [(p > q) + (p == q) / 2 for p, y in zip(chances, labels) if y
             for q, z in zip(chances, labels) if not z]
    assert figures['examples'] == 60, figures
    assert abs(figures['loss'] - loss) < 1e-12, (figures, loss)
    assert abs(figures['auc'] - sum(pairs) / len(pairs)) < 1e-12, figures
    right = sum((p > 0.5) == y for p, y in zip(chances, labels))
    assert abs(figures['accuracy'] - right / 60) < 1e-12, figures


@test
def a_label_that_training_never_saw_counts_as_wrong_and_is_reported(folder):
    train(small_job(folder))
    data = folder / 'small.libsvm'
    before = dml('evaluate', folder / 'job.state', data, '--json').json
    data.write_text(data.read_text() + '7 1:1\n')
    after = dml('evaluate', folder / 'job.state', data, '--json').json
    assert abs(after['accuracy'] * 61 - before['accuracy'] * 60) < 1e-9, (before, after)
    assert after['unseen_labels'] == 1, after


# ---- jobs, status, the state folder ----

@test
def jobs_lists_the_runs_so_far(folder):
    job = small_job(folder)
    first = train(job)
    second = train(job, '--fresh')
    finished = dml('jobs', folder / 'job.state')
    assert finished.status == 0, finished
    assert finished.stdout.count(first['reason']) >= 2, finished
    [answer] = dml('jobs', job, '--json').json['folders']
    listed = answer['runs']
    assert [r['run'] for r in listed] == [first['run'], second['run']], listed
    assert listed[0]['reason'] == first['reason'] and listed[0]['loss'] == first['loss'], listed


@test
def status_tells_the_last_state_when_nothing_runs(folder):
    job = small_job(folder)
    result = train(job)
    for where in job, folder / 'job.state':
        finished = dml('status', where)
        assert finished.status == 0 and result['reason'] in finished.stdout, finished
    state = dml('status', job, '--json').json
    assert state['step'] == result['steps'] and state['loss'] == result['loss'], state


@test
def status_asks_the_live_coordinator(folder):
    job = endless_job(folder, shards=2, replicas=2)
    process = Process(COORDINATOR, 'run', job)
    try:
        control = folder / 'job.state/control.sock'
        process.until(control.exists, 'the control socket is there')
        assert control.stat().st_mode & 0o777 == 0o600

        def stepping():
            finished = dml('status', job, '--json')
            return finished.status == 0 and finished.json.get('step', 0) > 0 and finished.json
        state = process.until(stepping, 'status tells of a step')
        roles = sorted(p['role'] for p in state['processes'] if p['role'] != 'coordinator')
        assert roles == ['replica', 'replica', 'shard', 'shard'], state
        for worker in state['processes']:
            assert {'role', 'index', 'pid', 'host', 'state'} <= set(worker), worker
            os.kill(worker['pid'], 0)
        assert str(process.pid) in json.dumps(state), state
        process.signal(signal.SIGTERM)
        assert process.wait().status == AGAIN
        assert not process.survivors()
    finally:
        process.end()


@test
def a_second_run_is_told_that_one_is_running(folder):
    job = endless_job(folder)
    process = Process(COORDINATOR, 'run', job)
    try:
        process.until((folder / 'job.state/control.sock').exists, 'the control socket is there')
        finished = dml('run', job)
        assert finished.status == AGAIN, finished
        assert f'already running, pid {process.pid}' in finished.stderr, finished
        process.signal(signal.SIGTERM)
        process.wait()
    finally:
        process.end()


def stopped_by(folder, stop):
    """Starts an endless run, stops it, and sees that it can be taken up again."""
    job = endless_job(folder)
    process = Process(COORDINATOR, 'run', job, '--json')
    try:
        process.until((folder / 'job.state/control.sock').exists, 'the control socket is there')
        process.until(lambda: dml('status', job, '--json').json.get('step', 0) > 0, 'a step is made')
        stop(process, job)
        finished = process.wait(30)
        assert finished.status == AGAIN, finished
        assert not process.survivors(), 'processes outlive the run'
    finally:
        process.end()
    assert not list((folder / 'job.state').glob('models/*')), 'a stopped run writes no model'
    assert dml('status', job).status == 0
    return finished


@test
def ctrl_c_stops_a_run_and_all_it_started_without_a_model(folder):
    finished = stopped_by(folder, lambda process, _: process.signal(signal.SIGINT))
    assert finished.json['reason'] == 'cancelled', finished


@test
def a_run_survives_who_asks_and_leaves_before_the_answer(folder):
    job = endless_job(folder)
    process = Process(COORDINATOR, 'run', job)
    socket_path = folder / 'job.state/control.sock'
    try:
        process.until(socket_path.exists, 'the control socket is there')
        process.until(lambda: dml('status', job, '--json').json.get('step', 0) > 0, 'a step is made')
        process.signal(signal.SIGSTOP)
        with socket.socket(socket.AF_UNIX) as asking:
            asking.connect(str(socket_path))
            asking.send(b'status\n')
        process.signal(signal.SIGCONT)
        step = dml('status', job, '--json').json['step']
        process.until(lambda: dml('status', job, '--json').json['step'] > step, 'it goes on')
    finally:
        process.end()


@test
def sigterm_stops_a_run_and_all_it_started(folder):
    stopped_by(folder, lambda process, _: process.signal(signal.SIGTERM))


@test
def cancel_stops_a_live_run(folder):
    def cancel(_, job):
        finished = dml('cancel', job)
        assert finished.status == 0, finished
    stopped_by(folder, cancel)


@test
def the_database_holds_every_step_and_evaluation(folder):
    result = train(small_job(folder))
    connection = sqlite3.connect(f'file:{folder / "job.state/dml.db"}?mode=ro', uri=True)
    steps = connection.execute('SELECT step, loss FROM steps ORDER BY step').fetchall()
    assert [step for step, _ in steps] == list(range(result['steps'] + 1)), steps
    assert steps[-1][1] == result['loss'], (steps[-1], result)
    counted = connection.execute('SELECT examples FROM evaluations').fetchall()
    assert len(counted) == result['evaluations'], (len(counted), result)
    assert all(examples == 60 for examples, in counted), counted
    connection.close()


@test
def the_state_folder_is_private_to_its_owner(folder):
    train(small_job(folder))
    state = folder / 'job.state'
    assert {'dml.db', 'lock', 'packs', 'models'} <= {path.name for path in state.iterdir()}
    assert not (state / 'control.sock').exists(), 'the control socket outlives the run'


# ---- workers started by hand ----

def start_worker(program, address):
    process = Process(program, '--listen', address)
    path = address.removeprefix('unix:')
    process.until(lambda: os.path.exists(path), 'it listens')
    return process


@test
def workers_started_by_hand_are_used_and_end_with_the_job(folder):
    expected = train(small_job(folder), '--state', folder / 'own.state')['model_sha256']
    shards = [f'unix:{folder}/s{k}' for k in range(2)]
    replicas = [f'unix:{folder}/r{k}' for k in range(2)]
    workers = [start_worker(SHARD, address) for address in shards]
    workers += [start_worker(REPLICA, address) for address in replicas]
    try:
        job = small_job(folder, shard_addresses=shards, replica_addresses=replicas)
        result = train(job)
        assert (result['shards'], result['replicas']) == (2, 2), result
        assert result['model_sha256'] == expected, result
        for worker in workers:
            finished = worker.wait(30)
            assert finished.status == 0, finished
    finally:
        for worker in workers:
            worker.end()


@test
def workers_may_listen_on_loopback_ports(folder):
    def port_of(process):
        """The worker says where it listens when it chose the port itself."""
        said = re.search(r'127\.0\.0\.1:([1-9]\d*)', process.so_far(process.output) +
                         process.so_far(process.errors))
        return said and said[0]
    workers = [Process(program, '--listen', '127.0.0.1:0', '--folder', folder)
               for program in (SHARD, REPLICA)]
    try:
        shard, replica = [w.until(lambda w=w: port_of(w), 'the address is told') for w in workers]
        result = train(small_job(folder, shard_addresses=[shard], replica_addresses=[replica]))
        own = train(small_job(folder), '--state', folder / 'own.state')
        assert result['model_sha256'] == own['model_sha256'], (result, own)
    finally:
        for worker in workers:
            worker.end()


@test
def a_shard_on_tcp_writes_nothing_unless_it_was_told_below_which_folder(folder):
    for options, what in ((), 'start it with --folder DIR'), (('--folder', folder / 'own'), 'own'):
        shard = Process(SHARD, '--listen', '127.0.0.1:0', *options)
        try:
            address = shard.until(lambda: re.search(r'127\.0\.0\.1:\d+', shard.so_far(shard.output)),
                                  'the address is told')[0]
            refused = dml('run', small_job(folder, shard_addresses=[address]))
            assert refused.status == 77, refused
            assert what in refused.stderr, refused
            assert not list((folder / 'job.state/shards').glob('*/*')), refused
        finally:
            shard.end()


@test
def workers_end_when_their_coordinator_is_lost_for_longer_than_reconnect_seconds(folder):
    job = endless_job(folder, reconnect_seconds=1)
    process = Process(COORDINATOR, 'run', job)
    try:
        process.until((folder / 'job.state/control.sock').exists, 'the control socket is there')
        process.until(lambda: dml('status', job, '--json').json.get('step', 0) > 0, 'a step is made')
        process.signal(signal.SIGKILL)
        process.wait()
        end = time.monotonic() + 30
        while process.survivors() and time.monotonic() < end:
            time.sleep(0.1)
        assert not process.survivors()
    finally:
        process.end()


# ---- help ----

@test
def every_program_tells_its_version_and_its_options(folder):
    for program in 'dml-coordinator', 'dml-shard', 'dml-replica':
        version = run(BUILD / program, '--version')
        assert version.status == 0 and re.search(r'\d+\.\d+', version.stdout), version
        usage = run(BUILD / program, '--help')
        assert usage.status == 0 and '--version' in usage.stdout, usage


@test
def the_help_of_a_command_is_about_that_command(folder):
    commands = re.findall(r'^  ([a-z]+)\b', dml('--help').stdout, re.M)
    about = {}
    for command in commands:
        text = dml(command, '--help').stdout
        assert text.startswith(f'usage: dml-coordinator {command} '), text
        about[command] = text.split('\n\n')[2]
        assert 'Options' not in about[command], text
        assert ('Keys of the job file:' in text) == (command == 'check'), text
    assert len(set(about.values())) == len(commands) > 9


sys.exit(main())
