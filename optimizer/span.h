/* The minimum of F in the span of common directions (Wang, Lee and Lin, "The common-directions
 * method for regularized empirical risk minimization", 2019), as a state that is fed one trial at a
 * time:
 *
 *     phi(c) = L(Z + Σ c_i·Q_i)/weight_sum + l2·(Σ c_i·x·p_i + ½·Σ c_i·c_j·p_i·p_j)
 *
 * which is F(x + Σ c_i·p_i) but for what x adds to it. Newton's method: second derivatives by the
 * directions of a sample of the rows, in units of its diagonal. Directions that depend on newer
 * ones to within rounding stay out of a step; the newest one never does. A step is halved until phi
 * falls enough; where it differs by no more than rounding the slopes decide, as in linesearch.h.
 *
 * It ends once the Newton decrement γᵀH⁻¹γ has fallen to a hundredth of the first (the slopes to a
 * tenth), after five steps, or where nothing falls any more. If three steps are not enough with a
 * sample, all rows take part from then on.
 *
 * The struct is plain data: it can be stored and resumed between any two trials. It comes to an end
 * whatever it is fed. */
#ifndef DML_OPTIMIZER_SPAN_H
#define DML_OPTIMIZER_SPAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/codec.h"
#include "base/limits.h"
#include "optimizer/window.h"

#define SPAN_TRIALS_MAX 40

struct span_settings {
    double weight_sum, l2;
    uint64_t rows;  /* of the training data */
    double noise;   /* differences of phi up to this are rounding */
    double first;   /* how far to go along the newest direction if it has no curvature */
    double damping; /* that the search before ended with; 0 at first */
};

struct span {
    struct span_settings settings;
    uint32_t count;                /* directions; the newest is the last */
    uint32_t steps, trials;        /* accepted and tried */
    uint32_t tried;                /* along this step, in vain */
    double rate;                   /* share of the rows that second derivatives are taken of */
    double c[DIRECTIONS_MAX];      /* where it has come to */
    double step[DIRECTIONS_MAX];   /* from there */
    double length;                 /* of the trial along the step; 0: more is asked of c itself */
    double value, slope;           /* phi at c, and its slope along the step */
    double loss, derivative;       /* the mean loss at c, and the largest derivative by a margin */
    double decrement;              /* of the first step */
    double slopes[DIRECTIONS_MAX]; /* by each c_i at the beginning */
    double reach;                  /* of the next step without curvature */
    double damping;                /* share of the diagonal that is added to it */
    double curvature;              /* of the step by the Hessian */
};

/* What is to be measured at span_point(). */
enum span_answer {
    SPAN_LOSS,   /* the loss and the largest derivative */
    SPAN_ALL,    /* the slopes and second derivatives as well */
    SPAN_ACCEPT, /* nothing: c is the minimum, about */
    SPAN_FAIL,   /* nothing: there is no decrease */
};

/* Sums over rows at a trial, with their weights. */
struct span_trial {
    double loss, derivative;
    const double *slopes; /* one a direction; NULL if only the loss was measured */
    const double *second; /* the rows of a lower triangle, one after the other, at `rate` */
};

/* The share of the rows that second derivatives are taken of at first. */
double span_rate(uint32_t directions, uint64_t rows);

/* Begins at c = 0, of which all is to be measured. Directions are those of the window and its
 * candidate. */
void span_begin(struct span *span, const struct window *window,
                const struct span_settings *settings);

/* Takes what was measured at span_point(). */
enum span_answer span_next(struct span *span, const struct window *window,
                           const struct span_trial *trial);

/* Where to measure: `count` numbers. After SPAN_ACCEPT it is the answer. */
void span_point(const struct span *span, double *point);

/* The slope of F at x along the way to c: Σ c_i·slope_i. */
double span_fall(const struct span *span);

void span_serialize(struct codec *codec, struct span *span);

#endif
