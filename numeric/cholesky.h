/* Factors of dense symmetric matrices, and solutions with them, in an order that depends on n
 * alone.
 *
 * LAPACK's routines are faster, but choose their order by the processor; these compute the same
 * bits on every machine. One thread a call.
 *
 * A *triangle* holds the rows of a lower triangle one after the other. Row r has r + 1 elements,
 * is padded with zeros to whole lanes and begins at triangle_row(r); rows are fastest if the
 * triangle is aligned to 64 bytes. */
#ifndef DML_NUMERIC_CHOLESKY_H
#define DML_NUMERIC_CHOLESKY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/limits.h"

/* Where row r begins, in elements; for the number of rows, where the triangle ends. */
size_t triangle_row(size_t r);

/* a = C with A = C·Cᵀ, in place; n ≤ PRECONDITION_PARAMETERS_MAX. The diagonal of A is to be about
 * 1: false if A is not positive definite to within rounding, which is if a pivot is not above
 * 1e-14, or not finite. Then the triangle holds nothing of use. */
bool cholesky_factor(size_t n, double *a);

/* b = (C·Cᵀ)⁻¹·b, n elements. Elements that are not finite are passed on. */
void cholesky_solve(size_t n, const double *c, double *b);

#endif
