/* Numbers of 32 bits as the doubles that their shortest texts mean. */
#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "data/number.h"
#include "data/parquet_cell.h"
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

/* The whole number that is nearest, of a number below 2^51: behind the sum no bit is left for more.
 */
static inline double nearest(double value) {
    return value + 0x1.8p52 - 0x1.8p52;
}

/* The digits before the point of the numbers from 2^k on, k from -30; below 1 the zeros behind it.
 * Above the next power of ten it is one more. */
#define SIZES_FROM (-30)
static const int8_t sizes[] = {-9, -8, -8, -8, -7, -7, -7, -6, -6, -6, -6, -5, -5, -5,
                               -4, -4, -4, -3, -3, -3, -3, -2, -2, -2, -1, -1, -1, 0,
                               0,  0,  1,  1,  1,  1,  2,  2,  2,  3,  3,  3,  4,  4,
                               4,  4,  5,  5,  5,  6,  6,  6,  7,  7,  7};

/* The same for numbers of usual sizes that are not whole: a whole number below 10^9 over a power of
 * ten, both of which a double has, so that their quotient is the double next to the decimal number.
 * It is rounded to `value` if it is nearer than half the step to the next number; where that, or
 * which of two decimal numbers is nearer, is too close to call, all digits must tell. */
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

/* Of the numbers from 2^k on, k from SIZES_FROM: the power of ten that they may reach, and what
 * makes six digits before the point of one below that, and of one from that on. */
struct size {
    double limit, below, above;
};
static const struct size size_of[] = {
    {1e-9, 1e15, 1e14}, {1e-8, 1e14, 1e13}, {1e-8, 1e14, 1e13}, {1e-8, 1e14, 1e13},
    {1e-7, 1e13, 1e12}, {1e-7, 1e13, 1e12}, {1e-7, 1e13, 1e12}, {1e-6, 1e12, 1e11},
    {1e-6, 1e12, 1e11}, {1e-6, 1e12, 1e11}, {1e-6, 1e12, 1e11}, {1e-5, 1e11, 1e10},
    {1e-5, 1e11, 1e10}, {1e-5, 1e11, 1e10}, {1e-4, 1e10, 1e9},  {1e-4, 1e10, 1e9},
    {1e-4, 1e10, 1e9},  {1e-3, 1e9, 1e8},   {1e-3, 1e9, 1e8},   {1e-3, 1e9, 1e8},
    {1e-3, 1e9, 1e8},   {1e-2, 1e8, 1e7},   {1e-2, 1e8, 1e7},   {1e-2, 1e8, 1e7},
    {1e-1, 1e7, 1e6},   {1e-1, 1e7, 1e6},   {1e-1, 1e7, 1e6},   {1e0, 1e6, 1e5},
    {1e0, 1e6, 1e5},    {1e0, 1e6, 1e5},    {1e1, 1e5, 1e4},    {1e1, 1e5, 1e4},
    {1e1, 1e5, 1e4},    {1e1, 1e5, 1e4},    {1e2, 1e4, 1e3},    {1e2, 1e4, 1e3},
    {1e2, 1e4, 1e3},    {1e3, 1e3, 1e2},    {1e3, 1e3, 1e2},    {1e3, 1e3, 1e2},
    {1e4, 1e2, 1e1},    {1e4, 1e2, 1e1},    {1e4, 1e2, 1e1},    {1e4, 1e2, 1e1},
    {1e5, 1e1, 1e0},    {1e5, 1e1, 1e0},    {1e5, 1e1, 1e0},    {1e6, 1e0, 1e-1},
    {1e6, 1e0, 1e-1}};
#define SIZES (sizeof size_of / sizeof *size_of)
#define EXPONENT (UINT64_C(0x7ff) << 52)

#define FLOATS_AT_ONCE 256 /* a whole number of HALF */
struct some_floats {
    float value[FLOATS_AT_ONCE];
    double limit[FLOATS_AT_ONCE], below[FLOATS_AT_ONCE], above[FLOATS_AT_ONCE], to[FLOATS_AT_ONCE];
    uint64_t other[FLOATS_AT_ONCE]; /* not 0: parquet_double_of() must tell */
};

static void find_sizes(struct some_floats *some, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        uint32_t bits, at;
        memcpy(&bits, &some->value[i], sizeof bits);
        at = (bits >> 23 & 255) - (127 + SIZES_FROM);
        bool there = at < SIZES && bits << 9;
        at = there ? at : 0;
        some->limit[i] = size_of[at].limit;
        some->below[i] = size_of[at].below;
        some->above[i] = size_of[at].above;
        some->other[i] = !there;
    }
}

/* What makes six digits of the sizes from `i` on, and half the step to the next number. */
LANES_INLINE void load_sizes(const struct some_floats *some, uint32_t i, const half_lanes *wide,
                             half_lanes *power, half_lanes *half_step) {
    half_lanes limit, above, size = *wide;
    half_words bits;
    memcpy(&limit, some->limit + i, sizeof limit);
    memcpy(power, some->below + i, sizeof *power);
    memcpy(&above, some->above + i, sizeof above);
    half_abs(&size);
    memcpy(&bits, &size, sizeof bits);
    bits = (bits & EXPONENT) - (UINT64_C(24) << 52);
    memcpy(half_step, &bits, sizeof *half_step);
    bits = (half_words)(size >= limit);
    half_choose(power, &bits, &above, power);
}

/* As double_of_fraction(): sets `other` where it does not know. */
VECTOR_CLONES
static void doubles_of_fractions(struct some_floats *some, uint32_t count) {
    for (uint32_t i = 0; i < count; i += HALF) {
        half_lanes wide, power, half_step, found = {0}, over = {1, 1, 1, 1};
        half_words bits, other, done = {0};
        half_load_floats(&wide, some->value + i);
        memcpy(&other, some->other + i, sizeof other);
        load_sizes(some, i, &wide, &power, &half_step);
        UNROLL for (int digits = 6; digits <= 9; digits++) {
            half_lanes scaled = wide * power, rounded = scaled + 0x1.8p52 - 0x1.8p52;
            half_lanes off = scaled - rounded, most = half_step * power, middle;
            half_abs(&off);
            half_lanes margin = off - most;
            half_abs(&margin);
            middle = off - 0.5;
            half_abs(&middle);
            other |= ~done & ((half_words)(margin < 1e-6) | (half_words)(middle < 1e-6));
            bits = ~done & (half_words)(off < most);
            half_choose(&found, &bits, &rounded, &found);
            half_choose(&over, &bits, &power, &over);
            done |= bits;
            power *= 10;
        }
        found /= over;
        other |= ~done;
        memcpy(some->to + i, &found, sizeof found);
        memcpy(some->other + i, &other, sizeof other);
    }
}

void parquet_doubles_of(const void *from, uint32_t count, double *to, size_t stride) {
    struct some_floats some;
    uint32_t here;
    memset(some.value, 0, sizeof some.value); /* what is behind the last is looked at, too */
    for (uint32_t first = 0; first < count; first += here) {
        here = count - first < FLOATS_AT_ONCE ? count - first : FLOATS_AT_ONCE;
        memcpy(some.value, (const uint8_t *)from + first * sizeof(float),
               here * sizeof *some.value);
        find_sizes(&some, (here + HALF - 1) / HALF * HALF);
        doubles_of_fractions(&some, here);
        for (uint32_t i = 0; i < here; i++, to += stride)
            *to = some.other[i] ? parquet_double_of(some.value[i]) : some.to[i];
    }
}
