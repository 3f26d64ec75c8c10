#include "numeric/vector.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "numeric/clones.h"
#include "numeric/fixed.h"

/* How far ahead a pass over the history asks for memory: each block of a vector lies far from the
 * next one read, and the processor's own prefetching starts anew at each. */
#define PREFETCH_BYTES 2048

/* Elements of every vector that are multiplied before the next ones of any: those of a and b stay
 * in the first cache meanwhile. */
#define PART_ELEMENTS 1024

/* Vectors whose sums are kept between parts. */
#define TOGETHER 32

static_assert(PART_ELEMENTS % (4 * HALF) == 0, "parts consist of whole lanes");
static_assert(BLOCK_ELEMENTS % PART_ELEMENTS == 0, "a block consists of whole parts");
static_assert(LANES == 2 * HALF, "the sums of lanes are kept in two halves");
static_assert(sizeof(half_float_lanes) == HALF * sizeof(float), "floats of half lanes");
static_assert(2 * PART_ELEMENTS * sizeof(double) <= 16 << 10, "parts of a and b stay in a cache");

/* The next half lanes of a history vector, as doubles. Of floats named one by one gcc 12 makes one
 * instruction, of a vector of them four. */
LANES_INLINE void load_history(enum history_type type, half_lanes *out, const void *stored,
                               size_t i) {
    const float *narrow = (const float *)stored + i;
    if (type == HISTORY_DOUBLE)
        memcpy(out, (const double *)stored + i, sizeof *out);
    else
        *out = (half_lanes){narrow[0], narrow[1], narrow[2], narrow[3]};
}

LANES_INLINE const void *history_from(enum history_type type, const void *stored, size_t i) {
    return (const char *)stored + i * history_size(type);
}

size_t history_size(enum history_type type) {
    return type == HISTORY_DOUBLE ? sizeof(double) : sizeof(float);
}

/* Sums of a stored vector's products with a and, of two vectors, with b. */
struct products {
    half_lanes a, b;
};

LANES_INLINE void add_products(enum history_type type, bool two, struct products *sum,
                               const void *stored, const double *a, const double *b, size_t i) {
    half_lanes s, va, vb;
    load_history(type, &s, stored, i);
    memcpy(&va, a + i, sizeof va);
    sum->a += s * va;
    if (!two)
        return;
    memcpy(&vb, b + i, sizeof vb);
    sum->b += s * vb;
}

/* Adds those of a part, n of whose elements fill sixteen lanes again and again. Meanwhile asks for
 * what is read after it. The sums are written out, for registers. */
LANES_INLINE void add_part(enum history_type type, bool two, struct products *sums, size_t n,
                           const void *stored, const void *after, const double *a,
                           const double *b) {
    struct products s0 = sums[0], s1 = sums[1], s2 = sums[2], s3 = sums[3];
    for (size_t i = 0; i < n; i += 4 * HALF) {
        __builtin_prefetch(history_from(type, after, i));
        if (type == HISTORY_DOUBLE)
            __builtin_prefetch(history_from(type, after, i + 2 * HALF));
        add_products(type, two, &s0, stored, a, b, i);
        add_products(type, two, &s1, stored, a, b, i + HALF);
        add_products(type, two, &s2, stored, a, b, i + 2 * HALF);
        add_products(type, two, &s3, stored, a, b, i + 3 * HALF);
    }
    sums[0] = s0, sums[1] = s1, sums[2] = s2, sums[3] = s3;
}

/* The elements after the last whole lanes are added at the end, in order. So the bits of a vector's
 * dots do not depend on parts, nor on which vectors are read with it. */
LANES_INLINE void finish_dots(enum history_type type, bool two, const struct products *sums,
                              size_t first, size_t n, const void *stored, const double *a,
                              const double *b, double *dots) {
    half_lanes low = sums[0].a + sums[2].a, high = sums[1].a + sums[3].a;
    dots[0] = half_lanes_sum(&low, &high);
    for (size_t i = first; i < n; i++)
        dots[0] += history_at(type, stored, i) * a[i];
    dots[1] = dots[0];
    if (!two)
        return;
    low = sums[0].b + sums[2].b, high = sums[1].b + sums[3].b;
    dots[1] = half_lanes_sum(&low, &high);
    for (size_t i = first; i < n; i++)
        dots[1] += history_at(type, stored, i) * b[i];
}

LANES_INLINE void dots_together(enum history_type type, bool two, size_t count, size_t n,
                                const void *const *stored, const double *a, const double *b,
                                double (*dots)[2]) {
    struct products sums[TOGETHER][4];
    memset(sums, 0, count * sizeof sums[0]);
    const size_t whole = n - n % (4 * HALF);
    for (size_t at = 0; at < whole; at += PART_ELEMENTS) {
        size_t part = whole - at < PART_ELEMENTS ? whole - at : PART_ELEMENTS;
        for (size_t v = 0; v < count; v++) {
            const void *after = v + 1 < count ? history_from(type, stored[v + 1], at)
                                              : history_from(type, stored[0], at + part);
            add_part(type, two, sums[v], part, history_from(type, stored[v], at), after, a + at,
                     b + at);
        }
    }
    for (size_t v = 0; v < count; v++)
        finish_dots(type, two, sums[v], whole, n, stored[v], a, b, dots[v]);
}

LANES_INLINE void dots_of_all(enum history_type type, size_t count, size_t n,
                              const void *const *stored, const double *a, const double *b,
                              double (*dots)[2]) {
    for (size_t v = 0; v < count; v += TOGETHER) {
        size_t some = count - v < TOGETHER ? count - v : TOGETHER;
        if (a == b)
            dots_together(type, false, some, n, stored + v, a, a, dots + v);
        else
            dots_together(type, true, some, n, stored + v, a, b, dots + v);
    }
}

VECTOR_CLONES
static void dots_float(size_t count, size_t n, const void *const *stored, const double *a,
                       const double *b, double (*dots)[2]) {
    dots_of_all(HISTORY_FLOAT, count, n, stored, a, b, dots);
}

VECTOR_CLONES
static void dots_double(size_t count, size_t n, const void *const *stored, const double *a,
                        const double *b, double (*dots)[2]) {
    dots_of_all(HISTORY_DOUBLE, count, n, stored, a, b, dots);
}

void history_dots_all(enum history_type type, size_t count, size_t n, const void *const *stored,
                      const double *a, const double *b, double (*dots)[2]) {
    assert(n <= BLOCK_ELEMENTS);
    if (type == HISTORY_FLOAT)
        dots_float(count, n, stored, a, b, dots);
    else
        dots_double(count, n, stored, a, b, dots);
}

void history_dots(enum history_type type, size_t n, const void *stored, const double *a,
                  const double *b, double dots[2]) {
    history_dots_all(type, 1, n, &stored, a, b, (double(*)[2])dots);
}

LANES_INLINE void add_product(half_lanes *sum, const double *a, const double *b) {
    half_lanes va, vb;
    memcpy(&va, a, sizeof va);
    memcpy(&vb, b, sizeof vb);
    *sum += va * vb;
}

/* Sixteen lanes a sum. */
LANES_INLINE void add_four(half_lanes *sum, const double *a, const double *b) {
    add_product(&sum[0], a, b);
    add_product(&sum[1], a + HALF, b + HALF);
    add_product(&sum[2], a + 2 * HALF, b + 2 * HALF);
    add_product(&sum[3], a + 3 * HALF, b + 3 * HALF);
}

VECTOR_CLONES
double vector_dot(size_t n, const double *a, const double *b) {
    half_lanes first[4] = {{0}, {0}, {0}, {0}}, second[4] = {{0}, {0}, {0}, {0}};
    size_t i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES) {
        add_four(first, a + i, b + i);
        add_four(second, a + i + 2 * LANES, b + i + 2 * LANES);
    }
    half_lanes low = (first[0] + first[2]) + (second[0] + second[2]);
    half_lanes high = (first[1] + first[3]) + (second[1] + second[3]);
    double dot = half_lanes_sum(&low, &high);
    for (; i < n; i++)
        dot += a[i] * b[i];
    return dot;
}

/* The bits of |a|. They are in the order of the numbers, with infinity and NaNs above all others.
 */
LANES_INLINE uint64_t size_bits(const double *a) {
    uint64_t bits;
    memcpy(&bits, a, sizeof bits);
    return bits & INT64_MAX;
}

/* The larger of each lane. */
LANES_INLINE void note_sizes(half_words *most, const double *a) {
    half_words bits;
    memcpy(&bits, a, sizeof bits);
    bits &= INT64_MAX;
    half_words larger = 0 - ((*most - bits) >> 63);
    *most = (bits & larger) | (*most & ~larger);
}

VECTOR_CLONES
double vector_max_abs(size_t n, const double *a) {
    half_words most[2] = {{0}, {0}};
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        note_sizes(&most[0], a + i);
        note_sizes(&most[1], a + i + HALF);
    }
    uint64_t largest = 0;
    for (size_t k = 0; k < LANES; k++)
        largest = most[k / HALF][k % HALF] > largest ? most[k / HALF][k % HALF] : largest;
    for (; i < n; i++)
        largest = size_bits(a + i) > largest ? size_bits(a + i) : largest;
    double size;
    memcpy(&size, &largest, sizeof size);
    return isfinite(size) ? size : INFINITY;
}

VECTOR_CLONES
void vector_add(size_t n, double *out, const double *a, double alpha, const double *b) {
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        lanes va, vb;
        lanes_load(&va, a + i);
        lanes_load(&vb, b + i);
        va += alpha * vb;
        lanes_store(out + i, &va);
    }
    for (; i < n; i++)
        out[i] = a[i] + alpha * b[i];
}

VECTOR_CLONES
void vector_scale(size_t n, double *out, double alpha, const double *a) {
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        lanes v;
        lanes_load(&v, a + i);
        v *= alpha;
        lanes_store(out + i, &v);
    }
    for (; i < n; i++)
        out[i] = alpha * a[i];
}

VECTOR_CLONES
void vector_multiply(size_t n, double *out, const double *a, const double *b) {
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        lanes v, w;
        lanes_load(&v, a + i);
        lanes_load(&w, b + i);
        v *= w;
        lanes_store(out + i, &v);
    }
    for (; i < n; i++)
        out[i] = a[i] * b[i];
}

LANES_INLINE void load_or_ones(lanes *out, const double *from, size_t i) {
    if (from)
        lanes_load(out, from + i);
    else
        *out = (lanes){1, 1, 1, 1, 1, 1, 1, 1};
}

VECTOR_CLONES
void vector_curvature(size_t n, double *out, double alpha, const double *square, double beta,
                      const double *weight) {
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        lanes s, w;
        load_or_ones(&s, square, i);
        load_or_ones(&w, weight, i);
        s = alpha * s + beta * w;
        lanes_store(out + i, &s);
    }
    for (; i < n; i++)
        out[i] = alpha * (square ? square[i] : 1) + beta * (weight ? weight[i] : 1);
}

/* All bits where a number is above 0, which a NaN is not: bits from 1 to those of infinity. */
LANES_INLINE void positive_lanes(word_lanes *mask, const lanes *a) {
    memcpy(mask, a, sizeof *mask);
    *mask -= 1;
    *mask |= UINT64_C(0x7fefffffffffffff) - *mask;
    *mask = (*mask >> 63) - 1;
}

VECTOR_CLONES
void vector_divide(size_t n, double *out, const double *a, const double *curvature) {
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        lanes v, by;
        word_lanes bits, mask;
        lanes_load(&v, a + i);
        lanes_load(&by, curvature + i);
        v /= by;
        positive_lanes(&mask, &by);
        memcpy(&bits, &v, sizeof bits);
        bits &= mask;
        memcpy(out + i, &bits, sizeof bits);
    }
    for (; i < n; i++)
        out[i] = curvature[i] > 0 ? a[i] / curvature[i] : 0;
}

LANES_INLINE double fixed_as_double(const int64_t *sum) {
#ifdef INEXACT_SUMS
    double value;
    memcpy(&value, sum, sizeof value);
    return value;
#else
    return (double)*sum;
#endif
}

/* Fixed point to doubles in half lanes. The upper and the lower half of a sum become the mantissas
 * of 2⁸⁴ and 2⁵² and something: then the powers are taken off again, and only the last addition
 * rounds. */
LANES_INLINE void fixed_as_doubles(half_lanes *out, const int64_t *sum) {
    half_words bits;
    memcpy(&bits, sum, sizeof bits);
#ifdef INEXACT_SUMS
    memcpy(out, &bits, sizeof *out);
#else
    half_words upper = (bits >> 32) ^ UINT64_C(0x4530000080000000); /* the sign: 2⁶³ more */
    half_words lower = (bits & UINT32_MAX) | UINT64_C(0x4330000000000000);
    half_lanes high, low;
    memcpy(&high, &upper, sizeof high);
    memcpy(&low, &lower, sizeof low);
    *out = (high - (0x1p84 + 0x1p63 + 0x1p52)) + low;
#endif
}

/* 2^−exponent in two factors, neither of which leaves the range of normal doubles. */
struct halves {
    double first;
    double second;
};

static_assert((FIXED_EXPONENT_MAX - FIXED_DERIVATIVE_MIN + 1) / 2 <= 1022 &&
                  (FIXED_EXPONENT_MIN - FIXED_DERIVATIVE_MAX - 1) / 2 >= -1023,
              "half of an exponent is that of a normal double");

LANES_INLINE struct halves two_powers(int exponent) {
    int half = exponent / 2;
    return (struct halves){fixed_power(-half), fixed_power(half - exponent)};
}

VECTOR_CLONES
void vector_from_fixed(size_t n, double *out, const int64_t *sum, int exponent, double examples) {
    struct halves power = two_powers(exponent);
    size_t i = 0;
    for (; i + HALF <= n; i += HALF) {
        half_lanes v;
        fixed_as_doubles(&v, sum + i);
        v = v * power.first * power.second / examples;
        memcpy(out + i, &v, sizeof v);
    }
    for (; i < n; i++)
        out[i] = fixed_as_double(&sum[i]) * power.first * power.second / examples;
}

/* The powers of two of half lanes. 4096 more makes an exponent positive, so that half of it is a
 * shift. */
LANES_INLINE void powers_of(half_lanes *first, half_lanes *second, const int16_t *exponent,
                            int derivative_exponent) {
    half_words from = {(uint64_t)exponent[0], (uint64_t)exponent[1], (uint64_t)exponent[2],
                       (uint64_t)exponent[3]};
    half_words total = from - (uint64_t)derivative_exponent;
    half_words half = ((total + 4096) >> 1) - 2048;
    half_words bits = (1023 - half) << 52;
    memcpy(first, &bits, sizeof *first);
    bits = (1023 + half - total) << 52;
    memcpy(second, &bits, sizeof *second);
}

VECTOR_CLONES
void vector_from_fixed_columns(size_t n, double *out, const int64_t *sum, const int16_t *exponent,
                               int derivative_exponent, double examples) {
    size_t i = 0;
    for (; i + HALF <= n; i += HALF) {
        half_lanes v, first, second;
        fixed_as_doubles(&v, sum + i);
        powers_of(&first, &second, exponent + i, derivative_exponent);
        v = v * first * second / examples;
        memcpy(out + i, &v, sizeof v);
    }
    for (; i < n; i++) {
        struct halves power = two_powers(exponent[i] - derivative_exponent);
        out[i] = fixed_as_double(&sum[i]) * power.first * power.second / examples;
    }
}

/* A difference too large for a float becomes an infinity, which the pair's dot products then show.
 */
VECTOR_CLONES
static void store_float(size_t n, float *stored, double *rounded, const double *a,
                        const double *b) {
    size_t i = 0;
    for (; i + HALF <= n; i += HALF) {
        half_lanes va, vb;
        memcpy(&va, a + i, sizeof va);
        memcpy(&vb, b + i, sizeof vb);
        va -= vb;
        half_float_lanes narrow = __builtin_convertvector(va, half_float_lanes);
        va = __builtin_convertvector(narrow, half_lanes);
        memcpy(stored + i, &narrow, sizeof narrow);
        memcpy(rounded + i, &va, sizeof va);
    }
    for (; i < n; i++) {
        stored[i] = (float)(a[i] - b[i]);
        rounded[i] = stored[i];
    }
}

void history_store(enum history_type type, size_t n, void *stored, double *rounded, const double *a,
                   const double *b) {
    assert(n <= BLOCK_ELEMENTS);
    if (type == HISTORY_FLOAT) {
        store_float(n, stored, rounded, a, b);
        return;
    }
    vector_add(n, stored, a, -1, b);
    memcpy(rounded, stored, n * sizeof *rounded);
}

void history_round(enum history_type type, size_t n, void *stored, const double *a) {
    assert(n <= BLOCK_ELEMENTS);
    if (type == HISTORY_DOUBLE) {
        memcpy(stored, a, n * sizeof *a);
        return;
    }
    float *to = stored;
    for (size_t i = 0; i < n; i++)
        to[i] = (float)a[i];
}

void history_expand(enum history_type type, size_t n, double *out, const void *stored) {
    assert(n <= BLOCK_ELEMENTS);
    if (type == HISTORY_DOUBLE) {
        memcpy(out, stored, n * sizeof *out);
        return;
    }
    const float *from = stored;
    for (size_t i = 0; i < n; i++)
        out[i] = from[i];
}

void history_scale(enum history_type type, size_t n, void *stored, double factor) {
    assert(n <= BLOCK_ELEMENTS);
    if (type == HISTORY_DOUBLE) {
        vector_scale(n, stored, factor, stored);
        return;
    }
    float *of = stored;
    for (size_t i = 0; i < n; i++)
        of[i] = (float)(factor * of[i]);
}

VECTOR_CLONES
static void multiply_float(size_t n, float *stored, const double *factors) {
    size_t i = 0;
    for (; i + HALF <= n; i += HALF) {
        half_float_lanes of;
        half_lanes v;
        memcpy(&of, stored + i, sizeof of);
        memcpy(&v, factors + i, sizeof v);
        v *= __builtin_convertvector(of, half_lanes);
        of = __builtin_convertvector(v, half_float_lanes);
        memcpy(stored + i, &of, sizeof of);
    }
    for (; i < n; i++)
        stored[i] = (float)(factors[i] * stored[i]);
}

void history_multiply(enum history_type type, size_t n, void *stored, const double *factors) {
    assert(n <= BLOCK_ELEMENTS);
    if (type == HISTORY_DOUBLE)
        vector_multiply(n, stored, stored, factors);
    else
        multiply_float(n, stored, factors);
}

LANES_INLINE void add_half(enum history_type type, double *out, double p, const void *s, double q,
                           const void *y, size_t i) {
    half_lanes v, vs, vy;
    memcpy(&v, out + i, sizeof v);
    load_history(type, &vs, s, i);
    load_history(type, &vy, y, i);
    v += p * vs + q * vy;
    memcpy(out + i, &v, sizeof v);
}

LANES_INLINE void add_two(enum history_type type, size_t n, double *out, double p, const void *s,
                          double q, const void *y) {
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        __builtin_prefetch((const char *)s + i * history_size(type) + PREFETCH_BYTES);
        __builtin_prefetch((const char *)y + i * history_size(type) + PREFETCH_BYTES);
        add_half(type, out, p, s, q, y, i);
        add_half(type, out, p, s, q, y, i + HALF);
    }
    for (; i < n; i++)
        out[i] += p * history_at(type, s, i) + q * history_at(type, y, i);
}

VECTOR_CLONES
static void add_two_float(size_t n, double *out, double p, const void *s, double q, const void *y) {
    add_two(HISTORY_FLOAT, n, out, p, s, q, y);
}

VECTOR_CLONES
static void add_two_double(size_t n, double *out, double p, const void *s, double q,
                           const void *y) {
    add_two(HISTORY_DOUBLE, n, out, p, s, q, y);
}

void history_add(enum history_type type, size_t n, double *out, double p, const void *s, double q,
                 const void *y) {
    assert(n <= BLOCK_ELEMENTS);
    if (type == HISTORY_FLOAT)
        add_two_float(n, out, p, s, q, y);
    else
        add_two_double(n, out, p, s, q, y);
}
