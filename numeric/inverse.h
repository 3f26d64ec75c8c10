/* What inverses of dense symmetric matrices have on their diagonals, from Cholesky factors:
 * triangles as numeric/dense.h has them. In an order that depends on n alone: the same bits on
 * every machine, and with any number of threads. */
#ifndef DML_NUMERIC_INVERSE_H
#define DML_NUMERIC_INVERSE_H

#include <stddef.h>

/* diagonal[r] = ((C·Cᵀ)⁻¹)_rr, n elements; n³/6 products. 0 of a row that cholesky_ranked() left
 * out. */
void inverse_diagonal(size_t n, const double *c, double *diagonal);

/* diagonal[r] = ((C·Cᵀ)⁻¹·M·(C·Cᵀ)⁻¹)_rr for a symmetric M, a triangle as C; n³·7/6 products. 0 as
 * above. */
void inverse_sandwich(size_t n, const double *c, const double *m, double *diagonal);

/* uᵀ·(C·Cᵀ)⁻¹·u, and with M uᵀ·(C·Cᵀ)⁻¹·M·(C·Cᵀ)⁻¹·u; M may be NULL. */
double inverse_form(size_t n, const double *c, const double *m, const double *u);

#endif
