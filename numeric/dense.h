/* Small dense algebra for the optimizer: m×m matrices, m the length of the history. Matrices are
 * upper triangular and column-major with leading dimension `ld`; what is below the diagonal is not
 * read. The same bits on every machine. One thread. */
#ifndef DML_NUMERIC_DENSE_H
#define DML_NUMERIC_DENSE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/limits.h"
#include "numeric/matrix.h"

/* b = R⁻¹ b, or R⁻ᵀ b; R n×n with a non-zero diagonal. NaN and infinity are passed on. */
void dense_upper_solve(size_t n, const double *r, size_t ld, bool transposed, double *b);

/* The order of the largest lower right corner of R (n×n) whose reciprocal condition number in the
 * 1-norm is at least `least`, which is above 0. A corner with a NaN, or a zero on its diagonal, has
 * none. */
size_t dense_upper_corner(size_t n, const double *r, size_t ld, double least);

/* Factors of dense symmetric matrices, and solutions with them, in an order that depends on n
 * alone.
 *
 * LAPACK's routines are faster, but choose their order by the processor; these compute the same
 * bits on every machine. One thread a call.
 *
 * A *triangle* holds the rows of a lower triangle one after the other. Row r has r + 1 elements,
 * is padded with zeros to whole lanes and begins at triangle_row(r); rows are fastest if the
 * triangle is aligned to 64 bytes. */

/* Where row r begins, in elements; for the number of rows, where the triangle ends. */
size_t triangle_row(size_t r);

/* a = C with A = C·Cᵀ, in place; n ≤ PRECONDITION_PARAMETERS_MAX. The diagonal of A is to be about
 * 1: false if A is not positive definite to within rounding, which is if a pivot is not above
 * 1e-14, or not finite. Then the triangle holds nothing of use. */
bool cholesky_factor(size_t n, double *a);

/* The factor of an A that may be singular. Row r whose pivot is not above least[r] depends on those
 * before it to within rounding: the diagonal of C is CHOLESKY_ALIASED there, so large that the row
 * stays out of solutions and inverses, where it has zeros, or next to it. False if a pivot is not
 * finite. */
#define CHOLESKY_ALIASED 1e300
bool cholesky_ranked(size_t n, double *a, const double *least);

/* Continues cholesky_ranked(), to the same bits, where rows before `begin` are those of C
 * already. */
bool cholesky_ranked_from(size_t begin, size_t n, double *a, const double *least);

/* b = (C·Cᵀ)⁻¹·b, n elements. Elements that are not finite are passed on. */
void cholesky_solve(size_t n, const double *c, double *b);

/* b = A⁻¹·b for a symmetric, positive semidefinite A: n×n, row-major, of which the lower triangle
 * is read and overwritten. An element whose pivot is not above `least` depends on those before it
 * to within rounding: it stays out of the solution, and is 0. A pivot that is not finite stays out
 * as well. */
void dense_semidefinite_solve(size_t n, double *a, double least, double *b);

/* The largest eigenvalues of AᵀA/m, with A m×n, row-major, in double.
 *
 * By subspace iteration from fixed vectors, then Rayleigh and Ritz: close, but not to the last
 * digit where eigenvalues lie close together. For preconditioners, which need no more. The same
 * bits on every processor: the products are those of numeric/matrix.h. One thread. */

/* Most that are found at once. */
#define EIGEN_MAX 16

/* Writes `count` ≤ min(n, EIGEN_MAX) eigenvalues, falling and at least 0, and their vectors, the
 * columns of the n×count matrix: orthonormal; of an eigenvalue of 0 it may be a column of zeros.
 * Whatever A holds, if it is finite and its squares are too. */
void eigen_largest(struct matrix_scratch *scratch, size_t m, size_t n, const double *a,
                   size_t count, double *values, double *vectors);

#endif
