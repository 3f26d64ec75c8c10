/* What is different with l1: F = f + l1·|w|₁ is minimised orthant by orthant.
 *
 * A step from x stays in an orthant ξ: a weight that would change its sign becomes 0, and one that
 * is 0 may leave it only downhill (numeric/orthant.h has the formulae). Within an orthant F is
 * smooth, and L-BFGS has its curvature from pairs as ever. What differs from OWL-QN (Andrew and
 * Gao, "Scalable training of L1-regularized log-linear models", 2007) is in which coordinates it
 * acts:
 *
 *   masked pairs           y_j = 0 where a weight is 0 before and after the step. Else y carries
 *                          components of weights that do not move, and scales those that do.
 *   aligned only at zeros  d_j = 0 where it leads uphill and w_j = 0. OWL-QN does so for all w_j,
 *                          and loses what the curvature says of those that are not 0.
 *
 * F along the projected path is no smooth function of the step length: there are no Wolfe
 * conditions to ask for, only a decrease.
 *
 * Biases, which are free of l1, take part in steps and pairs as ever. */
#ifndef DML_OPTIMIZER_ORTHANT_H
#define DML_OPTIMIZER_ORTHANT_H

#include <stdbool.h>

#include "optimizer/linesearch.h"

/* A trial at t = x + s: F there, and the slopes of F along s at x and at t. */
struct orthant_trial {
    double loss, falls, ends;
};

/* The next step length, after linesearch_begin(): backtracks, by the minimiser of the quadratic
 * that has F(x), its slope and F(t). Accepts t if F falls by a share of what the slope along s
 * promises. Where F(t) and F(x) differ by no more than rounding, their difference is taken from
 * the two slopes. A trial with anything that is not finite is a failed one. */
enum linesearch_answer orthant_search_next(struct linesearch *search,
                                           const struct orthant_trial *trial);

/* Takes a lower bound of F at a trial that linesearch_refuses(). */
enum linesearch_answer orthant_search_refused(struct linesearch *search, double bound);

/* Whether a pair curves enough to be kept: s·y against |s| and |y|. */
bool orthant_keeps_pair(double sy, double step_square, double yy);

/* What a bound on the gap of duality takes. r is the gradient of the mean loss at w. */
struct orthant_gap {
    double mean_loss, norm_1, square; /* L, |w|₁, w·w */
    double wr;                        /* w·r */
    double excess; /* l2 > 0: Σ max(|r_j| − l1, 0)²; else max |r_j| or more */
};

/* How far F at w is above the minimum at most, for a loss that is convex and nowhere negative, and
 * a model without biases: by the dual point of the derivatives, scaled into what l1 allows. */
double orthant_gap_bound(double l1, double l2, const struct orthant_gap *gap);

#endif
