#!/usr/bin/env python3
"""Training on minibatches: its keys, and what is told of its epochs."""

import json
import math
import re
import sqlite3
import sys
import urllib.request

from harness import (BAD_DATA, CONFIG, COORDINATOR, USAGE, Process, dml, main, small_data, test, train, url_of,
                     write_job)


def pouring_job(folder, **settings):
    small_data(folder, rows=700)
    return write_job(folder, **{'data': ['small.libsvm'], 'holdout': ['0.2'], 'l2': 1e-3, 'start': 'downpour',
                                'downpour': {'epochs': 3, 'batch': 64, 'schedule': [1, 2], 'rate': 0.1},
                                'threads': 1, **settings})


def asked(state, question):
    database = sqlite3.connect(state / 'dml.db')
    rows = database.execute(question).fetchall()
    database.close()
    return rows


@test
def mistakes_are_named_with_what_to_do(folder):
    job = pouring_job(folder)
    for setting, why in [('downpour.batch=100', 'not a multiple of 8 (96 and 104 are the nearest)'),
                         ('downpour.rate=0', 'out of range'), ('downpour.rate=1e9', 'from 1e-12 to 1000000'),
                         ('downpour.epochs=0', 'from 1 to 1000000'),
                         ('downpour.seed=9007199254740993000', 'out of range'),
                         ('downpour.schedule={1, 0}', 'from 1 to 65536')]:
        refused = dml('check', job, '--set', setting)
        assert refused.status == USAGE and why in refused.stderr, refused
    for setting, why in [('downpour.schedule={1, 2, 4, 8}', 'set that to 4'), ('precondition=block', 'minibatches'),
                         ('start=zero', 'write start = downpour or optimizer = downpour'),
                         ('early_stopping=2', None)]:
        answer = dml('check', job, '--set', setting)
        assert answer.status == (CONFIG if why else 0) and (why or '') in answer.stderr, answer


@test
def what_check_prints_is_the_same_job(folder):
    job = pouring_job(folder)
    printed = dml('check', job).stdout
    assert re.search(r'downpour \{\n +epochs += 3\n +batch += 64\n +schedule += \{ 1, 2 \}\n', printed), printed
    (folder / 'again.conf').write_text(printed)
    assert train(folder / 'again.conf')['model_sha256'] == train(job, '--fresh')['model_sha256']


@test
def epochs_are_recorded_and_told(folder):
    job = pouring_job(folder)
    told = dml('run', job, '--json', '--set', 'optimizer=downpour')
    assert told.status == 0, told
    result, downpour = told.json, told.json['downpour']
    assert (result['reason'], result['converged'], result['steps']) == ('epoch limit', False, 0), result
    rows = asked(folder / 'job.state', 'SELECT epoch, minibatches, rows, loss, holdout_loss, holdout_accuracy '
                                       'FROM downpour_epochs ORDER BY epoch')
    assert [row[0] for row in rows] == [1, 2, 3], rows
    assert all(row[2] == result['examples'] for row in rows), rows
    assert rows[0][1] > rows[1][1] == rows[2][1], rows  # by the schedule
    assert rows[2][3] < rows[0][3] and rows[2][4] < rows[0][4], rows
    assert (downpour['epoch'], downpour['done'], downpour['loss'], downpour['holdout_loss']) == \
        (3, sum(row[1] for row in rows), rows[2][3], rows[2][4]), downpour
    assert math.isclose(result['holdout']['loss'], downpour['holdout_loss'], rel_tol=1e-12), (result['holdout'], downpour)
    assert 'epoch 1: loss' in told.stderr and 'epoch 3: loss' in told.stderr, told.stderr
    line = f'3 epochs, {downpour["done"]} minibatches, loss '
    assert line in dml('status', job).stdout and line in dml('jobs', job).stdout
    assert dml('status', job, '--json').json['downpour'] == downpour
    page = dml('report', job).stdout
    record = json.loads(re.search(r'id="record">(.*?)</script>', page, re.S)[1])
    epochs = record['api/v1/epochs?since=0']['epochs']
    assert [epoch['holdout_loss'] for epoch in epochs] == [row[4] for row in rows], epochs


@test
def a_run_under_way_tells_its_epoch(folder):
    job = pouring_job(folder, http='127.0.0.1:0', optimizer='downpour', checkpoint_seconds=0.1,
                      downpour={'epochs': 1000000, 'batch': 64, 'rate': 1e-3})
    process = Process(COORDINATOR, 'run', job)
    try:
        server = url_of(process)

        def get(path):
            return urllib.request.urlopen(server + path).read().decode()
        process.until(lambda: (json.loads(get('api/v1/status'))['downpour'] or {}).get('epoch', 0) > 3, 'epochs')
        downpour = dml('status', job, '--json').json['downpour']
        assert downpour['running'] and downpour['epochs'] == 1000000, downpour
        assert 0 < downpour['holdout_loss'] < 1 and 0 < downpour['loss'] < 1, downpour
        assert re.search(r'^epoch \d+ of 1000000: \d+ of \d+ minibatches', dml('status', job).stdout, re.M)
        part = json.loads(get('api/v1/epochs?since=2'))
        assert [epoch['epoch'] for epoch in part['epochs'][:2]] == [2, 3], part
        metrics = dict(re.findall(r'^(dml_downpour_\w+) (\S+)$', get('metrics'), re.M))
        assert float(metrics['dml_downpour_epoch']) > 3 and metrics['dml_downpour_running'] == '1', metrics
        assert float(metrics['dml_downpour_minibatches_total']) >= 4 * 560 / 64, metrics
    finally:
        process.signal(9)
        process.wait()
    lost = dml('status', job)
    assert re.search(r'^\d+ epochs, \d+ minibatches, loss ', lost.stdout, re.M), lost


@test
def minibatches_are_not_made_small_where_parameters_are_what_a_step_costs(folder):
    def minibatches(columns):
        lines = [f'{row % 4} ' + ' '.join(f'{row * columns + j + 1}:1' for j in range(columns)) + '\n'
                 for row in range(2000)]
        (folder / 'wide.libsvm').write_text(''.join(lines))
        job = write_job(folder, data=['wide.libsvm'], objective='softmax', optimizer='downpour',
                        downpour={'epochs': 1})
        return train(job, '--fresh')['downpour']['done']
    assert minibatches(10) == 2000 / 8  # rows: 80,000 parameters
    assert minibatches(100) == math.ceil(2000 / 32)  # 800,000


@test
def a_run_that_starts_from_a_model_leaves_minibatches_out(folder):
    job = pouring_job(folder)
    first = dml('retrain', job, '--json')
    assert first.status == 0 and first.json['downpour']['epoch'] == 3, first
    small_data(folder, rows=800)
    second = dml('retrain', job, '--json')
    assert second.status == 0 and 'downpour' not in second.json and second.json['start'], second
    assert 'there is no Downpour before L-BFGS' in second.stderr, second


@test
def minibatches_of_more_rows_than_there_are_are_warned_of(folder):
    job = pouring_job(folder)
    assert '# 3 epochs of minibatches of 64 rows at first with Adagrad, then L-BFGS' in dml('check', job).stdout
    trained = dml('run', job, '--json', '--set', 'downpour.batch=6400')
    assert trained.status == 0 and trained.json['downpour']['done'] == 3, trained
    assert f'there are {trained.json["examples"]} rows, so an epoch is one minibatch' in trained.stderr, trained


@test
def members_of_a_sweep_of_minibatches_alone_start_anew(folder):
    job = pouring_job(folder, optimizer='downpour', folds=2, l2=[1e-3, 1e-2])
    alone = train(job, '--set', 'folds=off', '--set', 'l2=1e-3', '--state', folder / 'alone.state')
    train(job)  # else a fold would start from a model that has seen its rows
    started = asked(folder / 'job.state', 'SELECT start_model, (SELECT count(*) FROM downpour_epochs d '
                                          'WHERE d.run = r.run) FROM runs r')
    assert started == 6 * [('', 3)], started
    hashes = {sha for sha, in asked(folder / 'job.state', 'SELECT sha256 FROM models')}
    assert alone['model_sha256'] in hashes, (alone, hashes)


@test
def labels_that_overflow_a_minibatch_are_named(folder):
    (folder / 'large.csv').write_text('x,y\n' + ''.join(f'{i},{i}e304\n' for i in range(1, 200)))
    job = write_job(folder, data=['large.csv'], objective='squared', optimizer='downpour')
    refused = dml('run', job)
    assert refused.status == BAD_DATA and 'finite' in refused.stderr, refused


sys.exit(main())
