/* The bounds of an evaluation on what it adds up in fixed point, and the largest that was found.
 *
 * A run has one bound a tensor of its layout, or one for all tensors together: linear models, whose
 * tensors share the derivatives by the margins, and the curvature have one. What a bound is on, a
 * derivative or an element of a chunk's gradient, is the objective's matter; what it does is always
 * the same. An evaluation in which something is beyond its bound has exact totals and maxima, but
 * no sums: it is exceeded, and may be made again with bounds that hold. */
#ifndef DML_BASE_BOUNDS_H
#define DML_BASE_BOUNDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/limits.h"

/* 2^b and 2^−b are normal doubles. */
#define BOUND_EXPONENT_MIN (-1022)
#define BOUND_EXPONENT_MAX 1022

/* Bound i is 2^exponent[i]. */
struct bounds {
    uint32_t count; /* 1, or the tensors of the layout */
    int exponent[TENSORS_MAX];
};

/* The largest magnitude under each bound: ≥ 0, +infinity if one is not a number. Zeroed memory is
 * that of nothing: it merges with any. */
struct maxima {
    uint32_t count; /* that of the bounds; 0: nothing was found yet */
    double value[TENSORS_MAX];
};

/* One bound for all tensors. */
static inline struct bounds bounds_of_one(int exponent) {
    return (struct bounds){.count = 1, .exponent = {exponent}};
}

/* One maximum for all tensors. */
static inline struct maxima maxima_of_one(double value) {
    return (struct maxima){.count = 1, .value = {value}};
}

/* The bound that tensor number `tensor` is under. */
static inline int bounds_exponent(const struct bounds *bounds, uint32_t tensor) {
    return bounds->exponent[bounds->count == 1 ? 0 : tensor];
}

/* Adds what was found elsewhere under the same bounds. The order does not matter. */
void maxima_merge(struct maxima *into, const struct maxima *from);

/* The largest of them; 0 of nothing. */
double maxima_largest(const struct maxima *maxima);

/* In bytes: the count (u32), then each exponent (u32, two's complement) or value (f64). Reading
 * more than there may be fails the cursor. */
void bounds_encode(const struct bounds *bounds, struct bytes *out);
void maxima_encode(const struct maxima *maxima, struct bytes *out);
struct bounds bounds_decode(struct cursor *in);
struct maxima maxima_decode(struct cursor *in);

/* Why they are invalid (a constant); NULL if they are valid. Bounds: none, too many, or out of
 * range. Maxima: too many, below 0, or not a number. */
const char *bounds_fault(const struct bounds *bounds);
const char *maxima_fault(const struct maxima *maxima);

/* Whether one is beyond its bound. */
bool maxima_exceed(const struct maxima *maxima, const struct bounds *bounds);

#endif
