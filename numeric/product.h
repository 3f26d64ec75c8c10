/* Matrix products for objectives with several outputs: tall matrices by a narrow one, row-major.
 * One thread.
 *
 * The order of the additions is part of the contract, so that the bits are the same on every
 * machine and for every way of cutting the matrices into registers: an element is the sum of its
 * products, added one after another from 0. Nothing is contracted to fma. */
#ifndef DML_NUMERIC_PRODUCT_H
#define DML_NUMERIC_PRODUCT_H

#include <stddef.h>

/* Most rows that the products take at once. */
#define PRODUCT_ROWS_MAX 256

/* b (k×n), packed as product_plain() reads it: product_packed(k, n) doubles. */
size_t product_packed(size_t k, size_t n);
void product_pack(size_t k, size_t n, const double *b, double *packed);

/* c (m×n) = a (m×k) · b, m ≤ PRODUCT_ROWS_MAX; each element adds over k in rising order. */
void product_plain(size_t m, size_t n, size_t k, const double *a, const double *packed, double *c);

/* c (n×m) += bᵀ · a, with a (k×m), b (k×n), k ≤ PRODUCT_ROWS_MAX: each element adds over k in
 * rising order, and the sum is then added to c. `ahead` points to k×m elements of `ahead_size`
 * bytes that the caller will read next; they are brought into the cache, and need not be there. */
void product_transposed(size_t m, size_t n, size_t k, const double *a, const double *b, double *c,
                        const void *ahead, size_t ahead_size);

/* The lower triangle of the same for two k×m matrices, c (m×m) += bᵀ · a: elements (i, j) with
 * i ≥ j, in the same order. What c has above the diagonal is undefined. */
void product_triangle(size_t m, size_t k, const double *a, const double *b, double *c);

#endif
