#!/usr/bin/env python3
"""Ways to train networks on images, head to head, and how many minibatches they take a second.

    bench/networks.py [curves | defaults | minibatches | straggler]... [--rows N] [--seed N]
                      [--steps N] [--way WORD]... [--net WORD]...

Data is Fashion-MNIST of the shared data sets. Run it in the build folder, like the tests.

    curves       passes over the rows (an epoch of minibatches is one, an evaluation of L-BFGS another),
                 seconds of processors and the loss F until a share of the test images is predicted
                 correctly, and where that share is largest. Test images only evaluate: nothing is chosen by them.
    defaults     the same jobs as a user would train them: a tenth of the rows is held out and ends the
                 run; then the accuracy on the test images.
    minibatches  minibatches and rows a second by batch, replicas and shards. "Latency" is the share of a
                 minibatch's time that is not computing, if computing is what it is in the largest batch.
    straggler    minibatches a second of four replicas, and if one of them is ten times as slow. Replicas
                 sleep before each chunk (DML_SHUFFLE, DML_PAUSE_US), so that it does not depend on the
                 number of processors. The models must have the same bits.

--rows trains on the first rows only. Processor time is that of all processes of a run, sampled while it
goes on, so that the rest of the machine may be busy. The way `adam` is scikit-learn's MLPClassifier, which
needs numpy and scikit-learn.
"""

import argparse
import contextlib
import gzip
import os
import pathlib
import shutil
import sqlite3
import sys
import tempfile
import threading
import time
import warnings

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / 'tests/fault'))
from faults import workers_at  # noqa: E402
from harness import COORDINATOR, REPLICA, SHARED, heed_interrupts, run, write_job  # noqa: E402

IMAGES = SHARED / 'fashion_mnist'
NETS = {
    '784-100-10 tanh': {'layers': [100], 'activation': 'tanh'},
    '784-300-100-10 relu': {'layers': [300, 100], 'activation': 'relu'},
}
WAYS = {
    'lbfgs alone': {},
    'kronecker': {'precondition': 'kronecker'},
    'downpour, then lbfgs': {'start': 'downpour'},
    'downpour of 10 epochs, then lbfgs': {'start': 'downpour', 'downpour': {'epochs': 10}},
    'adam': None,
}
MARKS = 0.84, 0.85, 0.86, 0.87, 0.88, 0.885
SAMPLE_SECONDS = 0.05

BATCHES = 64, 256, 1024, 4096
PLACES = (1, 1), (2, 1), (2, 2)
CHUNK_MS, SLOWDOWN, REPLICAS, TURNS = 1, 10, 4, 3
SETS = {
    'a9a': {'data': [str(SHARED / 'a9a.gz')], 'format': 'libsvm', 'objective': 'logistic'},
    'fashion softmax': {'objective': 'softmax'},
    'fashion 784-100-10': {'objective': 'network', 'network': {'layers': [100]},
                           'early_stopping': 'off'},
}

# ---- data ----


def idx(kind, part):
    data = gzip.open(next(IMAGES.glob(f'{kind}-{part}-idx*'))).read()
    return data[:4], int.from_bytes(data[4:8], 'big'), data[8:]


def files_of(kind, folder, rows=None):
    """The paths of images and labels, of the first rows only if they are given."""
    paths = []
    for part in 'images', 'labels':
        magic, count, rest = idx(kind, part)
        taken = min(rows or count, count)
        head = 4 * (magic[3] - 1)
        each = (len(rest) - head) // count
        path = folder / f'{kind}-{part}-idx{magic[3]}-ubyte'
        path.write_bytes(magic + taken.to_bytes(4, 'big') + rest[:head + taken * each])
        paths.append(path)
    return paths


def job_of(folder, options, net, way):
    data, labels = files_of('train', folder, options.rows)
    return {'data': [data], 'labels': [labels], 'objective': 'network', 'l2': 1e-4, 'threads': 1,
            'replicas': 1, 'shards': 1, 'seed': options.seed,
            'network': {**NETS[net], 'precision': 'float'}, **WAYS[way]}


def train(folder, name='job', *arguments, **settings):
    finished = run(COORDINATOR, 'run', write_job(folder, name, **settings), '--fresh', '--json', *arguments,
                   seconds=3600)
    assert finished.status == 0, finished
    return finished.json


# ---- processor time of a run that goes on ----

def processes_below(root):
    """Seconds of processors of each process that descends from `root`."""
    parent, seconds = {}, {}
    for folder in pathlib.Path('/proc').glob('[0-9]*'):
        with contextlib.suppress(OSError):
            fields = (folder / 'stat').read_text().rpartition(')')[2].split()
            parent[int(folder.name)] = int(fields[1])
            seconds[int(folder.name)] = (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')
    below, found = {root}, set()
    while below:
        found |= below
        below = {one for one, its in parent.items() if its in below} - found
    return {one: seconds[one] for one in found if one != root}


class Clock(threading.Thread):
    """Notes how much processor time the children of this process have taken, by the time of day."""

    def __enter__(self):
        self.over, self.most, self.points = threading.Event(), {}, [(0, 0.0)]
        self.start()
        return self

    def run(self):
        while not self.over.wait(SAMPLE_SECONDS):
            self.most.update(processes_below(os.getpid()))
            self.points.append((time.time() * 1e3, sum(self.most.values())))

    def __exit__(self, *error):
        self.over.set()
        self.join()

    def at(self, wall_ms):
        return next((seconds for ms, seconds in self.points if ms >= wall_ms), self.points[-1][1])


# ---- curves ----

def curve_of(state, clock):
    """(passes, seconds of processors, F, accuracy) after each epoch, whose F is not known, and each step."""
    with contextlib.closing(sqlite3.connect(state / 'dml.db')) as database:
        epochs = database.execute('SELECT wall_ms, holdout_accuracy FROM downpour_epochs ORDER BY epoch')
        curve = [(number, clock.at(ms), None, accuracy) for number, (ms, accuracy) in enumerate(epochs, 1)]
        trials = dict(database.execute('SELECT step, count(*) FROM evaluations GROUP BY step'))
        passes = len(curve)
        for step, ms, loss, accuracy in database.execute(
                'SELECT step, wall_ms, loss, holdout_accuracy FROM steps ORDER BY step'):
            passes += trials.get(step, 0)
            curve.append((passes, clock.at(ms), loss, accuracy))
    shutil.rmtree(state)
    return curve


def adam_curve(folder, options, net):
    """The same of MLPClassifier, on centred pixels from 0 to 1."""
    import numpy as np
    import threadpoolctl
    from sklearn.neural_network import MLPClassifier

    def read(kind, rows=None):
        pixels, labels = (np.fromfile(path, np.uint8) for path in files_of(kind, folder, rows))
        return pixels[16:].reshape(-1, 784) / 255, labels[8:]
    (x, y), (test, answers) = read('train', options.rows), read('t10k')
    mean = x.mean(axis=0)
    model = MLPClassifier(NETS[net]['layers'], activation=NETS[net]['activation'], max_iter=1,
                          random_state=options.seed, warm_start=True)
    curve, begun = [], time.process_time()
    with threadpoolctl.threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter('ignore')
        for epoch in range(1, options.steps // 2 + 1):
            model.fit(x - mean, y)
            spent = time.process_time() - begun
            curve.append((epoch, spent, model.loss_, np.mean(model.predict(test - mean) == answers)))
            begun = time.process_time() - spent
    return curve


def cell(point):
    passes, seconds, loss, _ = point
    return f'{passes} / {seconds:.1f} s' + (f' / {loss:.4f}' if loss is not None else '')


def each(options):
    for net in NETS:
        for way in WAYS:
            if all(not words or any(word in name for word in words)
                   for words, name in ((options.net, net), (options.way, way))):
                yield net, way


def show_curves(folder, options):
    print(f'| passes / processors / F | {" | ".join(map(str, MARKS))} | best | last |')
    print('|---' * (len(MARKS) + 3) + '|')
    test, answers = files_of('t10k', folder)
    for net, way in each(options):
        if WAYS[way] is None:
            curve = adam_curve(folder, options, net)
        else:
            with Clock() as clock:
                train(folder, **job_of(folder, options, net, way), holdout=[test],
                      holdout_labels=[answers], early_stopping=100000, loss_tolerance=0,
                      max_steps=options.steps)
            curve = curve_of(folder / 'job.state', clock)
        marks = [next((cell(point) for point in curve if point[3] >= mark), 'never') for mark in MARKS]
        best = max(curve, key=lambda point: point[3])
        print(f'| {net}, {way} | {" | ".join(marks)} | {best[3]:.4f}: {cell(best)} | '
              f'{curve[-1][3]:.4f}: {cell(curve[-1])} |', flush=True)


def show_defaults(folder, options):
    print('| defaults | epochs and steps | processors | F | held out | test | end |\n' + '|---' * 7 + '|')
    test, answers = files_of('t10k', folder)
    for net, way in each(options):
        if WAYS[way] is None:
            continue
        with Clock() as clock:
            result = train(folder, **job_of(folder, options, net, way), test=[test],
                           test_labels=[answers])
        epochs = (result.get('downpour') or {}).get('epochs', 0)
        print(f'| {net}, {way} | {epochs}, {result["steps"]} | {clock.points[-1][1]:.1f} s | '
              f'{result["loss"]:.4f} | {result["holdout"]["accuracy"]:.4f} | '
              f'{result["test"]["accuracy"]:.4f} | {result["reason"]} |', flush=True)


# ---- minibatches ----

def rates(folder, job, *arguments):
    """Minibatches and rows a second of the fastest epoch except the first, and the model's hash."""
    finished = run(COORDINATOR, 'run', job, '--fresh', '--json', *arguments, seconds=600)
    assert finished.status == 0, finished
    with contextlib.closing(sqlite3.connect(folder / 'job.state/dml.db')) as database:
        found = database.execute('SELECT minibatches, rows, seconds FROM downpour_epochs WHERE epoch > 1 '
                                 'AND run = (SELECT max(run) FROM downpour_epochs)').fetchall()
    return max((n / seconds, rows / seconds) for n, rows, seconds in found) + (
        finished.json['model_sha256'],)


def minibatch_job(folder, name, options, **settings):
    data, labels = files_of('train', folder, options.rows)
    return write_job(folder, **{'data': [data], **({} if name == 'a9a' else {'labels': [labels]}),
                                **SETS[name], 'optimizer': 'downpour', 'threads': 1, **settings})


def show_minibatches(folder, options):
    print('| data and model | replicas, shards | batch | minibatches a second | rows a second | latency |')
    print('|---' * 6 + '|')
    for name in SETS:
        for replicas, shards in PLACES:
            job = minibatch_job(folder, name, options, replicas=replicas, shards=shards)
            found = {batch: max(rates(folder, job, '--set', f'downpour.batch={batch}')[:2]
                                for _ in range(TURNS)) for batch in BATCHES}
            most = max(rows for _, rows in found.values())
            for batch, (minibatches, rows) in found.items():
                print(f'| {name} | {replicas}, {shards} | {batch} | {minibatches:.0f} | {rows:.0f} | '
                      f'{1 - rows / most:.2f} |', flush=True)


def show_straggler(folder, options):
    sockets = [folder / f'replica{i}' for i in range(REPLICAS)]
    job = minibatch_job(folder, 'a9a', options, replicas=REPLICAS, shards=1,
                        replica_addresses=[f'unix:{path}' for path in sockets])
    even = [2000 * CHUNK_MS] * REPLICAS
    hashes = set()
    for _ in range(TURNS):
        found = []
        for pauses in even, even[:-1] + [even[-1] * SLOWDOWN]:
            environments = [{'DML_SHUFFLE': '1', 'DML_PAUSE_US': str(us)} for us in pauses]
            with workers_at(sockets, REPLICA, environments):
                rate, _, sha256 = rates(folder, job, '--set', 'downpour.batch=1024')
            found.append(rate)
            hashes.add(sha256)
        print(f'{found[0]:.1f} minibatches a second of four equal replicas, {found[1]:.1f} with one slowed '
              f'tenfold: {found[1] / found[0]:.2f}', flush=True)
    assert len(hashes) == 1, hashes


SHOWS = {'curves': show_curves, 'defaults': show_defaults, 'minibatches': show_minibatches,
         'straggler': show_straggler}


def main():
    heed_interrupts()
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('shows', nargs='*', metavar='SHOW', help=', '.join(SHOWS))
    parser.add_argument('--rows', type=int)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--steps', type=int, default=60)
    parser.add_argument('--way', action='append', default=[])
    parser.add_argument('--net', action='append', default=[])
    options = parser.parse_intermixed_args()
    for name in options.shows or SHOWS:
        with tempfile.TemporaryDirectory() as folder:
            SHOWS[name](pathlib.Path(folder), options)


if __name__ == '__main__':
    main()
