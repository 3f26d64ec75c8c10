/* Small dense algebra (LAPACK) for the optimizer: m×m matrices, m the length of the history.
 * Matrices are column-major with leading dimension `ld`. One thread. */
#ifndef DML_NUMERIC_DENSE_H
#define DML_NUMERIC_DENSE_H

#include <stdbool.h>
#include <stddef.h>

/* b = R⁻¹ b, or R⁻ᵀ b; R upper triangular n×n with a non-zero diagonal. */
void dense_upper_solve(size_t n, const double *r, size_t ld, bool transposed, double *b);

/* The reciprocal condition number of R in the 1-norm, estimated (dtrcon). 1 for n = 0; 0 if R holds
 * a NaN. */
double dense_upper_rcond(size_t n, const double *r, size_t ld);

#endif
