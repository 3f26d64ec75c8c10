/* Gradient sums in fixed point: each contribution is rounded once to a multiple of a quantum and
 * added into an int64_t, so a sum is exact and the same in any order.
 *
 * Column j has a base exponent e_j, known from the data alone; an evaluation has a derivative
 * exponent b with |derivative| ≤ 2^b for every example. A contribution c = derivative·value counts
 * as rint(c·2^(e_j − b)), and |Σ| stays below 2⁶²: with A_j = Σ|value| over column j and n_j its
 * number of values, 2^e_j is the largest power of two with A_j·2^e_j + n_j/2 < 2⁶².
 *
 * If rows have weights, a contribution is weight·derivative·value, and A_j is Σ u·|value| with
 * u = fixed_weight(weight): so large that it also bounds sums of second derivatives,
 * Σ weight·|value_j·value_l| ≤ A_j·A_l, which A_j = Σ weight·|value| would not if weights are
 * small.
 *
 * Built with INEXACT_SUMS the same memory holds doubles and contributions are not rounded, which
 * makes sums depend on their order: a build that the tests must notice. */
#ifndef DML_NUMERIC_FIXED_H
#define DML_NUMERIC_FIXED_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "config.h"
#include "numeric/clones.h"
#include "numeric/sum_element.h"

/* Exponents are clamped to these ranges, so that 2^e, 2^b and 2^−b are normal doubles. 2^(e − b)
 * need not be one. */
#define FIXED_EXPONENT_MIN (-1022)
#define FIXED_EXPONENT_MAX 1023
#define FIXED_DERIVATIVE_MIN (-900)
#define FIXED_DERIVATIVE_MAX 900

/* The base exponent of a column with `absolute_sum` = Σ|value|, computed in double in any fixed
 * order (room is left for its rounding; infinity if it overflowed), over `count` < 2⁴⁸ values. A
 * column of zeros gives the exponent of one value 1. */
int fixed_exponent(double absolute_sum, uint64_t count);

/* By how many powers of two sums of second derivatives over all rows may be finer in a column than
 * its base exponent e has them: the largest k with S·2^(2(e + k)) < 2¹²³, where S = Σ
 * weight·value². By the inequality of Cauchy and Schwarz Σ weight·|value_j·value_l| ≤ √(S_j·S_l),
 * so sums stay below 2⁶² where each column has its own k, with a factor of 2 for all roundings.
 * Σ|value| is up to √n times √S: each of n values of one size gives half a bit. 0 to FINER_MAX. */
int fixed_extra_bits(double square_sum, int exponent);

/* What a row's weight counts in the sum that base exponents are chosen by: at least the weight and
 * its root. 1 for 1. */
double fixed_weight(double weight);

/* Σ|value| of a column from its base exponent, to within a third. */
double fixed_absolute_sum(int exponent);

/* Least b with magnitude ≥ 0 at most 2^b, clamped to the range above: its end for infinity and NaN.
 */
int fixed_derivative_exponent(double magnitude);

/* One exponent for all columns, if that loses no column more than the precision promised: with the
 * least of e[0…columns) every column's rounding stays within 2⁻⁴⁴ of its Σ|value|; of more columns
 * than a preconditioned model can have within 2⁻³⁶, so that a rare word may share it with the
 * intercept of millions of rows. Few columns may be those of a table in various units: a
 * preconditioner would enlarge the rounding of the small ones by the square of the ratio of scales.
 * Writes it and returns 1, else 0. `absolute_sum` and `count` as above, per column. */
int fixed_uniform(uint64_t columns, const int16_t *e, const double *absolute_sum,
                  const uint64_t *count, int *uniform);

/* The size R of a row: the least with Σ|x_j| + 1 ≤ 2^R over its `count` values, whose absolute
 * values were added to `absolute_sum` one by one in double, or one more where rounding may hide
 * that it takes that. 0 to FIXED_SIZE_MAX; beyond if the sum leaves the range of numbers. */
#define FIXED_SIZE_MAX 1024
int fixed_size(double absolute_sum, uint64_t count);

/* Margins in tiles: a row of size R, Σ|x_j| + 1 ≤ 2^R, at a point none of whose elements is beyond
 * 2^P has a margin of at most 2^(R + P). What a tile has of it counts as rint(part·2^−t), with t
 * as follows, so that the sum over tiles stays below 2⁶². */
static inline int fixed_tile_exponent(int size, int point) {
    return size + point - 61;
}

/* into += from modulo 2^64, n elements: how accumulators of one evaluation are merged. What others
 * send may not fit: vectors of rows are bits of numbers. */
void fixed_merge(size_t n, int64_t *into, const int64_t *from);

/* What a scaled contribution, derivative·value·2^(e − b), adds to a sum. */
static inline int64_t fixed_term(double scaled) {
#ifdef INEXACT_SUMS
    int64_t bits;
    memcpy(&bits, &scaled, sizeof bits);
    return bits;
#else
    return fixed_round(scaled);
#endif
}

static inline void fixed_add_term(int64_t *sum, int64_t term) {
#ifdef INEXACT_SUMS
    double total, scaled;
    memcpy(&total, sum, sizeof total);
    memcpy(&scaled, &term, sizeof scaled);
    total += scaled;
    memcpy(sum, &total, sizeof total);
#else
    *sum += term;
#endif
}

/* fixed_merge() of one element. */
static inline void fixed_merge_one(int64_t *into, int64_t from) {
#ifdef INEXACT_SUMS
    fixed_add_term(into, from);
#else
    *into = (int64_t)((uint64_t)*into + (uint64_t)from);
#endif
}

static inline void fixed_add(int64_t *sum, double scaled) {
    fixed_add_term(sum, fixed_term(scaled));
}

/* fixed_add() of four contributions to sum[0…4), to the same bits. Lanes have no conversion to
 * 64-bit integers on every instruction set, but adding 1.5·2⁵² leaves an integer below 2⁵¹ in the
 * low bits: once for the part above 2²⁶, once for the rest. The part above is even, so that ties
 * fall as they would for the whole. */
LANES_INLINE void fixed_add_half(int64_t *sum, const half_lanes *scaled) {
#ifdef INEXACT_SUMS
    for (size_t k = 0; k < HALF; k++)
        fixed_add(&sum[k], (*scaled)[k]);
#else
    const double to_integer = 0x1.8p52;
    const uint64_t bits_of_that = UINT64_C(0x4338000000000000);
    half_lanes high = *scaled * 0x1p-26 + to_integer;
    half_lanes low = (*scaled - (high - to_integer) * 0x1p26) + to_integer;
    half_words total, high_bits, low_bits;
    memcpy(&high_bits, &high, sizeof high);
    memcpy(&low_bits, &low, sizeof low);
    memcpy(&total, sum, sizeof total);
    total += ((high_bits - bits_of_that) << 26) + (low_bits - bits_of_that);
    memcpy(sum, &total, sizeof total);
#endif
}

#endif
