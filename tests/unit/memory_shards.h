/* The vector operations of wire/program.h on plain arrays in memory, whose last element is a bias
 * (with l2 it is regularised all the same, unless the vectors are of rows that have intercepts).
 * For tests of the optimizer alone. */
#ifndef DML_TESTS_MEMORY_SHARDS_H
#define DML_TESTS_MEMORY_SHARDS_H

#include <stdint.h>

#include "optimizer/lbfgs.h"
#include "tests/unit/memory_rows.h"

struct backend {
    uint32_t n;
    double *vector[REGISTERS];
    double *s[SLOTS_MAX], *q[SLOTS_MAX];
    double *y;       /* of the pair formed last */
    double *sum;     /* the gradient that GRADIENT takes */
    double *hessian; /* n×n, at the point of the last evaluation of the curvature */
    double *factor;  /* n×n: what PRECONDITION solves with */
    uint64_t serial; /* of the factor */
    uint32_t block;  /* elements of a leading block; 0: it has all */
    double *window[WINDOW_MAX];
    struct memory_rows *rows; /* NULL: none */
};

void backend_init(struct backend *backend, uint32_t n);
void backend_release(struct backend *backend);

/* Of backends of one size that have rows. */
void backend_copy(struct backend *to, const struct backend *from);

/* Runs a program, and writes its scalars. */
void backend_run(struct backend *backend, const struct bytes *program, double *scalars);

/* What is in no checkpoint holds anything after a restart. */
void backend_lose(struct backend *backend, const struct lbfgs *optimizer);

#endif
