/* Activations of a network's hidden units over arrays, in lanes, and what their derivatives make of
 * a gradient: the same bits wherever an element stands and on every processor. `out` may be an
 * input. Nothing is contracted to fma. One thread.
 *
 * tanh is right to about 2 units in the last place of its type. gelu is what its formula
 * gives in it, which is right to a few units relative to max(1, |x|³). A NaN stays a NaN. */
#ifndef DML_NUMERIC_ACTIVATION_H
#define DML_NUMERIC_ACTIVATION_H

#include <stddef.h>

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
