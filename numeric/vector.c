#include "numeric/vector.h"

#include <math.h>
#include <string.h>

#include "numeric/clones.h"
#include "numeric/fixed.h"

/* How far ahead a pass over the history asks for memory: each block of a vector lies far from the
 * next one read, and the processor's own prefetching starts anew at each. */
#define PREFETCH_BYTES 2048

/* The next lanes of a history vector, as doubles. */
LANES_INLINE void load_history(enum history_type type, lanes *out, const void *stored, size_t i) {
    if (type == HISTORY_DOUBLE) {
        lanes_load(out, (const double *)stored + i);
        return;
    }
    float_lanes narrow;
    memcpy(&narrow, (const float *)stored + i, sizeof narrow);
    *out = __builtin_convertvector(narrow, lanes);
}

LANES_INLINE double history_at(enum history_type type, const void *stored, size_t i) {
    return type == HISTORY_DOUBLE ? ((const double *)stored)[i] : ((const float *)stored)[i];
}

size_t history_size(enum history_type type) {
    return type == HISTORY_DOUBLE ? sizeof(double) : sizeof(float);
}

/* Dot products of `count` ≤ 4 stored vectors with a and b, in one pass over all. The elements after
 * the last whole lanes are added at the end, in order. So the bits of a vector's dots do not depend
 * on which vectors are read with it. */
LANES_INLINE void dots_together(enum history_type type, size_t count, size_t n,
                                const void *const *stored, const double *a, const double *b,
                                double (*dots)[2]) {
    const size_t size = type == HISTORY_FLOAT ? sizeof(float) : sizeof(double);
    lanes sum[4][2][2] = {0};
    size_t i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        lanes va[2], vb[2];
        for (size_t half = 0; half < 2; half++) {
            lanes_load(&va[half], a + i + half * LANES);
            lanes_load(&vb[half], b + i + half * LANES);
        }
        for (size_t v = 0; v < count; v++) {
            __builtin_prefetch((const char *)stored[v] + i * size + PREFETCH_BYTES);
            for (size_t half = 0; half < 2; half++) {
                lanes s;
                load_history(type, &s, stored[v], i + half * LANES);
                sum[v][0][half] += s * va[half];
                sum[v][1][half] += s * vb[half];
            }
        }
    }
    for (size_t v = 0; v < count; v++) {
        for (size_t k = 0; k < 2; k++) {
            sum[v][k][0] += sum[v][k][1];
            dots[v][k] = lanes_sum(&sum[v][k][0]);
        }
        for (size_t rest = i; rest < n; rest++) {
            dots[v][0] += history_at(type, stored[v], rest) * a[rest];
            dots[v][1] += history_at(type, stored[v], rest) * b[rest];
        }
    }
}

LANES_INLINE void dots_of_all(enum history_type type, size_t count, size_t n,
                              const void *const *stored, const double *a, const double *b,
                              double (*dots)[2]) {
    size_t v = 0;
    for (; v + 4 <= count; v += 4)
        dots_together(type, 4, n, stored + v, a, b, dots + v);
    for (; v + 2 <= count; v += 2)
        dots_together(type, 2, n, stored + v, a, b, dots + v);
    for (; v < count; v++)
        dots_together(type, 1, n, stored + v, a, b, dots + v);
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
    if (type == HISTORY_FLOAT)
        dots_float(count, n, stored, a, b, dots);
    else
        dots_double(count, n, stored, a, b, dots);
}

void history_dots(enum history_type type, size_t n, const void *stored, const double *a,
                  const double *b, double dots[2]) {
    history_dots_all(type, 1, n, &stored, a, b, (double(*)[2])dots);
}

VECTOR_CLONES
double vector_dot(size_t n, const double *a, const double *b) {
    lanes sum[4] = {{0}, {0}, {0}, {0}};
    size_t i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES) {
        for (size_t part = 0; part < 4; part++) {
            lanes va, vb;
            lanes_load(&va, a + i + part * LANES);
            lanes_load(&vb, b + i + part * LANES);
            sum[part] += va * vb;
        }
    }
    sum[0] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    double dot = lanes_sum(&sum[0]);
    for (; i < n; i++)
        dot += a[i] * b[i];
    return dot;
}

VECTOR_CLONES
double vector_max_abs(size_t n, const double *a) {
    lanes most = {0}, not_finite = {0}; /* a − a is 0, or NaN */
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        lanes value;
        word_lanes bits, larger;
        lanes_load(&value, a + i);
        not_finite += value - value;
        memcpy(&bits, &value, sizeof bits);
        bits &= INT64_MAX;
        memcpy(&value, &bits, sizeof value);
        lanes_above(&larger, &value, &most);
        lanes_choose(&most, &larger, &value, &most);
    }
    double largest = 0, wrong = lanes_sum(&not_finite);
    for (size_t k = 0; k < LANES; k++)
        largest = most[k] > largest ? most[k] : largest;
    for (; i < n; i++) {
        largest = fabs(a[i]) > largest ? fabs(a[i]) : largest;
        wrong += a[i] - a[i];
    }
    return wrong == 0 ? largest : INFINITY;
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

LANES_INLINE double fixed_as_double(const int64_t *sum) {
#ifdef INEXACT_SUMS
    double value;
    memcpy(&value, sum, sizeof value);
    return value;
#else
    return (double)*sum;
#endif
}

/* 2^−exponent in two factors, neither of which leaves the range of normal doubles. */
struct halves {
    double first;
    double second;
};

LANES_INLINE struct halves two_powers(int exponent) {
    int half = exponent / 2;
    return (struct halves){fixed_power(-half), fixed_power(half - exponent)};
}

VECTOR_CLONES
void vector_from_fixed(size_t n, double *out, const int64_t *sum, int exponent, double examples) {
    struct halves power = two_powers(exponent);
    for (size_t i = 0; i < n; i++)
        out[i] = fixed_as_double(&sum[i]) * power.first * power.second / examples;
}

VECTOR_CLONES
void vector_from_fixed_columns(size_t n, double *out, const int64_t *sum, const int16_t *exponent,
                               int derivative_exponent, double examples) {
    for (size_t i = 0; i < n; i++) {
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
    for (; i + LANES <= n; i += LANES) {
        lanes va, vb;
        lanes_load(&va, a + i);
        lanes_load(&vb, b + i);
        va -= vb;
        float_lanes narrow = __builtin_convertvector(va, float_lanes);
        va = __builtin_convertvector(narrow, lanes);
        memcpy(stored + i, &narrow, sizeof narrow);
        lanes_store(rounded + i, &va);
    }
    for (; i < n; i++) {
        stored[i] = (float)(a[i] - b[i]);
        rounded[i] = stored[i];
    }
}

void history_store(enum history_type type, size_t n, void *stored, double *rounded, const double *a,
                   const double *b) {
    if (type == HISTORY_FLOAT) {
        store_float(n, stored, rounded, a, b);
        return;
    }
    vector_add(n, stored, a, -1, b);
    memcpy(rounded, stored, n * sizeof *rounded);
}

LANES_INLINE void add_two(enum history_type type, size_t n, double *out, double p, const void *s,
                          double q, const void *y) {
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        lanes v, vs, vy;
        __builtin_prefetch((const char *)s + i * history_size(type) + PREFETCH_BYTES);
        __builtin_prefetch((const char *)y + i * history_size(type) + PREFETCH_BYTES);
        lanes_load(&v, out + i);
        load_history(type, &vs, s, i);
        load_history(type, &vy, y, i);
        v += p * vs + q * vy;
        lanes_store(out + i, &v);
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
    if (type == HISTORY_FLOAT)
        add_two_float(n, out, p, s, q, y);
    else
        add_two_double(n, out, p, s, q, y);
}
