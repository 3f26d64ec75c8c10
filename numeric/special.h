/* Exponential and logarithm of many numbers at once, in lanes: correct to about one unit in the
 * last place, the same bits wherever an element stands. `out` may be `x`. */
#ifndef DML_NUMERIC_SPECIAL_H
#define DML_NUMERIC_SPECIAL_H

#include <stddef.h>

/* e^x, for every double: 0 and infinity beyond the range, NaN for NaN. */
void special_exp(size_t n, double *out, const double *x);

/* log(1 + x) for x ≥ 0, with full relative accuracy for small x; not finite where x is not. */
void special_log1p(size_t n, double *out, const double *x);

/* log x for x > 0; not finite where x is not. */
void special_log(size_t n, double *out, const double *x);

/* e^x − 1 − x, how far e^x is above its tangent at 0: with full relative accuracy for small x, and
 * not finite where x is not. */
void special_exp_excess(size_t n, double *out, const double *x);

#endif
