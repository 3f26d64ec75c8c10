/* The programs of L-BFGS, piece by piece, and where their scalars stand. */
#ifndef DML_OPTIMIZER_LBFGS_PROGRAMS_H
#define DML_OPTIMIZER_LBFGS_PROGRAMS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "optimizer/lbfgs_types.h"

/* H₀, which pairs build on: P while it is in force; the diagonal in register A; or a multiple of
 * the identity, with a scale of its own for biases. A row for each. */
struct initial {
    uint8_t gradient_x, gradient_t; /* registers of its products with the gradients at x and at t */
    /* a = P·b; NULL: those registers are the gradients themselves. */
    void (*product)(const struct lbfgs *o, struct bytes *program, uint8_t a, uint8_t b);
    bool scaled;        /* by register A */
    bool scales_biases; /* apart from weights */
    bool curves;        /* there is curvature in it before there are pairs */
};

/* That of the next direction. */
const struct initial *programs_initial(const struct lbfgs *o);

/* a = 0. */
void programs_zero(struct bytes *program, uint8_t a);

/* Puts an accepted trial into x, g and pg, and x into best if it is that; changes names only. */
void programs_acceptance(struct lbfgs *o, struct bytes *program);

/* t = x + search.step·d, before an evaluation, kept to what x allows by this operation of the
 * domain (0: by none). */
void programs_trial(const struct lbfgs *o, struct bytes *program, enum operation_code keep);

/* d, and pg = P·g if that is not there yet; what it has of the biases alone, if that is due. Yields
 * nothing. */
void programs_direction(struct lbfgs *o, struct bytes *program);

/* Forms the pseudo-gradient at x, and lists parameters for a working set; then finds the step over
 * the chosen ones. */
void programs_list(const struct lbfgs *o, struct bytes *program, uint32_t limit);
void programs_solve(const struct lbfgs *o, struct bytes *program);

/* The errors of estimates of the sums into d, and the restated estimates into h; robust errors into
 * ph. */
void programs_covariance(const struct lbfgs *o, struct bytes *program);
void programs_sandwich(const struct lbfgs *o, struct bytes *program);

/* Yields the slope of F along d. */
void programs_slope(const struct lbfgs *o, struct bytes *program);

/* Forms the candidate pair of t and h as differences to the registers x and g; `initial` has the
 * product of H₀ with g. Yields the products of every pair, the candidate last, with the gradient at
 * t and with the candidate's y. */
void programs_pair(const struct lbfgs *o, struct bytes *program, uint8_t x, uint8_t g,
                   uint8_t initial);
void programs_products(const struct lbfgs *o, struct bytes *program);

/* Finishes the gradient at t, and yields all that may be needed of the trial. */
void programs_measures(const struct lbfgs *o, struct bytes *program);

/* What programs_measures() yielded. */
struct measured {
    double loss;        /* F at t */
    double slope;       /* along d at t, by the same; NaN if a component is not finite; 0 where
                           steps are along no line */
    double square, max; /* of the gradient there; with l1 of the pseudo-gradient */
    const struct pairs_products *products; /* of the pairs and the candidate; NULL if none were
                                              asked for */
    struct tensor_norms norms;             /* of the tensors, at t */
    double gap;       /* the sums of struct gap_settings at t, times their factors */
    double steepness; /* s·y over s·D·s for the D that they divide by; 1: not known */
    /* the rest with l1 or limits only; s = t − x */
    double falls, ends;        /* the slopes of F along s, at x and at t; NaN as above */
    double step_square;        /* s·s */
    uint64_t nonzero;          /* regularised parameters at t that are not 0, */
    uint64_t moving, at_bound; /* that nothing holds where they are, and that are at a bound */
    double gap_bound;          /* F(t) is this much above the minimum at most; NaN: not known */
};
struct measured programs_measured(const struct lbfgs *o, const double *scalars);

/* ---- lbfgs_domain.c: where steps may go ---- */

/* Anywhere; from orthant to orthant, with l1; or between the bounds of columns. A row for each,
 * which lbfgs_init() chooses; linesearch.h says what differs, and why.
 *
 * Where there are orthants or bounds the pseudo-gradient takes the gradient's place: qg at x, which
 * each direction forms anew, and qh at t. A member that a domain has no use for is NULL. */
struct domain {
    uint8_t gradient_x, gradient_t; /* registers of the gradient that steps follow, at x and at t */

    /* Forms the gradient that a direction begins with, and answers its register. */
    uint8_t (*descend)(const struct lbfgs *o, struct bytes *program);
    /* Operations that keep the direction d, and the trial t of a step from x, to what x allows; and
     * a trial that may leave the orthant of x to its bounds alone. 0: none does. */
    enum operation_code align, project, clip;
    /* Takes out of the candidate pair what did not move. */
    void (*mask)(const struct lbfgs *o, struct bytes *program);

    /* Forms the gradient that steps follow at t. */
    void (*finish)(const struct lbfgs *o, struct bytes *program);
    /* Yields so many scalars of a trial that nothing else measures; and takes them, with the square
     * of what is regularised. */
    uint32_t scalars;
    void (*measure)(const struct lbfgs *o, struct bytes *program);
    void (*take)(const struct lbfgs *o, const double *scalars, double square,
                 struct measured *measured);

    /* Whether an accepted step's pair has the curvature to be kept. */
    bool (*keeps_pair)(const struct lbfgs *o, const struct measured *measured);
    /* The line search, by what was measured; by a lower bound of F that refuses the trial. */
    enum linesearch_answer (*search)(struct linesearch *search, const struct measured *measured);
    enum linesearch_answer (*refused)(struct linesearch *search, double bound);
};

/* That of a run. */
const struct domain *domain_of(const struct optimizer_settings *settings);

/* a = the pseudo-gradient at x, of the gradient g there. */
void domain_pseudo_gradient(const struct lbfgs *o, struct bytes *program, uint8_t a, uint8_t x,
                            uint8_t g);

#endif
