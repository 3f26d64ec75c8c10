#include "numeric/activation.h"

#include <stdint.h>
#include <string.h>

#include "numeric/clones.h"

#define VECTOR_BYTES 32 /* gcc keeps these in the registers of AVX2 */

#define WIDE 1
#define NAME(function) function##_double
#define PUBLIC(function) activation_##function
#include "numeric/activation_lanes.def"
#undef WIDE
#undef NAME
#undef PUBLIC

#define WIDE 0
#define NAME(function) function##_float
#define PUBLIC(function) activation_##function##_float
#include "numeric/activation_lanes.def"
