#!/usr/bin/env python3
"""The example of a service over the live model, under load, while models go live and back."""

import concurrent.futures
import importlib.util
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

from harness import SOURCE, Skip, dml as program, main, test, train, write_job

ROWS = json.dumps([{'size': i, 'town': ['Rome', 'Bonn'][i % 2]} for i in range(20)]).encode()


def asked(port, path, body=None):
    request = urllib.request.Request(f'http://127.0.0.1:{port}{path}', body, {'Content-Type': 'application/json'})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def two_models(folder):
    """A state folder with two models, of which the first is live, and their hashes."""
    lines = [f'{i},{["Rome", "Bonn", "Oslo"][i % 3]},{int(i * i % 11 > 4)}\n' for i in range(90)]
    (folder / 'rows.csv').write_text('size,town,bought\n' + ''.join(lines))
    hashes = [train(write_job(folder, data=['rows.csv'], csv={'label': 'bought'}, l2=l2))['model_sha256']
              for l2 in (1e-3, 1e-1)]
    assert hashes[0] != hashes[1] and program('publish', '1', folder / 'job.state').status == 0
    return folder / 'job.state', hashes


def free_port():
    with socket.socket() as taken:
        taken.bind(('127.0.0.1', 0))
        return taken.getsockname()[1]


@test
def a_service_answers_each_request_with_one_model_while_others_go_live(folder):
    if not importlib.util.find_spec('flask'):
        raise Skip('flask is not installed')
    state, hashes = two_models(folder)
    port = free_port()
    environment = {**os.environ, 'DML_STATE': str(state), 'PYTHONPATH': str(SOURCE / 'python')}
    with open(folder / 'log', 'w') as log:
        service = subprocess.Popen([sys.executable, '-m', 'flask', '--app', SOURCE / 'examples/service.py', 'run',
                                    '--port', str(port)], env=environment, stdout=log, stderr=log)
    try:
        for _ in range(600):
            try:
                assert asked(port, '/health')[1]['model_sha256'] == hashes[0]
                break
            except urllib.error.URLError:
                assert service.poll() is None, (folder / 'log').read_text()
                time.sleep(0.05)
        values = {}

        def work(_):
            for _ in range(30):
                status, answer = asked(port, '/predict', ROWS)
                assert status == 200, answer
                values.setdefault(answer['model_sha256'], answer['values'])
                assert values[answer['model_sha256']] == answer['values']

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            calls = [pool.submit(work, number) for number in range(4)]
            for command, live in (('publish', 1), ('rollback', 0), ('publish', 1)):
                assert program(command, *(['2'] if command == 'publish' else []), state).status == 0
                assert asked(port, '/health')[1]['model_sha256'] == hashes[live]
            for call in calls:
                call.result()
        assert asked(port, '/predict', ROWS)[1]['model_sha256'] == hashes[1]
        assert set(values) <= set(hashes)
        status, answer = asked(port, '/predict', json.dumps([{'size': 'far', 'town': 'Rome'}]).encode())
        assert status == 422 and answer['row'] == 0 and 'size' in answer['error'], answer
        for body, words in (({'size': 1}, 'put it into a list'), (None, 'this was given: None'),
                            ([1, 2], 'this was given: [1, 2]'), (['size'], "this was given: ['size']")):
            status, answer = asked(port, '/predict', json.dumps(body).encode())
            assert status == 422 and words in answer['error'], (body, status, answer)
        asked(port, '/predict', json.dumps([{'size': 1, 'town': 'Nowhere'}]).encode())
        assert asked(port, '/health')[1]['unseen'] == {'town': 1}
    finally:
        service.terminate()
        service.wait()


if __name__ == '__main__':
    sys.exit(main())
