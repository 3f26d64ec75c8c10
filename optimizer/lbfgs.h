/* The row of L-BFGS, with a line search (Nocedal and Wright, "Numerical optimization", 2006,
 * algorithm 7.5, with the directions of pairs.h); with l1 orthant-wise (linesearch.h).
 *
 * An accepted step takes an evaluation and two programs that return scalars: one measures the trial
 * (round A), one forms the next direction (round B). With common directions (lbfgs_span.c) a step
 * takes a product and its transpose, and more rounds between them in place of the line search. In
 * tiles without them each evaluation is a product and its transpose (lbfgs_products.c).
 *
 * Invariants between calls: register x holds the last accepted point, which has the least loss, g
 * its gradient and, while a preconditioner P is in force, pg the product P·g unless
 * `unconditioned`; a trial that was accepted but not yet put into x is put there by the next
 * program.
 *
 * With early stopping each point also has a loss on the holdout, and the one with the least is the
 * answer: it is x, or it was left behind. The program that leaves it puts it into register best, by
 * changing names: that costs no pass over the vector. Equal losses are not better, so the first of
 * several stays. */
#ifndef DML_OPTIMIZER_LBFGS_H
#define DML_OPTIMIZER_LBFGS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "optimizer/lbfgs_types.h"
#include "optimizer/row.h"

extern const struct optimizer_row lbfgs_row; /* of a struct lbfgs */

void lbfgs_init(struct lbfgs *lbfgs, const struct optimizer_settings *settings,
                const struct optimizer_data *data);

/* A curvature pair to start with, oldest first and before the beginning: s is in register t and y
 * in h. Its scalars go to lbfgs_loaded(), with its number from 0. A pair that has no curvature is
 * passed over. */
void lbfgs_load(struct lbfgs *lbfgs, struct bytes *program);
void lbfgs_loaded(struct lbfgs *lbfgs, const double *scalars, uint64_t number);

/* The point that is the answer if the run ends now: the best on the holdout with patience, else
 * x. */
struct optimizer_point lbfgs_answer(const struct lbfgs *lbfgs);

/* The register that holds it (enum vector_register), once the last program has run. */
uint8_t lbfgs_answer_register(const struct lbfgs *lbfgs);

/* Whether the gap at x, by estimate, is as small as a run that has converged must have it. True if
 * it is not known. */
bool lbfgs_gap_is_small(const struct lbfgs *lbfgs);

/* The least fall of F in a step, over the last LOSSES_KEPT / 2; 0 before there were LOSSES_KEPT. */
double lbfgs_fall(const struct lbfgs *lbfgs);

#endif
