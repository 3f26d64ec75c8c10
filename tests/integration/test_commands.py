#!/usr/bin/env python3
"""`run` and its result as people and scripts see them, and the help."""

import gzip
import hashlib
import json
import math
import os
import re
import struct
import sys

from harness import (BUILD, COORDINATOR, USAGE, dml, endless_job, main, read_safetensors, run, small_data,
                     small_job, test, train, write_job)
from nightly import check_model

RESULT_MEMBERS = {
    'job', 'run', 'reason', 'objective', 'loss', 'gradient_max', 'steps', 'evaluations',
    'shard_rounds', 'history', 'examples', 'features', 'values', 'parameters', 'replicas', 'shards',
    'backup_copies', 'restarts', 'seconds', 'safeguards', 'model', 'model_sha256', 'l1', 'l2',
    'nonzero', 'gap_bound', 'gap_estimate'}

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
def an_option_that_has_no_effect_is_named(folder):
    job, state = small_job(folder), folder / 'job.state'
    train(job)
    for words, name in ((['predict', state, folder / 'small.libsvm', '--state', state], '`--state '),
                        (['export', state, '--top', '3', '--state', state], '`--state '),
                        (['export', state, '--top', '3', '--set', 'l2=1'], '`--set l2=1` has no effect'),
                        (['init', folder / 'small.libsvm', '-o', '-', '--state', state], '`--state '),
                        (['publish', '1', state, '--set', 'on_publish=true'], f'{state} is a state folder'),
                        (['jobs', job, state, '--set', 'l2=1'], f'{state} is a state folder'),
                        (['metrics', '--state', state, '--set', 'l2=1'], 'none is named')):
        finished = dml(*words)
        assert finished.status == 0 and name in finished.stderr, finished
    for words, name in ((['status', state, '--state', folder / 'other.state'], f'{state} is one already'),
                        (['run', job, '--state='], 'option `--state` needs an argument, DIR'),
                        (['predict', state, folder / 'small.libsvm', '-o', ''], '`--output` needs an argument')):
        finished = dml(*words)
        assert finished.status == USAGE and name in finished.stderr and not finished.stdout, finished
    for words in ['jobs', job, '--set', 'l2=1'], ['status', '--state', state], ['status', job, '--state', state]:
        assert dml(*words).status == 0, words


@test
def quiet_says_nothing_but_the_result(folder):
    job = small_job(folder)
    finished = dml('run', job, '--quiet', '--json')
    assert finished.status == 0 and finished.stderr == '', finished
    assert finished.stdout.count('\n') == 1, finished
    table = dml('run', job, '--fresh', '--quiet', '--publish')
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
def a_raised_limit_is_gone_on_from_by_another_run(folder):
    exact = {'gradient_tolerance': 1e-9, 'loss_tolerance': 0}
    job = small_job(folder, max_steps=3, **exact)
    stopped = train(job)
    assert stopped['reason'] == 'step limit' and stopped['steps'] == 3, stopped
    assert stopped['restarts']['coordinator'] == 0 and checkpoints_of(folder, 1), stopped
    for limit in 3, 2:
        again = dml('run', job, '--json', '--set', f'max_steps={limit}')
        assert again.status == 0 and again.json['run'] == 1, again
        assert again.json['model_sha256'] == stopped['model_sha256'] and again.json['published'], again
        assert 'has ended at its step limit, which was not raised' in again.stderr, again
    between = train(job, '--set', 'max_steps=6')
    assert between['steps'] == 6 and (between['run'], between['continues']) == (2, 1), between
    held = [run['bytes']['checkpoints'] for run in dml('jobs', job, '--json').json['folders'][0]['runs']]
    assert held[0] == 0 < held[1] and checkpoints_of(folder, 1), (held, 'they are those of run 2')
    further = train(job, '--set', 'max_steps=1000')
    assert further['reason'] == 'gradient tolerance' and further['run'] == 3, further
    assert further['continues'] == 2 and not checkpoints_of(folder, 1), further
    assert further['seconds']['total'] > stopped['seconds']['total'], (stopped, further)
    at_once = train(small_job(folder, **exact), '--fresh')
    assert at_once['run'] == 4 and 'continues' not in at_once, at_once
    assert further['model_sha256'] == at_once['model_sha256'], (further, at_once)
    assert further['evaluations'] == at_once['evaluations'], (further, at_once)
    runs = dml('jobs', job, '--json').json['folders'][0]['runs']
    for before, after in zip(runs, runs[1:]):
        assert before['started_ms'] < before['ended_ms'] <= after['started_ms'], (before, after)
    assert [run['continues'] for run in runs] == [None, 1, 2, None], runs
    assert 'from the end of run 2' in dml('jobs', job).stdout


@test
def a_model_stays_what_it_is_whatever_goes_on_from_its_run_and_wherever_that_is_killed(folder):
    exact = {'gradient_tolerance': 1e-9, 'loss_tolerance': 0}
    whole = train(small_job(folder, **exact), '--state', folder / 'whole')
    job = small_job(folder, max_steps=3, **exact)
    for place in ('store_commit_full:3', 'store_committed_full:3', 'store_commit_full:4',
                  'store_committed_full:4', 'state_attempt:1', 'run_ended:1'):
        state = folder / f'{place}.state'
        first = train(job, '--state', state)
        further = ('run', job, '--state', state, '--set', 'max_steps=1000')
        killed = dml(*further, DML_FAILPOINT=f'coordinator.{place}:kill')
        assert killed.status == -9, (place, killed)
        dml('prune', job, '--state', state)
        second = dml(*further, '--json').json
        assert (second['run'], second['published']) == (2, False), (place, second)
        assert second['model_sha256'] == whole['model_sha256'], (place, second)
        assert second['evaluations'] == whole['evaluations'], (place, second)
        assert os.readlink(state / 'models/current') == '1', place
        assert json.loads((state / 'models/1/model.json').read_text())['result']['steps'] == 3, place
        assert check_model(state / 'models') == first['model_sha256'], place


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
    # Slowly enough for all replicas to have come and to have a known speed before one is silent.
    result = train(job, '--fresh', DML_SHUFFLE='1', DML_PAUSE_US='20000',
                   DML_FAILPOINT='replica0.send_FLUSHED:6:delay:3000')
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


# ---- messages ----

@test
def what_is_wrong_is_said_with_what_to_do(folder):
    (folder / 'two.csv').write_text('when,y\n' + '2024-01-01,1\n2024-01-02,0\n' * 20)
    (folder / 'mark.csv').write_bytes(b'a,y\n1,0\n2,1\n' + '\ufeff3,1\n'.encode())
    (folder / 'mark.libsvm').write_bytes(b'1 1:1\n-1 2:1\n' + '\ufeff1 1:2\n'.encode())
    (folder / 'mark.jsonl').write_bytes(b'{"a": 1, "y": 0}\n' + '\ufeff{"a": 2, "y": 1}\n'.encode())
    (folder / 'texts.csv').write_text('size,rank\n' + 'big,low\nbig,high\nsmall,low\n' * 9)
    (folder / 'blanks.conf').write_text('data = my data.csv\n')
    small_job(folder)
    two = {'data': ['two.csv'], 'objective': 'logistic'}
    dates = {'skip': ['when'], 'dates': ['when']}
    for job, status, said in (
            (write_job(folder, 'a', **two, csv=dates), 65, 'named by csv.skip and by csv.dates'),
            (write_job(folder, 'b', **two, csv={'dates': ['y']}), 65, 'csv.dates, and is the label'),
            (write_job(folder, 'c', data=['mark.csv']), 65, 'mark.csv:4: a byte order mark'),
            (write_job(folder, 'd', data=['mark.libsvm']), 65, 'mark.libsvm:3: a byte order mark'),
            (write_job(folder, 'e', data=['mark.jsonl'], objective='logistic'), 65,
             'mark.jsonl:2: a byte order mark'),
            (write_job(folder, 'f', data=['texts.csv'], objective='ordinal',
                       ordinal={'order': ['low', 'high']}), 65, 'csv.header = yes'),
            (folder / 'blanks.conf', 78, 'a string with blanks needs quotes')):
        refused = dml('run', job)
        assert refused.status == status and said in refused.stderr, (said, refused)
    spaced = dml('check', folder / 'job.conf', '--set', 'l2 = 0.25')
    assert spaced.status == 0 and re.search(r'^l2 += 0.25$', spaced.stdout, re.M), spaced
    address = dml('serve', folder, '--http', '8080')
    assert address.status == USAGE and '127.0.0.1:8080' in address.stderr, address
    (folder / 'odd csv.name').write_text('a,y\n1\n2,3,4\n5\n')
    named = dml('init', folder / 'odd csv.name', '-o', '-')
    assert named.status == 65 and '--set csv.KEY' not in named.stderr, named


@test
def help_is_aligned_and_tells_of_all_formats(folder):
    lines = [line for line in dml('--help', cwd=folder).stdout.splitlines() if line.startswith('  ')]
    begins = {re.match(r'  .*?  +(?=\S)', line).end() for line in lines if not line.lstrip().startswith('-')}
    assert len(begins) == 1, lines
    keys = dml('check', '--help').stdout
    assert all(name in keys for name in ('CSV', 'JSON Lines', 'Parquet', 'LIBSVM', 'IDX')), keys


@test
def standard_output_that_is_full_is_named(folder):
    train(small_job(folder))
    for words in ['predict', 'job.state', 'small.libsvm'], ['export', 'job.state', '--format', 'tsv'], ['--help']:
        full = run('sh', '-c', 'exec "$@" >/dev/full', 'sh', COORDINATOR, *words, cwd=folder)
        assert full.status == 74 and 'No space left on device' in full.stderr, full


@test
def a_run_at_its_limit_says_what_is_left_and_no_tolerance_that_it_has_met(folder):
    job = small_job(folder, l2=1e-4, max_steps=4, gradient_tolerance=0.5, loss_tolerance=0)
    shortfall = ' '.join(train(job).get('shortfall') or [])
    assert 'times gradient_tolerance' not in shortfall, shortfall
    job = small_job(folder, l2=1e-4, max_steps=1, gradient_tolerance=1e-9)
    shortfall = ' '.join(train(job, '--fresh')['shortfall'])
    assert 'need' in shortfall and 'above its minimum' in shortfall, shortfall


sys.exit(main())
