/* The largest eigenvalues of AᵀA/m, with A m×n, row-major, in double.
 *
 * By subspace iteration from fixed vectors, then Rayleigh and Ritz: close, but not to the last
 * digit where eigenvalues lie close together. For preconditioners, which need no more. The same
 * bits on every processor: the products are those of numeric/matrix.h. One thread. */
#ifndef DML_NUMERIC_EIGEN_H
#define DML_NUMERIC_EIGEN_H

#include <stddef.h>

#include "numeric/matrix.h"

/* Most that are found at once. */
#define EIGEN_MAX 16

/* Writes `count` ≤ min(n, EIGEN_MAX) eigenvalues, falling and at least 0, and their vectors, the
 * columns of the n×count matrix: orthonormal; of an eigenvalue of 0 it may be a column of zeros.
 * Whatever A holds, if it is finite and its squares are too. */
void eigen_largest(struct matrix_scratch *scratch, size_t m, size_t n, const double *a,
                   size_t count, double *values, double *vectors);

/* The eigenvalues, falling, and vectors (columns) of a symmetric matrix, n ≤ EIGEN_MAX, by Jacobi's
 * rotations. The matrix is overwritten. */
void eigen_symmetric(size_t n, double *matrix, double *values, double *vectors);

#endif
