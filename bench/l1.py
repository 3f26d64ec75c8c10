#!/usr/bin/env python3
"""Optima with l1 by three programs: dml, LIBLINEAR's -s 6 where there are two classes, and a Newton
method of its own, here, that ends when the gap of duality is small. It shares no code with dml.

    bench/l1.py [--data FOLDER] [ROW...]
    bench/l1.py --random PROBLEMS

Each row is a data set and an l1, chosen by a part of its name; all without any. With --random they
are small problems of several classes, by their seeds: correlated, repeated and badly scaled columns,
classes that can be separated, more columns than rows, every second one with l2; the gap is to the
Newton method's F. Models have no intercept: then LIBLINEAR minimises the same F, and the gap of duality is known. The columns:

    nonzero       weights of dml's model that are not 0
    evaluations   when dml's F first came within 1e-6 of F*, relatively, by the default settings but
                  for tolerances; and of the whole run
    passes        of the whole run, for second derivatives
    gap           of dml's F above F*, relatively, F* being the least that any of the three found
    bound         the same as dml bounds it
    liblinear     the gap of LIBLINEAR's F
    certified     the gap of duality at the point that the Newton method found, relatively; with
                  several classes, for which that takes too long, at dml's point
    support       weights that are 0 in one of dml's model and the Newton method's, and not in the
                  other, where the latter is strict; then the same for LIBLINEAR

It needs numpy, scipy, scikit-learn and liblinear-train. Run it in the build folder, like the tests.
"""

import argparse
import pathlib
import sqlite3
import subprocess
import sys
import tempfile

import numpy as np
import scipy.sparse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'tests/integration'))
from harness import (COORDINATOR, SHARED, Process, heed_interrupts, lines_of,  # noqa: E402
                     read_safetensors, write_job)
from certificate import quadratic_minimiser  # noqa: E402
from newton import Loss, read  # noqa: E402
from problems import copied  # noqa: E402

ROW = '{:26}{:>9}{:>12}{:>7}{:>8}{:>9}{:>9}{:>10}{:>10}{:>8}{:>5}'
COLUMNS = 'row nonzero evaluations all passes gap bound liblinear certified support'.split()
STEPS_MAX, ENTER_MAX = 200, 300
CERTIFIED = 1e-10


def two_classes(source, target):
    """20 Newsgroups: the first ten groups against the others, in rows of length 1."""
    with target.open('w') as file:
        for line in lines_of(source):
            label, *terms = line.split()
            values = [(j, float(v)) for j, v in (term.split(':') for term in terms)]
            length = sum(v * v for _, v in values) ** 0.5 or 1
            file.write(('1' if int(float(label)) <= 10 else '-1')
                       + ''.join(f' {j}:{v / length:.9g}' for j, v in values) + '\n')


def standardised_pair(source, target):
    """covtype: class 2 against the others, columns with mean 0 and deviation 1."""
    table = np.array([[float(field) for field in line.split(',')] for line in lines_of(source)])
    x, y = table[:, :-1], table[:, -1]
    deviation = x.std(axis=0)
    x = (x - x.mean(axis=0)) / np.where(deviation > 0, deviation, 1)
    with target.open('w') as file:
        for row, label in zip(x, y):
            file.write(('1' if label == 2 else '-1')
                       + ''.join(f' {j}:{v:.9g}' for j, v in enumerate(row, 1) if v) + '\n')


def standardised_attacks(source, target):
    """kddcup: every tenth row of the three large classes, the 38 numbers scaled to deviation 1, and
    the codes as columns of 0 and 1."""
    rows, seen = [], {}
    for line in lines_of(source):
        fields = line.strip().split(',')
        seen[fields[-1]] = number = seen.get(fields[-1], -1) + 1
        if fields[-1] not in ('smurf.', 'neptune.', 'normal.') or number % 10 == 0:
            rows.append(fields)
    codes, classes = (1, 2, 3), sorted(seen)
    x = np.array([[float(v) for i, v in enumerate(row[:-1]) if i not in codes] for row in rows])
    deviation = x.std(axis=0)
    x /= np.where(deviation > 0, deviation, 1)
    columns = {code: x.shape[1] + 1 + at
               for at, code in enumerate(sorted({(i, row[i]) for row in rows for i in codes}))}
    with target.open('w') as file:
        for row, values in zip(rows, x):
            terms = [(j, v) for j, v in enumerate(values, 1) if v]
            terms += sorted((columns[i, row[i]], 1) for i in codes)
            file.write(f'{classes.index(row[-1])}'
                       + ''.join(f' {j}:{v:.9g}' for j, v in terms) + '\n')


# name, source, how the text is made, objective, l1
PROBLEMS = [
    ('a9a 1e-3', 'a9a.gz', copied, 'logistic', 1e-3),
    ('a9a 1e-4', 'a9a.gz', copied, 'logistic', 1e-4),
    ('a9a 1e-5', 'a9a.gz', copied, 'logistic', 1e-5),
    ('ijcnn1 1e-4', 'ijcnn1.gz', copied, 'logistic', 1e-4),
    ('agaricus 1e-4', 'agaricus.txt.train.gz', copied, 'logistic', 1e-4),
    ('covtype 1e-4', 'covtype.20k.csv.gz', standardised_pair, 'logistic', 1e-4),
    ('news20-two 1e-3', 'news20.libsvm.gz', two_classes, 'logistic', 1e-3),
    ('farm_ads 1e-3', 'farm_ads.libsvm.gz', copied, 'logistic', 1e-3),
    ('farm_ads 1e-4', 'farm_ads.libsvm.gz', copied, 'logistic', 1e-4),
    ('news20 1e-3', 'news20.libsvm.gz', copied, 'softmax', 1e-3),
    ('kddcup 1e-3', 'kddcup.train.csv.gz', standardised_attacks, 'softmax', 1e-3),
    ('kddcup 1e-4', 'kddcup.train.csv.gz', standardised_attacks, 'softmax', 1e-4),
]


# ---- the Newton method ----

class Problem:
    def __init__(self, path, objective, l1, l2=0.0):
        x, labels = read(path, None)
        self.x = scipy.sparse.csr_matrix(x)
        self.xt = self.x.T.tocsr()
        self.squares = np.asarray(self.x.multiply(self.x).mean(axis=0)).ravel()
        self.loss, self.l1, self.l2 = Loss(objective, labels), l1, l2
        self.shape = (self.x.shape[1], self.loss.outputs)

    def value(self, w):
        penalty = self.l1 * np.abs(w).sum() + self.l2 / 2 * (w * w).sum()
        return self.loss.value(self.x @ w) + penalty

    def gap(self, w, m, r):
        """F(w) is this much above the minimum at most: the derivatives, scaled into the box of l1, are
        a dual point. With l2 F is strongly convex: its least subgradient g bounds it by g·g/(2·l2)."""
        if self.l2:
            g = np.where(w, r + self.l1 * np.sign(w), np.maximum(np.abs(r) - self.l1, 0))
            return (g * g).sum() / (2 * self.l2)
        scale = min(1.0, self.l1 / np.abs(r).max())
        return (1 - scale) * self.loss.value(m) + scale * (w * r).sum() + self.l1 * np.abs(w).sum()


def hessian(problem, curvature, active, damping):
    """Of the mean loss, over the active weights: pairs of a column and an output, by output. The
    diagonal is raised by a share of the columns' mean squares: columns may be equal, rows may be
    saturated, and then a step would have no end."""
    columns, outputs = active
    found = np.zeros((len(columns), len(columns)))
    for a, b, weights in problem.loss.blocks(curvature):
        one, other = np.flatnonzero(outputs == a), np.flatnonzero(outputs == b)
        left = problem.x[:, columns[one]].T.tocsr() @ scipy.sparse.diags(weights)
        block = (left @ problem.x[:, columns[other]]).toarray()
        found[np.ix_(one, other)] = block
        found[np.ix_(other, one)] = block.T
    found[np.diag_indices(len(columns))] += damping * problem.squares[columns] + problem.l2
    return found


def searched(problem, w, f, promised, step):
    """The first of halved steps where F falls enough, and its length; None if none does."""
    t = 1.0
    while t > 1e-10:
        if problem.value(w + t * step) <= f + 1e-3 * t * promised:
            return w + t * step, t
        t /= 2
    return None, 0


def certificate(problem, w):
    """The same as minimum() gives, at any w."""
    m = problem.x @ w
    r, f = problem.xt @ problem.loss.derivative(m)[0], problem.value(w)
    return f, problem.gap(w, m, r) / f, w, r


def minimum(problem, tell=lambda *_: None):
    """(F, relative gap of duality, w, gradient of the mean loss): the best point by that gap. Newton's
    method on the weights that are not 0 or may leave it, at most ENTER_MAX new ones at a time."""
    w, l1, best, damping = np.zeros(problem.shape), problem.l1, None, 1e-3
    for _ in range(STEPS_MAX):
        m = problem.x @ w
        d, curvature = problem.loss.derivative(m)
        r, f = problem.xt @ d + problem.l2 * w, problem.value(w)
        gap = problem.gap(w, m, r) / f
        tell(f, gap, (w != 0).sum())
        if best is None or gap < best[1]:
            best = f, gap, w, r
        if gap <= CERTIFIED:
            break
        beyond = np.where(w == 0, np.abs(r) - l1, 0)
        least = np.partition(beyond.ravel(), -ENTER_MAX)[-ENTER_MAX] if beyond.size > ENTER_MAX else 0
        outputs, columns = np.nonzero(((w != 0) | ((beyond > 0) & (beyond >= least))).T)
        here, gradient = w[columns, outputs], r[columns, outputs]
        side = np.where(here != 0, np.sign(here), -np.sign(gradient))
        h = hessian(problem, curvature, (columns, outputs), damping)
        change, free = quadratic_minimiser(h, gradient, here, l1, side)
        v = np.where(free, here + change, 0)
        step = np.zeros_like(w)
        step[columns, outputs] = v - here
        promised = (gradient * (v - here)).sum() + l1 * (np.abs(v).sum() - np.abs(here).sum())
        following, length = searched(problem, w, f, promised, step) if promised < 0 else (None, 0)
        if following is None and damping >= 1:
            break
        w = w if following is None else following
        damping = max(damping / 8, 1e-12) if length == 1 else damping * 8 if length < 0.5 else damping
    return best


# ---- the programs ----

def weights_of(folder, shape):
    tensors = read_safetensors(folder / 'model.safetensors')
    ids, w = tensors['feature_id'][1], np.array(tensors['weight'][1]).reshape(shape[1], -1)
    whole = np.zeros(shape)
    whole[np.array(ids) - 1] = w.T
    return whole


def trained(path, objective, l1, shape, folder, l2=0.0):
    """The result of a run without tolerances that matter, its losses in order, and its weights."""
    job = write_job(folder, data=[path], objective=objective, l1=l1, l2=l2, intercept=False,
                    gradient_tolerance=(1e-6 if shape[1] == 1 else 1e-8) * l1, loss_tolerance=0,
                    max_steps=4000)
    finished = Process(COORDINATOR, 'run', job, '--json', '--fresh').wait(900)
    assert finished.status == 0, finished
    with sqlite3.connect(folder / 'job.state/dml.db') as store:
        rows = store.execute('SELECT loss, outcome FROM evaluations ORDER BY evaluation').fetchall()
    result = finished.json
    return result, rows, weights_of(pathlib.Path(result['model']), shape)


def liblinear(path, problem, folder):
    """Its weights; None if there are several classes or it takes more than ten minutes."""
    if problem.shape[1] > 1:
        return None
    model = folder / 'liblinear.model'
    cost = 1 / (problem.l1 * problem.loss.rows)
    try:
        subprocess.run(['liblinear-train', '-q', '-s', '6', '-c', repr(cost), '-e', '1e-7', path,
                        model], check=True, timeout=600, stdout=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return None
    head, weights = model.read_text().split('\nw\n')
    sign = 1 if head.split('label ')[1].split()[0] in ('1', '+1') else -1
    return sign * np.array([float(line) for line in weights.split()])[:, None]


def differences(found, w, r, l1):
    """Weights that are 0 in one and not in the other, where the optimum is strict: those that are 0
    with a gradient well below l1, and those that are well away from 0."""
    small = (w == 0) & (np.abs(r) < l1 * (1 - 1e-3))
    large = np.abs(w) > 1e-4 * np.abs(w).max()
    return int((small & (found != 0)).sum() + (large & (found == 0)).sum())


def measured(name, make, objective, l1, source, folder):
    path = folder / 'data.libsvm'
    make(source, path)
    problem = Problem(path, objective, l1)
    result, rows, w = trained(path, objective, l1, problem.shape, folder)
    f, certified, reference, r = (minimum(problem) if problem.shape[1] == 1
                                  else certificate(problem, w))
    other = liblinear(path, problem, folder)
    losses = [result['loss'], f] + ([problem.value(other)] if other is not None else [])
    least = min(losses)
    near = [number for number, (loss, outcome) in enumerate(rows, 1)
            if outcome == 'accepted' and loss <= least * (1 + 1e-6)]
    print(ROW.format(
        name, result['nonzero'], near[0] if near else f'>{len(rows)}', len(rows),
        f'{result["preconditioner"]["passes"]:.1f}',
        f'{result["loss"] / least - 1:.0e}', f'{result["gap_bound"] / least:.0e}',
        f'{losses[2] / least - 1:.0e}' if other is not None else '-', f'{certified:.0e}',
        differences(w, reference, r, l1),
        differences(other, reference, r, l1) if other is not None else '-'), flush=True)


# ---- random problems ----

def random_problem(seed, path):
    """Writes the text of a small problem; what it is like, l1 and l2."""
    rng = np.random.default_rng(seed)
    like = ('plain', 'correlated', 'repeated', 'scaled', 'separable', 'wide')[seed % 6]
    columns, classes = int(rng.integers(20, 50)), int(rng.integers(3, 6))
    rows = columns // 2 + 10 if like == 'wide' else int(rng.integers(100, 400))
    x = rng.normal(size=(rows, columns)) * (rng.random((rows, columns)) < rng.uniform(0.05, 0.2))
    half = columns // 2
    if like in ('correlated', 'repeated'):
        x[:, half:2 * half] = x[:, :half]
    if like == 'correlated':
        x *= 1 + 0.1 * rng.normal(size=x.shape)
    if like == 'scaled':
        x *= 10.0 ** rng.uniform(-3, 3, columns)
    w = rng.normal(size=(columns, classes)) / (np.sqrt((x * x).mean(axis=0)) + 1e-9)[:, None]
    noise = 0 if like == 'separable' else rng.gumbel(size=(rows, classes))
    y = (x @ w + noise).argmax(axis=1)
    y[:classes] = np.arange(classes)
    with path.open('w') as file:
        for row, label in zip(x, y):
            file.write(str(label) + ''.join(f' {j}:{v:.6g}' for j, v in enumerate(row, 1) if v or j == columns)
                       + '\n')
    problem = Problem(path, 'softmax', 1.0)
    d, _ = problem.loss.derivative(np.zeros((rows, problem.shape[1])))
    l1 = float(np.abs(problem.xt @ d).max() * 10 ** rng.uniform(-3, -0.5))
    return like, l1, float(l1 * rng.uniform(0.01, 1)) if seed // 6 % 2 else 0.0


def random_row(seed, folder):
    """Whether dml's F is within 1e-8 of the Newton method's, relatively."""
    path = folder / 'data.libsvm'
    like, l1, l2 = random_problem(seed, path)
    problem = Problem(path, 'softmax', l1, l2)
    result, rows, w = trained(path, 'softmax', l1, problem.shape, folder, l2)
    f, certified, _, _ = minimum(problem)
    gap = problem.value(w) / f - 1
    print(ROW.format(f'{seed} {like}' + (' l2' if l2 else ''), result['nonzero'], '-', len(rows),
                     f'{result["preconditioner"]["passes"]:.1f}', f'{gap:.0e}', '-', '-',
                     f'{certified:.0e}', '-', '-'), flush=True)
    return gap <= 1e-8


def main():
    heed_interrupts()
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('rows', nargs='*', metavar='ROW')
    parser.add_argument('--data', type=pathlib.Path, default=SHARED)
    parser.add_argument('--random', type=int, default=0, metavar='PROBLEMS')
    options = parser.parse_args()
    print(ROW.format(*COLUMNS, ''), flush=True)
    if options.random:
        with tempfile.TemporaryDirectory(prefix='dml-l1-') as folder:
            near = 0
            for seed in range(options.random):
                (pathlib.Path(folder) / str(seed)).mkdir()
                near += random_row(seed, pathlib.Path(folder) / str(seed))
        print(f'{near} of {options.random} within 1e-8')
        return
    for name, source, make, objective, l1 in PROBLEMS:
        if options.rows and not any(row in name for row in options.rows):
            continue
        if not (options.data / source).exists():
            print(f'{name}: skipped, {source} is not in {options.data}', flush=True)
            continue
        with tempfile.TemporaryDirectory(prefix='dml-l1-') as folder:
            measured(name, make, objective, l1, options.data / source, pathlib.Path(folder))


if __name__ == '__main__':
    main()
