"""A coordinator made up for the page's tests: it answers as the status server does, about a run
that exists only in numbers.

`Mock(**how)` describes the run and begins to serve; its attributes may be changed at any time.
`stop()` leaves the port refused, as a lost coordinator does, and `start()` comes back to it.
"""

import http.server
import json
import math
import pathlib
import random
import threading
import time
import urllib.parse

POLICY = ("default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
          "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
          "frame-ancestors 'none'")
STEPS_MAX, EVENTS_MAX = 2000, 500
WAITING, RUNNING, BACKUP, COUNTED = range(4)
BEGAN_MS = 1795262496000
SETTINGS = {
    'name': 'adult', 'data': ['a9a.gz'], 'test': ['a9a.t.gz'], 'format': 'auto',
    'csv.header': 'auto', 'csv.label': None, 'csv.skip': [], 'bad_lines': 0,
    'objective': 'logistic', 'l2': 1e-6, 'intercept': True, 'history': 'auto',
    'history_type': 'float', 'gradient_tolerance': 1e-5, 'loss_tolerance': 1e-9, 'max_steps': 1000,
    'max_seconds': 'unlimited', 'replicas': 'auto', 'shards': 'auto', 'threads': 'auto',
    'checkpoint_seconds': 10.0, 'reconnect_seconds': 30, 'flush_ms': 1000,
    'backup_copies': True, 'holdout': [], 'gate': [], 'keep_models': 5, 'http': '127.0.0.1:8080'}


class Mock:
    """What the attributes mean is said where they are first set. `page` is the page's path."""

    def __init__(self, page, **how):
        self.page = pathlib.Path(page)
        self.job, self.run, self.pid = 'adult', 3, 4711
        self.state, self.reason = 'running', None
        self.converged, self.shortfall = None, None
        self.step = 40              # the newest accepted step
        self.steps_whole = 90       # how long the run takes to converge
        self.replicas, self.shards = 2, 1
        self.chunks = 64
        self.share = .6             # of the running evaluation that is counted
        self.lost = ()              # indices of replicas that are lost
        self.loss_shift = 0         # added to every loss
        self.nulls = False          # whatever may be null is
        self.downpour = None        # what the status says of minibatches
        self.holdout = False        # the steps carry what the holdout says
        self.events, self.safeguards = [], {}
        self.preconditioner = {'kind': 'none', 'in_force': False, 'refreshes': 0, 'passes': 0}
        self.notes = {}             # by step
        self.earlier = 2            # runs before this one
        self.host = 'vm'
        self.hosts = []             # that workers are started on
        self.tensors, self.network = [], None  # of a model with layers
        self.settings = dict(SETTINGS)
        self.not_default = ['name', 'data', 'l2']
        self.outcome = {}           # further members of the status: figures, model
        self.asked = []             # every path that was asked for
        self.__dict__.update(how)
        self.server = None
        self.port = 0
        self.start()

    @property
    def url(self):
        return f'http://127.0.0.1:{self.port}/'

    def start(self):
        mock = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = 'HTTP/1.1'

            def do_GET(self):
                answer(mock, self)

            def log_message(self, *_):
                pass

        self.server = Server(('127.0.0.1', self.port), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(.02,), daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()

    # ---- the run ----

    def loss(self, step, run=None):
        """Falls by about the same factor every step, with some roughness of its own."""
        noise = random.Random(f'{self.run if run is None else run}-{step}').random()
        rate = 9.2 / max(1, self.steps_whole) * (1 + .25 * ((run or self.run) % 3 - 1))
        return .32267 + self.loss_shift + .37 * math.exp(-2 * rate * step) * (1 + .15 * noise)

    def gradient(self, step, run=None):
        noise = random.Random(f'{run or self.run}+{step}').random()
        rate = 10.2 / max(1, self.steps_whole) * (1 + .25 * ((run or self.run) % 3 - 1))
        return .27 * math.exp(-rate * step) * (.6 + 1.3 * noise)

    def row(self, step, run=None):
        noise, part = random.Random(f'{run or self.run}*{step}').random(), step / self.steps_whole
        seconds = .05 * step
        row = {'step': step, 'evaluations': 1 + step + 5 * (step >= 20),
               'loss': self.loss(step, run), 'gradient_max': self.gradient(step, run),
               'step_length': 0. if step == 0 else 1. if noise < .85 else round(.04 + noise / 3, 4),
               'trials': 0 if step == 0 else 1 if noise < .85 else 2 if noise < .96 else 4,
               'history': min(step, 100), 'note': self.notes.get(step, ''),
               'wall_ms': BEGAN_MS + int(1e3 * seconds), 'seconds': seconds}
        if self.holdout:
            row['holdout_loss'] = .335 + .36 * math.exp(-20 * part) + .006 * part
            row['holdout_accuracy'] = .853 - .1 * math.exp(-25 * part) - .004 * part
        if self.nulls and step == 0:
            row['loss'] = row['gradient_max'] = None
        return row

    def evaluation_map(self):
        """Home ranges, counted from their beginnings; every second replica is half as fast. Where
        one is through, it runs a backup copy of another's chunk."""
        runs, home = [], self.chunks / self.replicas
        for replica in range(self.replicas):
            first, end = round(home * replica), round(home * (replica + 1))
            share = self.share * (1 if replica % 2 else .4 + .06 * (replica * 7 % 10))
            done = min(end - first, int((end - first) * share))
            running = min(end - first - done, max(1, (end - first) // 8))
            state = BACKUP if replica % 5 == 4 else RUNNING
            runs += [[done, COUNTED, replica], [running, state, replica],
                     [end - first - done - running, WAITING, -1]]
        return [run for run in runs if run[0]]

    def processes(self):
        def one(role, index):
            lost = role == 'replica' and index in self.lost
            rate = 400 + 40 * math.sin(index * 2.1 + time.time() / 7) - 180 * (index % 17 == 11)
            return {'role': role, 'index': index, 'pid': 32000 + 7 * index + (role == 'shard'),
                    'host': self.host, 'state': 'lost' if lost else 'running',
                    'portions': 0 if role == 'shard' else 40 * self.step + index,
                    'chunks': 0 if role == 'shard' else 320 * self.step,
                    'rate': 0 if lost or role == 'shard' else rate,
                    'restarts': int(lost) + (index % 50 == 3), 'threads': 2,
                    'device': 'cpu' if role == 'shard' else f'cuda:{index % 4} NVIDIA H200'}
        return ([one('shard', i) for i in range(self.shards)] +
                [one('replica', i) for i in range(self.replicas)])

    def status(self):
        counted = [run for run in self.evaluation_map() if run[1] == COUNTED]
        nulls = self.nulls
        return {
            'job': self.job, 'run': self.run, 'pid': self.pid, 'state': self.state,
            'reason': self.reason, 'converged': self.converged, 'shortfall': self.shortfall,
            'step': self.step,
            'loss': None if nulls else self.loss(self.step),
            'gradient_max': None if nulls else self.gradient(self.step),
            'evaluation': {'number': self.step + 3, 'chunks': self.chunks,
                           'counted': sum(run[0] for run in counted),
                           'map': None if nulls else self.evaluation_map(),
                           'started_seconds_ago': None if nulls else .42},
            'evaluations': self.step + 3, 'started_ms': BEGAN_MS, 'seconds': .05 * self.step + .1,
            'hosts': self.hosts, 'processes': self.processes(), 'time_ms': int(time.time() * 1000),
            'seconds_left': None if nulls else max(0, .05 * (self.steps_whole - self.step)),
            'objective': 'logistic', 'examples': 32561, 'features': 123, 'parameters': 124,
            'history': 100, 'backup_copies': 3, 'safeguards': self.safeguards,
            'preconditioner': self.preconditioner, 'tensors': self.tensors,
            'network': self.network, 'downpour': self.downpour,
            'gradient_tolerance': 1e-5, 'loss_tolerance': 1e-9,
            **{name: self.row(self.step).get(name)
               for name in ('holdout_loss', 'holdout_accuracy')},
            'settings': self.settings, 'not_default': self.not_default, 'http': self.url,
            'version': '0.5.0', **self.outcome}

    def steps(self, since, run):
        last = self.step if run == self.run else self.steps_whole
        rows = [self.row(step, run) for step in range(since, min(last + 1, since + STEPS_MAX))]
        following = since + len(rows)
        return {'run': run, 'steps': rows, 'next': following, 'more': following <= last}

    def epochs(self, since):
        through = self.downpour['epoch']
        rows = [{'epoch': epoch, 'minibatches': 422, 'rows': 54000, 'loss': .6 / epoch ** .5,
                 'holdout_loss': .5 / epoch ** .4, 'holdout_accuracy': .9 - .2 / epoch,
                 'took_seconds': .5, 'wall_ms': BEGAN_MS + 500 * epoch, 'seconds': .5 * epoch}
                for epoch in range(max(1, since), through + 1)]
        return {'run': self.run, 'epochs': rows, 'next': through + 1, 'more': False}

    def runs(self):
        def one(run):
            live, limited = run == self.run, run == self.run - 1
            steps = self.step if live else self.steps_whole
            return {'run': run, 'job': self.job, 'state': 'running' if live else 'ended',
                    'reason': None if live else 'step limit' if limited else 'gradient tolerance',
                    'converged': None if live else not limited,
                    'started_ms': BEGAN_MS - 86400000 * (self.run - run), 'ended_ms': None,
                    'seconds': .05 * steps, 'steps': steps, 'evaluations': steps + 3,
                    'loss': None if self.nulls else self.loss(steps, run),
                    'gradient_max': None if self.nulls else self.gradient(steps, run),
                    'model': None if live else f'adult.state/models/{run}',
                    'model_sha256': None if live else f'{random.Random(run).getrandbits(256):064x}'}
        return {'runs': [one(run) for run in range(max(1, self.run - self.earlier), self.run + 1)]}

    def events_since(self, since):
        rows = [{'event': i, 'wall_ms': BEGAN_MS + 900 * i, 'kind': kind, 'text': text}
                for i, (kind, text) in enumerate(self.events)][since:since + EVENTS_MAX]
        following = since + len(rows)
        return {'run': self.run, 'events': rows, 'next': following,
                'more': following < len(self.events)}


class Server(http.server.ThreadingHTTPServer):
    """One whose port can be taken again at once, and whose connections end with it."""
    allow_reuse_address = daemon_threads = True

    def __init__(self, *arguments):
        self.connections = set()
        super().__init__(*arguments)

    def process_request(self, request, client_address):
        self.connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request):
        self.connections.discard(request)
        super().shutdown_request(request)

    def server_close(self):
        super().server_close()
        for connection in list(self.connections):
            self.shutdown_request(connection)

    def handle_error(self, *_):
        pass  # a browser that goes away


def answer(mock, handler):
    url = urllib.parse.urlsplit(handler.path)
    query = {name: int(values[0]) for name, values in urllib.parse.parse_qs(url.query).items()}
    since = query.get('since', 0)
    mock.asked.append(handler.path)
    headers = {'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff'}
    if url.path == '/':
        body, kind = mock.page.read_bytes(), 'text/html; charset=utf-8'
        headers['Content-Security-Policy'] = POLICY
    else:
        made = {'/api/v1/status': mock.status, '/api/v1/runs': mock.runs,
                '/api/v1/steps': lambda: mock.steps(since, query.get('run', mock.run)),
                '/api/v1/epochs': lambda: mock.epochs(since),
                '/api/v1/events': lambda: mock.events_since(since)}.get(url.path)
        body = json.dumps(made() if made else {'error': 'not found'}).encode()
        kind = 'application/json'
        if not made:
            handler.send_response(404)
            handler.send_header('Content-Length', str(len(body)))
            handler.end_headers()
            handler.wfile.write(body)
            return
    handler.send_response(200)
    for name, value in {**headers, 'Content-Type': kind, 'Content-Length': len(body)}.items():
        handler.send_header(name, str(value))
    handler.end_headers()
    handler.wfile.write(body)
