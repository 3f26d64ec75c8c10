#!/usr/bin/env python3
"""dml beside LIBLINEAR and scikit-learn: seconds from a text file to a model within a relative gap
of the optimum, 1e-6 or what the row says.

    bench/peers.py --tables [--data FOLDER] [--work FOLDER] [ROW...]
    bench/peers.py [--turns N] [--only WORD]... [--limit SECONDS] [--long SECONDS] [--quick]
                   [--data FOLDER] [--work FOLDER] [ROW...]

Each contender uses the loosest tolerance, a power of ten, that reaches the gap, as an independent
computation of F at its model says; dml, of its three tolerances, the one that ends sooner. The
tolerances of the peers are searched once and remembered; dml's is searched in each call. Then all
run in turns, and the medians are compared.

    ROW        rows whose names contain it, such as "a9a 1e-6"; all without any
    --only     contenders whose names contain it, such as dml or liblinear
    --turns    how many turns; 5
    --long     a contender that takes longer runs in the first turn only; 20 s
    --limit    a run that takes longer is given up, and so is its contender; 150 s
    --quick    while tuning: dml alone, and the peers' medians as an earlier call found them
    --work     where texts, tolerances, optima and the virtual environment are kept;
               bench/peers in the build folder

--tables has raw tables instead, which dml and a scikit-learn pipeline (OneHotEncoder, StandardScaler, or
TfidfVectorizer for sentences, and a linear model) fit on the same split (tables.py). For both it
prints lines that a user writes, seconds of the whole command from text to figures on the test file,
and those figures. Lines without letters or digits and empty ones do not count; for dml the job file
counts, and the command that runs it.

LIBLINEAR runs with -B 1, which regularises the intercept; its gap is to its own optimum. The time
of scikit-learn counts load_svmlight_file and fit in one process, without imports; all others are
whole commands. Run it in the build folder, like the tests.
"""

import argparse
import contextlib
import json
import os
import pathlib
import re
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'tests/integration'))
import tables  # noqa: E402
from harness import BUILD, COORDINATOR, SHARED, heed_interrupts, write_job  # noqa: E402
from problems import PEERS, Missing  # noqa: E402

PACKAGES = ('numpy', 'scipy', 'scikit-learn', 'pandas')
HERE = pathlib.Path(__file__).resolve().parent

# ---- the contenders: how a run is made at a tolerance, how long it took and where its model is ----

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
        _, output, _ = timed([self.python, HERE / 'scorer.py', 'fit', text, problem.l2, self.solver,
                              tolerance, coefficients], limit)
        return float(output.split()[0]), coefficients


def contenders(python):
    return [Dml(), Liblinear(PRIMAL), Liblinear(DUAL), *(Sklearn(solver, python) for solver in
                                                ('lbfgs', 'newton-cg', 'newton-cholesky'))]


# ---- tolerances and turns ----


def environment(work):
    """The interpreter of a virtual environment with the peers, made if it is not there."""
    python = work / 'venv/bin/python'
    if not (work / 'venv/complete').exists():
        print('installing ' + ', '.join(PACKAGES), flush=True)
        subprocess.run([sys.executable, '-m', 'venv', work / 'venv'], check=True)
        subprocess.run([python, '-m', 'pip', 'install', '-q', *PACKAGES], check=True)
        (work / 'venv/complete').touch()
    return python


class Remembered:
    """A JSON file of what earlier calls found."""

    def __init__(self, path):
        self.path = path
        self.content = json.loads(path.read_text()) if path.exists() else {}

    def __setitem__(self, key, value):
        self.content[key] = value
        self.path.write_text(json.dumps(self.content, indent=1))

    def get(self, key):
        return self.content.get(key)


class Scorer:
    """scorer.py with the data of a problem."""

    def __init__(self, python, problem, text, work):
        self.problem = problem
        self.process = subprocess.Popen(
            [python, HERE / 'scorer.py', 'score', text, problem.objective, str(problem.l2),
             work / 'optima.json'], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, **what):
        self.process.stdin.write(json.dumps(what) + '\n')
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def optimum(self, regularised):
        known = None if regularised else self.problem.optimum
        return self.ask(optimum=regularised) if known is None else known

    def gap(self, contender, model):
        f = self.ask(kind=contender.kind, path=str(model))
        return f / self.optimum(contender.bias_regularised) - 1

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def climb(ladder, contender, problem, text, folder, scorer, limit):
    """{'tolerance', 'gap', 'seconds'} of the loosest tolerance of a ladder that comes near enough,
    {'why'} if none does."""
    for tolerance in ladder:
        try:
            seconds, model = contender.run(problem, text, folder, tolerance, limit)
        except TooLong:
            return {'why': f'more than {limit:g} s at {tolerance}'}
        gap = scorer.gap(contender, model)
        if gap <= problem.gap:
            return {'tolerance': tolerance, 'gap': gap, 'seconds': seconds}
    return {'why': f'{gap:.0e} is the smallest gap'}


def search(contender, *arguments):
    """What the ladder found that came near enough the soonest."""
    found = [climb(ladder, contender, *arguments) for ladder in contender.ladders]
    return min(found, key=lambda what: what.get('seconds', float('inf')))


def tolerances(row, problem, text, folder, scorer, memory, limit):
    """What search() finds for each contender of the row; the peers' from memory."""
    found = {}
    for contender in row:
        key = f'{problem.name}: {contender.name}'
        known = memory.get(key) if contender.kind != 'dml' else None
        found[contender.name] = known or search(contender, problem, text, folder, scorer(), limit)
        if not known:
            memory[key] = found[contender.name]
    return found


def take_turns(row, problem, text, folder, found, options):
    """Seconds of each contender's runs, and the parts of dml's."""
    seconds, parts = {contender.name: [] for contender in row}, []
    for turn in range(options.turns):
        for contender in row:
            what, before = found[contender.name], seconds[contender.name]
            if 'tolerance' not in what or (turn and (not before or before[0] > options.long)):
                continue
            with contextlib.suppress(TooLong):
                taken, _ = contender.run(problem, text, folder, what['tolerance'], options.limit)
                before.append(taken)
                parts.extend([contender.parts] if contender.kind == 'dml' else [])
    return seconds, parts


def measured(problem, every, options, python, memory):
    """(rows of the table, medians of the parts of dml's time)."""
    text = problem.text(options.data, options.work)
    row = [c for c in every if c.fits(problem)
           and (not options.only or any(word in c.name for word in options.only))]
    scorers = []

    def scorer():
        if not scorers:
            scorers.append(Scorer(python, problem, text, options.work))
        return scorers[0]

    with tempfile.TemporaryDirectory(prefix='peers-', dir=options.work) as name:
        folder = pathlib.Path(name)
        found = tolerances(row, problem, text, folder, scorer, memory, options.limit)
        for process in scorers:
            process.close()
        seconds, parts = take_turns(row, problem, text, folder, found, options)
    medians = {name: statistics.median(taken) for name, taken in seconds.items() if taken}
    for name, median in medians.items():
        memory[f'{problem.name}: {name}, seconds'] = median
    return table_of(problem, found, seconds, medians), {
        part: statistics.median(p[part] for p in parts) for part in (parts[0] if parts else {})}


def table_of(problem, found, seconds, medians):
    own, rows = medians.get('dml'), []
    for name, what in found.items():
        if name not in medians:
            rows.append((problem.name, name, '', '', '', '', what.get('why', 'no run ended')))
            continue
        median = medians[name]
        rows.append((problem.name, name, f'{median:.2f}', f'{own / median:.3f}' if own else '',
                     f'{what["gap"]:.0e}', str(len(seconds[name])), str(what['tolerance'])))
    return rows


def recalled(problem, every, memory, own):
    """Lines for the peers as an earlier call found them."""
    for contender in every:
        median = memory.get(f'{problem.name}: {contender.name}, seconds')
        if contender.kind != 'dml' and median:
            yield (problem.name, contender.name, f'{median:.2f}', f'{own / median:.3f}', '', '0',
                   'remembered')


# ---- the report ----

COLUMNS = ('row', 'contender', 'seconds', 'dml / it', 'gap', 'runs', 'tolerance')
PARTS = ('row', 'pack', 'merge', 'start', 'passes', 'programs', 'end', 'sum')


def markdown(columns, rows):
    widths = [max(len(row[i]) for row in [columns, *rows]) for i in range(len(columns))]

    def line(cells):
        return '| ' + ' | '.join(f'{cell:{w}}' for cell, w in zip(cells, widths)) + ' |'
    return '\n'.join([line(columns), '|' + '|'.join('-' * (w + 2) for w in widths) + '|',
                      *map(line, rows)])


def machine():
    model = re.search(r'model name\s*: (.*)', pathlib.Path('/proc/cpuinfo').read_text())
    return f'{len(os.sched_getaffinity(0))} processors of {model[1] if model else "unknown model"}'


def versions(python):
    listed = subprocess.run([python, '-m', 'pip', 'list', '--format=json'], capture_output=True,
                            text=True, check=True).stdout
    return ', '.join(f'{entry["name"]} {entry["version"]}' for entry in json.loads(listed)
                     if entry['name'] in PACKAGES)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('rows', nargs='*', metavar='ROW')
    parser.add_argument('--turns', type=int, default=5)
    parser.add_argument('--only', action='append', default=[], metavar='WORD')
    parser.add_argument('--limit', type=float, default=150, metavar='SECONDS')
    parser.add_argument('--long', type=float, default=20, metavar='SECONDS')
    parser.add_argument('--quick', action='store_true')
    parser.add_argument('--tables', action='store_true')
    parser.add_argument('--data', type=pathlib.Path, default=SHARED)
    parser.add_argument('--work', type=pathlib.Path, default=BUILD / 'bench/peers')
    options = parser.parse_args()
    options.work = options.work.resolve()
    if options.quick:
        options.only = ['dml']
    return options


def compare_texts(options, python):
    memory, every = Remembered(options.work / 'found.json'), contenders(python)
    for problem in PEERS:
        if options.rows and not any(row in problem.name for row in options.rows):
            continue
        try:
            rows, spent = measured(problem, every, options, python, memory)
        except Missing as why:
            print(f'{problem.name}: skipped, {why}', flush=True)
            continue
        if options.quick and rows[0][2]:
            rows.extend(recalled(problem, every, memory, float(rows[0][2])))
        print(markdown(COLUMNS, rows) + '\n', flush=True)
        if spent:
            parts = (problem.name, *(f'{v:.2f}' for v in spent.values()), f'{sum(spent.values()):.2f}')
            print(markdown(PARTS, [parts]) + '\n', flush=True)


def compare_tables(options, python):
    for row in tables.ROWS:
        if not options.rows or any(word in row.name for word in options.rows):
            print(markdown(tables.COLUMNS, list(tables.measured(row, python, options))) + '\n', flush=True)


def main():
    heed_interrupts()
    options = arguments()
    options.work.mkdir(parents=True, exist_ok=True)
    python = environment(options.work)
    print(f'{machine()}; {versions(python)}\n', flush=True)
    (compare_tables if options.tables else compare_texts)(options, python)


if __name__ == '__main__':
    main()
