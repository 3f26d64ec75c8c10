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
#define FLOATS_AT_ONCE 256

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

/* Of the numbers from 2^k on, k from SIZES_FROM: the power of ten that they may be above, and what
 * makes six digits before the point of one below that. */
struct size {
    double limit, power;
};
static const struct size size_of[] = {
    {1e-9, 1e15}, {1e-8, 1e14}, {1e-8, 1e14}, {1e-8, 1e14}, {1e-7, 1e13}, {1e-7, 1e13},
    {1e-7, 1e13}, {1e-6, 1e12}, {1e-6, 1e12}, {1e-6, 1e12}, {1e-6, 1e12}, {1e-5, 1e11},
    {1e-5, 1e11}, {1e-5, 1e11}, {1e-4, 1e10}, {1e-4, 1e10}, {1e-4, 1e10}, {1e-3, 1e9},
    {1e-3, 1e9},  {1e-3, 1e9},  {1e-3, 1e9},  {1e-2, 1e8},  {1e-2, 1e8},  {1e-2, 1e8},
    {1e-1, 1e7},  {1e-1, 1e7},  {1e-1, 1e7},  {1e0, 1e6},   {1e0, 1e6},   {1e0, 1e6},
    {1e1, 1e5},   {1e1, 1e5},   {1e1, 1e5},   {1e1, 1e5},   {1e2, 1e4},   {1e2, 1e4},
    {1e2, 1e4},   {1e3, 1e3},   {1e3, 1e3},   {1e3, 1e3},   {1e4, 1e2},   {1e4, 1e2},
    {1e4, 1e2},   {1e4, 1e2},   {1e5, 1e1},   {1e5, 1e1},   {1e5, 1e1},   {1e6, 1e0},
    {1e6, 1e0}};
#define SIZES (sizeof size_of / sizeof *size_of)
#define EXPONENT (UINT64_C(0x7ff) << 52)

LANES_INLINE void choose(half_lanes *to, const half_words *mask, const half_lanes *from) {
    half_words a, b;
    memcpy(&a, from, sizeof a);
    memcpy(&b, to, sizeof b);
    b = (a & *mask) | (b & ~*mask);
    memcpy(to, &b, sizeof b);
}

LANES_INLINE void clear_sign(half_lanes *value) {
    half_words bits;
    memcpy(&bits, value, sizeof bits);
    bits &= INT64_MAX;
    memcpy(value, &bits, sizeof bits);
}

/* The sizes of the numbers; where there is none that is right, *other is set. */
LANES_INLINE void find_sizes(const float value[HALF], half_lanes *limit, half_lanes *power,
                             half_words *other) {
    for (uint32_t i = 0; i < HALF; i++) {
        uint32_t bits, at;
        memcpy(&bits, &value[i], sizeof bits);
        at = (bits >> 23 & 255) - (127 + SIZES_FROM);
        bool there = at < SIZES && bits << 9;
        at = there ? at : 0;
        (*limit)[i] = size_of[at].limit;
        (*power)[i] = size_of[at].power;
        (*other)[i] = there ? 0 : UINT64_MAX;
    }
}

/* As double_of_fraction() for HALF numbers; sets the lanes of *other that it does not know. */
LANES_INLINE void doubles_of_fractions(const half_lanes *wide, const half_lanes *limit,
                                       half_lanes power, half_lanes *to, half_words *other) {
    half_lanes size = *wide, half_step, tenth = power / 10, found = {0}, over = {1, 1, 1, 1};
    half_words bits, done = {0};
    clear_sign(&size);
    memcpy(&bits, &size, sizeof bits);
    bits = (bits & EXPONENT) - (UINT64_C(24) << 52);
    memcpy(&half_step, &bits, sizeof half_step);
    bits = (half_words)(size >= *limit);
    choose(&power, &bits, &tenth);
    for (int digits = 6; digits <= 9; digits++, power *= 10) {
        half_lanes scaled = *wide * power, rounded = scaled + 0x1.8p52 - 0x1.8p52;
        half_lanes off = scaled - rounded, most = half_step * power, margin, middle;
        clear_sign(&off);
        margin = off - most;
        clear_sign(&margin);
        middle = off - 0.5;
        clear_sign(&middle);
        *other |= ~done & ((half_words)(margin < 1e-6) | (half_words)(middle < 1e-6));
        bits = ~done & (half_words)(off < most);
        choose(&found, &bits, &rounded);
        choose(&over, &bits, &power);
        done |= bits;
    }
    *other |= ~done;
    *to = found / over;
}

VECTOR_CLONES
static void doubles_of(const float *value, uint32_t count, double *to, uint32_t *others,
                       uint32_t *other_count) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < count; i += HALF) {
        half_float_lanes narrow;
        half_lanes limit, power, result;
        half_words other;
        memcpy(&narrow, value + i, sizeof narrow);
        half_lanes wide = __builtin_convertvector(narrow, half_lanes);
        find_sizes(value + i, &limit, &power, &other);
        doubles_of_fractions(&wide, &limit, power, &result, &other);
        memcpy(to + i, &result, sizeof result);
        for (uint32_t k = 0; k < HALF; k++) {
            others[n] = i + k;
            n += other[k] & 1;
        }
    }
    *other_count = n;
}

void parquet_doubles_of(const void *from, uint32_t count, double *to, size_t stride) {
    float value[FLOATS_AT_ONCE + HALF];
    double wide[FLOATS_AT_ONCE + HALF];
    uint32_t others[FLOATS_AT_ONCE + HALF + 1], other_count, here;
    for (uint32_t first = 0; first < count; first += here) {
        here = count - first < FLOATS_AT_ONCE ? count - first : FLOATS_AT_ONCE;
        memset(value + here, 0, HALF * sizeof *value);
        memcpy(value, (const uint8_t *)from + first * sizeof *value, here * sizeof *value);
        doubles_of(value, here, wide, others, &other_count);
        for (uint32_t i = 0; i < other_count; i++)
            wide[others[i]] = parquet_double_of(value[others[i]]);
        for (uint32_t i = 0; i < here; i++, to += stride)
            *to = wide[i];
    }
}
