#!/usr/bin/env python3
"""`serve` and `report`: what is recorded of runs that have ended."""

import contextlib
import json
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request

from harness import (AGAIN, CREATE, IO, UNAVAILABLE, USAGE, COORDINATOR, Process, dml, endless_job, main,
                     small_job, test, train, url_of)


@contextlib.contextmanager
def serving(*folders, **options):
    process = Process(COORDINATOR, 'serve', *folders, **options)
    try:
        yield url_of(process), process
    finally:
        process.end()


def ask(url):
    """Status and body of an answer."""
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def asked(url):
    status, body = ask(url)
    assert status == 200, (url, status, body)
    return json.loads(body)


def embedded(html):
    """The answers that a report holds, by path."""
    return json.loads(re.search(r'<script type="application/json" id="record">(.*?)</script>', html,
                                re.DOTALL)[1])


@test
def a_folder_is_served_with_all_its_runs_and_steps(folder):
    job = small_job(folder)
    train(job, '--set', 'l2=0.1')
    result = train(job)
    with serving(folder / 'job.state') as (url, _):
        status = asked(url + 'api/v1/status')
        for member in ('run', 'reason', 'converged', 'loss', 'model', 'model_sha256', 'evaluations',
                       'objective', 'examples', 'features', 'parameters'):
            assert status[member] == result[member], member
        assert status['state'] == 'ended' and status['settings']['l2'] == 1e-3, status
        assert [run['run'] for run in asked(url + 'api/v1/runs')['runs']] == [1, 2]
        steps = asked(url + 'api/v1/steps?since=1')
        assert [step['step'] for step in steps['steps']] == list(range(1, result['steps'] + 1))
        assert asked(url + 'api/v1/steps?run=1')['steps'] != steps['steps']
        output, = asked(url + 'api/v1/weights')['outputs']
        sizes = [abs(entry['weight']) for entry in output['weights']]
        assert output['class'] == '1' and len(sizes) == 20, output
        assert sizes == sorted(sizes, reverse=True) and isinstance(output['intercept'], float)
        assert '<!DOCTYPE html>' in ask(url)[1]
        assert ask(url + 'livez')[0] == 200
        assert [ask(url + path)[0] for path in ('readyz', 'metrics', 'nothing')] == [503, 404, 404]


@test
def several_folders_have_a_page_each_and_names_are_never_markup(folder):
    evil = folder / '<b>&one.state'
    job = small_job(folder)
    train(job, '--state', evil)
    train(job, '--state', folder / 'two.state')
    (folder / 'empty.state').mkdir()
    with serving(evil, folder / 'two.state', folder / 'empty.state') as (url, _):
        index = ask(url)[1]
        assert '&lt;b>&amp;one.state' in index and '<b>&one' not in index, index
        assert 'href="1/"' in index and 'href="3/"' in index, index
        assert 'nothing was run there' in index, index
        first, second = (asked(url + f'{n}/api/v1/status') for n in (1, 2))
        assert first['model'] != second['model'] and first['model_sha256'] == second['model_sha256']
        assert ask(url + '2/')[0] == 200
        assert ask(url + '3/api/v1/status')[0] == 503
        assert [ask(url + path)[0] for path in ('0/', '4/', '2', '99999999999999999999/')] == [404] * 4


@test
def a_run_can_begin_and_is_shown_while_its_folder_is_served(folder):
    job = small_job(folder)
    train(job)
    live = endless_job(folder)
    with serving(folder / 'job.state') as (url, server):
        assert asked(url + 'api/v1/status')['run'] == 1
        run = Process(COORDINATOR, 'run', live, '--set', 'name=job')
        try:
            run.until(lambda: asked(url + 'api/v1/status')['run'] == 2, 'the live run is shown')
            run.until(lambda: asked(url + 'api/v1/status')['step'] > 5, 'it is followed')
            assert asked(url + 'api/v1/runs')['runs'][-1]['state'] == 'running'
            assert asked(url + 'api/v1/steps')['steps'] == []
            run.signal(signal.SIGTERM)
            assert run.wait().status == AGAIN
        finally:
            run.end()
        server.until(lambda: asked(url + 'api/v1/status')['state'] == 'ended', 'its end is shown')
        assert asked(url + 'api/v1/status')['reason'] == 'cancelled'
        assert len(asked(url + 'api/v1/steps')['steps']) > 5


@test
def a_model_that_was_removed_or_damaged_hides_nothing_else(folder):
    result = train(small_job(folder))
    tensors = folder / 'job.state/models/1/model.safetensors'
    tensors.write_bytes(tensors.read_bytes()[:-1] + b'!')
    with serving(folder / 'job.state') as (url, _):
        assert asked(url + 'api/v1/status')['model_sha256'] == result['model_sha256']
        assert ask(url + 'api/v1/weights')[0] == 404
    record = embedded(dml('report', folder / 'job.state').stdout)
    assert 'api/v1/weights' not in record and record['api/v1/status']['run'] == 1, list(record)


@test
def serving_ends_with_a_signal_and_status_0(folder):
    train(small_job(folder))
    for number in (signal.SIGINT, signal.SIGTERM):
        with serving(folder / 'job.state') as (url, process):
            asked(url + 'api/v1/status')
            process.signal(number)
            finished = process.wait()
            assert finished.status == 0, finished
            assert re.fullmatch(r'serving 1 state folder at http://127\.0\.0\.1:\d+/ until Ctrl-C\n',
                                finished.stdout), finished.stdout


@test
def what_cannot_be_served_is_told(folder):
    assert dml('serve', folder / 'not.state').status == UNAVAILABLE
    assert dml('serve', cwd=folder).status == USAGE
    train(small_job(folder))
    with serving(folder / 'job.state') as (url, _):
        taken = dml('serve', '--http', url[len('http://'):-1], folder / 'job.state')
        assert taken.status == UNAVAILABLE and 'port 0' in taken.stderr, taken
    wrong = dml('serve', '--http', 'here', folder / 'job.state')
    assert wrong.status == USAGE and 'here' in wrong.stderr, wrong


@test
def a_report_has_what_the_server_answers(folder):
    job = small_job(folder, on_publish='true # </script><b>&')
    train(job, '--set', 'l2=0.1')
    train(job)
    finished = dml('report', job)
    assert finished.status == 0 and '</script><b>' not in finished.stdout, finished
    record = embedded(finished.stdout)
    with serving(folder / 'job.state') as (url, _):
        for path, answer in record.items():
            assert asked(url + path) == answer, path
    assert {'api/v1/status', 'api/v1/runs', 'api/v1/weights', 'api/v1/steps?since=0', 'api/v1/events?since=0',
            'api/v1/steps?since=0&run=1'} <= set(record), list(record)


@test
def a_long_run_is_reported_step_by_step(folder):
    result = train(endless_job(folder, max_steps=4100))
    record = embedded(dml('report', folder / 'job.state').stdout)
    parts = [answer['steps'] for path, answer in record.items()
             if path.startswith('api/v1/steps') and 'run' not in path]
    steps = [step['step'] for part in parts for step in part]
    assert len(parts) == 3 and steps == list(range(result['steps'] + 1)), (len(parts), len(steps))


@test
def a_report_is_a_whole_file_or_none(folder):
    train(small_job(folder))
    state = folder / 'job.state'
    file = folder / 'report.html'
    assert dml('report', state, '-o', file).status == 0
    assert file.read_text() == dml('report', state).stdout
    assert dml('report', state, '-o', '/dev/full').status == CREATE
    assert dml('report', state, '-o', folder / 'no/report.html').status == CREATE
    with open('/dev/full', 'w') as full:
        assert subprocess.run([COORDINATOR, 'report', state], stdout=full,
                              stderr=subprocess.PIPE).returncode == IO
    (folder / 'empty.state').mkdir()
    none = dml('report', folder / 'empty.state', '-o', folder / 'none.html')
    assert none.status == UNAVAILABLE and 'nothing was run there' in none.stderr, none
    assert not list(folder.glob('none*'))


if __name__ == '__main__':
    sys.exit(main())
