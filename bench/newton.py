"""Finds the optimum of a problem by Newton's method in double precision, with numpy and scipy, on
its own: it shares no code with the programs.

    newton.py FILE OBJECTIVE L2 [--csv LABEL [SKIPPED…]] [--bias-regularised]

prints F*, and how near it is: half the squared Newton decrement, which estimates what F still
lacks, and the largest component of the gradient. It needs numpy, scipy and scikit-learn (which
reads LIBSVM text). FILE is LIBSVM text, or CSV with --csv. The columns are
scaled to a root mean square of 1 and the penalty is transformed with them, so that F is the same.
"""

import argparse
import csv

import numpy as np
import scipy.linalg
import scipy.sparse
from sklearn.datasets import load_svmlight_file

DENSE_PARAMETERS = 1200   # up to here the Hessian is formed and factored
STEPS_MAX = 300


def read_csv(path, label, skipped):
    with open(path, newline='') as file:
        rows = list(csv.reader(file))
    header = any(not is_number(field) for field in rows[0])
    names = rows.pop(0) if header else [str(i + 1) for i in range(len(rows[0]))]
    last = names.index(label) if label else len(names) - 1
    kept = [i for i, name in enumerate(names) if i != last and name not in skipped]
    table = np.array([[float(row[i]) for i in kept] for row in rows])
    return table, np.array([row[last] for row in rows])


def is_number(text):
    try:
        float(text)
        return True
    except ValueError:
        return False


def read(path, table):
    if table is not None:
        return read_csv(path, table[0] if table else '', table[1:])
    x, y = load_svmlight_file(path)
    if x.nnz > 0.3 * x.shape[0] * x.shape[1]:
        x = x.toarray()
    return x, y


class Loss:
    """Mean loss over margins (rows × outputs): value, derivative and the product of the second
    derivative with a change of margins."""

    def __init__(self, objective, labels):
        if objective == 'squared':
            self.target, self.outputs = labels.astype(float), 1
        else:
            classes, index = np.unique(labels, return_inverse=True)
            self.outputs = 1 if objective == 'logistic' else len(classes)
            self.target = index if self.outputs > 1 else 2.0 * index - 1
        self.objective, self.rows = objective, len(labels)

    def value(self, m):
        if self.objective == 'squared':
            return np.mean((m[:, 0] - self.target) ** 2) / 2
        if self.objective == 'logistic':
            return np.mean(np.logaddexp(0, -self.target * m[:, 0]))
        top = m.max(axis=1)
        total = np.log(np.exp(m - top[:, None]).sum(axis=1)) + top
        return np.mean(total - m[np.arange(self.rows), self.target])

    def derivative(self, m):
        """And what `times` needs."""
        if self.objective == 'squared':
            return (m - self.target[:, None]) / self.rows, np.ones_like(m)
        if self.objective == 'logistic':
            p = 1 / (1 + np.exp(np.minimum(self.target * m[:, 0], 700)))
            return (-self.target * p / self.rows)[:, None], (p * (1 - p))[:, None]
        p = np.exp(m - m.max(axis=1)[:, None])
        p /= p.sum(axis=1)[:, None]
        d = p.copy()
        d[np.arange(self.rows), self.target] -= 1
        return d / self.rows, p

    def times(self, p, change):
        if self.outputs == 1:
            return p * change / self.rows
        return p * (change - (p * change).sum(axis=1)[:, None]) / self.rows

    def blocks(self, p):
        """Weights of the rows in the block (a, b) of the Hessian, for a >= b."""
        if self.outputs == 1:
            yield 0, 0, p[:, 0] / self.rows
            return
        for a in range(self.outputs):
            for b in range(a + 1):
                yield a, b, p[:, a] * ((a == b) - p[:, b]) / self.rows


class Problem:
    """F over (features + 1) × outputs parameters in scaled columns; the intercepts come last."""

    def __init__(self, x, loss, l2, l2_of_intercept=0.0):
        self.loss = loss
        squares = x.multiply(x) if scipy.sparse.issparse(x) else x * x
        self.scale = np.sqrt(np.asarray(squares.mean(axis=0)).ravel())
        self.scale[self.scale == 0] = 1
        if scipy.sparse.issparse(x):
            self.x = (x @ scipy.sparse.diags(1 / self.scale)).tocsr()
            self.xt = self.x.T.tocsr()
        else:
            self.x = x / self.scale
            self.xt = self.x.T
        self.shape = (x.shape[1] + 1, self.loss.outputs)
        penalty = np.append(l2 / self.scale ** 2, l2_of_intercept)
        self.penalty = np.repeat(penalty[:, None], self.loss.outputs, axis=1)

    def margins(self, w):
        return self.x @ w[:-1] + w[-1]

    def value(self, w, m):
        return self.loss.value(m) + (self.penalty * w * w).sum() / 2

    def back(self, d):
        return np.vstack([self.xt @ d, d.sum(axis=0)])

    def gradient(self, w, m):
        d, curvature = self.loss.derivative(m)
        return self.back(d) + self.penalty * w, curvature

    def product(self, curvature, v):
        return self.back(self.loss.times(curvature, self.margins(v))) + self.penalty * v

    def diagonal(self, curvature):
        weights = (curvature if self.loss.outputs == 1 else curvature * (1 - curvature))
        weights = weights / self.loss.rows
        sparse = scipy.sparse.issparse(self.x)
        squared = self.xt.multiply(self.xt).tocsr() if sparse else self.xt ** 2
        return np.vstack([squared @ weights, weights.sum(axis=0)]) + self.penalty

    def direct(self, curvature, gradient):
        """The Newton step with the Hessian formed; directions in which F is flat are left out."""
        x = self.x.toarray() if scipy.sparse.issparse(self.x) else self.x
        x = np.hstack([x, np.ones((len(x), 1))])
        n, k = self.shape
        hessian = np.zeros((k * n, k * n))
        for a, b, weights in self.loss.blocks(curvature):
            block = x.T @ (weights[:, None] * x)
            hessian[a * n:(a + 1) * n, b * n:(b + 1) * n] = block
            hessian[b * n:(b + 1) * n, a * n:(a + 1) * n] = block
        hessian[np.diag_indices(k * n)] += self.penalty.T.ravel()
        scale = 1 / np.sqrt(np.maximum(np.diag(hessian), 1e-300))
        unit = hessian * scale[:, None] * scale
        step = self.solved(unit, gradient.T.ravel() * scale) * scale
        return -step.reshape(k, n).T

    def solved(self, unit, right):
        return scipy.linalg.lstsq(unit, right, cond=1e-15)[0]

    def conjugate(self, curvature, gradient, tolerance, products_max=3000):
        """The Newton step by conjugate gradients, preconditioned by the diagonal."""
        inverse = 1 / self.diagonal(curvature)
        step, r = np.zeros_like(gradient), -gradient
        z = inverse * r
        p, rz = z.copy(), (r * z).sum()
        first = rz
        for _ in range(products_max):
            hp = self.product(curvature, p)
            curve = (p * hp).sum()
            if curve <= 0:
                break
            step += rz / curve * p
            r -= rz / curve * hp
            z = inverse * r
            rz, before = (r * z).sum(), rz
            if rz <= tolerance ** 2 * first:
                break
            p = z + rz / before * p
        return step


def searched(problem, w, m, f, step, slope):
    """Halves the step until F falls enough; None if only rounding is left."""
    change, t = problem.margins(step), 1.0
    while t > 1e-9:
        trial = w + t * step
        value = problem.value(trial, m + t * change)
        if value <= f + 1e-4 * t * slope:
            return trial
        t /= 2
    return None


def minimum(problem, tell=lambda *_: None, relative=1e-12):
    """(F*, estimate of what is lacking, largest component of the gradient, w in scaled columns)."""
    w = np.zeros(problem.shape)
    direct = np.prod(problem.shape) <= DENSE_PARAMETERS
    tolerance = 0.1
    for number in range(STEPS_MAX):
        m = problem.margins(w)
        f = problem.value(w, m)
        gradient, curvature = problem.gradient(w, m)
        step = (problem.direct(curvature, gradient) if direct
                else problem.conjugate(curvature, gradient, tolerance))
        slope = (gradient * step).sum()
        tell(number, f, -slope / 2)
        largest = np.abs(gradient[:-1] * problem.scale[:, None]).max()
        following = searched(problem, w, m, f, step, slope) if slope < 0 else None
        if following is None or -slope / 2 <= relative * 1e-3 * f:
            break
        tolerance = min(0.1, max(1e-6, np.sqrt(-slope / 2 / f)))
        w = following
    return f, -slope / 2, largest, w


class Barrier(Problem):
    """With l1 as well: l1·|w| becomes the minimum over t of l1·t − mu·log(t² − w²), which is smooth.
    Its minimum is at most 2·mu above that of l1·|w| for each weight (Koh, Kim and Boyd, "An
    interior-point method for large-scale l1-regularized logistic regression", 2007)."""

    def __init__(self, x, loss, l1, l2, l2_of_intercept=0.0):
        super().__init__(x, loss, l2, l2_of_intercept)
        l1 = np.append(l1 / self.scale, 0)
        self.l1 = np.repeat(l1[:, None], self.loss.outputs, axis=1)
        self.mu = None

    def exact(self, w):
        return super().value(w, self.margins(w)) + (self.l1 * np.abs(w)).sum()

    def bounds(self, w):
        """t, and t − mu/l1, of weights with l1."""
        some = self.l1 > 0
        unit = self.mu / self.l1[some]
        root = np.hypot(unit, w[some])
        return some, unit + root, root, 2 * unit * (unit + root)

    def value(self, w, m):
        some, t, _, difference = self.bounds(w)
        return (super().value(w, m)
                + (self.l1[some] * t - self.mu * np.log(difference)).sum())

    def gradient(self, w, m):
        gradient, curvature = super().gradient(w, m)
        some, t, root, _ = self.bounds(w)
        gradient[some] += self.l1[some] * w[some] / t
        self.barrier = np.zeros_like(w)
        self.barrier[some] = self.l1[some] * self.mu / self.l1[some] / (t * root)
        return gradient, curvature

    def solved(self, unit, right):
        if not np.isfinite(unit).all() or not np.isfinite(right).all():
            return np.full_like(right, np.nan)
        try:
            return scipy.linalg.solve(unit, right, assume_a='pos')
        except (scipy.linalg.LinAlgError, scipy.linalg.LinAlgWarning):
            return super().solved(unit, right)

    def direct(self, curvature, gradient):
        plain = self.penalty
        self.penalty = plain + self.barrier
        step = super().direct(curvature, gradient)
        self.penalty = plain
        return step


def sparse_minimum(problem, relative=1e-13, steps_most=60):
    """(F*, what it lacks at most) with l1."""
    w = np.zeros(problem.shape)
    first = problem.exact(w)
    best, lacking = first, first
    problem.mu = first / max(1, problem.l1.size)
    while 2 * problem.mu * (problem.l1 > 0).sum() > relative * best:
        problem.mu /= 4
        for _ in range(steps_most):
            m = problem.margins(w)
            f = problem.value(w, m)
            gradient, curvature = problem.gradient(w, m)
            step = problem.direct(curvature, gradient)
            slope = (gradient * step).sum()
            following = searched(problem, w, m, f, step, slope) if slope < 0 else None
            if following is None:
                break
            w = following
            if -slope / 2 <= 1e-2 * problem.mu:
                break
        best = min(best, problem.exact(w), problem.exact(np.where(
            np.abs(w) * problem.l1 > 10 * problem.mu, w, np.where(problem.l1 > 0, 0, w))))
        lacking = 2 * problem.mu * (problem.l1 > 0).sum() + abs(slope) / 2
    return best, lacking


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('file')
    parser.add_argument('objective', choices=('logistic', 'squared', 'softmax'))
    parser.add_argument('l2', type=float)
    parser.add_argument('--csv', nargs='*', metavar='LABEL')
    parser.add_argument('--bias-regularised', action='store_true')
    parser.add_argument('--verbose', action='store_true')
    options = parser.parse_args()
    x, labels = read(options.file, options.csv)
    problem = Problem(x, Loss(options.objective, labels), options.l2,
                      options.l2 if options.bias_regularised else 0.0)
    tell = print if options.verbose else lambda *_: None
    f, lacking, largest, _ = minimum(problem, tell)
    print(f'{float(f)!r} {lacking:.1e} {largest:.1e}')


if __name__ == '__main__':
    main()
