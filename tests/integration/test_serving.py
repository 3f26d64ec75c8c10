#!/usr/bin/env python3
"""`serve` and `report`: what is recorded of runs that have ended."""

import contextlib
import json
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import metrics_text
from harness import (AGAIN, BAD_DATA, CREATE, IO, UNAVAILABLE, USAGE, COORDINATOR, Process, dml, endless_job, main,
                     small_job, test, train, url_of, write_job)


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
        assert [ask(url + path)[0] for path in ('readyz', 'nothing')] == [503, 404]


@test
def several_folders_have_a_page_each_and_names_are_never_markup(folder):
    evil = folder / '<b>&one.state'
    job = small_job(folder)
    train(job, '--state', evil)
    train(job, '--state', folder / 'two.state')
    (folder / 'empty.state').mkdir()
    with serving(evil, folder / 'two.state', folder / 'empty.state') as (url, _):
        index = ask(url)[1]
        assert index.count('★ run 1 is live') == 2 and index.count('<polyline') == 2, index
        assert 'trained less than a minute ago' in index and '<script' not in index, index
        assert '&lt;b>&amp;one.state' in index and '<b>&one' not in index, index
        assert 'href="1/"' in index and 'href="3/"' in index, index
        assert 'nothing was run there' in index, index
        first, second = (asked(url + f'{n}/api/v1/status') for n in (1, 2))
        assert first['model'] != second['model'] and first['model_sha256'] == second['model_sha256']
        assert ask(url + '2/')[0] == 200
        assert ask(url + '3/api/v1/status')[0] == 503
        assert [ask(url + path)[0] for path in ('0/', '4/', '2', '99999999999999999999/')] == [404] * 4


@test
def the_metrics_of_the_record_are_served_and_written_for_node_exporter(folder):
    job = small_job(folder, holdout='0.3')
    first = train(job)
    assert dml('run', job, '--set', 'gate=loss <= 0.1 * live').status == BAD_DATA
    state, empty = folder / 'job.state', folder / '"e\\mpty.state'
    empty.mkdir()
    with serving(state, empty) as (url, _):
        status, text = ask(url + 'metrics')
    samples, wrong = metrics_text.read(text)
    assert status == 200 and not wrong, (status, wrong)
    of = (('state', str(state)),)
    assert samples['dml_live_model_run', of] == 1 and samples['dml_gate_refusals', of] == 1
    assert samples['dml_gate_refusals_total', of] == 1 and samples['dml_state_readable', of] == 1
    runs = dml('jobs', state, '--json').json['folders'][0]['runs']
    assert abs(samples['dml_live_model_trained_timestamp_seconds', of] - runs[0]['ended_ms'] / 1e3) < 1e-3
    assert samples['dml_last_run_timestamp_seconds', of] > \
        samples['dml_live_model_trained_timestamp_seconds', of]
    loss = samples['dml_live_model_figure', (*of, ('over', 'holdout'), ('figure', 'loss'))]
    assert loss == first['holdout']['loss'], samples
    escaped = str(empty).replace('\\', '\\\\').replace('"', '\\"')
    assert samples['dml_state_readable', (('state', escaped),)] == 0, samples
    file = folder / 'dml.prom'
    written = dml('metrics', state, empty, '-o', file)
    assert written.status == 0 and str(empty) in written.stderr, written
    assert metrics_text.read(file.read_text())[0] == samples
    before = file.stat().st_ino
    assert dml('metrics', state, '-o', file).status == 0 and file.stat().st_ino != before, 'renamed'


def listener_in(state):
    state.mkdir(exist_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(state / 'control.sock'))
    listener.listen()
    return listener


def answer_once_all_have_asked(listeners, answer):
    visitors = [listener.accept()[0] for listener in listeners]
    for visitor in visitors:
        with visitor:
            visitor.recv(100)
            visitor.sendall(answer)


@test
def coordinators_are_asked_all_at_once_and_none_that_is_mute_or_gone_hides_another(folder):
    train(small_job(folder))
    recorded, empty, gone = folder / 'job.state', folder / 'empty.state', folder / 'gone.state'
    runs = json.dumps(dml('jobs', recorded, '--json').json['folders'][0]).encode()
    shutil.copytree(recorded, gone)
    listener_in(gone).close()
    empty.mkdir()
    answering = [folder / f'{i}.state' for i in range(30)]
    mute = [folder / 'mute.state', folder / 'other-mute.state']
    listeners, _silent = list(map(listener_in, answering)), list(map(listener_in, mute))
    states = [mute[0], *answering[:20], gone, empty, *answering[20:], mute[1], recorded]
    readable = [state for state in states if state not in (*mute, empty)]
    for command in 'metrics', 'jobs':
        threading.Thread(target=answer_once_all_have_asked, args=(listeners, runs), daemon=True).start()
        told = dml(command, *states, *(['--json'] if command == 'jobs' else []))
        said = re.findall(r'(\S+\.state): the coordinator, .*, has not answered', told.stderr)
        assert said == list(map(str, mute)) and str(empty) in told.stderr, told
        if command == 'jobs':
            assert told.status == AGAIN, told
            assert [item['folder'] for item in told.json['folders']] == list(map(str, readable))
            continue
        samples, wrong = metrics_text.read(told.stdout)
        found = [(dict(labels)['state'], value) for (name, labels), value in samples.items()
                 if name == 'dml_state_readable']
        assert not wrong and found == [(str(state), state in readable) for state in states], told
        assert sum(name == 'dml_live_model_run' for name, _ in samples) == len(readable), told


@test
def the_metrics_of_a_folder_that_is_gone_say_so_and_nothing_else_of_it(folder):
    train(small_job(folder))
    state = folder / 'job.state'
    gone = {('dml_state_readable', (('state', str(state)),)): 0}
    with serving(state) as (url, server):
        def samples():
            return metrics_text.read(ask(url + 'metrics')[1])[0]

        assert samples()[next(iter(gone))] == 1
        state.rename(folder / 'away')
        server.until(lambda: samples() == gone, 'it is told')
        for _ in range(3):  # also where the folder was looked at just before
            assert samples() == gone, samples()


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
        assert asked(url + 'api/v1/weights') == {}
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
def a_service_manager_is_told_that_the_server_lives_and_ends(folder):
    train(small_job(folder))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(folder / 'notify'))
        manager.settimeout(30)
        told = {'NOTIFY_SOCKET': str(folder / 'notify'), 'WATCHDOG_USEC': '20000'}
        with serving(folder / 'job.state', **told) as (_, process):
            heard = [manager.recv(100) for _ in range(3)]
            assert heard == [b'READY=1', b'WATCHDOG=1', b'WATCHDOG=1'], heard
            process.signal(signal.SIGTERM)
            while heard[-1] == b'WATCHDOG=1':
                heard.append(manager.recv(100))
            assert heard[-1] == b'STOPPING=1', heard


@test
def a_service_manager_that_is_busy_is_told_as_well(folder):
    train(small_job(folder))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager, \
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
        manager.bind(str(folder / 'notify'))
        other.connect(str(folder / 'notify'))
        other.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                other.send(b'STATUS=')
        with serving(folder / 'job.state', NOTIFY_SOCKET=str(folder / 'notify')) as (url, _):
            time.sleep(.3)  # it is ready, and there is no room to say so
            manager.settimeout(30)
            while manager.recv(100) != b'READY=1':
                pass
            asked(url + 'api/v1/status')


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


def is_open(connection):
    """Whether the other end has not closed it."""
    connection.setblocking(False)
    try:
        while connection.recv(4096):
            pass
    except BlockingIOError:
        return True
    return False


def asked_together(folders):
    """Whether coordinators that never answer are all asked before the first is given up."""
    listeners, connections = [], []
    with contextlib.ExitStack() as stack:
        for path in folders:
            (path / 'control.sock').unlink(missing_ok=True)
            listeners.append(stack.enter_context(socket.socket(socket.AF_UNIX)))
            listeners[-1].bind(str(path / 'control.sock'))
            listeners[-1].listen()
        url, _ = stack.enter_context(serving(*folders))
        page = threading.Thread(target=ask, args=(url,))
        page.start()
        for listener in listeners:
            connections.append(stack.enter_context(listener.accept()[0]))
        together = all(map(is_open, connections))
        for connection in connections:
            connection.close()
        page.join()
    return together


@test
def coordinators_that_do_not_answer_are_asked_at_the_same_time(folder):
    folders = [folder / name for name in ('a.state', 'b.state', 'c.state')]
    for path in folders:
        path.mkdir()
    # On a busy machine this process may look too late to see that they are.
    assert any(asked_together(folders) for _ in range(5))


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
    (folder / 'data.csv').write_text('a,b\nx,1\n')
    assert dml('run', write_job(folder, name='bad', data=['data.csv'], objective='poisson', csv={'label': 'a'})).status
    none = dml('report', folder / 'bad.state')
    assert none.status == UNAVAILABLE and 'bad.state: nothing was run there yet' in none.stderr, none


if __name__ == '__main__':
    sys.exit(main())
