#!/usr/bin/env python3
"""Runs that start from an earlier model: their bits, their resumption, and what is kept of it."""

import json
import random
import shutil
import sqlite3
import struct
import sys

from harness import BAD_DATA, IO, dml, lines_of, main, shared, test, train, write_job
from wide import killed_at, wide_job


def model_of(folder):
    """{feature: weight}, intercept and model.json of a model with one output."""
    folder = folder / 'models/current' if (folder / 'models').is_dir() else folder
    data = (folder / 'model.safetensors').read_bytes()
    length = struct.unpack('<Q', data[:8])[0]
    header, data = json.loads(data[8:8 + length]), data[8 + length:]

    def tensor(name, letter):
        begin, end = header[name]['data_offsets']
        return struct.unpack(f'<{(end - begin) // 8}{letter}', data[begin:end])

    weights = dict(zip(tensor('feature_id', 'Q'), tensor('weight', 'd')))
    return weights, tensor('bias', 'd')[0], json.loads((folder / 'model.json').read_text())


def runs_of(state):
    database = sqlite3.connect(state / 'dml.db')
    rows = database.execute('SELECT run, start_model, start_run, restarts FROM runs').fetchall()
    database.close()
    return rows


@test
def a_warm_run_gives_the_same_bits_however_it_is_divided(folder):
    job, earlier = wide_job(folder)
    hashes = set()
    for number, (shards, replicas, threads) in enumerate([(1, 1, 1), (3, 1, 2), (2, 3, 1)]):
        result = train(job, '--start', earlier['model'], '--state', folder / f'{number}.state',
                       '--set', f'shards={shards}', '--set', f'replicas={replicas}',
                       '--set', f'threads={threads}')
        hashes.add(result['model_sha256'])
    cold = train(job, '--state', folder / 'cold.state')
    assert len(hashes) == 1, hashes
    assert cold['model_sha256'] not in hashes, 'it starts from zero'


@test
def a_killed_warm_run_is_gone_on_with_by_the_plain_command(folder):
    job, earlier = wide_job(folder)
    model = folder / 'kept-elsewhere'
    shutil.copytree(earlier['model'], model)
    quiet = train(job, '--start', model, '--state', folder / 'quiet.state')
    points = ['start_write:1', 'start_written:1', 'file_renamed:3', 'state_attempt:1',
              'send_START:2', 'send_EVALUATE:1', 'send_EVALUATE:6']
    for number, point in enumerate(points):
        state = folder / f'{number}.state'
        killed_at(point, job, '--start', model, '--state', state)
        begun = runs_of(state)
        # Nothing is recorded that has no start, and a recorded start is used without being named.
        plain = train(job, '--state', state, *(() if begun else ('--start', model)))
        assert plain['model_sha256'] == quiet['model_sha256'], point
        assert plain['start'] == {'model_sha256': earlier['model_sha256']}, plain
        assert len(runs_of(state)) == 1, 'a new run was begun'
        assert not begun or plain['restarts']['coordinator'] == 1, 'it did not go on'


@test
def a_warm_run_whose_shards_die_comes_to_the_same_bits(folder):
    job, earlier = wide_job(folder, checkpoint_seconds=3600)
    quiet = train(job, '--start', earlier['model'], '--state', folder / 'quiet.state')
    for number, point in enumerate(['shard.receive_START:1:kill', 'shard.receive_PROGRAM:9:kill']):
        once = folder / f'{number}.fired'
        result = train(job, '--start', earlier['model'], '--state', folder / f'{number}.state',
                       DML_FAILPOINT=point, DML_FAILPOINT_ONCE=str(once))
        assert result['restarts']['shard'] >= 1, result
        assert result['model_sha256'] == quiet['model_sha256'], point


@test
def a_start_that_is_lost_or_damaged_is_never_taken_for_zeros(folder):
    job, earlier = wide_job(folder)
    state = folder / 'job.state'
    killed_at('send_EVALUATE:1', job, '--start', earlier['model'])
    start = state / 'shards/1/start'
    whole = start.read_bytes()
    for content in (None, whole[:-1], whole[:4000] + b'\x01' + whole[4001:]):
        start.unlink()
        if content is not None:
            start.write_bytes(content)
        refused = dml('run', job)
        assert refused.status == BAD_DATA, refused
        assert 'shards/1/start' in refused.stderr and '--fresh' in refused.stderr, refused
        start.write_bytes(whole)
    assert train(job)['start']['model_sha256'] == earlier['model_sha256']


@test
def a_start_that_cannot_be_written_begins_no_run(folder):
    job, earlier = wide_job(folder)
    state = folder / 'job.state'
    for point in 'start_write:1', 'pack_publish:1':  # the data is packed by then
        failed = dml('run', job, '--start', earlier['model'],
                     DML_FAILPOINT=f'coordinator.{point}:enospc')
        assert failed.status == IO and 'start' in failed.stderr, failed
        assert runs_of(state) == [], 'a run was recorded'
        assert not list(state.glob('shards/*/*')), 'something is left'
    assert train(job, '--start', earlier['model'])['run'] == 1


@test
def another_start_begins_another_run_and_the_log_says_so(folder):
    job, earlier = wide_job(folder)
    state = folder / 'job.state'
    killed_at('send_EVALUATE:1', job)
    finished = dml('run', job, '--start', earlier['model'], '--json')
    assert finished.status == 0, finished
    assert 'run 1 is unfinished, but started from zero: a new run starts' in finished.stderr
    again = train(job, '--fresh', '--start', state)
    assert again['start'] == {'run': 2, 'model_sha256': finished.json['model_sha256']}, again
    assert again['steps'] < finished.json['steps'] or again['loss'] <= finished.json['loss']
    assert [row[1:3] for row in runs_of(state)] == [
        ('', 0), (earlier['model_sha256'], 0), (finished.json['model_sha256'], 2)]


@test
def a_command_with_a_start_that_is_repeated_at_its_limit_trains_nothing(folder):
    job, earlier = wide_job(folder)
    limited = (job, '--start', earlier['model'], '--state', folder / 'limited.state')
    first = train(*limited, '--set', 'max_steps=1')
    assert first['reason'] == 'step limit', first
    again = train(*limited, '--set', 'max_steps=1')
    assert (again['run'], again['model_sha256']) == (first['run'], first['model_sha256']), again
    on = train(*limited, '--set', 'max_steps=2')
    assert (on['run'], on['continues']) == (2, 1), on
    other = train(job, '--start', first['model'], '--state', folder / 'limited.state',
                  '--set', 'max_steps=2')
    assert other['run'] == 3 and 'continues' not in other, other


@test
def a_model_of_something_else_is_refused_as_a_start_and_begins_no_run(folder):
    job, earlier = wide_job(folder)
    for setting, why in (('intercept=false', 'it has an intercept'),
                         ('objective=squared', 'its objective is logistic')):
        state = folder / f'{setting}.state'
        refused = dml('run', job, '--start', earlier['model'], '--state', state, '--set', setting)
        assert refused.status == BAD_DATA and not refused.stdout, refused
        assert 'is nothing to start from' in refused.stderr and why in refused.stderr, refused
        assert runs_of(state) == []
    missing = dml('run', job, '--start', folder / 'none')
    assert missing.status == BAD_DATA and 'none: No such file' in missing.stderr, missing


@test
def a_vanished_feature_is_dropped_or_kept_as_the_job_says(folder):
    (folder / 'old.libsvm').write_text('1 2:1 5:1 9:-1\n-1 2:-1 5:1\n1 9:2 5:-1\n-1 9:1 2:1\n')
    (folder / 'new.libsvm').write_text('1 2:1 9:-1\n-1 2:-1 7:1\n1 9:2 7:-1\n-1 9:1 2:1\n')
    old = write_job(folder, 'old', data=['old.libsvm'], l2=0.1)
    train(old)
    weights = model_of(folder / 'old.state')[0]
    for vanished, ids in ('drop', [2, 7, 9]), ('keep', [2, 5, 7, 9]):
        job = write_job(folder, vanished, data=['new.libsvm'], l2=0.1, vanished=vanished)
        result = train(job, '--start', folder / 'old.state')
        now, _, description = model_of(folder / f'{vanished}.state')
        assert sorted(now) == ids, now
        assert vanished == 'drop' or now[5] == weights[5], now
        assert description['features'] == len(ids), description
        assert description['start']['model_sha256'] == result['start']['model_sha256']
        assert dml('evaluate', folder / f'{vanished}.state', folder / 'old.libsvm').status == 0
        killed_at('send_EVALUATE:2', job, '--fresh', '--start', folder / 'old.state')
        assert train(job)['model_sha256'] == result['model_sha256']


@test
def a_kept_column_of_a_table_keeps_its_name(folder):
    rng = random.Random(3)
    rows = [[round(rng.gauss(0, 1), 2) for _ in range(3)] + [rng.choice('mb')] for _ in range(40)]
    write = lambda name, header, some: (folder / name).write_text(  # noqa: E731
        '\n'.join(','.join(map(str, row)) for row in [header] + some) + '\n')
    write('old.csv', ['height', 'width', 'depth', 'kind'], rows)
    write('new.csv', ['height', 'width', 'kind'], [row[:2] + row[3:] for row in rows])
    write('moved.csv', ['width', 'height', 'kind'], [[r[1], r[0], r[3]] for r in rows])
    settings = {'l2': 0.1, 'vanished': 'keep', 'csv': {'label': 'kind'}}
    train(write_job(folder, 'old', data=['old.csv'], **settings))
    weights = model_of(folder / 'old.state')[0]
    train(write_job(folder, 'new', data=['new.csv'], **settings), '--start', folder / 'old.state')
    now, _, description = model_of(folder / 'new.state')
    assert description['feature_names'] == ['height', 'width', 'depth'], description
    assert now[3] == weights[3] and len(now) == 3, now
    moved = dml('run', write_job(folder, 'moved', data=['moved.csv'], **settings), '--start',
                folder / 'old.state', '--json')
    assert moved.status == 0 and 'matched by name' in moved.stderr, moved
    assert model_of(folder / 'moved.state')[2]['feature_names'] == ['height', 'width', 'depth']
    assert model_of(folder / 'moved.state')[0][3] == weights[3], moved


@test
def without_the_curvature_a_run_starts_from_the_parameters_alone(folder):
    job, earlier = wide_job(folder, precondition='none')
    models = [folder / name for name in ('without', 'damaged')]
    for model in models:
        shutil.copytree(earlier['model'], model)
    (models[0] / 'curvature').unlink()
    data = bytearray((models[1] / 'curvature').read_bytes())
    data[len(data) // 2] ^= 1
    (models[1] / 'curvature').write_bytes(data)
    results = [dml('run', job, '--json', '--start', model, '--state', f'{model}.state')
               for model in models]
    assert 'curvature beside the model is not used' in results[1].stderr, results[1]
    assert results[0].json['model_sha256'] == results[1].json['model_sha256']
    off = train(job, '--set', 'warm_start=false', '--state', folder / 'off.state')
    assert not list((folder / 'off.state').glob('models/*/curvature')), off


@test
def the_pairs_of_a_large_model_are_kept_for_retrain_alone(folder):
    rng = random.Random(1)
    with open(folder / 'large.libsvm', 'w') as file:
        for row in range(1500):  # 120,000 columns: a pair is a megabyte
            ids = [row * 80 + i + 1 for i in range(80)]
            file.write(f'{row % 2} ' + ' '.join(f'{j}:{rng.choice("123")}' for j in ids) + '\n')
    job = write_job(folder, data=['large.libsvm'], l2=1e-3, history=10, max_steps=3, shards=1,
                    precondition='none',
                    replicas=1, threads=1, checkpoint_seconds=0)
    state = folder / 'job.state'
    ran = train(job)
    assert not list(state.glob('models/*/curvature')), 'after `run`, nothing may need it'
    killed_at('state_step_commit:2', job, '--fresh', command='retrain')
    resumed = train(job)  # whoever ends it: the next night finds what it would have found
    assert resumed['run'] == ran['run'] + 1 and resumed['restarts']['coordinator'] == 1, resumed
    assert (folder / resumed['model'] / 'curvature').exists(), resumed
    small = train(job, '--set', 'history=1', '--state', folder / 'small.state')
    assert (folder / small['model'] / 'curvature').exists(), 'it costs next to nothing'


def compare(folder, name, **settings):
    """Evaluations of a run on all lines of a file, from zero and from a model of 95 % of them. With
    a preconditioner a run from zero takes so few that there is little to save."""
    settings = {'precondition': 'none', **settings}
    lines = lines_of(shared(name))
    (folder / 'part').write_text('\n'.join(lines[:len(lines) * 95 // 100]) + '\n')
    (folder / 'all').write_text('\n'.join(lines) + '\n')
    earlier = train(write_job(folder, 'part', data=['part'], **settings))
    job = write_job(folder, 'all', data=['all'], **settings)
    cold = train(job, '--state', folder / 'cold.state')
    warm = train(job, '--start', earlier['model'])
    assert warm['gradient_max'] <= 1e-5 and cold['gradient_max'] <= 1e-5
    return warm['evaluations'], cold['evaluations']


@test
def after_5_percent_more_of_a9a_a_warm_start_takes_at_most_half_the_evaluations(folder):
    warm, cold = compare(folder, 'a9a.gz', l2=1e-5)
    assert 2 * warm <= cold, (warm, cold)


@test
def after_5_percent_more_of_ijcnn1_a_warm_start_takes_at_most_half_the_evaluations(folder):
    warm, cold = compare(folder, 'ijcnn1.gz', l2=1e-4)
    assert 2 * warm <= cold, (warm, cold)


if __name__ == '__main__':
    sys.exit(main())
