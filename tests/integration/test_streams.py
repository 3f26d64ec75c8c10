#!/usr/bin/env python3
"""Training on what can be read once: standard input and pipes."""

import gzip
import json
import os
import signal
import sys
import threading

from harness import (BAD_DATA, CONFIG, COORDINATOR, Process, dml, main, small_data, test, train,
                     write_job)

SETTINGS = {'l2': 1e-3, 'replicas': 1, 'shards': 1, 'threads': 1, 'gradient_tolerance': 1e-7,
            'checkpoint_seconds': 0, 'reconnect_seconds': 1}


def piped(content, *arguments, **environment):
    """The command with this content on its standard input, which is a pipe."""
    read, write = os.pipe()
    process = Process(COORDINATOR, *arguments, stdin=read, **environment)
    os.close(read)

    def feed():
        try:
            with os.fdopen(write, 'wb') as file:
                file.write(content)
        except BrokenPipeError:
            pass

    thread = threading.Thread(target=feed)
    thread.start()
    finished = process.wait()
    thread.join()
    process.end()
    return finished


def made(finished):
    assert finished.status == 0, finished
    return finished.json


def stream_job(folder, **settings):
    return write_job(folder, data=['-'], **{**SETTINGS, **settings})


def quiet_hash(folder, path, **settings):
    job = write_job(folder, 'quiet', data=[path], **{**SETTINGS, **settings})
    return train(job)['model_sha256']


def runs_of(folder):
    return dml('jobs', folder / 'job.state', '--json').json['folders'][0]['runs']


@test
def standard_input_trains_the_model_of_a_file(folder):
    path = small_data(folder)
    expected = quiet_hash(folder, path)
    plain = folder / 'job.conf'
    stream_job(folder)
    plain.write_text(plain.read_text().replace('{ "-" }', '-'))
    assert 'data = -' in plain.read_text()
    text = path.read_bytes()
    for content in text, gzip.compress(text):
        result = made(piped(content, 'run', plain, '--fresh', '--json'))
        assert result['model_sha256'] == expected, result
    with open(path) as file:
        process = Process(COORDINATOR, 'run', plain, '--fresh', '--json', stdin=file)
        assert made(process.wait())['model_sha256'] == expected


@test
def a_table_from_a_pipe_is_that_of_a_file(folder):
    rows = ['age,color,label', *(f'{i % 37},{"rgb"[i % 3]},{"yn"[i * 7 % 5 > 2]}'
                                 for i in range(300))]
    path = folder / 'table.csv'
    path.write_text('\n'.join(rows) + '\n')
    expected = quiet_hash(folder, path, holdout=0.2)
    fifo = folder / 'fifo'
    os.mkfifo(fifo)
    job = write_job(folder, data=['fifo'], **SETTINGS, holdout=0.2)
    writer = threading.Thread(target=lambda: fifo.write_bytes(path.read_bytes()))
    writer.start()
    result = train(job)
    writer.join()
    assert result['model_sha256'] == expected, result


@test
def a_killed_run_goes_on_without_the_data_or_with_it(folder):
    path = small_data(folder)
    expected = quiet_hash(folder, path)
    for place in 'pack_published:1', 'pack_published:2', 'send_PROGRAM:6':
        for again in b'', path.read_bytes():
            inner = folder / f'{place}-{len(again)}'
            inner.mkdir()
            job = stream_job(inner)
            killed = piped(path.read_bytes(), 'run', job,
                           DML_FAILPOINT=f'coordinator.{place}:kill')
            assert killed.status == -signal.SIGKILL, killed
            finished = piped(again, 'run', job, '--json') if again else dml('run', job, '--json')
            assert made(finished)['model_sha256'] == expected, finished
            assert len(runs_of(inner)) == 1, finished


@test
def what_was_read_in_part_is_no_data(folder):
    job = stream_job(folder)
    nothing = dml('run', job)
    assert nothing.status == BAD_DATA and 'give the data' in nothing.stderr, nothing
    killed = piped(small_data(folder).read_bytes(), 'run', job,
                   DML_FAILPOINT='coordinator.pack_publish:1:kill')
    assert killed.status == -signal.SIGKILL, killed
    again = dml('run', job)
    assert again.status == BAD_DATA and 'give the data' in again.stderr, again
    assert not [p.name for p in (folder / 'job.state/packs').iterdir()], again


@test
def a_pipe_without_rows_is_an_error_although_there_were_some_before(folder):
    job = stream_job(folder)
    made(piped(small_data(folder).read_bytes(), 'run', job, '--json'))
    empty = piped(b'', 'run', job)
    assert empty.status == BAD_DATA and 'standard input has no rows' in empty.stderr, empty
    assert len(runs_of(folder)) == 1


@test
def standard_input_can_be_named_once(folder):
    twice = dml('check', stream_job(folder, test=['-']))
    assert twice.status == CONFIG and 'allowed: once' in twice.stderr, twice
    weights = dml('check', stream_job(folder, weights=['-']))
    assert weights.status == BAD_DATA and 'no file matches' in weights.stderr, weights
    assert dml('check', stream_job(folder)).status == 0


@test
def retrain_reads_a_pipe_each_night(folder):
    header, rows = 'age,color,label', [f'{i % 37},{"rgb"[i % 3]},{"yn"[i * 7 % 5 > 2]}'
                                       for i in range(300)]
    job = stream_job(folder, holdout=0.2, gate=['loss <= 1.2 * live'])
    text = '\n'.join([header, *rows, '']).encode()
    made(piped(text, 'retrain', job, '--json'))
    again = made(piped(text, 'retrain', job, '--json'))
    assert again['reason'] == 'no new data', again
    moved = [','.join(row.split(',')[::-1]) for row in [header, *rows, '3,r,y']]
    second = made(piped('\n'.join([*moved, '']).encode(), 'retrain', job, '--json'))
    assert second['published'] and second['examples'] > 200, second
    columns = json.loads((folder / 'job.state/models/current/model.json').read_text())
    assert [c['name'] for c in columns['preparation']['columns']] == header.split(','), columns


if __name__ == '__main__':
    sys.exit(main())
