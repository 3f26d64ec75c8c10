/* A GPU as one would use it without dml: logistic regression on sparse rows by cuSPARSE and cuBLAS,
 * in doubles, all in the GPU's memory. What bench/plain_lbfgs compares with. Any failure ends the
 * process. */
#ifndef DML_BENCH_PLAIN_GPU_H
#define DML_BENCH_PLAIN_GPU_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A matrix in the host's memory: the values of row i are number start[i] … start[i + 1] − 1. */
struct plain_matrix {
    int rows, columns, values;
    const int *start, *column; /* rows + 1, values */
    const double *value;
};

/* Takes the rows, their transpose and the labels (0 or 1). Columns from `regularized` on have no
 * l2. */
void plain_open(const struct plain_matrix *rows, const struct plain_matrix *transpose,
                const double *label, int regularized, double l2);

double *plain_vector(void); /* a new one of the GPU, of `columns` zeros */

/* The mean loss and l2/2·|x|², and their gradient. */
double plain_evaluate(const double *x, double *gradient);

double plain_dot(const double *a, const double *b);
void plain_add(double *a, double alpha, const double *b); /* a += alpha·b */
void plain_copy(double *to, const double *from);
void plain_scale(double *a, double alpha);

#ifdef __cplusplus
}
#endif

#endif
