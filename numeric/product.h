/* Matrix products for models computed with them (BLAS). Row-major, tightly packed, one thread. The
 * bits depend on the BLAS kernel in use. */
#ifndef DML_NUMERIC_PRODUCT_H
#define DML_NUMERIC_PRODUCT_H

#include <stddef.h>

/* c (m×n) = a (m×k) · b (k×n) */
void product_plain(size_t m, size_t n, size_t k, const double *a, const double *b, double *c);

/* c (m×n) = aᵀ · b, a (k×m), b (k×n) */
void product_transposed(size_t m, size_t n, size_t k, const double *a, const double *b, double *c);

#endif
