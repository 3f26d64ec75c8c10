#!/usr/bin/env python3
"""The status server of real runs: what it answers, and that nobody harms the run through it."""

import contextlib
import http.client
import json
import os
import re
import resource
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.parse

import metrics_text
from harness import (AGAIN, ALL, BUILD, COORDINATOR, UNAVAILABLE, Process, Skip, dml, endless_job,
                     is_stopped, main, test, train, url_of)

DEADLINE_MS = 400
PATHS = ['/', '/api/v1/status', '/api/v1/steps', '/api/v1/events', '/api/v1/runs', '/metrics',
         '/livez', '/readyz']


class Server:
    """A run that serves; asks it."""

    def __init__(self, process, url):
        self.process, self.url = process, url
        self.host, self.port = urllib.parse.urlsplit(url).hostname, urllib.parse.urlsplit(url).port

    def ask(self, target, method='GET', connection=None):
        """The response, read, and its body."""
        client = connection or http.client.HTTPConnection(self.host, self.port, timeout=30)
        client.request(method, target)
        response = client.getresponse()
        body = response.read()
        if not connection:
            client.close()
        return response, body

    def json(self, target):
        response, body = self.ask(target)
        assert response.status == 200, (target, response.status, body)
        assert response.headers['Content-Type'] == 'application/json', response.headers
        return json.loads(body)

    def metrics(self):
        samples, wrong = metrics_text.read(self.ask('/metrics')[1].decode())
        assert not wrong, wrong
        return samples

    def refused(self, reason):
        return self.metrics()['dml_http_refused_total', (('reason', reason),)]

    def connect(self):
        return socket.create_connection((self.host, self.port), timeout=30)

    def raw(self, data):
        """What comes back for these bytes, until the server closes."""
        with self.connect() as client:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                client.sendall(data)
            return rest_of(client)

    def goes_on(self):
        """The run makes steps."""
        step = self.json('/api/v1/status')['step']
        self.process.until(lambda: self.json('/api/v1/status')['step'] > step, 'another step')


def rest_of(client):
    parts = []
    with contextlib.suppress(ConnectionResetError):
        while part := client.recv(65536):
            parts.append(part)
    return b''.join(parts)


@contextlib.contextmanager
def serving(folder, *arguments, prefix=(), **settings):
    """An endless run with a status server that is ready."""
    job = endless_job(folder, **{'http': '127.0.0.1:0', 'replicas': 2, 'shards': 2, **settings})
    process = Process(COORDINATOR, 'run', job, *arguments, prefix=prefix,
                      DML_HTTP_DEADLINE_MS=str(DEADLINE_MS))
    try:
        server = Server(process, url_of(process))
        process.until(lambda: server.ask('/readyz')[0].status == 200, 'it is ready')
        process.until(lambda: server.json('/api/v1/status')['step'] > 5, 'steps are made')
        yield server
        assert dml('cancel', job).status == 0
        assert process.wait().status == AGAIN
    finally:
        process.end()


def about_refusals(process):
    """Times of the log's lines about refusals, in seconds of a day."""
    lines = re.findall(r'^\S+T(\d+):(\d+):([\d.]+)Z .*server: refused', process.so_far(process.errors),
                       re.M)
    return [int(h) * 3600 + int(m) * 60 + float(s) for h, m, s in lines]


# ---- answers ----

@test
def every_path_answers_while_a_run_goes_on(folder):
    with serving(folder) as server:
        for path in PATHS:
            response, body = server.ask(path)
            assert response.status == 200 and body, (path, response.status, body)
            assert response.headers['Cache-Control'] == 'no-store', path
            assert response.headers['X-Content-Type-Options'] == 'nosniff', path
        page, body = server.ask('/')
        assert page.headers['Content-Type'] == 'text/html; charset=utf-8'
        assert "default-src 'none'" in page.headers['Content-Security-Policy']
        assert body == (BUILD / 'coordinator/status/page.html').read_bytes()
        assert server.ask('/metrics')[0].headers['Content-Type'].startswith(
            'text/plain; version=0.0.4')
        for path, status in [('/nope', 404), ('/api/v1/steps?run=99', 404),
                             ('/api/v1/steps?since=x', 400), ('/api/v1/events?other=1', 400)]:
            response, body = server.ask(path)
            assert response.status == status and json.loads(body)['error'], (path, body)


@test
def head_has_the_fields_of_get_and_no_body(folder):
    with serving(folder) as server:
        connection = http.client.HTTPConnection(server.host, server.port, timeout=30)
        for path in ['/', '/livez', '/nope']:
            asked, body = server.ask(path)
            head, nothing = server.ask(path, 'HEAD', connection)
            assert nothing == b'' and head.status == asked.status, path
            assert head.headers['Content-Length'] == str(len(body)), path
        connection.close()


@test
def the_status_is_that_of_the_command_and_tells_of_every_chunk(folder):
    with serving(folder) as server:
        status = server.json('/api/v1/status')
        assert status['http'] == server.url and status['state'] == 'running', status
        assert sum(count for count, _, _ in status['evaluation']['map']) == \
            status['evaluation']['chunks'] > 1, status['evaluation']
        assert all(state in range(4) and -1 <= replica < 2
                   for _, state, replica in status['evaluation']['map']), status['evaluation']
        told = dml('status', folder / 'job.conf', '--json').json
        assert set(told) == set(status), set(told) ^ set(status)
        assert status['settings']['history'] == 1 and status['examples'] == 3000, status
        assert [(p['role'], p['index'], p['state']) for p in status['processes']] == [
            ('shard', 0, 'running'), ('shard', 1, 'running'),
            ('replica', 0, 'running'), ('replica', 1, 'running')], status['processes']


@test
def steps_and_events_are_followed_from_number_to_number(folder):
    with serving(folder) as server:
        steps, next_step = [], 0
        while len(steps) < 60:
            part = server.json(f'/api/v1/steps?since={next_step}')
            assert len(part['steps']) <= 2000
            steps += part['steps']
            next_step = part['next']
        assert [step['step'] for step in steps] == list(range(len(steps)))
        assert next_step == len(steps)
        assert {'step', 'loss', 'gradient_max', 'holdout_loss', 'holdout_accuracy', 'step_length',
                'trials', 'evaluations', 'history', 'note', 'wall_ms', 'seconds'} == set(steps[0])
        counts = [step['evaluations'] for step in steps]
        assert counts[0] == 1 and sorted(set(counts)) == counts, 'each step has read the data again'
        run, = server.json('/api/v1/runs')['runs']
        assert run['run'] == part['run'] == 1 and run['state'] == 'running', run
        replica = next(p for p in server.json('/api/v1/status')['processes']
                       if p['role'] == 'replica')
        os.kill(replica['pid'], signal.SIGKILL)
        event = server.process.until(
            lambda: [e for e in server.json('/api/v1/events')['events'] if e['kind'] == 'lost'],
            'the loss is told')[0]
        assert f'replica {replica["index"]}' in event['text'], event
        assert server.json(f'/api/v1/events?since={event["event"] + 100}')['events'] == []
        server.process.until(lambda: server.metrics()['dml_process_restarts_total', (
            ('role', 'replica'), ('index', str(replica['index'])))] == 1, 'the restart is counted')


@test
def the_metrics_keep_the_format_and_its_conventions(folder):
    with serving(folder) as server:
        samples = server.metrics()
        assert samples['dml_step', ()] > 0 and samples['dml_loss', ()] > 0
        assert samples['dml_process_up', (('role', 'shard'), ('index', '1'))] == 1
        assert 1e6 < samples['process_resident_memory_bytes', ()] < 1e9
        age = time.time() - samples['process_start_time_seconds', ()]
        assert -1 < age < 120, age


@test
def the_reader_of_metrics_finds_what_is_wrong(folder):
    good = '# HELP dml_a_total A.\n# TYPE dml_a_total counter\ndml_a_total{x="1"} 1\n'
    assert metrics_text.read(good) == ({('dml_a_total', (('x', '1'),)): 1}, [])
    for old, new in [('dml_a_total', 'dml_a'), ('dml_a_total', 'a_total'), ('counter', 'gauge'),
                     ('# HELP dml_a_total A.\n', ''), ('# TYPE dml_a_total counter\n', ''),
                     ('"1"}', '1}'), ('} 1', '} one'), ('1\n', '1'), ('_a_', '_a_ms_'),
                     ('dml_a_total{', 'dml_b_total{'), ('x="1"', 'x="1",x')]:
        assert metrics_text.read(good.replace(old, new))[1], (old, new)
    assert metrics_text.read(good + 'dml_a_total{x="1"} 2\n')[1], 'twice'


@test
def promtool_finds_nothing(folder):
    if not shutil.which('promtool'):
        raise Skip('promtool is not installed (package prometheus)')
    with serving(folder) as server:
        checked = subprocess.run(['promtool', 'check', 'metrics'], input=server.ask('/metrics')[1],
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        assert checked.returncode == 0 and not checked.stdout, checked.stdout.decode()


@test
def a_connection_serves_one_request_after_the_other(folder):
    with serving(folder) as server:
        kept = http.client.HTTPConnection(server.host, server.port, timeout=30)
        for path in PATHS * 2:
            assert server.ask(path, connection=kept)[0].status == 200, path
        kept.close()
        last = b'GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n'
        many = server.raw(b'GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n' * 50 + last)
        assert many.count(b'HTTP/1.1 200 OK') == 51 and many.endswith(b'ok\n'), many
        with server.connect() as client:
            client.sendall(b'GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n')
            client.shutdown(socket.SHUT_WR)
            assert b'process_start_time_seconds' in rest_of(client)


# ---- what is refused ----

@test
def what_is_no_get_or_head_or_is_malformed_is_refused_and_closed(folder):
    cases = [
        (b'POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc', 405),
        (b'DELETE /api/v1/runs HTTP/1.1\r\nHost: localhost\r\n\r\n', 405),
        (b'BREW / HTTP/1.1\r\nHost: localhost\r\n\r\n', 405),
        (b'GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\n', 400),
        (b'GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc', 400),
        (b'GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n', 400),
        (b'GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n' + b'x' * 100000, 400),
        (b'GET / HTTP/1.1\r\nHost: localhost\r\nX: ' + b'x' * 65536 + b'\r\n\r\n', 431),
        (b'GET /' + b'x' * 4000 + b' HTTP/1.1\r\nHost: localhost\r\n\r\n', 414),
        (b'\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\n\n', 400),
    ]
    with serving(folder) as server:
        for data, status in cases:
            answer = server.raw(data)
            assert answer.startswith(b'HTTP/1.1 %d ' % status), (data[:80], answer)
            assert answer.count(b'HTTP/1.1 ') == 1 and b'Connection: close' in answer, answer
        assert server.refused('method') == 3
        assert server.refused('too_large') == 2
        assert server.refused('malformed') == 5
        server.goes_on()


@test
def a_name_that_someone_pointed_at_this_machine_is_not_answered(folder):
    with serving(folder) as server:
        own = ['localhost', f'LOCALHOST.:{server.port}', f'127.0.0.1:{server.port}', '[::1]:9']
        for host in own:
            answer = server.raw(f'GET /livez HTTP/1.0\r\nHost: {host}\r\n\r\n'.encode())
            assert answer.startswith(b'HTTP/1.1 200 '), (host, answer)
        for host in 'rebound.example', f'localhost.example:{server.port}', '192.0.2.1':
            for target in '/api/v1/status', f'http://{host}/api/v1/status':
                answer = server.raw(f'GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n'.encode())
                assert answer.startswith(b'HTTP/1.1 421 Misdirected Request\r\n'), (host, answer)
                assert b'not this server' in answer and b'parameters' not in answer, answer
        assert server.refused('misdirected') == 6
        server.goes_on()


@test
def slow_clients_are_closed_at_the_deadline(folder):
    text = b'GET /livez HTTP/1.1\r\nHost: localhost\r\nX: ' + b'x' * 1000
    with serving(folder) as server:
        begun, ended = time.monotonic(), {}  # the server's clock begins later
        slow = [server.connect() for _ in range(5)]
        for byte in text:
            for client in slow:
                if client in ended:
                    continue
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    client.send(bytes([byte]))
                if select.select([client], [], [], 0)[0]:
                    ended[client] = time.monotonic() - begun
            if len(ended) == len(slow):
                break
            time.sleep(0.05)
        assert len(ended) == len(slow), 'still open'
        assert min(ended.values()) >= DEADLINE_MS / 1000, ended
        assert server.refused('slow') == len(slow)
        for client in slow:
            client.close()
        server.goes_on()


@test
def who_asks_and_does_not_read_is_closed_at_the_deadline(folder):
    with serving(folder) as server:
        with server.connect() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.settimeout(0.5)
            with contextlib.suppress(TimeoutError, BrokenPipeError, ConnectionResetError):
                while True:
                    client.send(b'GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n' * 1000)
            server.process.until(lambda: server.refused('slow') == 1, 'it is closed')
        server.goes_on()


@test
def a_pause_between_two_requests_is_longer_than_the_deadline(folder):
    with serving(folder) as server:
        kept = http.client.HTTPConnection(server.host, server.port, timeout=30)
        for _ in range(2):
            assert server.ask('/livez', connection=kept)[0].status == 200
            time.sleep(2 * DEADLINE_MS / 1000)
        assert server.refused('slow') == 0
        kept.close()


def crowd(server, connections):
    """Opens so many connections that ask, half ask, ask badly or say nothing. They stay open."""
    texts = [b'GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n', b'GET /api', b'',
             b'GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n',
             b'GET / HTTP/1.1\r\nX: ' + b'x' * 65536]
    clients = []
    for number in range(connections):
        clients.append(server.connect())
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            clients[-1].sendall(texts[number % len(texts)])
    return clients


def train_in_a_crowd(folder, files, connections, **settings):
    """The result of a run that may open so many files while so many connections come. Late in it
    the replicas stop themselves, so that it does not end before the crowd is there."""
    folder.mkdir()
    late = ','.join(f'replica{i}.receive_EVALUATE:{settings["max_steps"] * 3 // 4}:stop'
                    for i in range(settings['replicas']))
    process = Process(COORDINATOR, 'run', endless_job(folder, http='127.0.0.1:0', **settings),
                      '--json', prefix=('prlimit', f'--nofile={files}'),
                      DML_HTTP_DEADLINE_MS=str(DEADLINE_MS), DML_FAILPOINT=late,
                      DML_FAILPOINT_ONCE=str(folder / 'fired'))
    clients = []
    try:
        server = Server(process, url_of(process))
        process.until(lambda: server.ask('/readyz')[0].status == 200, 'it is ready')
        clients = crowd(server, connections)
        process.until(lambda: server.refused('crowded') >= connections / 2, 'others make room')
        assert server.refused('descriptors') == 0
        assert server.metrics()['dml_http_connections', ()] <= files / 4
        for i in range(settings['replicas']):
            process.until((folder / f'fired.{i}').exists, f'replica {i} stops itself')
        state = server.json('/api/v1/status')
        assert state['state'] == 'running'
        for replica in state['processes']:
            if replica['role'] == 'replica':
                process.until(lambda: is_stopped(replica['pid']), 'it stands still')
                os.kill(replica['pid'], signal.SIGCONT)
        finished = process.wait()
    finally:
        for client in clients:
            client.close()
        process.end()
    assert finished.status == 0, finished
    told = about_refusals(process)
    assert told and all(b - a > 0.99 for a, b in zip(told, told[1:])), told
    return finished.json


@test
def more_connections_than_there_are_places_harm_nobody(folder):
    settings = {'max_steps': 160, 'replicas': 2, 'shards': 2}
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    (folder / 'plain').mkdir()
    expected = train(endless_job(folder / 'plain', **settings))['model_sha256']
    result = train_in_a_crowd(folder / 'few', 64, 150, **settings)
    assert result['model_sha256'] == expected, result
    if not ALL or (limits[1] not in (-1, resource.RLIM_INFINITY) and limits[1] < 2000):
        return
    resource.setrlimit(resource.RLIMIT_NOFILE, (2000, limits[1]))
    try:
        result = train_in_a_crowd(folder / 'many', 1024, 1500, **settings)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert result['model_sha256'] == expected, result


@test
def a_server_without_descriptors_waits_and_then_goes_on(folder):
    with serving(folder) as server:
        pid = server.process.pid
        before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        first = server.json('/api/v1/status')
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, before[1]))
        begun = time.monotonic()
        waiting = [server.connect() for _ in range(5)]
        time.sleep(1)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
        server.process.until(lambda: server.refused('descriptors') >= 1, 'it has waited')
        tries = 10 * (time.monotonic() - begun) + 10
        assert server.refused('descriptors') <= tries, (server.refused('descriptors'), tries)
        server.process.until(lambda: server.json('/api/v1/status')['step'] > first['step'], 'a step')
        assert len(about_refusals(server.process)) <= 3
        for client in waiting:
            client.close()


# ---- where it listens ----

@test
def an_address_that_is_taken_is_told_before_data_is_packed(folder):
    with socket.create_server(('127.0.0.1', 0)) as taken:
        address = f'127.0.0.1:{taken.getsockname()[1]}'
        finished = dml('run', endless_job(folder, http=address))
    assert finished.status == UNAVAILABLE, finished
    assert address in finished.stderr and 'port 0' in finished.stderr, finished
    assert not list(folder.rglob('packs/*')), list(folder.rglob('*'))


@test
def ipv6_is_served_too(folder):
    try:
        socket.create_server(('::1', 0), family=socket.AF_INET6).close()
    except OSError as error:
        raise Skip(f'there is no ::1 here: {error}') from None
    with serving(folder, http='[::1]:0') as server:
        assert server.host == '::1' and server.ask('/livez')[0].status == 200


@test
def an_address_beyond_loopback_is_warned_of_once(folder):
    with serving(folder, http='0.0.0.0:0') as server:
        server.host = '127.0.0.1'
        errors = server.process.so_far(server.process.errors)
        assert len(re.findall(r'warning: status server: everyone who can reach', errors)) == 1, errors
        assert server.ask('/livez')[0].status == 200


@test
def nobody_answers_when_the_run_has_ended(folder):
    with serving(folder) as server:
        address = server.host, server.port
    try:
        socket.create_connection(address, timeout=5).close()
        raise AssertionError(f'{address} still answers')
    except ConnectionRefusedError:
        pass


if __name__ == '__main__':
    sys.exit(main())
