#include "numeric/special.h"

#include <string.h>

#include "numeric/clones.h"

#define WIDE 1
#define NAME(function) function##_lanes
#define VECTOR_BYTES 64
#include "numeric/exp_lanes.def"

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
    exp_series_lanes(&p, &x);
    p = x * x * p;
    exp_lanes(&e, &x);
    e = e - 1.0 - x;
    lanes_above(&above, &x, &limit);
    lanes_above(&below, &minus, &x);
    lanes_choose(out, &above, &e, &p);
    lanes_choose(out, &below, &e, out);
}

OVER_LANES(special_exp, exp_lanes)
OVER_LANES(special_log1p, log1p_lanes)
OVER_LANES(special_log, log_lanes)
OVER_LANES(special_exp_excess, exp_excess_lanes)
