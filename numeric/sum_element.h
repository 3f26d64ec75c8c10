/* One term of an exact sum (numeric/exact.h) as three integers, for all who add to limbs: in any
 * order, and with atomic additions where several threads do. */
#ifndef DML_NUMERIC_SUM_ELEMENT_H
#define DML_NUMERIC_SUM_ELEMENT_H

#include <stdint.h>
#include <string.h>

#include "device/kernel.h"

#define EXACT_LIMBS 70

/* How many terms may be added to limbs whose carries are propagated, before they are again: a term
 * adds less than 2³² to a limb, as does a limb itself. */
#define EXACT_TERMS_BETWEEN_CARRIES (UINT32_C(1) << 30)

/* Bits of what a sum has met besides numbers. */
enum exact_special {
    EXACT_NOT_A_NUMBER = 1,
    EXACT_POSITIVE_INFINITY = 2,
    EXACT_NEGATIVE_INFINITY = 4,
};

struct exact_term {
    int64_t part[3];  /* added to limbs limb, limb + 1 and limb + 2; each below 2³² in size */
    uint32_t limb;    /* at most EXACT_LIMBS − 3 */
    uint32_t special; /* 0, and parts that are; or one bit, and all parts are 0 */
};

PORTABLE struct exact_term exact_split(double value) {
    struct exact_term term;
    uint64_t bits, mantissa;
    memcpy(&bits, &value, sizeof bits);
    uint32_t exponent = (uint32_t)(bits >> 52) & 0x7ff;
    mantissa = bits & ((UINT64_C(1) << 52) - 1);
    term.special = 0;
    if (exponent == 0x7ff) {
        term.special = mantissa     ? EXACT_NOT_A_NUMBER
                       : bits >> 63 ? EXACT_NEGATIVE_INFINITY
                                    : EXACT_POSITIVE_INFINITY;
        exponent = 0;
        mantissa = 0;
    }
    if (exponent)
        mantissa |= UINT64_C(1) << 52;
    uint32_t shift = exponent ? exponent - 1 : 0;
    uint32_t within = shift % 32;
    uint64_t above = mantissa >> (32 - within);
    int64_t sign = bits >> 63 ? -1 : 1;
    term.limb = shift / 32;
    term.part[0] = sign * (int64_t)((mantissa << within) & 0xffffffff);
    term.part[1] = sign * (int64_t)(above & 0xffffffff);
    term.part[2] = sign * (int64_t)(above >> 32);
    return term;
}

/* The part of numeric/fixed.h that kernels of a device share: a contribution, scaled, counts as
 * fixed_round() of it. A device adds that to its sums with device_add_i64(), in any order. */

#ifdef __SSE2__
#include <emmintrin.h>
#else
#include <math.h>
#endif

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
