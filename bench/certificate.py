"""The optimum of a problem with l2, or with l1 and l2, between two bounds that hold whatever they were
found by. It shares no code with the programs.

F over weights w (features × outputs) and intercepts b, which have no penalty:

    F = L(X·w + Z·b) + l1·|w|₁ + l2/2·|w|²        l2 > 0

L is convex, so it lies above its tangent at any point. The tangent and the penalty together have a
minimum in closed form, weight by weight: this is a lower bound of F, the value of the dual problem
at the derivatives of L. F less this bound is a sum with a term of each weight, none below 0, so it
is known to more digits than F. The tangent must be level along the intercepts, or it has no
minimum: they are solved for at given weights, and what rounding leaves of their derivatives is
multiplied by the largest margin and added.

Newton's method with active sets finds a point whose bound is close. It is rounded to doubles in its
steps alone, and corrects them: points, derivatives and values are of long doubles.
"""

import dataclasses

import numpy as np
import scipy.linalg

STEPS_MAX, ENTER_MAX, IDLE_MAX = 200, 300, 12
ENOUGH = 1e-14         # of F: a gap that is no longer narrowed
DAMPING_LEAST, DAMPING_MOST = 1e-14, 1e6
LONG = np.longdouble


@dataclasses.dataclass
class Bounds:
    above: float
    gap: float

    @property
    def below(self):
        return self.above - self.gap


class Problem:
    """`loss` is one of newton.py's kind, over margins of rows × outputs. `free` are the columns of the
    intercepts, rows × any number."""

    def __init__(self, x, loss, l1, l2, free):
        assert l2 > 0
        self.x, self.z, self.loss, self.l1, self.l2 = LONG(x), LONG(free), loss, l1, l2
        self.all = np.hstack([self.x, self.z]).astype(float)
        self.squares = (self.all ** 2).mean(axis=0)
        self.shape = x.shape[1], loss.outputs
        self.free = free.shape[1], loss.outputs

    def margins(self, w, b):
        return self.x @ w + self.z @ b

    def value(self, w, m):
        return self.loss.value(m) + self.l1 * np.abs(w).sum() + self.l2 / 2 * (w * w).sum()

    def gap(self, w, m, d, u):
        """How far F is above what the tangent bounds it by; u are the derivatives of L by weights."""
        side = np.sign(w)
        pull = u + self.l1 * side
        beyond = np.maximum(np.abs(u) - self.l1, 0)
        same = (w != 0) & (pull * side <= 0)      # the least point of tangent and penalty is on w's side
        terms = np.where(same, (pull + self.l2 * w) ** 2 / (2 * self.l2),
                         np.abs(w) * pull * side + self.l2 / 2 * w * w + beyond ** 2 / (2 * self.l2))
        return terms.sum() + np.abs(self.z.T @ d).sum() * max(1, np.abs(m).max())

    def hessian(self, curvature, columns, outputs, damping):
        """Of F without l1, over pairs of a column and an output; `damping` is a share of the columns'
        mean squares."""
        found = np.zeros((len(columns), len(columns)))
        for a, b, weights in self.loss.blocks(curvature):
            one, other = np.flatnonzero(outputs == a), np.flatnonzero(outputs == b)
            left = self.all[:, columns[one]].T * weights.astype(float)
            block = left @ self.all[:, columns[other]]
            found[np.ix_(one, other)] = block
            found[np.ix_(other, one)] = block.T
        diagonal = np.maximum(np.diag(found), self.squares[columns] * 1e-3)
        found[np.diag_indices(len(columns))] += damping * diagonal + np.where(
            columns < self.shape[0], self.l2, 0)
        return found


def solved(h, right):
    scale = 1 / np.sqrt(np.maximum(np.diag(h), 1e-300))
    unit = h * scale[:, None] * scale
    try:
        found = scipy.linalg.cho_solve(scipy.linalg.cho_factor(unit), right * scale)
    except scipy.linalg.LinAlgError:
        found = scipy.linalg.lstsq(unit, right * scale, cond=1e-15)[0]
    return found * scale


def quadratic_minimiser(h, g, w, l1, side):
    """(step, which are not 0 at its end) to the minimum of g·step + step·H·step/2 + l1·|w + step|, by
    active sets: the free ones go towards their minimum, until one of them is 0 and leaves; then the
    one that gains most comes in again. An element whose l1 is 0 is always free. `side` is changed."""
    l1 = np.broadcast_to(l1, w.shape)
    step, always = np.zeros(len(w)), l1 == 0
    free = always | (side != 0)
    for _ in range(20 * len(w) + 20):
        goal = np.where(free, 0, -w).astype(float)
        right = g + l1 * side + h @ goal
        goal[free] = -solved(h[np.ix_(free, free)], right[free].astype(float))
        crossing = free & ~always & ((w + goal) * side < 0)
        if crossing.any():
            shares = np.where(crossing, (w + step) / np.where(crossing, step - goal, 1), np.inf)
            first = np.argmin(shares)
            step = step + float(max(0, shares[first])) * (goal - step)
            step[first], free[first] = -w[first], False
            continue
        step = goal
        slope = np.where(free, 0, g + h @ step)
        enters = np.argmax(np.abs(slope) - l1 * (1 + 1e-12))
        if free[enters] or abs(slope[enters]) <= l1[enters] * (1 + 1e-12):
            break
        free[enters], side[enters] = True, -np.sign(slope[enters])
    return step, free


class Search:
    """Where Newton's method is, and the closest bounds that it has found: those of one point, since the
    difference of bounds of two is rounded."""

    def __init__(self, problem, w, b):
        self.problem, self.damping = problem, DAMPING_LEAST
        self.bounds, self.idle = Bounds(np.inf, np.inf), 0
        self.settle(LONG(w), LONG(b))

    def settle(self, w, b):
        problem = self.problem
        self.w, self.b, self.m = w, b, problem.margins(w, b)
        self.f = problem.value(w, self.m)
        self.d, self.curvature = problem.loss.derivative(self.m)
        self.u, self.v = problem.x.T @ self.d, problem.z.T @ self.d
        gap = problem.gap(w, self.m, self.d, self.u)
        self.idle = 0 if gap < 0.5 * self.bounds.gap else self.idle + 1
        if gap < self.bounds.gap:
            self.bounds = Bounds(self.f, gap)

    def step(self):
        """Whether there was one."""
        problem = self.problem
        (features, _), (intercepts, _) = problem.shape, problem.free
        beyond = np.where(self.w == 0, np.abs(self.u) - problem.l1, 0)
        enters = np.sort(beyond.ravel())[-ENTER_MAX] if beyond.size > ENTER_MAX else 0
        taken = (self.w != 0) | (beyond > 0) & (beyond >= enters)
        taken = np.vstack([taken, np.ones((intercepts, self.w.shape[1]), bool)])
        outputs, columns = np.nonzero(taken.T)
        whole, slope = np.vstack([self.w, self.b]), np.vstack([self.u, self.v])
        here, penalised = whole[columns, outputs], columns < features
        g = slope[columns, outputs] + problem.l2 * np.where(penalised, here, 0)
        side = np.where(here != 0, np.sign(here), -np.sign(g)) * penalised
        l1 = np.where(penalised, problem.l1, 0)
        h = problem.hessian(self.curvature, columns, outputs, self.damping)
        step, free = quadratic_minimiser(h, g, here, l1, side)
        ahead = np.zeros_like(whole)
        ahead[columns, outputs] = np.where(free, step, -here)
        promised = (g * ahead[columns, outputs]).sum() + (
            l1 * (np.abs(here + ahead[columns, outputs]) - np.abs(here))).sum()
        return self.search(ahead[:features], ahead[features:], promised)

    def search(self, w_step, b_step, promised):
        change, t = self.problem.margins(w_step, b_step), LONG(1)
        while t > 1e-9:
            w, m = self.w + t * w_step, self.m + t * change
            f = self.problem.value(w, m)
            if f <= self.f + 1e-3 * t * promised + 1e-18 * abs(self.f):
                break
            t /= 2
        else:
            self.damping = max(self.damping, 1e-10) * 100
            return self.damping < DAMPING_MOST
        self.damping = min(DAMPING_MOST, self.damping * 10) if t < 0.1 else (
            max(DAMPING_LEAST, self.damping / 30) if t == 1 else self.damping)
        self.settle(w, self.b + t * b_step)
        return True


def bounds_of(problem, w, b, tell=lambda *_: None):
    """From any start. The narrowest that was found."""
    with np.errstate(all='ignore'):
        search = Search(problem, w, b)
        for number in range(STEPS_MAX):
            tell(number, search)
            if search.bounds.gap <= ENOUGH * abs(search.bounds.above) or search.idle > IDLE_MAX:
                break
            if not search.step():
                break
    return search.bounds
