#!/usr/bin/env python3
"""Common directions on random problems, beside an optimum that was found otherwise.

    bench/directions.py [--l1] [--set KEY=VALUE]... [--fallen] [NUMBER...]

Each problem is made from its number: columns, labels, weights, loss and settings are drawn. It is
trained as closely as double precision allows, with and without common directions. F* is the least
of both and of a Newton method (newton.py), which shares no code with the programs. All numbers
without any; A-B stands for all from A to B. --fallen tells only what falls short. --l1 gives each
problem an l1, and working sets take the place of directions. The columns:

    with, without   F − F*, relatively, at the end of the run with and without directions
    steps           of either run
    rounds          trials in the span, a step
    newton          the same gap of newton.py, and what it says that it lacks
    end             the reason

A '!' stands before a gap of more than 1e-9 with directions, unless it is no larger than without;
the exit status is 1 then. Problems that have no optimum come last: they must end with a reason. It
needs numpy, scipy and scikit-learn. Run it in the build folder, like the tests.
"""

import argparse
import contextlib
import dataclasses
import itertools
import pathlib
import sqlite3
import sys
import tempfile
import warnings

import numpy as np
import scipy.linalg

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'tests/integration'))
import gaps  # noqa: E402
import losses  # noqa: E402
import newton  # noqa: E402
from harness import COORDINATOR, Process, heed_interrupts, words, write_job  # noqa: E402

PROBLEMS = 150
GAP = 1e-9
ROUNDING = 1e-13       # differences of F that no program can tell
FIRST_SHARE = 1e-6     # of F at the start: a smaller F* is measured by this
CLOSE = {'gradient_tolerance': 1e-13, 'loss_tolerance': 1e-15, 'gap_tolerance': 1e-14,
         'max_steps': 3000, 'max_seconds': 60, 'history': 30}
TAU, EPSILON = 0.3, 0.1
CURVES = dict(gaps.CURVES, tweedie=losses.tweedie(1.5), quantile=losses.quantile(TAU, EPSILON))
SEVERAL = ('softmax', 'one_vs_rest', 'ordinal')
CLASSES = 4


@dataclasses.dataclass
class Drawn:
    columns: str
    objective: str
    x: np.ndarray
    y: np.ndarray
    weights: np.ndarray | None
    settings: dict

    @property
    def name(self):
        told = ' '.join(f'{key}={value:g}' if isinstance(value, float) else f'{key}={value}'
                        for key, value in self.settings.items() if not isinstance(value, dict))
        rows, columns = self.x.shape
        weighted = ' weights' if self.weights is not None else ''
        return f'{self.columns} {rows}x{columns} {self.objective}{weighted} {told}'


# ---- problems ----

def sparse(rows, columns, density):
    def make(rng):
        return np.where(rng.random((rows, columns)) < density, rng.normal(size=(rows, columns)), 0)
    return make


def duplicated(rows, columns):
    def make(rng):
        x = rng.normal(size=(rows, columns))
        return x[:, rng.integers(0, columns, 2 * columns)]
    return make


def constant(rows, columns):
    """The first ones are constant, and may stand for an intercept."""
    def make(rng):
        x = rng.normal(size=(rows, columns))
        x[:, :3] = (1, -7.5, 1e-3)
        return x
    return make


def badly_scaled(rows, columns):
    def make(rng):
        return rng.normal(0.3, 1, size=(rows, columns)) * 10 ** rng.uniform(-6, 6, columns)
    return make


def makers(rng):
    rows = int(10 ** rng.uniform(2, 3.5))
    columns = int(rng.integers(2, 40))
    few = int(rng.integers(2, 63))
    wide = int(rng.integers(200, 600))
    return {
        'dense': gaps.normal(rows, columns), 'sparse': sparse(rows, 10 * columns, 0.03),
        'walks': gaps.walks(rows, columns), 'twins': gaps.twins(rows, columns, 1e-3),
        'duplicated': duplicated(rows, columns), 'scales': badly_scaled(rows, columns),
        'constant': constant(rows, columns + 3), 'wide': gaps.normal(int(wide / 3), wide),
        'wide-sparse': sparse(int(wide / 2), 3 * wide, 0.02),
        'curves': gaps.curves(rows, 60, 8, 1e-2),
        'few-rows': gaps.normal(few, columns), 'one-column': gaps.normal(rows, 1),
        'one-row': gaps.normal(1, columns), 'codes': gaps.codes(rows, 40, 20, 7),
        'words': gaps.words_of_texts(rows, 500, 20), 'products': gaps.products(rows, 6),
    }


def separable(x, y):
    """The rule that the labels follow, without noise."""
    deviation = x.std(axis=0)
    rule = ((x - x.mean(axis=0)) / np.where(deviation > 0, deviation, 1)).sum(axis=1)
    return (rule > np.median(rule)).astype(float) if len(np.unique(rule)) > 1 else y


def labels(rng, x, objective):
    if objective in ('tweedie', 'quantile'):
        base = gaps.labels_of(rng, x, 'gamma' if objective == 'tweedie' else 'huber', 1)
        return base * (rng.random(len(x)) < 0.6) if objective == 'tweedie' else base
    if objective in SEVERAL:
        y = gaps.labels_of(rng, x, 'softmax', CLASSES)
    else:
        y = gaps.labels_of(rng, x, objective, 1)
    classes = CLASSES if objective in SEVERAL else 2
    if objective in SEVERAL or objective == 'logistic' or objective.endswith('hinge'):
        y[:classes] = range(min(len(y), classes))  # all are there
    return y


def drawn(number):
    rng = np.random.default_rng(1000 + number)
    kinds = makers(rng)
    columns = list(kinds)[number % len(kinds)]
    choices = [name for name in (*CURVES, *SEVERAL, 'logistic', 'softmax')]
    objective = choices[int(rng.integers(len(choices)))]
    if columns == 'one-row' and objective not in ('squared', 'huber', 'poisson', 'gamma'):
        objective = 'squared'
    with np.errstate(invalid='ignore', divide='ignore'):
        x = kinds[columns](rng)
        if len(x) < 2 or x.shape[1] < 1:
            y = np.abs(rng.normal(size=len(x))) + 0.5
        else:
            y = np.nan_to_num(labels(rng, x, objective))
    if objective == 'gamma':
        y = np.maximum(y, 1e-3)
    if objective == 'logistic' and rng.random() < 0.3:
        columns, y = columns + '/separable', separable(x, y)
    settings = {'l2': float(10 ** rng.uniform(-8, -1)),
                'precondition': str(rng.choice(['none', 'none', 'diagonal', 'block', 'auto']))}
    if rng.random() < 0.25 and objective != 'ordinal':
        settings['intercept'] = False
    if rng.random() < 0.2:
        settings['standardise'] = True
    if objective == 'quantile':
        settings['quantile'] = {'tau': TAU, 'epsilon': EPSILON}
    return Drawn(columns, objective, x, y, weights_of(rng, len(y)), settings)


def weights_of(rng, rows):
    """In every third problem; some are 0, but for the first rows, which have all classes."""
    if rng.random() > 1 / 3 or rows < 20:
        return None
    weights = 10 ** rng.uniform(-3, 3, rows)
    weights[CLASSES:][rng.random(rows - CLASSES) < 0.2] = 0
    return weights


# ---- optima ----

class WeightedSoftmax(newton.Loss):
    def __init__(self, y, weights):
        super().__init__('softmax', y)
        self.share = (weights / weights.sum())[:, None]

    def value(self, m):
        top = m.max(axis=1)
        total = np.log(np.exp(m - top[:, None]).sum(axis=1)) + top
        return np.dot(self.share[:, 0], total - m[np.arange(self.rows), self.target])

    def derivative(self, m):
        d, p = super().derivative(m)
        return d * self.rows * self.share, p

    def times(self, p, change):
        return super().times(p, change) * self.rows * self.share

    def blocks(self, p):
        for a, b, weights in super().blocks(p):
            yield a, b, weights * self.rows * self.share[:, 0]


def prepared(problem, weights):
    """Columns as they are penalised; centred, where the intercept makes up for it."""
    x, share = problem.x, weights / weights.sum()
    mean = share @ x
    if problem.settings.get('intercept', True):
        x = x - mean
    if problem.settings.get('standardise'):
        deviation = np.sqrt(share @ (problem.x - mean) ** 2)
        varies = deviation > 1e-14 * np.abs(problem.x).max(axis=0)
        x = x / np.where(varies, deviation, 1)
    return x


def minimum(problem, x, loss, free=0):
    """The last `free` columns are not penalised."""
    intercept = problem.settings.get('intercept', True) and not free
    l1, l2, of_intercept = problem.settings.get('l1'), problem.settings['l2'], (
        0.0 if intercept else 1e15)
    of = newton.Barrier(x, loss, l1, l2, of_intercept) if l1 else (
        newton.Problem(x, loss, l2, of_intercept))
    if free:
        of.penalty[-1 - free:-1] = 0
    with np.errstate(all='ignore'), warnings.catch_warnings():
        warnings.simplefilter('ignore', scipy.linalg.LinAlgWarning)
        if l1:
            of.l1[of.shape[0] - 1 - free:] = 0
            return newton.sparse_minimum(of)
        least, lacking, *_ = newton.minimum(of, relative=1e-16)
    return least, lacking


def ordinal(problem, x, weights):
    """A row a threshold; each threshold has a column."""
    above = [(problem.y > k).astype(float) for k in range(CLASSES - 1)]
    at = np.kron(np.eye(CLASSES - 1), np.ones((len(x), 1)))
    rows = np.hstack([np.vstack([x] * (CLASSES - 1)), at])
    loss = gaps.Weighted(CURVES['logistic'], np.concatenate(above),
                         np.concatenate([weights] * (CLASSES - 1)))
    loss.share = loss.share * (CLASSES - 1)
    return minimum(problem, rows, loss, free=CLASSES - 1)


def optimum(problem):
    weights = problem.weights if problem.weights is not None else np.ones(len(problem.y))
    x = prepared(problem, weights)
    if problem.objective == 'softmax':
        return minimum(problem, x, WeightedSoftmax(problem.y, weights))
    if problem.objective == 'ordinal':
        return ordinal(problem, x, weights)
    if problem.objective == 'one_vs_rest':
        apart = [minimum(problem, x, gaps.Weighted(CURVES['logistic'],
                                                   (problem.y == k).astype(float), weights))
                 for k in range(CLASSES)]
        return tuple(map(sum, zip(*apart)))
    return minimum(problem, x, gaps.Weighted(CURVES[problem.objective], problem.y, weights))


# ---- runs ----

def trained(job, settings):
    finished = Process(COORDINATOR, 'run', job, '--json', '--fresh', '--quiet',
                       *words(settings)).wait(120)
    assert finished.status == 0, finished
    return finished.json


def told_of(folder, run):
    """Trials of a step, and the loss at the start."""
    with contextlib.closing(sqlite3.connect(folder / 'job.state/dml.db')) as store:
        def asked(question):
            return store.execute(f'SELECT {question} FROM steps WHERE run = ?', [run]).fetchone()[0]
        trials, first = asked('AVG(trials)'), asked('MAX(loss)')
    return trials or 0, first


def job_of(problem, folder):
    gaps.write_rows(folder / 'd.libsvm', problem.x, problem.y)
    settings = {'data': [folder / 'd.libsvm'], 'objective': problem.objective, **problem.settings}
    if problem.weights is not None:
        (folder / 'w').write_text(''.join(f'{float(w)!r}\n' for w in problem.weights))
        settings['weights'] = [folder / 'w']
    return write_job(folder, **settings)


def sparser(problem, number):
    """The same with an l1 below what makes all weights 0, and no directions."""
    rng = np.random.default_rng(2000 + number)
    x, y = problem.x - problem.x.mean(axis=0), problem.y - problem.y.mean()
    deviation = x.std(axis=0) if problem.settings.get('standardise') else 1
    most = (np.abs(x.T @ y) / np.where(deviation > 0, deviation, 1)).max() / len(y)
    problem.settings['l1'] = float(max(most, 1e-6) * 10 ** rng.uniform(-4, -0.5))
    if problem.settings['precondition'] == 'block':
        problem.settings['precondition'] = 'auto'
    return problem


def row_of(number, folder, settings, l1=False):
    problem = sparser(drawn(number), number) if l1 else drawn(number)
    job = job_of(problem, folder)
    ours = trained(job, CLOSE | ({} if l1 else {'directions': 20}) | settings)
    rounds, first = told_of(folder, ours['run'])
    plain = trained(job, CLOSE | ({'precondition': 'none'} if l1 else {'directions': 0}) | settings)
    least, lacking = optimum(problem)
    star = min(ours['loss'], plain['loss'], least)
    unit = max(star, FIRST_SHARE * first, ROUNDING)
    return {'name': problem.name, 'with': (ours['loss'] - star) / unit,
            'without': (plain['loss'] - star) / unit, 'newton': (least - star) / unit,
            'lacks': lacking / unit, 'steps': ours['steps'], 'plain_steps': plain['steps'],
            'rounds': rounds, 'reason': ours['reason']}


def is_wrong(row):
    return row['with'] > max(GAP, row['without'] + ROUNDING)


def line_of(number, row):
    return (f'{"!" if is_wrong(row) else " "}{number:4}{row["with"]:9.1e}{row["without"]:9.1e}'
            f'{row["steps"]:6}{row["plain_steps"]:6}{row["rounds"]:6.1f}{row["newton"]:9.1e}'
            f'{row["lacks"]:9.1e}  {row["reason"]:20} {row["name"]}')


# ---- problems without an optimum ----

def endless():
    rng = np.random.default_rng(7)
    x = rng.normal(size=(300, 3))
    y = (x[:, 0] > 0).astype(float)
    huge = x * (1e300, 1e-300, 1)
    yield 'separable, l2 0', x, y, {'l2': 0.0}
    yield 'separable, l2 0, softmax', x, y + (x[:, 1] > 0), {'objective': 'softmax', 'l2': 0.0}
    yield 'values of 1e300', huge, y, {'l2': 1e-3}
    yield 'values of 1e300, squared', huge, y, {'objective': 'squared', 'l2': 1e-3}
    yield 'values of 1e300, poisson', huge, y, {'objective': 'poisson', 'l2': 1e-3}
    for objective in ('logistic', 'squared', 'poisson', 'squared_hinge'):
        large = {'objective': objective, 'l2': 1e-3}
        yield f'values of 1e100, {objective}', x * (1e100, 1e-100, 1), y, large
    yield 'labels of 1e149, poisson', x, y * 1e149, {'objective': 'poisson'}
    yield 'labels of 1e100, squared', x, y * 1e100, {'objective': 'squared'}
    yield 'labels of 1e200, squared', x, y * 1e200, {'objective': 'squared'}
    yield 'labels of 1e300, poisson', x, y * 1e300, {'objective': 'poisson'}
    yield 'labels of 1e300, gamma', x, y * 1e300 + 1, {'objective': 'gamma'}
    yield 'labels of 1e-300, gamma', x, y + 1e-300, {'objective': 'gamma'}
    yield 'values of 1e5, poisson', x * 1e5, y, {'objective': 'poisson', 'l2': 1e-8}
    yield 'labels of 1e149, gamma', x, y * 1e149 + 1, {'objective': 'gamma'}
    yield 'all rows equal', np.ones((100, 3)), y[:100], {'l2': 1e-3}
    yield 'nothing but zeros', x * 0, y, {'l2': 1e-3}
    yield 'one class predicted', x, (y + rng.random(300) > 0.01).astype(float), {'l2': 0.0}


def end_of(folder, x, y, settings):
    gaps.write_rows(folder / 'd.libsvm', x, y)
    job = write_job(folder, data=[folder / 'd.libsvm'], **settings)
    finished = Process(COORDINATOR, 'run', job, '--json', '--fresh', '--quiet').wait(120)
    if finished.status:
        told = (finished.stderr.strip().splitlines() or ['?'])[-1]
        return finished.status in (65, 78), told[-70:]
    return True, '{reason}, F {loss:.3g}, {steps} steps'.format(**finished.json)


def show_endless():
    wrong = 0
    for (name, x, y, settings), directions, precondition in itertools.product(
            endless(), (1, 20, 100), ('none', 'block')):
        more = {'directions': directions, 'precondition': precondition, 'max_seconds': 20}
        with tempfile.TemporaryDirectory(prefix='dml-directions-') as folder:
            ended, told = end_of(pathlib.Path(folder), x, y, settings | more)
        wrong += not ended
        mark = ' ' if ended else '!'
        print(f'{mark} {name:28}{directions:4} {precondition:6} {told}', flush=True)
    return wrong


# ---- the program ----

def numbers(given):
    for text in given:
        first, _, last = text.partition('-')
        yield from range(int(first), int(last or first) + 1)


def main():
    heed_interrupts()
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('numbers', nargs='*', metavar='NUMBER')
    parser.add_argument('--fallen', action='store_true')
    parser.add_argument('--l1', action='store_true')
    parser.add_argument('--set', action='append', default=[], metavar='KEY=VALUE')
    options = parser.parse_args()
    settings = dict(word.split('=', 1) for word in options.set)
    rows = []
    for number in list(numbers(options.numbers)) or range(PROBLEMS):
        with tempfile.TemporaryDirectory(prefix='dml-directions-') as folder:
            row = row_of(number, pathlib.Path(folder), settings, options.l1)
        rows.append(row)
        if is_wrong(row) or not options.fallen:
            print(line_of(number, row), flush=True)
    wrong = sum(map(is_wrong, rows))
    print(f'{wrong} of {len(rows)} fall short; {sum(row["steps"] for row in rows)} steps, '
          f'{sum(row["plain_steps"] for row in rows)} without directions')
    return int(wrong + (0 if options.numbers or options.l1 else show_endless()) > 0)


if __name__ == '__main__':
    sys.exit(main())
