/* Where the steps of a run may go: anywhere; from orthant to orthant, with l1; or between the
 * bounds of columns. A row for each, which lbfgs_init() chooses; linesearch.h says what differs,
 * and why.
 *
 * Where there are orthants or bounds the pseudo-gradient takes the gradient's place: qg at x, which
 * each direction forms anew, and qh at t. */
#ifndef DML_OPTIMIZER_LBFGS_DOMAIN_H
#define DML_OPTIMIZER_LBFGS_DOMAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "optimizer/lbfgs_types.h"

struct measured;

/* A member that a domain has no use for is NULL. */
struct domain {
    uint8_t gradient_x, gradient_t; /* registers of the gradient that steps follow, at x and at t */

    /* Forms the gradient that a direction begins with, and answers its register. */
    uint8_t (*descend)(const struct lbfgs *o, struct bytes *program);
    /* Keeps the direction d, and the trial t of a step from x, to what x allows; and a trial that
     * may leave the orthant of x to its bounds alone. */
    void (*align)(struct bytes *program);
    void (*project)(struct bytes *program);
    void (*clip)(struct bytes *program);
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

const struct domain *domain_of(const struct optimizer_settings *settings);

/* a = the pseudo-gradient at x, of the gradient g there. */
void domain_pseudo_gradient(const struct lbfgs *o, struct bytes *program, uint8_t a, uint8_t x,
                            uint8_t g);

#endif
