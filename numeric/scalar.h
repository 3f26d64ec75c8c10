/* numeric/special.h of one number: the same text as the lanes, so the same bits, for kernels of a
 * device. A NaN stays one, but not with the same bits. */
#ifndef DML_NUMERIC_SCALAR_H
#define DML_NUMERIC_SCALAR_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "device/kernel.h"

#define VECTOR_BYTES 0
#define FUNCTION PORTABLE

#define WIDE 1
#define NAME(function) scalar_##function
#include "numeric/lanes.def"
#undef WIDE
#undef NAME

#define WIDE 0
#define NAME(function) scalar_##function##_float
#include "numeric/lanes.def"
#undef WIDE
#undef NAME

#define OF_ONE(name, kernel, number)                                                               \
    PORTABLE number name(number x) {                                                               \
        number out;                                                                                \
        kernel(&out, &x);                                                                          \
        return out;                                                                                \
    }
#define BACK_OF_ONE(name, kernel, number)                                                          \
    PORTABLE number name(number gradient, number x) {                                              \
        number out;                                                                                \
        kernel(&out, &gradient, &x);                                                               \
        return out;                                                                                \
    }

/* double special_exp_one(double x), and so on. */
OF_ONE(special_exp_one, scalar_exp, double)
OF_ONE(special_log1p_one, scalar_log1p, double)
OF_ONE(special_log_one, scalar_log, double)
OF_ONE(special_exp_excess_one, scalar_exp_excess, double)

/* double activation_tanh_one(double x), float activation_tanh_float_one(float x), and so on. */
OF_ONE(activation_tanh_one, scalar_tanh, double)
OF_ONE(activation_relu_one, scalar_relu, double)
OF_ONE(activation_gelu_one, scalar_gelu, double)
OF_ONE(activation_tanh_float_one, scalar_tanh_float, float)
OF_ONE(activation_relu_float_one, scalar_relu_float, float)
OF_ONE(activation_gelu_float_one, scalar_gelu_float, float)

/* double activation_tanh_back_one(double gradient, double y), and so on. */
BACK_OF_ONE(activation_tanh_back_one, scalar_tanh_back, double)
BACK_OF_ONE(activation_relu_back_one, scalar_relu_back, double)
BACK_OF_ONE(activation_gelu_back_one, scalar_gelu_back, double)
BACK_OF_ONE(activation_tanh_back_float_one, scalar_tanh_back_float, float)
BACK_OF_ONE(activation_relu_back_float_one, scalar_relu_back_float, float)
BACK_OF_ONE(activation_gelu_back_float_one, scalar_gelu_back_float, float)

/* special_exp() of n numbers, one by one, and so on. `out` may be `x`. */
#define OF_EACH(name, one)                                                                         \
    PORTABLE void name(size_t n, double *out, const double *x) {                                   \
        for (size_t i = 0; i < n; i++)                                                             \
            out[i] = one(x[i]);                                                                    \
    }
OF_EACH(special_exp_each, special_exp_one)
OF_EACH(special_log1p_each, special_log1p_one)
OF_EACH(special_log_each, special_log_one)
OF_EACH(special_exp_excess_each, special_exp_excess_one)

#undef OF_ONE
#undef BACK_OF_ONE
#undef OF_EACH
#undef VECTOR_BYTES
#undef FUNCTION
#undef ALL
#undef NUMBER
#undef NUMBERS
#undef WORD
#undef WORDS
#undef MANTISSA
#undef BIAS
#undef SIGN
#undef INFINITE
#undef LOG2_E
#undef TO_INTEGER
#undef LN2_HIGH
#undef LN2_LOW
#undef EXP_MOST
#undef EXP_LEAST
#undef TANH_MOST
#undef TANH_SMALL
#undef GELU_MOST
#undef GELU_SLOPE
#undef GELU_CUBE

#endif
