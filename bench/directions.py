#!/usr/bin/env python3
"""Common directions on random problems, beside bounds of the optimum that were found otherwise.

    bench/directions.py [--l1] [--set KEY=VALUE]... [--fallen] [NUMBER...]

Each problem is made from its number: columns, labels, weights, loss and settings are drawn. It is
trained as closely as double precision allows, with and without common directions, and F of either
run is compared with a lower bound of F* (certificate.py, which shares no code with the programs).
All numbers without any; A-B stands for all from A to B. --fallen tells only what falls short. --l1
gives each problem an l1: with and without stand for steps over working sets, and of masked pairs
alone. The columns:

    with, without   F − the lower bound, relatively, at the end of the run with and without directions
    bounds          what the upper bound is above the lower, relatively: where this is large, it is the
                    bounds that say little, and not dml that is far off
    model           how F of the model that was written differs from F that the run told, relatively
    steps           of either run
    rounds          trials in the span, a step
    end             the reasons of both

A '!' stands before a run with directions, or over working sets, that is more than 1e-9 above the
upper bound; with l2 alone unless it is no larger than without. A '?' stands where the lower bound
does not rule that out, where F is below it, or the model has another F. The exit status is 1 then.
Problems that have no optimum come last: they must end with a reason. It needs numpy, scipy and
scikit-learn. Run it in the build folder, like the tests.
"""

import argparse
import contextlib
import dataclasses
import itertools
import pathlib
import sqlite3
import sys
import tempfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'tests/integration'))
import certificate  # noqa: E402
import hard  # noqa: E402
import losses  # noqa: E402
import newton  # noqa: E402
from harness import (COORDINATOR, Process, heed_interrupts, read_safetensors, words,  # noqa: E402
                     write_job)

PROBLEMS = 150
GAP = 1e-9
ROUNDING = 1e-13       # relative differences of F that no program can tell
LEAST = 1e-15          # a difference of F that none can tell, labels being about 1
FIRST_SHARE = 1e-6     # of F at the start: a smaller F* is measured by this
CLOSE = {'gradient_tolerance': 1e-13, 'loss_tolerance': 1e-15, 'gap_tolerance': 1e-14,
         'max_steps': 3000, 'max_seconds': 60, 'history': 30}
TAU, EPSILON = 0.3, 0.1
CURVES = dict(hard.CURVES, tweedie=losses.tweedie(1.5), quantile=losses.quantile(TAU, EPSILON))
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
        'dense': hard.normal(rows, columns), 'sparse': sparse(rows, 10 * columns, 0.03),
        'walks': hard.walks(rows, columns), 'twins': hard.twins(rows, columns, 1e-3),
        'duplicated': duplicated(rows, columns), 'scales': badly_scaled(rows, columns),
        'constant': constant(rows, columns + 3), 'wide': hard.normal(int(wide / 3), wide),
        'wide-sparse': sparse(int(wide / 2), 3 * wide, 0.02),
        'curves': hard.curves(rows, 60, 8, 1e-2),
        'few-rows': hard.normal(few, columns), 'one-column': hard.normal(rows, 1),
        'one-row': hard.normal(1, columns), 'codes': hard.codes(rows, 40, 20, 7),
        'words': hard.words_of_texts(rows, 500, 20), 'products': hard.products(rows, 6),
    }


def separable(x, y):
    """The rule that the labels follow, without noise."""
    deviation = x.std(axis=0)
    rule = ((x - x.mean(axis=0)) / np.where(deviation > 0, deviation, 1)).sum(axis=1)
    return (rule > np.median(rule)).astype(float) if len(np.unique(rule)) > 1 else y


def labels(rng, x, objective):
    if objective in ('tweedie', 'quantile'):
        base = hard.labels_of(rng, x, 'gamma' if objective == 'tweedie' else 'huber', 1)
        return base * (rng.random(len(x)) < 0.6) if objective == 'tweedie' else base
    if objective in SEVERAL:
        y = hard.labels_of(rng, x, 'softmax', CLASSES)
    else:
        y = hard.labels_of(rng, x, objective, 1)
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
    if objective == 'huber':
        settings |= hard.HUBER
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

    def blocks(self, p):
        for a, b, weights in super().blocks(p):
            yield a, b, weights * self.rows * self.share[:, 0]


def scaling_of(problem, weights):
    """What columns are centred by, where the intercept makes up for it, and divided by, as F has them."""
    x, share = certificate.LONG(problem.x), weights / weights.sum()
    mean, deviation = share @ x, np.ones(x.shape[1])
    if problem.settings.get('standardise'):
        deviation = np.sqrt(share @ (x - mean) ** 2)
        varies = deviation > 1e-14 * np.abs(x).max(axis=0)
        deviation = np.where(varies, deviation, 1)
    return mean if problem.settings.get('intercept', True) else 0 * mean, deviation


def parts_of(problem, model):
    """The problems that F is the sum of, each with weights and intercepts to start from."""
    weights = certificate.LONG(np.ones(len(problem.y)) if problem.weights is None
                               else problem.weights)
    mean, deviation = scaling_of(problem, weights)
    x, (w, b) = (problem.x - mean) / deviation, model
    b, w = b + mean @ w, w * deviation[:, None]
    free = np.ones((len(x), len(b)))
    penalties = problem.settings.get('l1', 0.0), problem.settings['l2']

    def one(loss, w=w, b=b, x=x, free=free):
        return certificate.Problem(x, loss, *penalties, free), w, b

    if problem.objective == 'softmax':
        yield one(WeightedSoftmax(problem.y, weights))
    elif problem.objective == 'one_vs_rest':
        for k in range(CLASSES):
            of_class = hard.Weighted(CURVES['logistic'], (problem.y == k).astype(float), weights)
            yield one(of_class, w[:, [k]], b[:, [k]])
    elif problem.objective == 'ordinal':
        thresholds = CLASSES - 1     # a row a threshold; each threshold has an intercept
        above = [(problem.y > k).astype(float) for k in range(thresholds)]
        loss = hard.Weighted(CURVES['logistic'], np.concatenate(above), np.tile(weights, thresholds))
        loss.share = loss.share * thresholds
        yield one(loss, w, b.reshape(-1, 1), np.tile(x, (thresholds, 1)),
                  np.kron(np.eye(thresholds), np.ones((len(x), 1))))
    else:
        yield one(hard.Weighted(CURVES[problem.objective], problem.y, weights))


def model_of(problem, folder):
    """Features × outputs, and the intercepts in one row, or none."""
    arrays = read_safetensors((folder / 'job.state/models/current').resolve() / 'model.safetensors')
    (outputs, features), weight = arrays['weight']
    w = np.zeros((problem.x.shape[1], outputs), certificate.LONG)
    w[np.array(arrays['feature_id'][1], int) - 1] = np.reshape(weight, (outputs, features)).T
    intercept = problem.settings.get('intercept', True)
    return w, certificate.LONG([arrays['bias'][1]] if intercept else np.zeros((0, outputs)))


def optimum(problem, model):
    """The bounds of F*, from a model on, and the model's F. It matters for the time alone where the
    search begins: the bounds hold by themselves."""
    parts = list(parts_of(problem, model))
    with np.errstate(all='ignore'):
        of_model = sum(part.value(w, part.margins(w, b)) for part, w, b in parts)
    found = [certificate.bounds_of(*part) for part in parts]
    return certificate.Bounds(sum(bounds.above for bounds in found),
                              sum(bounds.gap for bounds in found)), of_model


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
    hard.write_rows(folder / 'd.libsvm', problem.x, problem.y)
    settings = {'data': [folder / 'd.libsvm'], 'objective': problem.objective, **problem.settings}
    if problem.weights is not None:
        (folder / 'w').write_text(''.join(f'{float(w)!r}\n' for w in problem.weights))
        settings['weights'] = [folder / 'w']
    return write_job(folder, **settings)


def sparser(problem, number):
    """The same with an l1 below what makes all weights 0, over working sets."""
    rng = np.random.default_rng(2000 + number)
    x, y = problem.x - problem.x.mean(axis=0), problem.y - problem.y.mean()
    deviation = x.std(axis=0) if problem.settings.get('standardise') else 1
    most = (np.abs(x.T @ y) / np.where(deviation > 0, deviation, 1)).max() / len(y)
    problem.settings['l1'] = float(max(most, 1e-6) * 10 ** rng.uniform(-4, -0.5))
    if problem.settings['precondition'] in ('block', 'none'):  # a block is not for l1
        problem.settings['precondition'] = 'auto'
    return problem


def row_of(number, folder, settings, l1=False):
    problem = sparser(drawn(number), number) if l1 else drawn(number)
    job = job_of(problem, folder)
    ours = trained(job, CLOSE | ({} if l1 else {'directions': 20}) | settings)
    (rounds, first), model = told_of(folder, ours['run']), model_of(problem, folder)
    plain = trained(job, CLOSE | ({'precondition': 'none'} if l1 else {'directions': 0}) | settings)
    bounds, of_model = optimum(problem, model)
    unit = max(float(bounds.above), FIRST_SHARE * first, ROUNDING)

    def above(f, other):
        return float(f - other) / unit if abs(f - other) > LEAST else 0.0

    gap = float(bounds.gap) / unit
    return {'name': problem.name, 'with': above(ours['loss'], bounds.above) + gap,
            'without': above(plain['loss'], bounds.above) + gap, 'bounds': gap,
            'model': above(of_model, ours['loss']), 'rounds': rounds, 'steps': ours['steps'],
            'plain_steps': plain['steps'], 'reasons': f'{ours["reason"]} / {plain["reason"]}',
            'allowed': GAP if l1 else max(GAP, above(plain['loss'], bounds.above) + ROUNDING)}


def is_short(row):
    return row['with'] - row['bounds'] > row['allowed']


def is_unknown(row):
    differs = max(-row['with'], row['bounds'], abs(row['model']))
    return not differs <= GAP       # not a number, too


def is_wrong(row):
    return is_short(row) or is_unknown(row)


def line_of(number, row):
    mark = '!' if is_short(row) else '?' if is_unknown(row) else ' '
    return (f'{mark}{number:4}{row["with"]:9.1e}{row["without"]:9.1e}{row["bounds"]:9.1e}'
            f'{row["model"]:9.1e}{row["steps"]:6}{row["plain_steps"]:6}{row["rounds"]:6.1f}  '
            f'{row["reasons"]:40} {row["name"]}')


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
    hard.write_rows(folder / 'd.libsvm', x, y)
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
