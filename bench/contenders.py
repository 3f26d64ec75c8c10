"""What peers.py times: dml, LIBLINEAR and scikit-learn, each as one command from a text file to a
model. A contender says how a run is made at a tolerance, how long it took and where its model is;
`ladders` has the tolerances of each of its criteria."""

import json
import pathlib
import re
import shutil
import sqlite3
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'tests/integration'))
from harness import COORDINATOR, write_job  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
# Few columns: newton-cholesky forms the Hessian, and the dual of LIBLINEAR is of no use.
NARROW = ('a9a', 'ijcnn1', 'dense')
PRIMAL, DUAL = 0, 7  # LIBLINEAR's solvers of logistic regression


def ladder(first, before=''):
    """Tolerances from loose to tight, each a tenth of the one before."""
    return [f'{before}1e-{k}' for k in range(first, 11)]


class TooLong(Exception):
    """A run was stopped: it took longer than the limit."""


def timed(command, limit):
    """(seconds of the whole command, its standard output, its standard error)."""
    start = time.monotonic()
    try:
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                              timeout=limit, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        raise TooLong from None
    seconds = time.monotonic() - start
    assert done.returncode == 0, f'{command}\n{done.stdout}\n{done.stderr}'
    return seconds, done.stdout, done.stderr


class Dml:
    """The whole command, packs and state folder made anew each time. Where its time went, in
    seconds, is in `parts` after a run."""

    name, kind, bias_regularised = 'dml', 'dml', False
    ladders = [ladder(2, 'gradient_tolerance='), ladder(2, 'loss_tolerance='),
               ladder(5, 'gap_tolerance=')]

    def fits(self, problem):
        return True

    def run(self, problem, text, folder, tolerance, limit):
        key, value = tolerance.split('=')
        alone = {} if key == 'gap_tolerance' else {'gradient_tolerance': 0, 'loss_tolerance': 0}
        job = write_job(folder, name='dml', **{**problem.settings, 'data': [text]}, max_steps=5000,
                        **{**alone, key: float(value)})
        state = folder / 'dml.state'
        shutil.rmtree(state, ignore_errors=True)
        begin_ms = time.time() * 1e3
        seconds, output, errors = timed([COORDINATOR, 'run', job, '--json', '--fresh'], limit)
        self.parts = parts_of(state, errors, begin_ms, seconds)
        model = json.loads(output.splitlines()[-1])['model']
        return seconds, model if pathlib.Path(model).is_absolute() else folder / model


def parts_of(state, errors, begin_ms, seconds):
    """Seconds of each part of a run: from what it logs, and from the times in its database. Start
    is all before the first evaluation but packing and merging; programs is what lies between the
    evaluations; end is all after the last step."""
    def logged(pattern):
        return sum(float(found) for found in re.findall(pattern, errors))

    with sqlite3.connect(state / 'dml.db') as store:
        (first, last), = store.execute('SELECT min(wall_ms), max(wall_ms) FROM steps')
        evaluations = [row[0] for row in store.execute('SELECT seconds FROM evaluations')]
    pack, merge = logged(r'packed in ([\d.]+) s'), logged(r'merged .* in ([\d.]+) s')
    stepping = (last - first) / 1e3
    parts = {'pack': pack, 'merge': merge,
             'start': (first - begin_ms) / 1e3 - pack - merge - evaluations[0],
             'passes': sum(evaluations), 'programs': stepping - sum(evaluations[1:]),
             'end': seconds - (last - begin_ms) / 1e3}
    return {name: max(value, 0.0) for name, value in parts.items()}


class Liblinear:
    """Its intercept is regularised as all weights, so it has an optimum of its own."""

    kind, bias_regularised = 'liblinear', True
    ladders = [ladder(1)]

    def __init__(self, solver):
        self.name, self.solver = f'liblinear -s {solver}', solver

    def fits(self, problem):
        if problem.objective != 'logistic' or not shutil.which('liblinear-train'):
            return False
        return self.solver == PRIMAL or not problem.name.startswith(NARROW)

    def run(self, problem, text, folder, tolerance, limit):
        with open(text) as file:
            rows = sum(1 for _ in file)
        model = folder / 'liblinear.model'
        seconds, *_ = timed(['liblinear-train', '-q', '-s', self.solver, '-B', 1, '-e', tolerance,
                             '-c', repr(1 / (problem.l2 * rows)), text, model], limit)
        return seconds, model


class Sklearn:
    """Seconds of reading the text and fitting, in one process; imports do not count."""

    kind, bias_regularised = 'sklearn', False
    ladders = [ladder(2)]

    def __init__(self, solver, python):
        self.name, self.solver, self.python = f'sklearn {solver}', solver, python

    def fits(self, problem):
        return self.solver != 'newton-cholesky' or problem.name.startswith(NARROW)

    def run(self, problem, text, folder, tolerance, limit):
        coefficients = folder / 'sklearn.npy'
        _, output, _ = timed([self.python, HERE / 'fit_sklearn.py', text, problem.l2, self.solver,
                              tolerance, coefficients], limit)
        return float(output.split()[0]), coefficients


def contenders(python):
    return [Dml(), Liblinear(PRIMAL), Liblinear(DUAL), *(Sklearn(solver, python) for solver in
                                                ('lbfgs', 'newton-cg', 'newton-cholesky'))]
