/* Small dense algebra for the optimizer: m×m matrices, m the length of the history. Matrices are
 * upper triangular and column-major with leading dimension `ld`; what is below the diagonal is not
 * read. The same bits on every machine. One thread. */
#ifndef DML_NUMERIC_DENSE_H
#define DML_NUMERIC_DENSE_H

#include <stdbool.h>
#include <stddef.h>

/* b = R⁻¹ b, or R⁻ᵀ b; R n×n with a non-zero diagonal. NaN and infinity are passed on. */
void dense_upper_solve(size_t n, const double *r, size_t ld, bool transposed, double *b);

/* The order of the largest lower right corner of R (n×n) whose reciprocal condition number in the
 * 1-norm is at least `least`, which is above 0. A corner with a NaN, or a zero on its diagonal, has
 * none. */
size_t dense_upper_corner(size_t n, const double *r, size_t ld, double least);

#endif
