/* The programs that the optimizer issues, piece by piece, and where their scalars stand.
 *
 * With l1 (orthant.h) the pseudo-gradient takes the gradient's place: qg at x, which each direction
 * forms anew, and qh at t. */
#ifndef DML_OPTIMIZER_PROGRAMS_H
#define DML_OPTIMIZER_PROGRAMS_H

#include "optimizer/lbfgs.h"
#include "wire/program.h"

/* a = 0. */
void programs_zero(struct bytes *program, uint8_t a);

/* Puts an accepted trial into x, g and pg, and x into best if it is that; changes names only. */
void programs_acceptance(struct optimizer *o, struct bytes *program);

/* t = x + search.step·d, before an evaluation; with l1 within the orthant of x. */
void programs_trial(const struct optimizer *o, struct bytes *program);

/* t = x. */
void programs_return(struct bytes *program);

/* t = the gradient at x, with l1 the pseudo-gradient; and t = P times the gradient. */
void programs_gradient(const struct optimizer *optimizer, struct bytes *program);
void programs_newton(const struct optimizer *optimizer, struct bytes *program);

/* d, and pg = P·g if that is not there yet. Yields nothing. */
void programs_direction(struct optimizer *o, struct bytes *program);

/* Yields the slope of F along d. */
void programs_slope(const struct optimizer *o, struct bytes *program);

/* Forms the candidate pair of t and h as differences to the registers x and g, and yields the
 * products of every pair, the candidate last, with h and with the candidate's y. */
void programs_pair(const struct optimizer *o, struct bytes *program, uint8_t x, uint8_t g);

/* Finishes the gradient at t, and yields all that may be needed of the trial. */
void programs_measures(const struct optimizer *o, struct bytes *program);

/* What programs_measures() yielded. */
struct measured {
    double loss;        /* F at t */
    double slope;       /* along d at t, by the same; NaN if a component is not finite */
    double square, max; /* of the gradient there; with l1 of the pseudo-gradient */
    const struct pairs_products *products; /* of the pairs and the candidate; NULL if none were
                                              asked for */
    struct tensor_norms norms;             /* of the tensors, at t */
    /* the rest with l1 only; s = t − x */
    double falls, ends; /* the slopes of F along s, at x and at t; NaN as above */
    double step_square; /* s·s */
    uint64_t nonzero;   /* regularised parameters at t that are not 0 */
    double gap_bound;   /* F(t) is this much above the minimum at most; NaN: not known */
};
struct measured programs_measured(const struct optimizer *o, const double *scalars);

#endif
