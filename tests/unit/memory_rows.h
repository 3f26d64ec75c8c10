/* Vectors of rows and the operations on them (wire/program.h), on plain arrays in memory, and what
 * evaluations of a linear model compute: for tests of the optimizer alone. */
#ifndef DML_TESTS_MEMORY_ROWS_H
#define DML_TESTS_MEMORY_ROWS_H

#include <stdint.h>

#include "wire/program.h"

enum rows_loss {
    ROWS_LOGISTIC, /* labels −1 and 1 */
    ROWS_SQUARED,
    ROWS_SOFTMAX, /* labels 0 … outputs − 1 */
    ROWS_CORNER,  /* |z − y|, which curves nowhere */
};

/* Sparse rows. Parameters are outputs×columns, row-major: a row of weights for each output. */
struct rows_problem {
    enum rows_loss loss;
    uint32_t rows, columns, outputs;
    const uint32_t *start; /* rows + 1: where each begins in the next two */
    const uint32_t *column;
    const double *value;
    const double *labels;
    const double *weights;              /* NULL: all are 1 */
    bool intercept;                     /* the last column is one, free of l2 */
    const struct rows_problem *holdout; /* NULL: there is none */
    uint32_t tiles; /* 0: none; else products are fixed point (numeric/fixed.h) */
};

struct memory_rows {
    const struct rows_problem *problem;
    double *margins, *derivatives, *product[WINDOW_MAX], *at;
    double *labels, *weights, *sizes; /* as they were taken */
    double *sums;                     /* of the last evaluation with SUMS_ROWS */
    int point;                        /* its bound, in tiles */
};

void memory_rows_init(struct memory_rows *rows, const struct rows_problem *problem);
void memory_rows_release(struct memory_rows *rows);
void memory_rows_copy(struct memory_rows *to, const struct memory_rows *from);

/* All but what a checkpoint holds becomes NaN. */
void memory_rows_lose(struct memory_rows *rows, bool margins, uint32_t window,
                      const uint64_t *slots);

/* Runs a ROWS operation; answers how many scalars it wrote. */
uint32_t memory_rows_run(struct memory_rows *rows, const struct operation *o, double *scalars);

/* Computes a part at t, in tiles under the bound `point` of a product. Gradients go to `sum`;
 * answers the first total. *exceeded: a product in tiles is beyond what the bound allows. */
double memory_rows_evaluate(struct memory_rows *rows, uint32_t kind, int point, const double *t,
                            double *sum, bool *exceeded);

/* The sum of the losses at t. */
double rows_loss_at(const struct rows_problem *problem, const double *t);
double rows_weight_sum(const struct rows_problem *problem);

#endif
