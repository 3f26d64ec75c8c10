/* Kernels on blocks of vectors: what a shard does to its registers and its history.
 *
 * Every function takes n ≤ BLOCK_ELEMENTS elements of arrays (fastest if 64-byte aligned) and works
 * in an order that depends on n alone, so that its bits are the same wherever the block lies.
 * Nothing is contracted to fma. One thread a call. */
#ifndef DML_NUMERIC_VECTOR_H
#define DML_NUMERIC_VECTOR_H

#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"

enum history_type { HISTORY_FLOAT, HISTORY_DOUBLE };

/* Bytes of one element of a history vector. */
size_t history_size(enum history_type type);

/* Σ a_i·b_i */
double vector_dot(size_t n, const double *a, const double *b);

/* max |a_i|; +infinity if any is NaN or infinite; 0 for n = 0. */
double vector_max_abs(size_t n, const double *a);

/* out = a + alpha·b; `out` may be a or b. */
void vector_add(size_t n, double *out, const double *a, double alpha, const double *b);

/* out = alpha·a; `out` may be a. */
void vector_scale(size_t n, double *out, double alpha, const double *a);

/* out = a·b, element by element; `out` may be a or b. */
void vector_multiply(size_t n, double *out, const double *a, const double *b);

/* out = alpha·square + beta·weight, element by element; NULL: all are 1. */
void vector_curvature(size_t n, double *out, double alpha, const double *square, double beta,
                      const double *weight);

/* out = a/curvature, element by element; 0 where the curvature is not above 0. `out` may be either.
 */
void vector_divide(size_t n, double *out, const double *a, const double *curvature);

/* out = sum·2^-exponent / examples; exponent − derivative exponent in one number. */
void vector_from_fixed(size_t n, double *out, const int64_t *sum, int exponent, double examples);

/* vector_from_fixed() with an exponent an element: exponent[i] − derivative_exponent. */
void vector_from_fixed_columns(size_t n, double *out, const int64_t *sum, const int16_t *exponent,
                               int derivative_exponent, double examples);

/* stored = a − b, rounded to the history's type; rounded = what was stored, as double. */
void history_store(enum history_type type, size_t n, void *stored, double *rounded, const double *a,
                   const double *b);

/* stored = a, rounded to the history's type. */
void history_round(enum history_type type, size_t n, void *stored, const double *a);

/* An element of a stored vector. */
static inline double history_at(enum history_type type, const void *stored, size_t i) {
    return type == HISTORY_DOUBLE ? ((const double *)stored)[i]
                                  : (double)((const float *)stored)[i];
}

/* out = stored. */
void history_expand(enum history_type type, size_t n, double *out, const void *stored);

/* stored *= a power of two. */
void history_scale(enum history_type type, size_t n, void *stored, double factor);

/* stored *= factors, element by element, rounded to the history's type. */
void history_multiply(enum history_type type, size_t n, void *stored, const double *factors);

/* dots[0] = Σ stored_i·a_i, dots[1] = Σ stored_i·b_i, in one pass over `stored`. Half the work if a
 * and b are one vector. */
void history_dots(enum history_type type, size_t n, const void *stored, const double *a,
                  const double *b, double dots[2]);

/* history_dots() for `count` stored vectors, to the same bits: dots[v] is what history_dots() gives
 * for stored[v]. Faster than one by one, since several are read beside each other. */
void history_dots_all(enum history_type type, size_t count, size_t n, const void *const *stored,
                      const double *a, const double *b, double (*dots)[2]);

/* out += p·s + q·y, in one pass. */
void history_add(enum history_type type, size_t n, double *out, double p, const void *s, double q,
                 const void *y);

#endif
