#include "numeric/activation.h"

#include <stdint.h>
#include <string.h>

#include "numeric/clones.h"
#include "numeric/over_lanes.h"

#define VECTOR_BYTES 32 /* gcc keeps these in the registers of AVX2 */
#define FUNCTION LANES_INLINE

#define WIDE 1
#define NAME(function) function##_double
#include "numeric/activation_lanes.def"
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
#include "numeric/activation_lanes.def"
OVER_LANES(activation_tanh_float, tanh_float)
OVER_LANES(activation_relu_float, relu_float)
OVER_LANES(activation_gelu_float, gelu_float)
BACK_OVER_LANES(activation_tanh_back_float, tanh_back_float)
BACK_OVER_LANES(activation_relu_back_float, relu_back_float)
BACK_OVER_LANES(activation_gelu_back_float, gelu_back_float)
