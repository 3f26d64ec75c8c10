/* A driver that runs the optimizer on a function, or on rows in memory, with the vector operations
 * of memory_shards.h. For tests of the optimizer alone. */
#ifndef DML_TESTS_MEMORY_BACKEND_H
#define DML_TESTS_MEMORY_BACKEND_H

#include <stdint.h>

#include "optimizer/lbfgs.h"
#include "tests/unit/memory_rows.h"

/* Writes the gradient (n elements) and answers the value. */
typedef double test_function(uint32_t n, const double *x, double *gradient);

struct minimization {
    struct lbfgs optimizer;   /* as it ended */
    double *x;                /* n: the answer; owned */
    double loss_largest_rise; /* of F from one accepted step to the next */
    uint32_t requests;        /* that it left */
    double passes;            /* with rows: a product or its transpose is half of one */
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

/* What happens to a run over rows at one of its requests, before it is answered. */
enum disturbance {
    UNDISTURBED,
    SERIALIZED,  /* at each: the optimizer goes on from what it wrote */
    ROLLED_BACK, /* all goes back to the last accepted point, as it was there */
    CANCELLED,   /* the run is ended, and goes on from its final checkpoint */
    LIMITED,     /* the run may make as many steps as requests are given, and goes on later */
};

/* Minimizes the loss of a linear model over rows, with common directions or without. */
void minimize_rows(const struct rows_problem *rows, test_hessian *hessian,
                   enum disturbance disturbance, uint32_t request, const double *start,
                   const struct optimizer_settings *settings, struct minimization *result);

#endif
