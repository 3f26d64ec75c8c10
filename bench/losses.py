#!/usr/bin/env python3
"""Each loss beside an independent implementation, on raw columns.

    bench/losses.py [ROW...]

It needs numpy, scipy and scikit-learn. Each row trains twice: with the default limits, which tells
the evaluations and why the run ended, and as closely as double precision allows, which is compared
with the minimum that the peer finds:

    F            (ours − theirs) / theirs, of F or of what the peer minimises
    weights      the largest difference of a weight times its column's deviation, relative to the
                 largest of these; the intercept is left out

A peer that fits only in columns of one scale gets those, and its penalty is transformed.

The rows "quantile tables" and "huber tables" are small tables (30 to 1,000 rows, 2 to 20 columns) by the
defaults without a penalty: 57 of a quantile, compared with the linear program without smoothing, and 48 of
huber with large residuals, compared with Newton's method. Run it in the build folder, like the tests.
"""

import csv
import gzip
import io
import json
import pathlib
import sqlite3
import struct
import sys
import tempfile
import warnings

import numpy as np
import scipy.optimize
import scipy.sparse
import scipy.special
from sklearn import linear_model, multiclass, svm

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'tests/integration'))
from harness import COORDINATOR, SHARED, heed_interrupts, run, write_job  # noqa: E402

CLOSE = {'gradient_tolerance': 0, 'loss_tolerance': 0, 'max_steps': 400, 'max_seconds': 60}


# ---- data ----

def housing():
    """20,640 rows of raw columns; the label is a price in 100,000."""
    with gzip.open(SHARED / 'cal_housing.csv.gz', 'rt') as file:
        table = np.array([[float(v) for v in row] for row in list(csv.reader(file))[1:]])
    return table[:, :-1], table[:, -1] / 1e5


def table_of(draw):
    """20,000 rows of columns in various units, and labels drawn for a mean that depends on them."""
    source = np.random.default_rng(5)
    x = np.column_stack([source.integers(18, 90, 20000), source.lognormal(10, 0.8, 20000),
                         source.integers(0, 2, 20000), source.normal(0, 1e-3, 20000),
                         source.uniform(0, 1, (20000, 3))])
    link = (x[:, 0] - 50) / 40 - np.log(x[:, 1]) / 5 + x[:, 2] * 0.7 + x[:, 3] * 200 + x[:, 4] + 1
    return x, draw(source, np.exp(link)).astype(float)


def counts():
    return table_of(lambda source, mean: source.poisson(mean))


def costs():
    """Of rare cases; most are 0."""
    return table_of(lambda source, mean: np.array(
        [source.gamma(2, 300, k).sum() for k in source.poisson(mean / 4)]))


def covtype():
    with gzip.open(SHARED / 'covtype.20k.csv.gz', 'rt') as file:
        table = np.array([[float(v) for v in row] for row in csv.reader(file)])
    return table[:, :-1], table[:, -1]


def covtype_2():
    x, y = covtype()
    return x, np.where(y == 2, 1.0, -1.0)


# ---- losses by their definitions ----

def huber(delta):
    def of(m, y):
        r = m - y
        inside = np.abs(r) <= delta
        return (np.where(inside, r * r / 2, delta * (np.abs(r) - delta / 2)),
                np.clip(r, -delta, delta), inside.astype(float))
    return of


def quantile(tau, epsilon):
    def of(m, y):
        r = m - y
        inside = np.abs(r) < epsilon
        return (np.where(inside, r * r / (4 * epsilon) + (0.5 - tau) * r + epsilon / 4,
                         np.where(r > 0, (1 - tau) * r, -tau * r)),
                np.clip(r / (2 * epsilon), -0.5, 0.5) + 0.5 - tau, inside / (2 * epsilon))
    return of


def smooth_hinge(m, y):
    z = m * y
    inside = (z > 0) & (z < 1)
    return (np.where(inside, (1 - z) ** 2 / 2, np.where(z >= 1, 0, 0.5 - z)),
            y * np.clip(z - 1, -1, 0), inside.astype(float))


def squared_hinge(m, y):
    short = np.maximum(0, 1 - m * y)
    return short ** 2, -2 * y * short, 2.0 * (short > 0)


def logistic(m, y):
    p = scipy.special.expit(-m * y)
    return np.logaddexp(0, -m * y), -y * p, p * (1 - p)


def tweedie(p):
    a, b = 2 - p, p - 1

    def of(m, y):
        mean = np.exp(m)
        if p == 1:
            return mean - y + scipy.special.xlogy(y, y) - y * m, mean - y, mean
        if p == 2:
            return y / mean - 1 - np.log(y) + m, 1 - y / mean, y / mean
        up, down = np.exp(a * m), y * np.exp(-b * m)
        return up / a + down / b - y ** a / (a * b), up - down, a * up + b * down
    return of


def penalised(of, x, y, l2, w):
    return of(x @ w[:-1] + w[-1], y)[0].mean() + l2 / 2 * w[:-1] @ w[:-1]


def newton(of, x, y, l2, start):
    """In columns scaled to deviation 1; the penalty is transformed with them."""
    mean, scale = x.mean(0), np.where(x.std(0) > 0, x.std(0), 1)
    z = np.column_stack([(x - mean) / scale, np.ones(len(x))])
    # w·x + b with w = v/scale and b = v_0 − w·mean: only w is penalised.
    penalty = np.append(l2 / scale ** 2, 0)
    v = np.zeros(z.shape[1])
    v[-1] = start

    def value(v):
        with np.errstate(over='ignore'):
            return of(z @ v, y)[0].mean() + v @ (penalty * v) / 2
    now = value(v)
    for _ in range(500):
        _, slope, second = of(z @ v, y)
        gradient = z.T @ slope / len(y) + penalty * v
        hessian = (z * second[:, None]).T @ z / len(y) + np.diag(penalty)
        hessian += 1e-12 * np.trace(hessian) * np.eye(len(v))
        step = np.linalg.solve(hessian, gradient)
        size, then = 1.0, value(v - step)
        while not then <= now and size > 1e-9:
            size /= 2
            then = value(v - size * step)
        if not then < now:
            break
        v, now = v - size * step, then
    w = v[:-1] / scale
    return np.append(w, v[-1] - w @ mean)


# ---- ours ----

def write_rows(folder, x, y):
    text = io.StringIO()
    np.savetxt(text, np.column_stack([x, y]), fmt='%.17g', delimiter=',')
    (folder / 'data.csv').write_text(text.getvalue())


def train(folder, name, settings):
    job = write_job(folder, name, data=['data.csv'], format='csv', csv={'header': 'no'}, **settings)
    finished = run(COORDINATOR, 'run', job, '--json', '--quiet')
    if finished.status:
        raise SystemExit(str(finished))
    result = json.loads(finished.stdout.splitlines()[-1])
    state = folder / f'{name}.state'
    with sqlite3.connect(state / 'dml.db') as store:
        outcomes = dict(store.execute('SELECT outcome, COUNT(*) FROM evaluations GROUP BY 1'))
    return result, outcomes, read_model((state / 'models/current').resolve())


def read_model(folder):
    """Outputs × (features and the intercept)."""
    data = (folder / 'model.safetensors').read_bytes()
    length, = struct.unpack('<Q', data[:8])
    head = json.loads(data[8:8 + length])

    def tensor(name, kind):
        begin, end = head[name]['data_offsets']
        return np.frombuffer(data[8 + length + begin:8 + length + end], kind) \
            .reshape(head[name]['shape'])
    weight = tensor('weight', '<f8')
    bias = tensor('bias', '<f8')[:, None] if 'bias' in head else np.zeros((len(weight), 1))
    return np.hstack([weight, bias])


# ---- peers: (weights, intercept last; settings of ours that follow from them) ----

def by_newton(of, start):
    return lambda x, y, l2: (newton(of, x, y, l2, start(y)), {})


def by_regressor(make):
    def fit(x, y, l2):
        model = make(l2).fit(x, y)
        return np.append(model.coef_, model.intercept_), {}
    return fit


def scaled(x):
    """Columns of mean 0 and deviation 1, and the way back to weights of the raw ones."""
    mean, scale = x.mean(0), x.std(0)

    def back(model):
        w = model.coef_ / scale
        return np.append(w, model.intercept_ - w @ mean)
    return (x - mean) / scale, back


def by_huber(x, y, l2):
    """scikit-learn's δ is a multiple of a deviation that it finds as well."""
    z, back = scaled(x)
    model = linear_model.HuberRegressor(epsilon=1.35, alpha=0, tol=1e-12, max_iter=10000).fit(z, y)
    return back(model), {
        'huber': {'delta': float(1.35 * model.scale_)}}


def by_quantile(x, y, l2):
    z, back = scaled(x)
    return back(linear_model.QuantileRegressor(quantile=0.8, alpha=0, solver='highs').fit(z, y)), {}


def by_svm(x, y, l2):
    model = svm.LinearSVC(C=1 / (len(y) * l2), dual=False, fit_intercept=False, tol=1e-12,
                          max_iter=100000).fit(x, y)
    return np.append(model.coef_[0], 0), {}


def by_one_vs_rest(x, y, l2):
    one = linear_model.LogisticRegression(C=1 / (len(y) * l2), solver='newton-cholesky', tol=1e-10,
                                          max_iter=1000)
    model = multiclass.OneVsRestClassifier(one).fit(x, y)
    return np.array([np.append(e.coef_[0], e.intercept_) for e in model.estimators_]), {}


def glm(kind, **more):
    return by_regressor(lambda l2: kind(alpha=l2, solver='newton-cholesky', tol=1e-10,
                                        max_iter=1000, **more))


def logmean(y):
    return np.log(y.mean())


class Row:
    def __init__(self, name, objective, data, peer, of, l2=1e-6, **settings):
        self.name, self.objective, self.data, self.peer, self.of = name, objective, data, peer, of
        self.l2, self.settings = l2, settings


ROWS = [
    Row('squared_hinge, LinearSVC', 'squared_hinge', covtype_2, by_svm, squared_hinge, 1e-4,
        intercept=False),
    Row('smooth_hinge, Newton', 'smooth_hinge', covtype_2, by_newton(smooth_hinge, np.mean),
        smooth_hinge, 1e-4),
    Row('one_vs_rest, OneVsRestClassifier', 'one_vs_rest', covtype, by_one_vs_rest, logistic, 1e-4),
    Row('huber, HuberRegressor', 'huber', housing, by_huber, None, 0),
    Row('huber 0.3, Newton', 'huber', housing, by_newton(huber(0.3), np.median), huber(0.3),
        huber={'delta': 0.3}),
    Row('quantile .8, Newton', 'quantile', housing,
        by_newton(quantile(0.8, 0.03), lambda y: np.quantile(y, 0.8)), quantile(0.8, 0.03),
        quantile={'tau': 0.8, 'epsilon': 0.03}),
    Row('quantile .8 auto, QuantileRegressor', 'quantile', housing, by_quantile,
        quantile(0.8, 1e-300), 0, quantile={'tau': 0.8}),
    Row('quantile .8 fine, QuantileRegressor', 'quantile', housing, by_quantile,
        quantile(0.8, 1e-300), 0, quantile={'tau': 0.8, 'epsilon': 1e-3}),
    Row('poisson, PoissonRegressor', 'poisson', counts, glm(linear_model.PoissonRegressor),
        tweedie(1)),
    Row('poisson prices, PoissonRegressor', 'poisson', housing, glm(linear_model.PoissonRegressor),
        tweedie(1)),
    Row('gamma prices, GammaRegressor', 'gamma', housing, glm(linear_model.GammaRegressor),
        tweedie(2)),
    Row('tweedie 1.5, TweedieRegressor', 'tweedie', costs,
        glm(linear_model.TweedieRegressor, power=1.5, link='log'), tweedie(1.5)),
    Row('tweedie 1.1, Newton', 'tweedie', counts, by_newton(tweedie(1.1), logmean), tweedie(1.1),
        tweedie={'power': 1.1}),
]


def loss_of(row, x, y, w):
    """F, summed over classes."""
    w = np.atleast_2d(w)
    if row.objective != 'one_vs_rest':
        return penalised(row.of, x, y, row.l2, w[0])
    return sum(penalised(row.of, x, np.where(y == label, 1, -1), row.l2, w[k])
               for k, label in enumerate(np.unique(y)))


def measure(row, folder):
    x, y = row.data()
    write_rows(folder, x, y)
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        theirs, more = row.peer(x, y, row.l2)
    if row.of is None:  # the peer found the parameter
        row.of = huber(more['huber']['delta'])
    settings = {'objective': row.objective, 'l2': row.l2, **row.settings, **more}
    plain, outcomes, _ = train(folder, 'default', settings)
    without, _, _ = train(folder, 'without', {**settings, 'precondition': 'none'})
    _, _, ours = train(folder, 'close', {**settings, **CLOSE})
    f, f_theirs = loss_of(row, x, y, ours), loss_of(row, x, y, theirs)
    size = np.atleast_2d(theirs)[:, :-1] * x.std(0)
    off = np.abs(ours[:, :-1] - np.atleast_2d(theirs)[:, :-1]) * x.std(0)
    redone = outcomes.get('bound exceeded', 0)
    return (row.name, f'{(f - f_theirs) / f_theirs:.0e}', f'{off.max() / np.abs(size).max():.0e}',
            str(sum(outcomes.values())), str(redone), plain['reason'],
            f'{sum_of(folder / "without.state")}', without['reason'])


def sum_of(state):
    with sqlite3.connect(state / 'dml.db') as store:
        return store.execute('SELECT COUNT(*) FROM evaluations').fetchone()[0]


# ---- small tables by defaults ----

def made_table(source, kind):
    count = int(np.exp(source.uniform(np.log(30), np.log(1000))))
    width = min(int(source.integers(2, 21)), count // 4)
    x = source.normal(size=(count, width))
    if kind % 4 == 1:
        x = x @ source.normal(size=(width, width))
    if kind % 4 == 2:
        x[:, :width // 2] = x[:, :width // 2] > 0.8
    if kind % 4 == 3:
        x = x * 10 ** source.uniform(-2, 2, size=width) + 3 * source.normal(size=width)
    noise = (source.normal(size=count) if kind % 3 == 0 else source.standard_t(2, size=count)
             if kind % 3 == 1 else source.normal(size=count) * source.choice([1, 1, 1, 20], count))
    effects = source.normal(size=width) / np.sqrt(width) / x.std(0).clip(0.1)
    x = np.round(x, 4)
    return x, (x @ effects + noise) * 10 ** source.uniform(-3, 3)


def least_pinball(x, y, tau):
    count, width = x.shape
    ones = scipy.sparse.eye(count)
    rows = scipy.sparse.hstack([np.column_stack([x, np.ones(count)]), ones, -ones]).tocsr()
    costs = np.repeat([0, tau / count, (1 - tau) / count], [width + 1, count, count])
    limits = [(None, None)] * (width + 1) + [(0, None)] * (2 * count)
    scale = np.abs(y).max()
    return scale * scipy.optimize.linprog(costs, A_eq=rows, b_eq=y / scale, bounds=limits).fun


def least_huber(x, y, delta):
    of = huber(delta)
    return penalised(of, x, y, 0, newton(of, x, y, 0, np.median(y)))


def trained(folder, x, y, objective, **more):
    """(result, residuals, the parameters of the loss)."""
    names = [f'x{j}' for j in range(x.shape[1])]
    np.savetxt(folder / 'd.csv', np.column_stack([x, y]), '%.17g', ',', comments='',
               header=','.join([*names, 'y']))
    result = run(COORDINATOR, 'run', write_job(folder, data=['d.csv'], objective=objective, l2=0, **more),
                 '--fresh', '--json').json
    model = json.loads((folder / result['model'] / 'model.json').read_text())
    lines = run(COORDINATOR, 'predict', folder / result['model'], folder / 'd.csv').stdout.split()
    return result, np.array(lines, float) - y, model['objective_parameters']


def quantile_tables(folder):
    source = np.random.default_rng(20)
    for number in range(57):
        x, y = made_table(source, number)
        tau = round(source.uniform(0.1, 0.9), 2)
        result, residuals, _ = trained(folder, x, y, 'quantile', quantile={'tau': tau})
        least = least_pinball(x, y, tau)
        yield quantile(tau, 1e-300)(residuals, 0)[0].mean() / least - 1, result


def huber_tables(folder):
    source = np.random.default_rng(21)
    for number in range(48):
        x, y = made_table(source, 4 * number + 2 + number % 2)
        y *= 1 + 30 * (source.random(len(y)) < 0.1)
        result, residuals, parameters = trained(folder, x, y, 'huber')
        delta = parameters['delta']
        yield huber(delta)(residuals, 0)[0].mean() / least_huber(x, y, delta) - 1, result


TABLES = {'quantile tables': quantile_tables, 'huber tables': huber_tables}


def report(name, found):
    above, results = zip(*found)
    evaluations = [result['evaluations'] for result in results]
    print(f'| {name} | {sum(a <= 1e-4 for a in above)} of {len(above)} | {max(above):.0e} | '
          f'{np.median(evaluations):.0f} | {max(evaluations)} | '
          f'{sum(result["converged"] for result in results)} |', flush=True)


def wanted(name):
    return not sys.argv[1:] or any(word in name for word in sys.argv[1:])


def main():
    heed_interrupts()
    if not SHARED.exists():
        raise SystemExit(f'{SHARED} is not there')
    print('| loss and peer | F | weights | evaluations | redone | reason | without preconditioner '
          '| reason |\n|' + '---|' * 8)
    for row in ROWS:
        if wanted(row.name):
            with tempfile.TemporaryDirectory(prefix='dml-losses-') as folder:
                print('| ' + ' | '.join(measure(row, pathlib.Path(folder))) + ' |', flush=True)
    print('\n| tables | within 1e-4 | worst | evaluations, median | most | converged |\n|' + '---|' * 6)
    for name, tables in TABLES.items():
        if wanted(name):
            with tempfile.TemporaryDirectory() as folder:
                report(name, tables(pathlib.Path(folder)))


if __name__ == '__main__':
    main()
