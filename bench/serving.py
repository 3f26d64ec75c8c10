#!/usr/bin/env python3
"""What the status server costs a run, and how fast it answers meanwhile.

Measures one run in turns: without requests; with 200 requests a second for status, metrics, runs,
events and the page; and while the same client asks another server for the same bytes, which tells
the client's own cost. Then checks that a run under requests gives the same model as one without a
server. The run has one replica of one thread, so that a second processor is free for coordinator
and client.

    make bench-serving            about 3 minutes
    bench/serving.py [SECONDS]    a turn; 8 by default

wrk offers the load if it is installed (package wrk), else a client in Python, which takes more of
the machine's time for itself.
"""

import contextlib
import http.client
import multiprocessing
import os
import pathlib
import random
import re
import shutil
import socket
import socketserver
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / 'tests' / 'integration'))

import metrics_text  # noqa: E402
from harness import COORDINATOR, ENDLESS, Process, train, url_of, write_job  # noqa: E402

TURNS = 5
SHAPE = {'replicas': 1, 'shards': 1, 'threads': 1}
RATE, CONNECTIONS = 200, 10
PATHS = ['/api/v1/status', '/metrics', '/api/v1/runs', '/', '/api/v1/events']

# Each connection waits between its requests, so that all together offer the rate.
PACED = '''
local paths = {%s}
local next_path = 0
function request()
    next_path = next_path %% #paths + 1
    return wrk.format("GET", paths[next_path])
end
%s
function done(summary, latency, requests)
    local e = summary.errors
    print(string.format("FIGURES %%d %%d %%f %%f %%f", summary.requests,
        e.connect + e.read + e.write + e.status + e.timeout,
        latency:percentile(50) / 1e3, latency:percentile(99) / 1e3, latency.max / 1e3))
end
'''


def write_data(path):
    """Some 80 MB of rows whose columns differ in size by four decades."""
    rng = random.Random(1)
    rows = []
    for _ in range(20000):
        columns = sorted(rng.sample(range(1, 2001), 30))
        margin = sum(1 if j % 2 else -1 for j in columns) + rng.gauss(0, 8)
        rows.append(f'{1 if margin > 0 else -1} ' + ' '.join(
            f'{j}:{rng.random() * 10 ** (-j / 500):.3g}' for j in columns) + '\n')
    with open(path, 'w') as file:
        for _ in range(12):
            file.writelines(rows)


def job_of(folder, **settings):
    return write_job(folder, data=['data.libsvm'], history=1, **{**ENDLESS, **SHAPE, **settings})


class Answers(socketserver.BaseRequestHandler):
    """Sends what was fetched of each path, as it was."""

    known = {}

    def handle(self):
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)
        while asked := self.request.recv(8192):
            self.request.sendall(self.known[asked.split(b' ', 2)[1]])


class Other(socketserver.ThreadingTCPServer):
    request_queue_size = 2 * CONNECTIONS  # all connect at once


@contextlib.contextmanager
def other_server(url):
    """The URL of a server, a process of its own, that gives the same bytes."""
    for path in PATHS:
        with urllib.request.urlopen(url.rstrip('/') + path) as answer:
            body = answer.read()
        Answers.known[path.encode()] = b'HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b' % (
            len(body), body)
    server = Other(('127.0.0.1', 0), Answers)
    process = multiprocessing.get_context('fork').Process(target=server.serve_forever, daemon=True)
    process.start()
    try:
        yield f'http://127.0.0.1:{server.server_address[1]}/'
    finally:
        process.kill()
        process.join()
        server.server_close()


class Load:
    """Figures of a load: requests, failures, latencies in ms."""

    def __init__(self, requests=0, failed=0, p50=0.0, p99=0.0, most=0.0):
        self.requests, self.failed = int(requests), int(failed)
        self.p50, self.p99, self.most = float(p50), float(p99), float(most)

    def __str__(self):
        return f'{self.requests} requests, {self.failed} failed, latency p50 {self.p50:.2f} ms, ' \
               f'p99 {self.p99:.2f} ms, most {self.most:.1f} ms'


def wrk_load(url, seconds, folder):
    delay = f'function delay() return {1000 * CONNECTIONS // RATE} end'
    script = folder / 'load.lua'
    script.write_text(PACED % (', '.join(f'"{path}"' for path in PATHS), delay))
    said = subprocess.run(
        ['wrk', '-t1', f'-c{CONNECTIONS}', f'-d{seconds}s', '-s', script, url.rstrip('/')],
        capture_output=True, text=True, check=True).stdout
    return Load(*re.search(r'FIGURES (.*)', said)[1].split())


def python_load(url, seconds):
    """One thread a connection, each at its share of the rate."""
    host, port = re.fullmatch(r'http://(.*):(\d+)/', url).groups()
    latencies, failed = [], []

    def ask(number):
        client = http.client.HTTPConnection(host, int(port), timeout=5)
        begun = time.monotonic()
        for turn in range(seconds * RATE // CONNECTIONS):
            due = begun + turn * CONNECTIONS / RATE
            time.sleep(max(0.0, due - time.monotonic()))
            sent = time.monotonic()
            try:
                client.request('GET', PATHS[(number + turn) % len(PATHS)])
                response = client.getresponse()
                response.read()
                if response.status != 200:
                    failed.append(response.status)
            except OSError as error:
                failed.append(error)
                client.close()
            latencies.append((time.monotonic() - sent) * 1e3)

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    latencies.sort()
    return Load(len(latencies), len(failed), latencies[len(latencies) // 2],
                latencies[len(latencies) * 99 // 100], latencies[-1])


@contextlib.contextmanager
def serving(job, *arguments):
    """The run of a job, its server's URL once it makes steps."""
    process = Process(COORDINATOR, 'run', job, *arguments)
    try:
        url = url_of(process)
        process.until(lambda: look(url)[1] > 5, 'steps are made')
        yield process, url
    finally:
        process.end()


def look(url):
    """When it is, the steps made, and the processor time that the coordinator has taken."""
    with urllib.request.urlopen(f'{url}metrics', timeout=30) as answer:
        samples = metrics_text.read(answer.read().decode())[0]
    return time.monotonic(), samples['dml_step', ()], samples['process_cpu_seconds_total', ()]


def pace_of(url, seconds, load):
    """Steps a second for a while, the coordinator's processor time a step in ms, and the figures of
    the load if there is one."""
    begun, first, cpu = look(url)
    figures = load(url, seconds) if load else time.sleep(seconds)
    ended, last, cpu_then = look(url)
    return (last - first) / (ended - begun), (cpu_then - cpu) / (last - first) * 1e3, figures


def compare(folder, seconds, load):
    """Prints the paces of one run by turns and their ratios to the quiet ones; the requests that
    failed."""
    failed = 0
    with serving(job_of(folder, http='127.0.0.1:0'), '--fresh') as (_, url), \
            other_server(url) as other:
        loads = {'quiet': None, 'asked': load, 'control': lambda _, span: load(other, span)}
        paces = {kind: [] for kind in loads}
        for _ in range(TURNS):
            for kind, offered in loads.items():
                pace, cpu_ms, figures = pace_of(url, seconds, offered)
                paces[kind].append(pace)
                failed += figures.failed if kind == 'asked' else 0
                print(f'{kind:8} {pace:7.2f} steps/s, coordinator {cpu_ms:.3f} ms a step  '
                      f'{figures or ""}', flush=True)
    for kind, base in [('asked', 'quiet'), ('control', 'quiet'), ('asked', 'control')]:
        ratios = sorted(b / l for b, l in zip(paces[base], paces[kind]))
        print(f'{kind}: {statistics.median(ratios):.3f} of the time {base} '
              f'({ratios[0]:.3f} to {ratios[-1]:.3f})')
    return failed


def same_model(folder, load):
    """Whether a run that is asked all the time gives the model of one without a server."""
    alone = train(job_of(folder, max_steps=300), '--fresh')['model_sha256']
    job = job_of(folder, max_steps=300, http='127.0.0.1:0')
    with serving(job, '--json', '--fresh') as (process, url):
        while process.popen.poll() is None:
            load(url, 1)
        finished = process.wait()
    assert finished.status == 0, finished
    return finished.json['model_sha256'] == alone


def main():
    seconds = int(sys.argv[1]) if sys.argv[1:] else 8
    have_wrk = shutil.which('wrk')
    with tempfile.TemporaryDirectory(prefix='dml-bench-') as name:
        folder = pathlib.Path(name)

        def load(url, span):
            return wrk_load(url, span, folder) if have_wrk else python_load(url, span)

        print(f'{os.cpu_count()} processors; {RATE} requests a second by '
              f'{"wrk" if have_wrk else "Python"}', flush=True)
        write_data(folder / 'data.libsvm')
        failed = compare(folder, seconds, load)
        same = same_model(folder, load)
    print(f'{failed} requests failed')
    print('the models are the same' if same else 'THE MODELS DIFFER')
    return not same or failed > 0


if __name__ == '__main__':
    sys.exit(main())
