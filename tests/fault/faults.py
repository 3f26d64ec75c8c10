"""What the tests of lost processes share: jobs, quiet runs to compare with, and runs in which
processes are killed and the same command is given again.

With DML_FAULTS=all the tests run everything (make check-faults), else a part of it. `--seed N`
repeats one run of a script that draws them at random.
"""

import contextlib
import fcntl
import math
import os
import pathlib
import random
import re
import signal
import sqlite3
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'integration'))

from harness import (ALL, COORDINATOR, DEADLINE_SECONDS, Process, is_stopped,  # noqa: E402, F401
                     long_test, run, train, write_job)

FEATURES = 9000  # three blocks of parameters, so that three shards have something to do
REPLICAS = 2
# Few enough for a preconditioner, which is refreshed several times, first from a part of the rows.
PRECONDITIONED = {'features': 60, 'gradient_tolerance': 1e-14}


def seed_of_arguments():
    """Takes `--seed N` out of the arguments; None without it."""
    if '--seed' not in sys.argv:
        return None
    at = sys.argv.index('--seed')
    seed = int(sys.argv[at + 1])
    del sys.argv[at:at + 2]
    return seed


def say(text):
    """A line of diagnosis between TAP's lines."""
    print(f'# {text}', flush=True)


# ---- jobs ----

def label(objective, rng, margin):
    if objective == 'squared':
        return round(margin + rng.gauss(0, 1), 3)
    if objective == 'softmax':
        return min(3, max(0, int(margin + rng.gauss(0, 1) + 2)))
    if objective == 'tweedie':  # many are 0
        return f'{rng.choice([0, 1, 2]) * math.exp(min(4, margin / 2)):.4g}'
    return int(margin + rng.gauss(0, 1.5) > 0)


def write_data(folder, objective='logistic', rows=4000, features=FEATURES, values=10, seed=1, spread=0.5):
    path = folder / f'{objective}.libsvm'
    rng = random.Random(seed)
    weights = [rng.gauss(0, spread) for _ in range(features + 1)]
    with open(path, 'w') as file:
        for _ in range(rows):
            row = {j: round(rng.gauss(0, 1), 2)
                   for j in sorted(rng.sample(range(1, features + 1), values))}
            margin = sum(weights[j] * v for j, v in row.items())
            file.write(f'{label(objective, rng, margin)} ' +
                       ' '.join(f'{j}:{v}' for j, v in row.items()) + '\n')
    return path


def write_powers(folder, rows):
    """Powers of a year, which nearly follow from each other."""
    path = folder / 'powers.csv'
    rng = random.Random(1)
    years = [1900 + i % 121 for i in range(rows)]
    path.write_text('a,b,c,d,label\n' + ''.join(f'{x},{x**2},{x**3},{x**4},{x / 9 + rng.gauss(0, 1)}\n' for x in years))
    return path


def write_table(folder, rows, seed=1):
    """Numbers, some of which are missing, and categories, two of them with thousands of texts."""
    path = folder / 'table.csv'
    rng = random.Random(seed)
    with open(path, 'w') as file:
        file.write('age,size,color,town,street,label\n')
        for _ in range(rows):
            age, size, color = rng.randrange(90), rng.gauss(0, 10), rng.randrange(9)
            town, street = rng.randrange(3000), rng.randrange(4000)
            margin = (age - 45) / 20 + size / 10 + (color - 4) / 3 + town % 7 - 3 + street % 5 - 2
            cells = [age, round(size, 2), f'c{color}', f't{town}', f's{street}']
            cells = ['' if rng.random() < 0.05 else cell for cell in cells]
            label = 'yes' if margin + rng.gauss(0, 2) > 0 else 'no'
            file.write(','.join(map(str, [*cells, label])) + '\n')
    return path


# What a job of `write_table()` asks for.
TABLE = {'csv': {'bins': 8, 'category_least': 2, 'categories': ['color', 'town', 'street']},
         'cross': ['pairs'], 'cross_least': 2, 'objective': 'logistic'}


# What a job of `write_powers()` asks for: the steps end where the search in twice the precision begins.
POWERS = {'objective': 'squared', 'l2': 0, 'loss_tolerance': 1e-9, 'gradient_tolerance': 1}

# Minibatches before L-BFGS.
MINIBATCHES = {'start': 'downpour', 'downpour': {'epochs': 2, 'batch': 128, 'schedule': [1, 2]}}

# What a job of the objective `network` asks for besides.
NETWORK = {'network': {'layers': [6, 4], 'loss': 'logistic'}, 'early_stopping': 'off'}


def write_weights(folder, rows):
    """Far apart, and some of 0."""
    path = folder / 'weights'
    rng = random.Random(2)
    path.write_text(''.join(f'{10 ** rng.uniform(-4, 4) if rng.random() < 0.9 else 0}\n'
                            for _ in range(rows)))
    return path


def make_job(folder, objective='logistic', rows=4000, features=FEATURES, weighted=False,
             **settings):
    """With `weighted` rows have weights, and so have classes where there are any. The objective
    `table` is logistic, on a table; `powers` is squared; `network` is one with that loss."""
    table = {'table': write_table, 'powers': write_powers}.get(objective)
    data = table(folder, rows) if table else write_data(folder, objective, rows, features)
    if weighted:
        settings['weights'] = [write_weights(folder, rows).name]
    if weighted and objective != 'squared':
        settings['class_weight'] = 'balanced'
    own = {'table': TABLE, 'network': NETWORK, 'powers': POWERS}.get(objective, {})
    chosen = {'data': [data.name], 'objective': objective, 'l2': 1e-4, 'max_steps': 40,
              'gradient_tolerance': 1e-7, 'loss_tolerance': 0, 'replicas': REPLICAS, 'shards': 2,
              'threads': 1, 'reconnect_seconds': 5, **own, **settings}
    return write_job(folder, objective, **chosen)


def quiet(job, *arguments, **environment):
    """What the job gives when nothing happens to it."""
    return train(job, '--fresh', '--state', job.parent / 'quiet.state', *arguments, **environment)


def check_preconditioned(result):
    """With several outputs a refresh is dear, and the run needs only the first."""
    least = 1 if result['objective'] == 'softmax' else 2
    assert result['preconditioner']['refreshes'] >= least, f'too few refreshes to tell: {result}'


# ---- runs that are taken up again ----

class Run:
    """One run of a job, over as many starts of the same command as it takes."""

    def __init__(self, job, state, *arguments, **environment):
        self.state = pathlib.Path(state)
        # With --verbose every step is told of, else one in five seconds.
        self.command = (COORDINATOR, 'run', job, '--json', '--verbose', '--state', state,
                        *arguments)
        self.sockets = self.state.with_suffix('.sockets')
        self.sockets.mkdir(exist_ok=True)
        self.environment = {'TMPDIR': str(self.sockets), 'XDG_RUNTIME_DIR': '', **environment}
        self.starts = []

    @property
    def now(self):
        return self.starts[-1]

    def start(self, **environment):
        self.starts.append(Process(*self.command, **{**self.environment, **environment}))
        return self.now

    def start_held(self, evaluation, **environment):
        """As start(); the coordinator stops itself where that evaluation begins, the first being 1.
        So the run cannot end before the test has done what it is about, however late the test is.
        SIGCONT lets it go on; workers wait for it for ten seconds."""
        visit = (evaluation - 1) * REPLICAS + 1
        process = self.start(DML_FAILPOINT=f'coordinator.send_EVALUATE:{visit}:stop', **environment)
        process.until(lambda: is_stopped(process.pid), f'it stops at evaluation {evaluation}')
        return process

    def go_on(self):
        kill(self.now.pid, signal.SIGCONT)

    def living(self):
        """Ids of all that live, of earlier starts too."""
        return sorted({pid for process in self.starts for pid in process.survivors()})

    def workers(self):
        return [pid for pid in self.living() if pid != self.now.pid]

    def of_role(self, role):
        return [pid for pid in self.workers() if name_of(pid) == f'dml-{role}']

    def left_over(self, seconds):
        """Who still lives after so long, and how long it took."""
        start = time.monotonic()
        while True:
            left = self.living()
            waited = time.monotonic() - start
            if not left or waited > seconds:
                return left, waited
            time.sleep(0.02)

    def end(self):
        for process in self.starts:
            process.end()

    def story(self):
        return '\n'.join(str(process.finished(process.popen.poll())) for process in self.starts)

    def database(self):
        return contextlib.closing(sqlite3.connect(f'file:{self.state}/dml.db?mode=ro', uri=True))


@contextlib.contextmanager
def run_of(job, name, *arguments, **environment):
    """A run whose story is told when what is done with it fails, and which leaves nobody behind."""
    run = Run(job, job.parent / f'{name}.state', *arguments, **environment)
    try:
        yield run
    except Exception as error:
        raise AssertionError(f'{error}\n{run.story()}') from error
    finally:
        run.end()


@contextlib.contextmanager
def workers_at(sockets, program, environments):
    """Workers that were started by hand, each with its environment."""
    started = [Process(program, '--listen', f'unix:{path}', **environment)
               for path, environment in zip(sockets, environments)]
    try:
        for process, path in zip(started, sockets):
            process.until(path.exists, 'it listens')
        yield started
    finally:
        for process in started:
            process.end()


def name_of(pid):
    with contextlib.suppress(OSError):
        return pathlib.Path(f'/proc/{pid}/comm').read_text().strip()
    return ''


def is_free(path):
    """Whether nobody holds the lock file."""
    with open(path) as file, contextlib.suppress(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def kill(pid, number=signal.SIGKILL):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def conclude(run, reruns_max, seconds=DEADLINE_SECONDS):
    """Lets the run come to its end; the command is given again while it dies of a signal. Returns
    the members of the result."""
    while True:
        finished = run.now.wait(seconds)
        if finished.status == 0:
            return finished.json
        assert finished.status == -signal.SIGKILL, f'ended with {finished.status}'
        assert len(run.starts) <= reruns_max, f'not through after {reruns_max} reruns'
        run.start()


def check_nothing_left(run, seconds=8):
    left, waited = run.left_over(seconds)
    assert not left, f'{[(pid, name_of(pid)) for pid in left]} live {waited:.0f} s after the end'
    parts = [path for path in run.state.rglob('*')
             if '.tmp' in path.name and run.state / 'shards' not in path.parents]
    assert not parts, f'unfinished files are left: {parts}'


def steps_of(run):
    """Numbers of the steps that the process of now has logged."""
    return [int(n) for n in re.findall(r'info: step (\d+): loss ', run.now.so_far(run.now.errors))]


def until_step(run, step):
    run.now.until(lambda: step in steps_of(run), f'step {step}')


def flip(path, offset=None):
    """Flips a bit of a file, in its middle if not told where."""
    offset = path.stat().st_size // 2 if offset is None else offset
    with open(path, 'r+b') as file:
        file.seek(offset)
        byte = file.read(1)
        file.seek(offset)
        file.write(bytes([byte[0] ^ 0x04]))


def chunks_of(run):
    with run.database() as database:
        return database.execute('SELECT max(first_chunk + chunks) FROM portions').fetchone()[0]


def border_of(key, covered):
    """Where the chunks that an evaluation counted end, or begin; None if it counted all."""
    assert set(covered) <= {0, 1} and 1 in covered, f'evaluation {key} counted chunks {covered}'
    assert covered in (sorted(covered), sorted(covered, reverse=True)), f'{key}: {covered}'
    return covered.index(1 - covered[0]) if 0 in covered else None


def check_counted_once(run, chunks, parts=0):
    """Every evaluation that was used counts each chunk exactly once: all of them or one of so many
    parts, as those of the training or of the holdout alone, or tiles without the layers above them."""
    borders = set()
    with run.database() as database:
        evaluations = database.execute('SELECT run, attempt, evaluation FROM evaluations').fetchall()
        for key in evaluations:
            covered = [0] * chunks
            for first, count in database.execute(
                    'SELECT first_chunk, chunks FROM portions'
                    ' WHERE run = ? AND attempt = ? AND evaluation = ?', key):
                for chunk in range(first, first + count):
                    covered[chunk] += 1
            borders.add(border_of(key, covered))
    assert len(borders - {None}) <= parts, f'{borders} of {chunks} chunks'
    return len(evaluations)
