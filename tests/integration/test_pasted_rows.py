#!/usr/bin/env python3
"""Rows that people give the status server: explained as `predict --explain` does, at no cost to a run."""

import contextlib
import http.client
import json
import os
import random
import shutil
import signal
import socket
import sys
import time
import urllib.parse
import urllib.request

from harness import (AGAIN, COORDINATOR, Process, dml, endless_job, main, small_job, test, train, url_of,
                     write_job)

TYPE = 'application/octet-stream'


@contextlib.contextmanager
def serving(*arguments):
    process = Process(COORDINATOR, 'serve', *arguments)
    try:
        yield url_of(process)
    finally:
        process.end()


def post(url, row, path='api/v1/explain', kind=TYPE):
    """Status and object."""
    parts = urllib.parse.urlsplit(url)
    client = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
    row = row.encode() if isinstance(row, str) else row
    with contextlib.suppress(BrokenPipeError):
        client.request('POST', '/' + path, row, {'Content-Type': kind} if kind else {})
    response = client.getresponse()
    found = json.loads(response.read())
    client.close()
    return response.status, found


def explained(url, row, path='api/v1/explain'):
    status, found = post(url, row, path)
    assert status == 200 and 'error' not in found, (row, status, found)
    return found


def refused(url, row, path='api/v1/explain'):
    status, found = post(url, row, path)
    assert status == 200 and set(found) == {'error'}, (row, status, found)
    assert 'bad_lines' not in found['error'] and 'standard input' not in found['error'], found
    return found['error']


def predicted(state, name, text, *options):
    """What the command prints for the row."""
    path = state.parent / name
    path.write_text(text)
    finished = dml('predict', state, path, '--json', '--explain', '--columns', 'label,probabilities,margins', *options)
    assert finished.status == 0, finished
    return json.loads(finished.stdout)


def write_table(folder, classes):
    rng = random.Random(5)
    lines = ['age,town,note,kind']
    for _ in range(300):
        town = rng.choice(['Rome', '"Bern, ""old"""', ''])
        note = ' '.join(rng.choice(['red', 'blue', 'green']) for _ in range(3))
        lines.append(f'{rng.randint(10, 80)},{town},{note},{rng.choice(classes)}')
    (folder / 'rows.csv').write_text('\n'.join(lines) + '\n')


HEADER = 'age,town,note\n'


@test
def a_row_is_explained_as_predict_explains_it_with_a_header_without_and_as_json(folder):
    write_table(folder, ['no', 'yes'])
    train(write_job(folder, data=['rows.csv'], csv={'text': ['note']}, l2=1e-3))
    state = folder / 'job.state'
    with serving(state) as url:
        for row in ('30,Rome,red blue', '30,"Bern, ""old""",green', ',,', '30,Lima,red pink', '30,"Ro\nme",red'):
            awaited = predicted(state, 'row.csv', HEADER + row + '\n')
            answer = explained(url, HEADER + row + '\n')
            output, = answer['outputs']
            assert answer['label'] == awaited['label'] and answer['run'] == 1, (row, answer)
            assert output['margin'] == awaited['margin'] and output['base'] == awaited['base'], (row, answer)
            assert output['contributions'] == awaited['contributions'] and output['rest'] == 0, (row, answer)
            assert output['probability'] == awaited['probability:yes'] and output['of'] == 'yes', answer
            for other in (row, row + ',yes', HEADER.replace('\n', ',kind\n') + row + ',no', '\n' + row + '\r\n'):
                assert explained(url, other) == answer, (other, answer)
        told = explained(url, HEADER + '30,Lima,red pink')['notes']
        assert len(told) == 1 and '2 values or texts that training did not have' in told[0] and 'Lima' in told[0], told
        json_row = json.dumps({'note': 'red blue', 'town': 'Bern, "old"', 'age': 41.5})
        assert explained(url, json_row)['outputs'] == explained(url, '41.5,"Bern, ""old""",red blue')['outputs']


@test
def several_classes_have_the_predicted_one_first_and_those_of_small_margins_left_out(folder):
    classes = [f'<b>{number}</b>' for number in range(30)]
    write_table(folder, classes)
    train(write_job(folder, data=['rows.csv'], objective='softmax', csv={'text': ['note']}, l2=1e-3))
    state, row = folder / 'job.state', HEADER + '30,Rome,red\n'
    awaited = predicted(state, 'row.csv', row)
    with serving(state) as url:
        answer = explained(url, row)
    margins = sorted((awaited[f'margin:{name}'] for name in classes), reverse=True)
    assert [each['margin'] for each in answer['outputs']] == margins[:12] and answer['more'] == 18, answer
    first = answer['outputs'][0]
    assert first['class'] == answer['label'] == awaited['label'], answer
    assert first['probability'] == awaited[f'probability:{first["class"]}'], first
    of_class, = [each for each in awaited['explanations'] if each['class'] == first['class']]
    assert {name: first[name] for name in ('base', 'contributions')} == \
        {name: of_class[name] for name in ('base', 'contributions')}, first


@test
def rows_of_ids_and_numbers_of_networks_are_explained_too(folder):
    job = small_job(folder)
    train(job)
    write_table(folder, [1, 2, 3.5])
    train(write_job(folder, 'net', data=['rows.csv'], objective='network', max_steps=5,
                    network={'layers': [4, 3], 'loss': 'squared'}, csv={'text': ['note'], 'label': 'kind'}))
    with serving(folder / 'job.state', folder / 'net.state') as url:
        answer = explained(url, '3:0.5 1:1', '1/api/v1/explain')
        output, = answer['outputs']
        assert not answer['network'] and '3' in [each['column'] for each in output['contributions']], answer
        answer = explained(url, '30,Rome,red', '2/api/v1/explain')
        output, = answer['outputs']
        total = output['base'] + output['rest'] + sum(each['contribution'] for each in output['contributions'])
        assert answer['network'] and answer['value'] == output['margin'] and 'label' not in answer, answer
        assert abs(total - output['margin']) < 1e-12 * max(1, abs(total)), answer


@test
def rows_that_do_not_fit_are_told_why(folder):
    write_table(folder, ['no', 'yes'])
    train(write_job(folder, data=['rows.csv'], csv={'text': ['note']}, l2=1e-3))
    cases = [('30,Rome', 'line 1: 2 columns and no label'), ('1,2,3,4,5', 'line 1: 5 columns'),
             ('old,Rome,red', 'column 1 holds "old"'), ('', '0 rows'), ('\n \n', '0 rows'),
             (HEADER, 'column 1 holds "age"'),
             (HEADER + '1,2,3\n4,5,6\n', '2 rows; give one row'), ('{"age": 3, ', 'line 1: no JSON'),
             ('{"age": "x", "town": "Rome", "note": ""}', 'column 1 (age) holds "x"'),
             ('{"town": "Rome"}', 'the column "age" is missing'), ('{}\n{}', '2 rows'),
             (b'1,\0,3', 'a NUL byte'), ('[' * 60000, 'line 1: '), ('"' * 999, ''), (b'\xff\xfe\x00\x01', 'NUL'),
             ('{"a":' * 9000, 'line 1: no JSON')]
    with serving(folder / 'job.state') as url:
        for row, words in cases:
            assert words in refused(url, row), (row[:60], refused(url, row))
        assert 'run 7 has no model' in refused(url, '1,2,3', 'api/v1/explain?run=7')
        shutil.rmtree(folder / 'job.state/models/1')
        assert 'no model is live yet' in refused(url, '1,2,3')
        rng = random.Random(1)
        for _ in range(20):
            status, found = post(url, bytes(rng.randrange(256) for _ in range(200)))
            assert status == 200, found


@test
def a_post_that_a_page_elsewhere_could_send_or_that_is_malformed_is_refused(folder):
    train(small_job(folder))
    with serving(folder / 'job.state') as url:
        assert post(url, 'x' * 65536)[0] == 200
        assert post(url, 'x' * 65537)[0] == 413
        for kind in None, 'text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data', 'text/csv':
            assert post(url, '1:1', kind=kind)[0] == 415, kind
        for path in '', 'api/v1/status', 'api/v1/explain/', 'api/v1/explained':
            assert post(url, '1:1', path)[0] == 405, path
        assert post(url, '1:1', 'api/v1/explain?run=x')[0] == 400
        assert post(url, '1:1', 'api/v1/explain?more=1')[0] == 400
        parts = urllib.parse.urlsplit(url)
        head = f'POST /api/v1/explain HTTP/1.1\r\nHost: localhost\r\nContent-Type: {TYPE}\r\n'
        for request, status in [
                (head + '\r\n', 411), (head + 'Content-Length: 3\r\nContent-Length: 3\r\n\r\n1:1', 400),
                (head + 'Content-Length: +3\r\n\r\n1:1', 400), (head + 'Content-Length: \r\n\r\n', 400),
                (head + 'Content-Length: 99999999999999999999999999\r\n\r\n', 413),
                (head + 'Transfer-Encoding: chunked\r\n\r\n3\r\n1:1\r\n0\r\n\r\n', 400),
                (head.replace('localhost', 'elsewhere.example') + 'Content-Length: 3\r\n\r\n1:1', 421),
                (head.replace('POST', 'GET') + '\r\n', 405), (head.replace('POST', 'OPTIONS') + '\r\n', 405)]:
            with socket.create_connection((parts.hostname, parts.port), timeout=30) as client:
                client.sendall(request.encode())
                assert client.recv(4096).startswith(b'HTTP/1.1 %d ' % status), (request, status)
        # A body in pieces, and a request behind it.
        with socket.create_connection((parts.hostname, parts.port), timeout=30) as client:
            row = ' '.join(f'{number}:1' for number in range(1, 3000))
            client.sendall(f'{head}Content-Length: {len(row)}\r\n\r\n'.encode())
            for at in range(0, len(row), 4000):
                client.sendall(row[at:at + 4000].encode())
                time.sleep(.01)
            client.sendall(b'GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
            answer = b''
            while part := client.recv(65536):
                answer += part
            assert answer.count(b'HTTP/1.1 200 OK') == 2 and b'"margin"' in answer and answer.endswith(b'ok\n'), answer


@test
def a_run_goes_on_while_rows_are_explained(folder):
    live = small_job(folder)
    os.rename(live, folder / 'first.conf')
    job = endless_job(folder, http='127.0.0.1:0', replicas=1, shards=1)
    process = Process(COORDINATOR, 'run', job)
    try:
        url = url_of(process)
        process.until(lambda: 'no model is live yet' in refused(url, '1:1'), 'it answers')
        assert dml('cancel', job).status == 0
        assert process.wait().status == AGAIN
    finally:
        process.end()
    run = train(folder / 'first.conf', '--set', f'state={folder}/job.state', '--fresh')['run']
    process = Process(COORDINATOR, 'run', job, '--fresh')
    try:
        url = url_of(process)
        process.until(lambda: json.loads(urllib.request.urlopen(url + 'api/v1/status').read())['step'] > 5, 'steps')
        for number in range(20):
            assert explained(url, f'1:{number}')['run'] == run
        assert f'run {run + 1} has no model' in refused(url, '1:1', f'api/v1/explain?run={run + 1}')
        step = json.loads(urllib.request.urlopen(url + 'api/v1/status').read())['step']
        process.until(lambda: json.loads(urllib.request.urlopen(url + 'api/v1/status').read())['step'] > step, 'steps')
        process.popen.send_signal(signal.SIGTERM)
        assert process.wait().status == AGAIN
    finally:
        process.end()


@test
def a_model_that_takes_too_long_is_given_up_and_others_wait_for_nothing(folder):
    rng = random.Random(2)
    lines = [f'{number % 900} ' + ' '.join(f'{j}:{rng.random():.3f}' for j in range(1, 5)) for number in range(1800)]
    (folder / 'rows.txt').write_text('\n'.join(lines) + '\n')
    train(write_job(folder, data=['rows.txt'], objective='network', max_steps=1,
                    network={'layers': [700, 700], 'activation': 'relu'}))
    with serving(folder / 'job.state') as url:
        parts = urllib.parse.urlsplit(url)
        with socket.create_connection((parts.hostname, parts.port), timeout=60) as client:
            client.sendall(f'POST /api/v1/explain HTTP/1.1\r\nHost: localhost\r\nContent-Type: {TYPE}\r\n'
                           'Content-Length: 3\r\n\r\n1:1'.encode())
            time.sleep(.3)
            assert post(url, '1:1') == (503, {'error': 'another row is being explained; try again'})
            assert urllib.request.urlopen(url + 'livez').read() == b'ok\n'
            assert b'takes too long' in client.recv(4096)


if __name__ == '__main__':
    sys.exit(main())
