/* The part of numeric/fixed.h that kernels of a device share: a contribution, scaled, counts as
 * fixed_round() of it. A device adds that to its sums with device_add_i64(), in any order. */
#ifndef DML_NUMERIC_FIXED_ROUND_H
#define DML_NUMERIC_FIXED_ROUND_H

#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#else
#include <math.h>
#endif

#include "device/portable.h"

/* 2^exponent, in the range of normal doubles. */
PORTABLE double fixed_power(int exponent) {
    uint64_t bits = (uint64_t)(exponent + 1023) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

/* The nearest integer, ties to even; |scaled| < 2⁶². */
PORTABLE int64_t fixed_round(double scaled) {
#ifdef __CUDA_ARCH__
    return __double2ll_rn(scaled);
#elif defined(__SSE2__)
    return _mm_cvtsd_si64(_mm_set_sd(scaled));
#else
    return llrint(scaled);
#endif
}

#endif
