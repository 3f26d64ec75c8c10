#include "numeric/special.h"

#include <string.h>

#include "numeric/clones.h"

/* ln 2 in two parts; the first has 20 zero bits at its end, so that k·LN2_HIGH is exact. */
#define LN2_HIGH 0x1.62e42fefa0000p-1
#define LN2_LOW 0x1.cf79abc9e3b3ap-40

/* 2^k from k + 1023 ≥ 1. Integers are unsigned, since they may wrap around if x is NaN. */
LANES_INLINE void power(lanes *out, const word_lanes *biased) {
    word_lanes bits = *biased << 52;
    memcpy(out, &bits, sizeof bits);
}

/* (e^r − 1 − r)/r² for |r| ≤ ln 2 / 2: the Taylor series, whose next term is below 2⁻⁵⁷ of e^r. */
LANES_INLINE void exp_series(lanes *out, const lanes *remainder) {
    const lanes r = *remainder;
    lanes p = r * (1.0 / 6227020800) + 1.0 / 479001600;
    p = p * r + 1.0 / 39916800;
    p = p * r + 1.0 / 3628800;
    p = p * r + 1.0 / 362880;
    p = p * r + 1.0 / 40320;
    p = p * r + 1.0 / 5040;
    p = p * r + 1.0 / 720;
    p = p * r + 1.0 / 120;
    p = p * r + 1.0 / 24;
    p = p * r + 1.0 / 6;
    *out = p * r + 0.5;
}

/* e^r − 1 for |r| ≤ ln 2 / 2. */
LANES_INLINE void exp_minus_one(lanes *out, const lanes *remainder) {
    const lanes r = *remainder;
    lanes p;
    exp_series(&p, &r);
    *out = r + r * r * p;
}

/* The bits of infinity; those of a NaN, without its sign, are greater. */
#define INFINITE UINT64_C(0x7ff0000000000000)

/* e^x = 2^k·e^r with k = x / ln 2 to the nearest integer. 2^k is applied in two factors, since it
 * need not be a normal double where e^x is a denormal, or just below the largest double. */
LANES_INLINE void exp_lanes(lanes *out, const lanes *in) {
    const double to_integer = 0x1.8p52; /* adding it leaves an integer in the low bits */
    const lanes most = (lanes){0} + 710.0, least = (lanes){0} - 746.0;
    lanes x = *in;
    word_lanes above, below;
    lanes_above(&above, &x, &most);
    lanes_above(&below, &least, &x);
    lanes_choose(&x, &above, &most, &x);
    lanes_choose(&x, &below, &least, &x);
    lanes k = x * 0x1.71547652b82fep0 + to_integer;
    word_lanes integer;
    memcpy(&integer, &k, sizeof integer);
    integer -= UINT64_C(0x4338000000000000); /* the bits of to_integer */
    k -= to_integer;
    lanes r = (x - k * LN2_HIGH) - k * LN2_LOW;
    lanes p, first, second;
    exp_minus_one(&p, &r);
    p += 1.0;
    word_lanes half = ((integer + 2048) >> 1) - 1024;
    word_lanes biased = half + 1023;
    power(&first, &biased);
    biased = integer - half + 1023;
    power(&second, &biased);
    p = p * first * second;
    word_lanes nan;
    memcpy(&nan, in, sizeof nan);
    nan = 0 - ((INFINITE - (nan & INT64_MAX)) >> 63);
    lanes_choose(out, &nan, in, &p);
}

/* log f = 2 artanh s, s = (f − 1)/(f + 1), for f from √½ to √2, as f − 1 = g less a correction:
 * g − s·(g − 2·z·(1/3 + z/5 + z²/7 + …)), z = s². */
LANES_INLINE void log_near_one(lanes *out, const lanes *f) {
    lanes g = *f - 1.0;
    lanes s = g / (g + 2.0);
    lanes z = s * s;
    lanes p = z * (2.0 / 23) + 2.0 / 21;
    p = p * z + 2.0 / 19;
    p = p * z + 2.0 / 17;
    p = p * z + 2.0 / 15;
    p = p * z + 2.0 / 13;
    p = p * z + 2.0 / 11;
    p = p * z + 2.0 / 9;
    p = p * z + 2.0 / 7;
    p = p * z + 2.0 / 5;
    p = p * z + 2.0 / 3;
    *out = g - s * (g - z * p);
}

/* log(1 + x) = log u + c/u, u = 1 + x as rounded and c what the rounding lost; u = 2^k·f. */
LANES_INLINE void log1p_lanes(lanes *out, const lanes *in) {
    const uint64_t one = UINT64_C(0x3ff0000000000000), root_half = UINT64_C(0x3fe6a09e667f3bcd);
    const uint64_t mantissa = UINT64_C(0x000fffffffffffff);
    lanes x = *in;
    lanes u = x + 1.0;
    lanes lost_small = x - (u - 1.0), lost_large = 1.0 - (u - x), lost;
    const lanes unit = (lanes){0} + 1.0;
    word_lanes small;
    lanes_above(&small, &unit, &x);
    lanes_choose(&lost, &small, &lost_small, &lost_large);
    word_lanes bits;
    memcpy(&bits, &u, sizeof bits);
    bits += one - root_half;
    word_lanes exponent = ((bits >> 52) - 1023) | UINT64_C(0x4330000000000000); /* 2⁵² + k */
    bits = (bits & mantissa) + root_half;
    lanes f, k, near;
    memcpy(&f, &bits, sizeof f);
    memcpy(&k, &exponent, sizeof k);
    k -= 0x1p52;
    log_near_one(&near, &f);
    *out = k * LN2_HIGH + (near + (k * LN2_LOW + lost / u));
}

/* log x = k·log 2 + log f, x = 2^k·f. A denormal is multiplied by 2⁵⁴ first. */
LANES_INLINE void log_lanes(lanes *out, const lanes *in) {
    const uint64_t one = UINT64_C(0x3ff0000000000000), root_half = UINT64_C(0x3fe6a09e667f3bcd);
    const uint64_t mantissa = UINT64_C(0x000fffffffffffff);
    const lanes least = (lanes){0} + 0x1p-1022, none = {0}, shift = none + 54.0;
    lanes x = *in, enlarged = x * 0x1p54, shifted, f, k, near;
    word_lanes denormal, bits;
    lanes_above(&denormal, &least, &x);
    lanes_choose(&x, &denormal, &enlarged, &x);
    lanes_choose(&shifted, &denormal, &shift, &none);
    memcpy(&bits, &x, sizeof bits);
    bits += one - root_half;
    word_lanes exponent = (bits >> 52) | UINT64_C(0x4330000000000000); /* 2⁵² + 1023 + k */
    bits = (bits & mantissa) + root_half;
    memcpy(&f, &bits, sizeof f);
    memcpy(&k, &exponent, sizeof k);
    k -= 0x1p52 + 1023;
    k -= shifted;
    log_near_one(&near, &f);
    *out = (k * LN2_HIGH + (near + k * LN2_LOW)) + (*in - *in);
}

/* Beyond the range of the series, e^x is far enough from 1 + x. */
LANES_INLINE void exp_excess_lanes(lanes *out, const lanes *in) {
    const lanes limit = (lanes){0} + 0x1.6p-2, minus = -limit, x = *in;
    lanes p, e;
    word_lanes above, below;
    exp_series(&p, &x);
    p = x * x * p;
    exp_lanes(&e, &x);
    e = e - 1.0 - x;
    lanes_above(&above, &x, &limit);
    lanes_above(&below, &minus, &x);
    lanes_choose(out, &above, &e, &p);
    lanes_choose(out, &below, &e, out);
}

#define OVER_LANES(name, kernel)                                                                   \
    VECTOR_CLONES void name(size_t n, double *out, const double *x) {                              \
        size_t i = 0;                                                                              \
        lanes v;                                                                                   \
        for (; i + LANES <= n; i += LANES) {                                                       \
            memcpy(&v, x + i, sizeof v);                                                           \
            kernel(&v, &v);                                                                        \
            memcpy(out + i, &v, sizeof v);                                                         \
        }                                                                                          \
        if (i < n) {                                                                               \
            v = (lanes){0};                                                                        \
            memcpy(&v, x + i, (n - i) * sizeof *x);                                                \
            kernel(&v, &v);                                                                        \
            memcpy(out + i, &v, (n - i) * sizeof *x);                                              \
        }                                                                                          \
    }
OVER_LANES(special_exp, exp_lanes)
OVER_LANES(special_log1p, log1p_lanes)
OVER_LANES(special_log, log_lanes)
OVER_LANES(special_exp_excess, exp_excess_lanes)
