#include "numeric/fixed.h"

#include <assert.h>
#include <float.h>
#include <math.h>

#include "base/limits.h"
#include "numeric/clones.h"

static_assert(FIXED_EXPONENT_MIN >= -1022 && FIXED_EXPONENT_MAX <= 1023 &&
                  FIXED_DERIVATIVE_MIN >= -1022 && FIXED_DERIVATIVE_MAX <= 1022,
              "powers of two with these exponents, and the inverse ones, are normal doubles");
typedef uint64_t unsigned_lanes __attribute__((vector_size(64)));
static_assert(sizeof(unsigned_lanes) == LANES * sizeof(int64_t), "sums are merged lane by lane");

static int clamp(int value, int least, int most) {
    return value < least ? least : value > most ? most : value;
}

/* As frexp() of a positive, finite value, without a call for each of millions of columns: returns
 * the exponent. `fraction` rises with the fraction. */
static int exponent_of(double value, uint64_t *fraction) {
    uint64_t bits;
    int below = value < DBL_MIN ? 64 : 0;
    value *= below ? 0x1p64 : 1;
    assert(value >= DBL_MIN && value <= DBL_MAX);
    memcpy(&bits, &value, sizeof bits);
    *fraction = bits & ((UINT64_C(1) << (DBL_MANT_DIG - 1)) - 1);
    return (int)(bits >> (DBL_MANT_DIG - 1)) - (DBL_MAX_EXP - 2) - below;
}

int fixed_exponent(double absolute_sum, uint64_t count) {
    if (!(absolute_sum > 0)) {
        absolute_sum = 1;
        count = 1;
    }
    /* The sum as computed may be short by a factor of 1 + count·2⁻⁵³; a product of a derivative
     * and a value may be long by 1 + 2⁻⁵². */
    double limit = (0x1p62 - 0.5 * (double)count) * (1 - ((double)count + 4) * 0x1p-52);
    assert(count > 0 && limit > 0);
    if (isinf(absolute_sum)) { /* it is less than count·2¹⁰²⁴ */
        absolute_sum = DBL_MAX;
        limit /= (double)count;
    }
    /* The largest e with sum·2^e < limit; both positive and finite. */
    uint64_t sum_fraction, limit_fraction;
    int sum_exponent = exponent_of(absolute_sum, &sum_fraction);
    int limit_exponent = exponent_of(limit, &limit_fraction);
    int e = limit_exponent - sum_exponent - (sum_fraction >= limit_fraction);
    return clamp(e, FIXED_EXPONENT_MIN, FIXED_EXPONENT_MAX);
}

int fixed_extra_bits(double square_sum, int exponent) {
    int above; /* square_sum < 2^above */
    if (!(square_sum > 0) || isinf(square_sum))
        return 0;
    frexp(square_sum, &above);
    int twice = 123 - above;
    int finest = (twice - (twice & 1)) / 2; /* rounded down */
    finest = finest < FIXED_EXPONENT_MAX ? finest : FIXED_EXPONENT_MAX;
    return clamp(finest - exponent, 0, FINER_MAX);
}

int fixed_size(double absolute_sum, uint64_t count) {
    if (!count)
        return 0;
    /* Computed, the sum may be short by a factor of 1 + count·2⁻⁵³, as the sum with 1 may. */
    double most = (absolute_sum + 1) * (1 + ((double)count + 2) * 0x1p-52);
    if (!isfinite(most))
        return FIXED_SIZE_MAX + 1;
    int size;
    frexp(most, &size); /* the least with most < 2^size: a power of two has more, as rounded */
    return size;
}

double fixed_weight(double weight) {
    return weight < 1 ? sqrt(weight) : weight;
}

double fixed_absolute_sum(int exponent) {
    int e = 62 - exponent;
    if (e > DBL_MAX_EXP - 1)
        return ldexp(0.75, e);
    /* 1.5·2^(e − 1), without a call */
    assert(e > DBL_MIN_EXP);
    uint64_t bits = ((uint64_t)(e + DBL_MAX_EXP - 2) << 1 | 1) << (DBL_MANT_DIG - 2);
    double sum;
    memcpy(&sum, &bits, sizeof sum);
    return sum;
}

int fixed_derivative_exponent(double magnitude) {
    assert(!(magnitude < 0));
    if (magnitude == 0)
        return FIXED_DERIVATIVE_MIN;
    if (!isfinite(magnitude)) /* frexp() leaves its exponent open */
        return FIXED_DERIVATIVE_MAX;
    int exponent;
    double fraction = frexp(magnitude, &exponent);
    return clamp(exponent - (fraction == 0.5), FIXED_DERIVATIVE_MIN, FIXED_DERIVATIVE_MAX);
}

/* The rounding allowed, as a part of a column's Σ|value|. */
#define ROUNDING_FEW 0x1p-44
#define ROUNDING_MANY 0x1p-36

int fixed_uniform(uint64_t columns, const int16_t *e, const double *absolute_sum,
                  const uint64_t *count, int *uniform) {
    double allowed = columns > PRECONDITION_BLOCK_MAX ? ROUNDING_MANY : ROUNDING_FEW;
    int least = FIXED_EXPONENT_MAX;
    for (uint64_t j = 0; j < columns; j++)
        if (e[j] < least)
            least = e[j];
    double half =
        ldexp(0.5, -least); /* a count has few digits: the product is exact, or infinite */
    for (uint64_t j = 0; j < columns; j++)
        if (absolute_sum[j] > 0 && half * (double)count[j] > absolute_sum[j] * allowed)
            return 0;
    *uniform = least;
    return 1;
}

VECTOR_CLONES
void fixed_merge(size_t n, int64_t *into, const int64_t *from) {
    size_t i = 0;
#ifndef INEXACT_SUMS
    for (; i + 8 <= n; i += 8) {
        unsigned_lanes a, b;
        memcpy(&a, into + i, sizeof a);
        memcpy(&b, from + i, sizeof b);
        a += b;
        memcpy(into + i, &a, sizeof a);
    }
#endif
    for (; i < n; i++)
        fixed_merge_one(&into[i], from[i]);
}
