#include "numeric/special.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "numeric/clones.h"

/* Functions of arrays from kernels over lanes: see numeric/lanes.def. Arrays may be the same. An
 * element's bits do not depend on its place. */

#define COUNT (VECTOR_BYTES / sizeof(NUMBER))

#define OVER_LANES(name, kernel)                                                                   \
    VECTOR_CLONES void name(size_t n, NUMBER *out, const NUMBER *x) {                              \
        size_t i = 0;                                                                              \
        NUMBERS v;                                                                                 \
        for (; i + COUNT <= n; i += COUNT) {                                                       \
            memcpy(&v, x + i, sizeof v);                                                           \
            kernel(&v, &v);                                                                        \
            memcpy(out + i, &v, sizeof v);                                                         \
        }                                                                                          \
        if (i < n) {                                                                               \
            v = ALL(0);                                                                            \
            memcpy(&v, x + i, (n - i) * sizeof *x);                                                \
            kernel(&v, &v);                                                                        \
            memcpy(out + i, &v, (n - i) * sizeof *x);                                              \
        }                                                                                          \
    }

/* A loop of lanes over a gradient and the values from which its derivative is computed. */
#define BACK_OVER_LANES(name, kernel)                                                              \
    VECTOR_CLONES void name(size_t n, NUMBER *out, const NUMBER *gradient, const NUMBER *x) {      \
        size_t i = 0;                                                                              \
        NUMBERS g, v;                                                                              \
        for (; i + COUNT <= n; i += COUNT) {                                                       \
            memcpy(&g, gradient + i, sizeof g);                                                    \
            memcpy(&v, x + i, sizeof v);                                                           \
            kernel(&v, &g, &v);                                                                    \
            memcpy(out + i, &v, sizeof v);                                                         \
        }                                                                                          \
        if (i < n) {                                                                               \
            g = v = ALL(0);                                                                        \
            memcpy(&g, gradient + i, (n - i) * sizeof *x);                                         \
            memcpy(&v, x + i, (n - i) * sizeof *x);                                                \
            kernel(&v, &g, &v);                                                                    \
            memcpy(out + i, &v, (n - i) * sizeof *x);                                              \
        }                                                                                          \
    }

#define FUNCTION LANES_INLINE

#define WIDE 1
#define VECTOR_BYTES 64
#define NAME(function) function##_lanes
#include "numeric/lanes.def"
static_assert(sizeof(numbers_lanes) == VECTOR_BYTES && sizeof(words_lanes) == VECTOR_BYTES,
              "a mask has a word for each lane");
OVER_LANES(special_exp, exp_lanes)
OVER_LANES(special_log1p, log1p_lanes)
OVER_LANES(special_log, log_lanes)
OVER_LANES(special_exp_excess, exp_excess_lanes)
#undef VECTOR_BYTES
#undef NAME

#define VECTOR_BYTES 32 /* gcc keeps these in the registers of AVX2 */
#define NAME(function) function##_double
#include "numeric/lanes.def"
static_assert(sizeof(numbers_double) == VECTOR_BYTES, "a register of AVX2");
OVER_LANES(activation_tanh, tanh_double)
OVER_LANES(activation_relu, relu_double)
OVER_LANES(activation_gelu, gelu_double)
BACK_OVER_LANES(activation_tanh_back, tanh_back_double)
BACK_OVER_LANES(activation_relu_back, relu_back_double)
BACK_OVER_LANES(activation_gelu_back, gelu_back_double)
#undef WIDE
#undef NAME

#define WIDE 0
#define NAME(function) function##_float
#include "numeric/lanes.def"
static_assert(sizeof(numbers_float) == VECTOR_BYTES && sizeof(words_float) == VECTOR_BYTES,
              "a mask has a word for each lane");
OVER_LANES(activation_tanh_float, tanh_float)
OVER_LANES(activation_relu_float, relu_float)
OVER_LANES(activation_gelu_float, gelu_float)
BACK_OVER_LANES(activation_tanh_back_float, tanh_back_float)
BACK_OVER_LANES(activation_relu_back_float, relu_back_float)
BACK_OVER_LANES(activation_gelu_back_float, gelu_back_float)
