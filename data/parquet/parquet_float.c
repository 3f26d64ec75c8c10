/* Numbers of 32 bits as the doubles that their shortest texts mean. */
#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "data/parquet/parquet_cell.h"
#include "data/text/number.h"
#include "numeric/clones.h"

#define TEXT_ROOM 32

const double exact_powers[EXACT_POWERS] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                           1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                           1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/* What the shortest text of a number means: one of six digits is the only one of so few that is
 * rounded to it, so that fewer need not be tried. */
static double slow_double_of(float value) {
    char text[TEXT_ROOM];
    double number;
    for (int digits = fpclassify(value) == FP_SUBNORMAL ? 1 : 6; digits <= 9; digits++) {
        snprintf(text, sizeof text, "%.*e", digits - 1, (double)value);
        if (number_of_text(text, &number) && (float)number == value)
            return number;
    }
    return value;
}

/* The whole number that is nearest, of a number below 2^51: after the sum no bit is left for more.
 */
static inline double nearest(double value) {
    return value + 0x1.8p52 - 0x1.8p52;
}

/* The digits before the point of the numbers from 2^k on, k from -30; below 1 the zeros after it.
 * Above the next power of ten it is one more. */
#define SIZES_FROM (-30)
static const int8_t sizes[] = {-9, -8, -8, -8, -7, -7, -7, -6, -6, -6, -6, -5, -5, -5,
                               -4, -4, -4, -3, -3, -3, -3, -2, -2, -2, -1, -1, -1, 0,
                               0,  0,  1,  1,  1,  1,  2,  2,  2,  3,  3,  3,  4,  4,
                               4,  4,  5,  5,  5,  6,  6,  6,  7,  7,  7};

/* The shortest decimal of numbers of usual sizes that are not whole: a whole number below 10^9 over
 * a power of ten, both of which a double has, so that their quotient is the double next to the
 * decimal number. It is rounded to `value` if it is nearer than half the step to the next number;
 * where that, or which of two decimal numbers is nearer, is too close to call, all digits must
 * tell. */
static double double_of_fraction(float value, int exponent) {
    double wide = value, half_step;
    uint64_t bits = (uint64_t)(1023 + exponent - 24) << 52;
    memcpy(&half_step, &bits, sizeof half_step);
    int whole = sizes[exponent - SIZES_FROM];
    if (fabs(wide) * (whole < 0 ? exact_powers[-whole] : 1) >=
        (whole < 0 ? 1 : exact_powers[whole]))
        whole++;
    for (int digits = whole > 6 ? whole : 6; digits <= 9; digits++) {
        double power = exact_powers[digits - whole], scaled = wide * power,
               rounded = nearest(scaled);
        double off = fabs(scaled - rounded), most = half_step * power;
        if (fabs(off - most) < 1e-6 || fabs(off - 0.5) < 1e-6)
            return slow_double_of(value);
        if (off < most)
            return rounded / power;
    }
    return slow_double_of(value);
}

double parquet_double_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    int exponent = (int)(bits >> 23 & 255) - 127;
    double wide = value;
    if (exponent < 24 && wide == nearest(wide))
        return wide; /* no other number so short is next to it */
    if (exponent >= SIZES_FROM && exponent < 23 && bits << 9)
        return double_of_fraction(value, exponent);
    return isfinite(value) ? slow_double_of(value) : (double)value;
}

/* ---- some at once ---- */

/* For the numbers from 2^k on, k from SIZES_FROM: the factor that makes six digits before the point
 * of one that is below the power of ten that they may reach, and of one from that on. */
struct size {
    double below, above;
};
static const struct size size_of[] = {
    {1e15, 1e14}, {1e14, 1e13}, {1e14, 1e13}, {1e14, 1e13}, {1e13, 1e12}, {1e13, 1e12},
    {1e13, 1e12}, {1e12, 1e11}, {1e12, 1e11}, {1e12, 1e11}, {1e12, 1e11}, {1e11, 1e10},
    {1e11, 1e10}, {1e11, 1e10}, {1e10, 1e9},  {1e10, 1e9},  {1e10, 1e9},  {1e9, 1e8},
    {1e9, 1e8},   {1e9, 1e8},   {1e9, 1e8},   {1e8, 1e7},   {1e8, 1e7},   {1e8, 1e7},
    {1e7, 1e6},   {1e7, 1e6},   {1e7, 1e6},   {1e6, 1e5},   {1e6, 1e5},   {1e6, 1e5},
    {1e5, 1e4},   {1e5, 1e4},   {1e5, 1e4},   {1e5, 1e4},   {1e4, 1e3},   {1e4, 1e3},
    {1e4, 1e3},   {1e3, 1e2},   {1e3, 1e2},   {1e3, 1e2},   {1e2, 1e1},   {1e2, 1e1},
    {1e2, 1e1},   {1e2, 1e1},   {1e1, 1e0},   {1e1, 1e0},   {1e1, 1e0},   {1e0, 1e-1},
    {1e0, 1e-1},
};
#define SIZES (sizeof size_of / sizeof *size_of)
#define SIX_DIGITS_END 1e6
#define EXPONENT (UINT64_C(0x7ff) << 52)

#define FLOATS_AT_ONCE 256 /* a whole number of HALF */

/* HALF numbers while their digits are found: what makes whole numbers of as many as are tried, and
 * of as few as will do. */
struct float_group {
    half_lanes wide, half_step, power, chosen;
    half_words other; /* of these double_of_fraction() would not know, either */
};

/* The place in size_of; of a power of two, or what has none, it is any. */
static inline uint32_t place_of_size(float value, uint64_t *other) {
    uint32_t bits, at;
    memcpy(&bits, &value, sizeof bits);
    at = (bits >> 23 & 255) - (127 + SIZES_FROM);
    bool there = at < SIZES && bits << 9;
    *other = there ? 0 : UINT64_MAX;
    return there ? at : 0;
}

/* What makes six digits of each, and half the step to the next number. */
LANES_INLINE void begin_group(struct float_group *group, const float *value) {
    uint64_t none[HALF];
    const struct size *size[HALF];
    half_lanes far;
    half_words bits;
    UNROLL for (uint32_t i = 0; i < HALF; i++) size[i] =
        &size_of[place_of_size(value[i], &none[i])];
    memcpy(&group->other, none, sizeof none);
    half_load_floats(&group->wide, value);
    const half_lanes below = {size[0]->below, size[1]->below, size[2]->below, size[3]->below};
    const half_lanes above = {size[0]->above, size[1]->above, size[2]->above, size[3]->above};
    far = group->wide;
    half_abs(&far);
    memcpy(&bits, &far, sizeof bits);
    bits = (bits & EXPONENT) - (UINT64_C(24) << 52);
    memcpy(&group->half_step, &bits, sizeof bits);
    bits = (half_words)(far * below >= SIX_DIGITS_END);
    half_choose(&group->power, &bits, &above, &below);
}

/* Whether a number is about halfway between two of so many digits. */
LANES_INLINE void round_group(const struct float_group *group, half_lanes *off, half_words *tie) {
    half_lanes scaled = group->wide * group->power;
    *off = scaled - (scaled + 0x1.8p52 - 0x1.8p52);
    half_abs(off);
    *tie = (half_words)(*off > 0.5 - 1e-6);
}

/* As a turn of double_of_fraction(), but from many digits to few: what was found of more does not
 * count if these will do. Nine always do; and where six do, they are no tie. */
LANES_INLINE void try_digits(struct float_group *group) {
    half_lanes off, most = group->half_step * group->power;
    half_words tie, near;
    round_group(group, &off, &tie);
    half_lanes margin = off - most;
    half_abs(&margin);
    near = (half_words)(off < most);
    half_choose(&group->chosen, &near, &group->power, &group->chosen);
    group->other = (near & tie) | (~near & group->other) | (half_words)(margin < 1e-6);
}

LANES_INLINE void find_digits(struct float_group *group) {
    const half_lanes six = group->power, seven = six * 10, eight = seven * 10;
    const half_words none = group->other;
    half_lanes off;
    group->power = group->chosen = eight * 10;
    round_group(group, &off, &group->other);
    group->power = eight;
    try_digits(group);
    group->power = seven;
    try_digits(group);
    group->power = six;
    try_digits(group);
    group->other |= none;
}

/* Sets bits of the result, and in `other` the number's, where parquet_double_of() must tell. */
VECTOR_CLONES
static uint64_t doubles_of_fractions(const float *value, uint32_t count, double *to,
                                     uint64_t *other) {
    half_words any = {0};
    for (uint32_t i = 0; i < count; i += HALF) {
        struct float_group group = {0};
        begin_group(&group, value + i);
        find_digits(&group);
        half_lanes whole = group.wide * group.chosen + 0x1.8p52 - 0x1.8p52;
        whole /= group.chosen;
        memcpy(to + i, &whole, sizeof whole);
        memcpy(other + i, &group.other, sizeof group.other);
        any |= group.other;
    }
    return any[0] | any[1] | any[2] | any[3];
}

bool parquet_doubles_of(const void *from, uint32_t count, double *to, size_t stride) {
    float value[FLOATS_AT_ONCE] = {0}; /* what is after the last is looked at, too */
    double some[FLOATS_AT_ONCE];
    uint64_t other[FLOATS_AT_ONCE];
    bool finite = true;
    for (uint32_t first = 0, here; first < count; first += here, to += here * stride) {
        here = count - first < FLOATS_AT_ONCE ? count - first : FLOATS_AT_ONCE;
        memcpy(value, (const uint8_t *)from + first * sizeof *value, here * sizeof *value);
        uint64_t any = doubles_of_fractions(value, here, some, other);
        for (uint32_t i = 0; any && i < here; i++) {
            some[i] = other[i] ? parquet_double_of(value[i]) : some[i];
            finite &= isfinite(some[i]) != 0;
        }
        for (uint32_t i = 0; i < here; i++)
            to[i * stride] = some[i];
    }
    return finite;
}
