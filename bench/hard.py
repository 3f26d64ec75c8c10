"""Problems on which it is hard to say how far a run is from its optimum, for optima.py --hard; and columns
and losses for directions.py. Each is made from a fixed seed, or is one of the data sets."""

import dataclasses
import pathlib
import sys
from typing import Callable

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'tests/integration'))
import newton  # noqa: E402
from harness import lines_of, write_job  # noqa: E402
from problems import Missing  # noqa: E402

LOSS_LEAST = 1e-3
DENSE_MOST = 1200      # parameters of problems that newton.py takes a Hessian of
SEVERAL = ('softmax', 'ordinal')
CLASSES = 4


@dataclasses.dataclass(frozen=True)
class Problem:
    name: str
    make: Callable                  # (random numbers) -> rows × columns, labels
    objective: str = 'logistic'
    settings: dict = dataclasses.field(default_factory=dict)
    weighted: bool = False
    source: str = ''                # a file of the data sets, in place of `make`
    gap: float = 1e-6               # relative, (F - F*) / F*

    def prepared(self, data, folder):
        """The job, and what finds F* and what that lacks, relatively; None if a long run is to find it."""
        return of_data_sets(self, data, folder) if self.source else generated(self, folder)


# ---- columns ----

def normal(rows, columns):
    return lambda rng: rng.normal(size=(rows, columns))


def twins(rows, columns, distance):
    """Every column beside one that differs by so little."""
    def make(rng):
        x = rng.normal(size=(rows, columns))
        return np.hstack([x, x + distance * rng.normal(size=x.shape)])
    return make


def sums(rows, columns, distance):
    """Besides, sums of random halves of the columns."""
    def make(rng):
        x = rng.normal(size=(rows, columns))
        of = rng.random((columns, columns)) < 0.5
        return np.hstack([x, x @ of + distance * rng.normal(size=x.shape)])
    return make


def duplicates(rows, columns):
    """Every column twice, and some more often."""
    def make(rng):
        x = rng.normal(size=(rows, columns))
        return np.hstack([x, x, x[:, rng.integers(0, columns, columns)]])
    return make


def curves(rows, columns, factors, noise):
    """Like spectra: points on sums of a few smooth curves."""
    def make(rng):
        at = np.linspace(0, 1, columns)
        centres = np.linspace(0, 1, factors)[:, None]
        shapes = np.exp(-((at - centres) * factors / 1.5) ** 2)
        return rng.normal(size=(rows, factors)) @ shapes + noise * rng.normal(size=(rows, columns))
    return make


def walks(rows, columns):
    """Each column is the one before it, and a little more."""
    return lambda rng: np.cumsum(rng.normal(size=(rows, columns)), axis=1) / columns ** 0.5


def powers(rows, degree, first=0.0):
    def make(rng):
        x = first + rng.random(rows)
        return np.stack([x ** k for k in range(1, degree + 1)], axis=1)
    return make


def products(rows, columns):
    """Columns, their squares and products, none of them centred."""
    def make(rng):
        x = 1 + rng.random((rows, columns))
        pairs = [x[:, i] * x[:, j] for i in range(columns) for j in range(i, columns)]
        return np.hstack([x, np.stack(pairs, axis=1)])
    return make


def scales(rows, *factors):
    return lambda rng: rng.normal(size=(rows, len(factors))) * factors + 0.5 * np.array(factors)


def codes(rows, *sizes, power=1.0, levels=1):
    """One-hot groups; of several levels, beside each group its coarser ones, a tenth of the size:
    their columns are sums of columns."""
    def make(rng):
        groups = []
        for size in sizes:
            share = 1 / np.arange(1, size + 1) ** power
            chosen = rng.choice(size, size=rows, p=share / share.sum())
            for level in range(levels):
                groups.append(one_hot(chosen // 10 ** level, 1 + (size - 1) // 10 ** level))
        return np.hstack(groups)
    return make


def one_hot(chosen, size):
    group = np.zeros((len(chosen), size))
    group[np.arange(len(chosen)), chosen] = 1
    return group


def words_of_texts(rows, vocabulary, length, together=0.0):
    """Counts; `together` is the share of words that come only with the one before them."""
    def make(rng):
        share = 1 / np.arange(1, vocabulary + 1) ** 1.05
        drawn = rng.choice(vocabulary, size=(rows, length), p=share / share.sum())
        x = np.zeros((rows, vocabulary))
        np.add.at(x, (np.arange(rows)[:, None], drawn), 1)
        follows = np.flatnonzero(rng.random(vocabulary - 1) < together) + 1
        x[:, follows] = x[:, follows - 1] + (rng.random((rows, len(follows))) < 0.01)
        return x
    return make


def beside(*makers):
    return lambda rng: np.hstack([make(rng) for make in makers])


# ---- labels ----

def labels_of(rng, x, objective, classes):
    """Of a noisy linear rule on scaled columns, which also follows what little tells them apart."""
    deviation = x.std(axis=0)
    scaled = (x - x.mean(axis=0)) / np.where(deviation > 0, deviation, 1)
    rule = scaled @ rng.normal(size=(x.shape[1], classes))
    if x.shape[0] > x.shape[1] and np.linalg.cond(scaled) > 100:
        left, sizes, _ = np.linalg.svd(scaled, full_matrices=False)
        some = sizes > 1e-9 * sizes[0]
        rule += left[:, some] @ rng.normal(size=(some.sum(), classes)) * len(x) ** 0.5
    rule = (rule - rule.mean(axis=0)) / rule.std(axis=0)
    if objective in ('squared', 'huber'):
        return rule[:, 0] + 0.5 * rng.normal(size=len(x))
    if objective == 'poisson':
        return rng.poisson(np.exp(0.5 * rule[:, 0] + 0.5)).astype(float)
    if objective == 'gamma':
        return rng.gamma(2, np.exp(0.5 * rule[:, 0]) / 2)
    if objective == 'tweedie':
        return rng.gamma(2, np.exp(0.5 * rule[:, 0]) / 2) * (rng.random(len(x)) < 0.6)
    if objective in SEVERAL:
        return np.argmax(2 * rule + rng.gumbel(size=rule.shape), axis=1).astype(float)
    return (2 * rule[:, 0] + rng.logistic(size=len(x)) > 0).astype(float)


# ---- losses that newton.py lacks ----

def deviance(m, y):
    """Half of it for counts, and its derivatives."""
    safe = np.where(y > 0, y, 1)
    mean = np.exp(m)
    return mean - y + np.where(y > 0, y * (np.log(safe) - m), 0), mean - y, mean


def gamma_deviance(m, y):
    ratio = y * np.exp(-m)
    return ratio - 1 - np.log(y) + m, 1 - ratio, ratio


HUBER = {'huber': {'delta': 1.35}}  # settings of a job with the loss below


def huber(m, y, delta=1.35):
    r = m - y
    inside = np.abs(r) < delta
    return (np.where(inside, r * r / 2, delta * (np.abs(r) - delta / 2)), np.clip(r, -delta, delta),
            inside.astype(float))


def squared_hinge(m, y):
    sign = 2 * y - 1
    short = np.maximum(0, 1 - sign * m)
    return short * short, -2 * sign * short, 2.0 * (short > 0)


def smooth_hinge(m, y):
    sign = 2 * y - 1
    short = 1 - sign * m
    loss = np.where(short <= 0, 0, np.where(short < 1, short * short / 2, short - 0.5))
    return loss, -sign * np.clip(short, 0, 1), ((short > 0) & (short < 1)).astype(float)


def tweedie(m, y, power=1.5):
    """Half of the deviance, less what y alone makes of it."""
    a, b = np.exp((1 - power) * m), np.exp((2 - power) * m)
    zero = np.where(y > 0, y, 1) ** (2 - power) / ((1 - power) * (2 - power)) * (y > 0)
    return (zero - y * a / (1 - power) + b / (2 - power), b - y * a,
            (2 - power) * b - (1 - power) * y * a)


def log_loss(m, y):
    sign = 2 * y - 1
    p = 1 / (1 + np.exp(np.minimum(sign * m, 700)))
    return np.logaddexp(0, -sign * m), -sign * p, p * (1 - p)


CURVES = {'poisson': deviance, 'gamma': gamma_deviance, 'huber': huber,
          'tweedie': tweedie, 'squared_hinge': squared_hinge, 'smooth_hinge': smooth_hinge, 'logistic': log_loss,
          'squared': lambda m, y: ((m - y) ** 2 / 2, m - y, np.ones(len(y)))}


class Weighted(newton.Loss):
    """The weighted mean of a loss of one margin."""

    def __init__(self, curve, labels, weights):
        self.curve, self.labels, self.outputs = curve, labels, 1
        self.rows, self.share = 1, weights / weights.sum()

    def value(self, m):
        with np.errstate(over='ignore', invalid='ignore'):
            return np.dot(self.share, self.curve(m[:, 0], self.labels)[0])

    def derivative(self, m):
        _, first, second = self.curve(m[:, 0], self.labels)
        return (self.share * first)[:, None], (self.share * second)[:, None]


# ---- jobs and optima ----

def write_rows(path, x, y):
    with path.open('w') as file:
        for label, row in zip(y, x):
            cells = ' '.join(f'{j + 1}:{float(row[j])!r}' for j in np.flatnonzero(row))
            file.write(f'{float(label)!r} {cells}\n')


def penalty_of(problem, weights):
    l2 = problem.settings.get('l2', 'auto')
    return 1 / weights.sum() if l2 == 'auto' else l2


def optimum(problem, x, y, weights):
    """F*, and what it lacks. Columns are centred, which changes the intercept alone."""
    loss = (newton.Loss('softmax', y) if problem.objective == 'softmax'
            else Weighted(CURVES[problem.objective], y, weights))
    intercept = problem.settings.get('intercept', True)
    if problem.settings.get('standardise'):
        deviation = x.std(axis=0)
        x = (x - x.mean(axis=0)) / np.where(deviation > 0, deviation, 1)
    elif intercept:
        x = x - x.mean(axis=0)
    # A penalty that leaves nothing of the intercept stands for a model without.
    l1, of_intercept = problem.settings.get('l1'), 0.0 if intercept else 1e15
    if l1:
        of = newton.Barrier(x, loss, l1, problem.settings.get('l2', 0.0), of_intercept)
        least, lacking = newton.sparse_minimum(of)
    else:
        of = newton.Problem(x, loss, penalty_of(problem, weights), of_intercept)
        least, lacking, *_ = newton.minimum(of)
    return least, lacking / max(least, LOSS_LEAST)


def generated(problem, folder):
    rng = np.random.default_rng(abs(hash_of(problem.name)))
    x = problem.make(rng)
    outputs = CLASSES if problem.objective in SEVERAL else 1
    y = labels_of(rng, x, problem.objective, outputs)
    weights = 10 ** rng.uniform(-2, 2, len(y)) if problem.weighted else np.ones(len(y))
    write_rows(folder / 'd.libsvm', x, y)
    settings = {'data': [folder / 'd.libsvm'], 'objective': problem.objective, **problem.settings}
    if problem.weighted:
        (folder / 'w').write_text(''.join(f'{float(w)!r}\n' for w in weights))
        settings['weights'] = [folder / 'w']
    job = write_job(folder, **settings, **(HUBER if problem.objective == 'huber' else {}))
    if problem.objective == 'ordinal' or (x.shape[1] + 1) * outputs > DENSE_MOST:
        return job, None
    return job, lambda: optimum(problem, x, y, weights)


def hash_of(name):
    return int.from_bytes(name.encode()[:64], 'little') % 2 ** 31


def of_data_sets(problem, data, folder):
    source = data / problem.source
    if not source.exists():
        raise Missing(f'{problem.source} is not in {data}')
    path = folder / source.name.removesuffix('.gz')
    path.write_text('\n'.join(lines_of(source)) + '\n')
    return write_job(folder, data=[path], objective=problem.objective, **problem.settings), None


def problems():
    def of(name, make, objective='logistic', weighted=False, **settings):
        told = [f'{key} {value:g}' if not isinstance(value, (bool, str)) else
                f'{"" if value is True else "no " if value is False else value + " "}{key}'
                for key, value in settings.items()]
        return Problem(', '.join([f'{name}, {objective}', *(['weights'] if weighted else []), *told]),
                       make, objective, settings, weighted)

    def data_set(source, objective='logistic', **settings):
        told = [f'{key} {value:g}' for key, value in settings.items() if isinstance(value, float)]
        return Problem(', '.join([source.removesuffix('.gz'), *told]), None, objective, settings,
                       source=source)

    plain, wide = normal(2000, 20), normal(150, 3000)
    hot = codes(4000, 60, 40, 12, 5)
    return [
        # ordinary ones
        of('normal', plain),
        of('normal', plain, l2=0),
        of('normal', plain, intercept=False, l2=1e-6),
        of('normal', plain, weighted=True, l2=1e-8),
        of('normal', plain, 'squared', l2=0),
        of('normal', plain, 'softmax'),
        of('normal', plain, 'poisson', l2=1e-6),
        of('normal', plain, 'gamma', l2=1e-6),
        of('normal', plain, 'squared_hinge'),
        of('normal', plain, 'smooth_hinge', l2=1e-4),
        of('normal', plain, 'huber', l2=1e-6),
        of('one-hot', hot),
        of('one-hot', hot, 'squared', l2=1e-8),
        of('one-hot', hot, 'poisson', weighted=True, l2=1e-8),
        of('one-hot', hot, l1=1e-4),
        of('scales 1e9 to 1e-6', scales(2000, 1e9, 1e3, 1, 1e-3, 1e-6), l2=0),
        of('scales 1e9 to 1e-6', scales(2000, 1e9, 1e3, 1, 1e-3, 1e-6), 'squared', standardise=True),
        of('scales 1e9 to 1e-6', scales(2000, 1e9, 1e3, 1, 1e-3, 1e-6), 'gamma', l2=0),
        # nearly collinear, with a full block
        of('twins 1e-3', twins(2000, 10, 1e-3), l2=0),
        of('twins 1e-4', twins(2000, 10, 1e-4), 'squared', l2=1e-8),
        of('twins 1e-5', twins(2000, 10, 1e-5), l2=1e-8),
        of('twins 1e-5', twins(2000, 10, 1e-5), 'softmax', l2=1e-8),
        of('twins 1e-6', twins(2000, 10, 1e-6), 'squared', l2=0),
        of('twins 1e-6', twins(2000, 10, 1e-6), 'poisson', l2=0),
        of('twins 1e-4', twins(2000, 10, 1e-4), 'huber', l2=0),
        of('twins 1e-4', twins(2000, 10, 1e-4), 'smooth_hinge', l2=0),
        of('twins 1e-4', twins(2000, 10, 1e-4), l1=1e-4),
        of('twins 1e-2', twins(2000, 10, 1e-2), 'squared', l1=1e-5),
        of('sums 1e-4', sums(2000, 20, 1e-4), 'poisson', l2=1e-8),
        of('sums 1e-3', sums(2000, 20, 1e-3), 'squared', standardise=True, l2=0),
        of('powers to 9', powers(2000, 9), 'squared', l2=0),
        of('powers to 9', powers(2000, 9), l2=1e-8),
        of('powers to 6 from 1', powers(2000, 6, 1.0), 'gamma', l2=0),
        of('products', products(3000, 12), l2=1e-8),
        of('curves', curves(2000, 200, 10, 1e-3), l2=1e-8),
        of('curves', curves(2000, 200, 10, 1e-3), 'squared', l2=0),
        of('walks', walks(2000, 300), 'squared', l2=1e-6),
        # the same without a block, as larger models are
        of('twins 1e-3', twins(2000, 10, 1e-3), l2=0, precondition='none'),
        of('twins 1e-2', twins(2000, 10, 1e-2), 'squared', l2=1e-6, precondition='none'),
        of('sums 1e-2', sums(2000, 20, 1e-2), 'poisson', l2=1e-8, precondition='none'),
        of('powers to 9', powers(2000, 9), l2=1e-8, precondition='none'),
        of('curves', curves(2000, 200, 10, 1e-3), l2=1e-8, precondition='none'),
        of('curves', curves(2000, 200, 10, 1e-3), 'squared', l2=1e-6, precondition='none'),
        of('walks', walks(2000, 300), 'squared', l2=1e-6, precondition='none'),
        of('products', products(3000, 12), l2=1e-6, precondition='diagonal'),
        of('scales 1e9 to 1e-6', scales(2000, 1e9, 1e3, 1, 1e-3, 1e-6), l2=0,
           precondition='diagonal'),
        # many columns
        of('wide', wide, l2=1e-4),
        of('wide', wide, 'squared', l2=1e-4),
        of('wide', wide, 'squared_hinge', l2=1e-6),
        of('wide curves', curves(300, 1500, 30, 1e-2), l2=1e-6),
        of('wide curves', curves(300, 1500, 30, 1e-2), 'squared', l2=1e-6),
        of('wide walks', walks(1000, 1200), 'squared', l2=1e-4),
        of('wide walks', walks(1000, 1200), l2=1e-6),
        of('wide products', products(2000, 46), l2=1e-6),
        of('wide twins 1e-3', twins(1000, 600, 1e-3), 'squared', l2=1e-8),
        of('wide twins 1e-4', twins(1000, 600, 1e-4), 'huber', l2=1e-8),
        of('levels of codes', codes(6000, 1500, 300, levels=3), l2=1e-6),
        of('levels of codes', codes(6000, 1500, 300, levels=3), 'poisson', l2=1e-8),
        of('levels of codes, a stamp', beside(codes(6000, 1500, 300, levels=2), scales(6000, 1e9)),
           l2=1e-6),
        of('words', words_of_texts(3000, 4000, 40), l2=1e-6),
        of('words that come together', words_of_texts(3000, 2000, 40, 0.5), l2=1e-6),
        of('words that come together', words_of_texts(3000, 2000, 40, 0.5), 'squared', l2=1e-5),
        of('words that come together', words_of_texts(3000, 2000, 40, 0.5), l1=1e-4),
        # columns that others make up, and more columns than rows
        of('duplicates', duplicates(2000, 15), 'softmax', l2=1e-8),
        of('duplicates', duplicates(2000, 15), 'softmax', l2=1e-6, precondition='none'),
        of('duplicates', duplicates(2000, 15), 'poisson', l2=1e-8, precondition='none'),
        of('duplicates', duplicates(2000, 15), 'ordinal', l2=1e-6, precondition='none'),
        of('duplicates', duplicates(2000, 15), 'huber', l1=1e-4),
        of('sums', sums(2000, 20, 0), 'squared', l2=1e-8),
        of('sums', sums(2000, 20, 0), l2=1e-6, precondition='none'),
        of('twins 1e-3', twins(2000, 10, 1e-3), 'ordinal', l2=1e-6),
        of('twins 1e-2', twins(2000, 10, 1e-2), 'gamma', l2=1e-6, precondition='none'),
        of('twins 1e-5', twins(2000, 10, 1e-5), l1=1e-3),
        of('twins 1e-4', twins(2000, 10, 1e-4), 'squared', l1=1e-4),
        of('twins 1e-3', twins(2000, 10, 1e-3), 'poisson', l1=1e-3, precondition='none'),
        of('walks', walks(2000, 100), 'tweedie', l2=1e-6),
        of('curves', curves(2000, 100, 10, 1e-2), 'tweedie', l2=1e-6, precondition='none'),
        of('curves', curves(2000, 100, 10, 1e-2), l1=1e-4),
        of('wide, no mean', normal(100, 1000), 'squared', intercept=False, l2=1e-6),
        of('wide, tiny penalty', normal(100, 1000), l2=1e-9),
        of('wide, tiny penalty', normal(100, 1000), 'squared', l2=1e-9),
        of('wide classes', normal(200, 1000), 'softmax', l2=1e-5),
        of('wide counts', normal(100, 1000), 'tweedie', l2=1e-5),
        of('wide classes', normal(200, 1000), 'ordinal', l2=1e-5),
        of('wide twins 1e-3', twins(150, 300, 1e-3), l1=1e-3),
        # data sets
        data_set('heart_scale', l2=1e-6),
        data_set('a9a.gz', l2=1e-6),
        data_set('a9a.gz', l1=1e-4),
        data_set('ijcnn1.gz', l2=0.0),
        data_set('ijcnn1.gz', 'smooth_hinge', l2=1e-6),
        data_set('agaricus.txt.train.gz', l2=1e-6),
        data_set('farm_ads.libsvm.gz', l2=1e-4),
        data_set('news20.libsvm.gz', 'softmax', l2=1e-4),
        data_set('wdbc.csv', l2=1e-8, csv={'label': 'diag', 'skip': ['id']}),
        data_set('cal_housing.csv.gz', 'squared', l2=0.0, csv={'header': 'yes'}),
        data_set('bike.train.csv.gz', 'squared', l2=1e-8, csv={'label': 'y'}),
        data_set('adult.data.gz'),
        data_set('adult.data.gz', l2=1e-8),
        data_set('credit.csv.gz', l2=0.0, csv={'label': 'SeriousDlqin2yrs'}),
        data_set('avazu.train.csv.gz', l2=1e-5, csv={'label': 'click', 'skip': ['id']}),
    ]
