/* The minimum of F in the span of common directions (Wang, Lee and Lin, "The common-directions
 * method for regularized empirical risk minimization", 2019), as a state that is fed one trial at a
 * time:
 *
 *     phi(c) = L(Z + Σ c_i·Q_i)/weight_sum + l2·(Σ c_i·x·p_i + ½·Σ c_i·c_j·p_i·p_j)
 *
 * which is F(x + Σ c_i·p_i) but for what x adds to it. Newton's method: second derivatives by the
 * directions of a sample of the rows, in units of its diagonal. They are kept from search to
 * search: one measures them by the newest direction alone, and slopes correct them by BFGS as it
 * goes on. All are measured anew where a step falls by clearly less than they say, or a direction
 * seems to depend on others, and after SPAN_SEARCHES_KEPT searches. Directions that depend on newer
 * ones to within rounding stay out of a step; the newest one never does. A step is halved until phi
 * falls enough; where it differs by no more than rounding the slopes decide, as in linesearch.h.
 *
 * It ends once the Newton decrement γᵀH⁻¹γ has fallen to three hundredths of the first (the slopes
 * to a sixth), after five steps, or where nothing falls any more. If three steps are not enough
 * with a sample, all rows take part from then on.
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

#define SPAN_SEARCHES_KEPT 8
#define SPAN_SECOND_MAX (DIRECTIONS_MAX * (DIRECTIONS_MAX + 1) / 2)

struct span_settings {
    double weight_sum, l2;
    uint64_t rows; /* of the training data */
    uint32_t outputs;
    double noise;         /* differences of phi up to this are rounding */
    double first;         /* how far to go along the newest direction if it has no curvature */
    double damping;       /* that the search before ended with; 0 at first */
    double slope;         /* of F along the newest direction */
    uint64_t sample_seed; /* for a sample */
};

/* Second derivatives of the sums over rows, about, at the point that a search has come to. */
struct span_kept {
    uint32_t count;       /* between searches: directions of the window that they are by, or 0 */
    uint32_t searches;    /* begun since all were measured */
    bool exact;           /* all were measured at this point */
    bool slopes;          /* loss and sums of slopes are those of this point, too */
    uint64_t sample_seed; /* of their sample */
    double second[SPAN_SECOND_MAX]; /* rows of a lower triangle */
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
    double sums[DIRECTIONS_MAX];   /* over rows, of the slopes at c */
    struct span_kept kept;
};

/* What is to be measured at span_point(). */
enum span_answer {
    SPAN_LOSS,            /* the loss and the largest derivative */
    SPAN_SLOPES,          /* the slopes as well */
    SPAN_NEWEST,          /* and second derivatives by the newest direction and each */
    SPAN_ALL,             /* and all second derivatives */
    SPAN_HESSIAN_PRODUCT, /* second derivatives by the newest direction and each, as the rest is
                             known */
    SPAN_SECOND,          /* all second derivatives likewise */
    SPAN_ACCEPT,          /* nothing: c is the minimum, about */
    SPAN_FAIL,            /* nothing: there is no decrease */
};

/* Sums over rows at a trial, with their weights. */
struct span_trial {
    double loss, derivative;
    const double *slopes; /* one a direction; NULL if they were not measured */
    const double *newest; /* one a direction, at `rate`: by the newest direction; or NULL */
    const double *second; /* rows of a lower triangle, one after the other, at `rate`; or NULL */
};

/* The share of the rows that second derivatives are taken of at first. */
double span_rate(uint32_t directions, uint64_t rows, uint32_t outputs);

/* Begins at c = 0, and says what is to be measured there. Directions are those of the window and
 * its candidate. The span is zeros, or what the search before has left. */
enum span_answer span_begin(struct span *span, const struct window *window,
                            const struct span_settings *settings);

/* The step was made, and the window has the candidate now. */
void span_stepped(struct span *span);

/* The window drops its oldest direction. */
void span_drop_oldest(struct span *span);

/* Takes what was measured at span_point(). */
enum span_answer span_next(struct span *span, const struct window *window,
                           const struct span_trial *trial);

/* Where to measure: `count` numbers. After SPAN_ACCEPT it is the answer. */
void span_point(const struct span *span, double *point);

/* The slope of F at x along the way to c: Σ c_i·slope_i. */
double span_fall(const struct span *span);

void span_serialize(struct codec *codec, struct span *span);

#endif
