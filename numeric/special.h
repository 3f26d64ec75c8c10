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

/* Activations of a network's hidden units over arrays, in lanes, and what their derivatives make of
 * a gradient: the same bits wherever an element stands and on every processor. `out` may be an
 * input. Nothing is contracted to fma. One thread.
 *
 * tanh is right to about 2 units in the last place of its type. gelu is what its formula
 * gives in it, which is right to a few units relative to max(1, |x|³). A NaN stays a NaN. */

/* tanh x. */
void activation_tanh(size_t n, double *out, const double *x);
void activation_tanh_float(size_t n, float *out, const float *x);

/* gradient·(1 − y²), y = tanh x. */
void activation_tanh_back(size_t n, double *out, const double *gradient, const double *y);
void activation_tanh_back_float(size_t n, float *out, const float *gradient, const float *y);

/* x where it is above 0, else 0, which is never −0. */
void activation_relu(size_t n, double *out, const double *x);
void activation_relu_float(size_t n, float *out, const float *x);

/* gradient where y > 0 (y = relu x, or x itself), else 0 whatever the gradient. */
void activation_relu_back(size_t n, double *out, const double *gradient, const double *y);
void activation_relu_back_float(size_t n, float *out, const float *gradient, const float *y);

/* x/2·(1 + tanh(√(2/π)·(x + 0.044715·x³))), its digits kept where tanh is near −1. */
void activation_gelu(size_t n, double *out, const double *x);
void activation_gelu_float(size_t n, float *out, const float *x);

/* gradient·gelu′(x). */
void activation_gelu_back(size_t n, double *out, const double *gradient, const double *x);
void activation_gelu_back_float(size_t n, float *out, const float *gradient, const float *x);

#endif
