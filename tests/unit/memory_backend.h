/* The vector operations of wire/program.h on plain arrays in memory, whose last element is a bias
 * (with l2 it is regularised all the same), and a driver that runs the optimizer on a function with
 * them. For tests of the optimizer alone. */
#ifndef DML_TESTS_MEMORY_BACKEND_H
#define DML_TESTS_MEMORY_BACKEND_H

#include <stdint.h>

#include "optimizer/lbfgs.h"

/* Writes the gradient (n elements) and answers the value. */
typedef double test_function(uint32_t n, const double *x, double *gradient);

struct minimization {
    struct lbfgs optimizer;   /* as it ended */
    double *x;                /* n: the answer; owned */
    double loss_largest_rise; /* of F from one accepted step to the next */
};

/* Minimizes from `start` (n elements); release with free(result->x). */
void minimize(test_function *function, uint32_t n, const double *start,
              const struct optimizer_settings *settings, struct minimization *result);

/* The loss on a holdout. */
typedef double test_holdout(uint32_t n, const double *x);

/* Writes the Hessian (n×n) at x. */
typedef void test_hessian(uint32_t n, const double *x, double *hessian);

/* The same with a preconditioner that takes the Hessian at x, without l2, for what the rows of a
 * sample give; `score` is what each evaluation of it finds. If `resumes`, all but what a checkpoint
 * holds is lost after each step, and the optimizer goes on from that. */
void minimize_conditioned(test_function *function, test_hessian *hessian, double score,
                          bool resumes, uint32_t n, const double *start,
                          const struct optimizer_settings *settings, struct minimization *result);

/* The same with a diagonal of H₀ (n elements), and a Hessian if there is to be a preconditioner. */
void minimize_scaled(test_function *function, test_hessian *hessian, const double *diagonal,
                     bool resumes, uint32_t n, const double *start,
                     const struct optimizer_settings *settings, struct minimization *result);

/* The same with a holdout, to the optimizer's answer. If `resumes`, all but what a checkpoint holds
 * is lost after each step, and the optimizer goes on from that. */
void minimize_watched(test_function *function, test_holdout *holdout, bool resumes, uint32_t n,
                      const double *start, const struct optimizer_settings *settings,
                      struct minimization *result);

#endif
