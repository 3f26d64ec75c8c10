/* Line search for a step length that satisfies the strong Wolfe conditions, as a state that is fed
 * one trial at a time:
 *
 *     phi(α) ≤ phi(0) + c₁·α·phi'(0)    and    |phi'(α)| ≤ c₂·|phi'(0)|
 *
 * with safeguarded cubic interpolation (Moré and Thuente, "Line search algorithms with guaranteed
 * sufficient decrease", 1994). Where phi(α) and phi(0) differ by no more than the rounding of F,
 * phi(α) is replaced by the integral of the slopes, phi(0) + α·(phi'(0) + phi'(α))/2; the first
 * condition then reads phi'(α) ≤ (2c₁ − 1)·phi'(0), which is the approximate Wolfe condition of
 * Hager and Zhang ("A new conjugate gradient method with guaranteed descent", 2005).
 *
 * A trial whose value or slope is not finite is a failed one: the step shrinks.
 *
 * Where the length of the first trial was a guess (`guessed`: no curvature is known yet), a trial
 * that is too short tells the curvature: the next is the minimiser of the quadratic with the two
 * slopes, however far that is, instead of a few times as far. There c₂ is 0.5, elsewhere 0.9:
 * the length of the first step scales all that follow.
 *
 * The struct is plain data: it can be stored and resumed between any two trials. */
#ifndef DML_OPTIMIZER_LINESEARCH_H
#define DML_OPTIMIZER_LINESEARCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/codec.h"

struct linesearch_point {
    double step, value, slope;
    bool rounded; /* value is the integral of the slopes: phi itself differs by rounding only */
};

struct linesearch {
    double step;                   /* the trial to make now */
    double value0, slope0;         /* phi(0), phi'(0) < 0 */
    double noise;                  /* differences of phi up to this are rounding */
    double step_max;               /* lowered below trials that were not finite */
    struct linesearch_point best;  /* least value so far; an end of the interval */
    struct linesearch_point other; /* the interval's other end */
    double least, most;            /* bounds of the next trial */
    double width, width_before;    /* of the interval, now and one trial ago */
    bool bracketed;                /* a minimiser lies between best and other */
    bool guessed;                  /* the length of the first trial was a guess */
    bool decreasing;  /* first stage: no trial yet with enough decrease and slope ≥ 0 */
    bool last_chance; /* the interval is exhausted: one more trial, at `best` */
    uint32_t trials;  /* made so far */
};

enum linesearch_answer {
    LINESEARCH_TRY,    /* evaluate at `step` */
    LINESEARCH_ACCEPT, /* the trial just given is the one */
    LINESEARCH_FAIL,   /* there is no acceptable step along this direction */
};

#define LINESEARCH_TRIALS_MAX 40

/* Starts at phi(0) = value, phi'(0) = slope < 0; the first trial is at `step` > 0, which is a guess
 * if `guessed`. */
void linesearch_begin(struct linesearch *search, double value, double slope, double noise,
                      double step, bool guessed);

/* Takes phi and phi' at `search->step`. */
enum linesearch_answer linesearch_next(struct linesearch *search, double value, double slope);

/* Whether the trial, of which only a lower bound of phi is known, cannot be the step: phi is above
 * phi(0) there. If so, linesearch_refused() takes the bound and goes on with a shorter step. */
bool linesearch_refuses(const struct linesearch *search, double bound);
enum linesearch_answer linesearch_refused(struct linesearch *search, double bound);

/* What is different with l1: F = f + l1·|w|₁ is minimised orthant by orthant.
 *
 * A step from x stays in an orthant ξ: a weight that would change its sign becomes 0, and one that
 * is 0 may leave it only downhill (numeric/steps.h has the formulae). Within an orthant F is
 * smooth, and L-BFGS has its curvature from pairs as ever. What differs from OWL-QN (Andrew and
 * Gao, "Scalable training of L1-regularized log-linear models", 2007) is on which weights it
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

/* A trial at t = x + s: F there, and the slopes of F along s at x and at t. */
struct box_trial {
    double loss, falls, ends;
};

/* The next step length, after linesearch_begin(): backtracks, by the minimiser of the quadratic
 * that has F(x), its slope and F(t). Accepts t if F falls by a share of what the slope along s
 * promises. Where F(t) and F(x) differ by no more than rounding, their difference is taken from
 * the two slopes. A trial with anything that is not finite is a failed one. */
enum linesearch_answer box_search_next(struct linesearch *search, const struct box_trial *trial);

/* Takes a lower bound of F at a trial that linesearch_refuses(). */
enum linesearch_answer box_search_refused(struct linesearch *search, double bound);

/* The next step length along a direction that may leave the orthant: F is convex, and the slope
 * that linesearch_begin() was given bounds what it changes by from above. Fails where F(t) and F(x)
 * differ by rounding, unless it has not risen. */
enum linesearch_answer convex_search_next(struct linesearch *search, double loss);

/* Whether a pair curves enough to be kept: s·y against |s| and |y|. */
bool box_keeps_pair(double sy, double step_square, double yy);

/* What a bound on the gap of duality takes. r is the gradient of the mean loss at w. */
struct l1_gap {
    double mean_loss, norm_1, square; /* L, |w|₁, w·w */
    double wr;                        /* w·r */
    double excess; /* l2 > 0: Σ max(|r_j| − l1, 0)²; else max |r_j| or more */
};

/* How far F at w is above the minimum at most, for a loss that is convex and nowhere negative, and
 * a model without biases: by the dual point of the derivatives, scaled into what l1 allows. */
double l1_gap_bound(double l1, double l2, const struct l1_gap *gap);

void linesearch_serialize(struct codec *codec, struct linesearch *search);

#endif
