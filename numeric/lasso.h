/* The minimum of a small quadratic with l1 and bounds: what a step over a working set asks for.
 *
 *     Q(v) = g·(v − x) + ½ (v − x)ᵀH(v − x) + Σ l1_j·|v_j|      low_j ≤ v_j ≤ high_j
 *
 * Sweeps of coordinate descent find which v_j are 0, and which at a bound: until one finds nothing
 * new, or there were many. Where columns are correlated they take thousands of sweeps to find how
 * large the others are, so Newton's method on these follows: a solution that makes some change
 * their sign, or leave their bounds, is cut where the first of them is 0 or at its bound, or has
 * all of them there, whichever is better, and they stay there until the next sweep. The order of
 * all sums depends on the numbers alone: the same bits on every machine. One thread. */
#ifndef DML_NUMERIC_LASSO_H
#define DML_NUMERIC_LASSO_H

#include <stddef.h>

/* H is symmetric and positive semidefinite, n×n, row-major. A v_j whose diagonal element is not
 * above 0 stays at x_j. l1_j ≥ 0; v_j with l1_j = 0 is free. x is within the bounds. */
struct lasso {
    size_t n;
    const double *h, *g, *x, *l1;
    const double *low, *high; /* infinite: no bound; NULL: none at all */
};

/* Ends where no component of the pseudo-gradient of Q is above `tolerance` of the largest at x, or
 * after a number of rounds and of products, which depends on nothing else: a large problem may be
 * left unfinished. Q(v) ≤ Q(x) but for rounding. All of v is NaN if H, g or x is not finite. */
void lasso_solve(const struct lasso *lasso, double tolerance, double *v);

#endif
