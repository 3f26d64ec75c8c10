/* The vector operations of wire/program.h on plain arrays in memory, and a driver that runs the
 * optimizer on a function with them. For tests of the optimizer alone. */
#ifndef DML_TESTS_MEMORY_BACKEND_H
#define DML_TESTS_MEMORY_BACKEND_H

#include <stdint.h>

#include "coordinator/optimizer.h"

/* Writes the gradient (n elements) and answers the value. */
typedef double test_function(uint32_t n, const double *x, double *gradient);

struct minimization {
    struct optimizer optimizer; /* as it ended */
    double *x;                  /* n: where it ended; owned */
    double loss_largest_rise;   /* of F from one accepted step to the next */
};

/* Minimizes from `start` (n elements); release with free(result->x). */
void minimize(test_function *function, uint32_t n, const double *start,
              const struct optimizer_settings *settings, struct minimization *result);

#endif
