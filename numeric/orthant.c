#include "numeric/orthant.h"

#include "numeric/clones.h"

/* Decisions are made on the bits of numbers, as masks of a whole element: gcc 12 makes branches, or
 * compares number by number, of anything else. */

#define SIGN (UINT64_C(1) << 63)

LANES_INLINE void bits_of(half_words *out, const half_lanes *a) {
    memcpy(out, a, sizeof *out);
}

LANES_INLINE void number_of(half_lanes *out, const half_words *bits) {
    memcpy(out, bits, sizeof *out);
}

/* Makes half lanes of `out` from those of a and b. */
typedef void half_step(half_lanes *out, const half_lanes *a, const half_lanes *b, double l1);

/* What lies beyond the end of the arrays is 0. */
LANES_INLINE void each_half(size_t n, double *out, const double *a, const double *b, double l1,
                            half_step *step) {
    half_lanes of_out, of_a, of_b;
    size_t i = 0;
    for (; i + HALF <= n; i += HALF) {
        memcpy(&of_out, out + i, sizeof of_out);
        memcpy(&of_a, a + i, sizeof of_a);
        memcpy(&of_b, b + i, sizeof of_b);
        step(&of_out, &of_a, &of_b, l1);
        memcpy(out + i, &of_out, sizeof of_out);
    }
    if (i == n)
        return;
    of_out = of_a = of_b = (half_lanes){0};
    memcpy(&of_out, out + i, (n - i) * sizeof *out);
    memcpy(&of_a, a + i, (n - i) * sizeof *a);
    memcpy(&of_b, b + i, (n - i) * sizeof *b);
    step(&of_out, &of_a, &of_b, l1);
    memcpy(out + i, &of_out, (n - i) * sizeof *out);
}

/* 1 where a is not 0, else 0. */
LANES_INLINE void nonzero(half_words *out, const half_words *a) {
    *out = ((*a & INT64_MAX) + INT64_MAX) >> 63;
}

/* The bits of ξ as ±0, and as a mask where there is an orthant: x ≠ 0 or q ≠ 0. */
LANES_INLINE void orthant_of(half_words *sign, half_words *there, const half_words *x,
                             const half_words *q) {
    half_words moved, pulled;
    nonzero(&moved, x);
    nonzero(&pulled, q);
    *sign = ((*x & (0 - moved)) | (~*q & ~(0 - moved))) & SIGN;
    *there = 0 - (moved | pulled);
}

/* max(|a| − l1, 0); not a number if a is none. */
LANES_INLINE void beyond(half_lanes *out, const half_lanes *a, double l1) {
    half_words bits, some;
    bits_of(&bits, a);
    bits &= INT64_MAX;
    number_of(out, &bits);
    *out -= l1;
    bits_of(&bits, out);
    nonzero(&some, &bits);
    bits &= 0 - (some & ~(bits >> 63));
    number_of(out, &bits);
}

LANES_INLINE void pseudo(half_lanes *q, const half_lanes *at, const half_lanes *gradient,
                         double l1) {
    half_words x, g, moved, least, with;
    half_lanes size = {l1, l1, l1, l1}, over, sum;
    bits_of(&x, at);
    bits_of(&g, gradient);
    nonzero(&moved, &x);
    moved = 0 - moved;
    beyond(&over, gradient, l1);
    bits_of(&least, &over);
    half_words some;
    nonzero(&some, &least);
    least |= g & SIGN & (0 - some);
    bits_of(&with, &size);
    with |= x & SIGN;
    number_of(&size, &with);
    sum = *gradient + size;
    bits_of(&with, &sum);
    with = (with & moved) | (least & ~moved);
    number_of(q, &with);
}

VECTOR_CLONES
void orthant_pseudo_gradient(size_t n, double *q, const double *x, const double *g, double l1) {
    each_half(n, q, x, g, l1, pseudo);
}

LANES_INLINE void project(half_lanes *trial, const half_lanes *at, const half_lanes *pull,
                          double l1) {
    (void)l1;
    half_words t, x, q, sign, there, some;
    bits_of(&t, trial);
    bits_of(&x, at);
    bits_of(&q, pull);
    orthant_of(&sign, &there, &x, &q);
    nonzero(&some, &t);
    t &= there & (0 - (some & ~((t ^ sign) >> 63)));
    number_of(trial, &t);
}

VECTOR_CLONES
void orthant_project(size_t n, double *t, const double *x, const double *q) {
    each_half(n, t, x, q, 0, project);
}

LANES_INLINE void align(half_lanes *direction, const half_lanes *at, const half_lanes *pull,
                        double l1) {
    (void)l1;
    half_words d, x, q, moved, pulled, some;
    bits_of(&d, direction);
    bits_of(&x, at);
    bits_of(&q, pull);
    nonzero(&some, &d);
    nonzero(&moved, &x);
    nonzero(&pulled, &q);
    d &= 0 - (moved | (some & pulled & ((d ^ q) >> 63)));
    number_of(direction, &d);
}

VECTOR_CLONES
void orthant_align(size_t n, double *d, const double *x, const double *q) {
    each_half(n, d, x, q, 0, align);
}

/* The mask where x or t is not 0. */
LANES_INLINE void moving(half_words *out, const half_lanes *x, const half_lanes *t) {
    half_words a, b;
    bits_of(&a, x);
    bits_of(&b, t);
    a |= b;
    nonzero(out, &a);
    *out = 0 - *out;
}

LANES_INLINE void mask(half_lanes *y, const half_lanes *x, const half_lanes *t, double l1) {
    half_words bits, keep;
    (void)l1;
    moving(&keep, x, t);
    bits_of(&bits, y);
    bits &= keep;
    number_of(y, &bits);
}

VECTOR_CLONES
static void mask_double(size_t n, double *y, const double *x, const double *t) {
    each_half(n, y, x, t, 0, mask);
}

typedef uint32_t half_short_words __attribute__((vector_size(16)));

VECTOR_CLONES
static void mask_float(size_t n, float *stored, const double *x, const double *t) {
    size_t i = 0;
    for (; i + HALF <= n; i += HALF) {
        half_lanes of_x, of_t;
        half_words keep;
        half_short_words bits;
        memcpy(&of_x, x + i, sizeof of_x);
        memcpy(&of_t, t + i, sizeof of_t);
        memcpy(&bits, stored + i, sizeof bits);
        moving(&keep, &of_x, &of_t);
        bits &= __builtin_convertvector(keep, half_short_words);
        memcpy(stored + i, &bits, sizeof bits);
    }
    for (; i < n; i++)
        stored[i] = x[i] != 0 || t[i] != 0 ? stored[i] : 0;
}

void orthant_mask(enum history_type type, size_t n, void *stored, double *y, const double *x,
                  const double *t) {
    mask_double(n, y, x, t);
    if (type == HISTORY_FLOAT)
        mask_float(n, stored, x, t);
    else
        mask_double(n, stored, x, t);
}

/* ---- sums ---- */

#define OPERANDS 4
#define SUMS 3

/* Adds what half lanes of the operands give to half lanes of the sums. */
typedef void half_sums(half_lanes sums[SUMS], const half_lanes operands[OPERANDS], double lambda,
                       double l1);

/* Eight lanes a sum, folded at the end. What lies beyond the end of the arrays is 0, and adds
 * nothing. */
LANES_INLINE void sum_halves(size_t n, size_t count, const double *const *operands, double lambda,
                             double l1, half_sums *add, double *sums) {
    half_lanes low[SUMS] = {{0}, {0}, {0}}, high[SUMS] = {{0}, {0}, {0}}, of[OPERANDS];
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        UNROLL for (size_t k = 0; k < count; k++) memcpy(&of[k], operands[k] + i, sizeof of[k]);
        add(low, of, lambda, l1);
        UNROLL for (size_t k = 0; k < count; k++)
            memcpy(&of[k], operands[k] + i + HALF, sizeof of[k]);
        add(high, of, lambda, l1);
    }
    double rest[OPERANDS][LANES] = {{0}};
    for (size_t k = 0; k < count; k++) {
        memcpy(rest[k], operands[k] + i, (n - i) * sizeof rest[k][0]);
        memcpy(&of[k], rest[k], sizeof of[k]);
    }
    add(low, of, lambda, l1);
    for (size_t k = 0; k < count; k++)
        memcpy(&of[k], rest[k] + HALF, sizeof of[k]);
    add(high, of, lambda, l1);
    for (size_t k = 0; k < SUMS; k++)
        sums[k] = half_lanes_sum(&low[k], &high[k]);
}

LANES_INLINE void add_size(half_lanes sums[SUMS], const half_lanes *operands, double lambda,
                           double l1) {
    half_words bits;
    half_lanes size;
    (void)lambda, (void)l1;
    bits_of(&bits, &operands[0]);
    bits &= INT64_MAX;
    number_of(&size, &bits);
    sums[0] += size;
}

VECTOR_CLONES
double orthant_norm(size_t n, const double *a) {
    double sums[SUMS];
    sum_halves(n, 1, &a, 0, 0, add_size, sums);
    return sums[0];
}

VECTOR_CLONES
size_t orthant_nonzeros(size_t n, const double *a) {
    half_words count = {0};
    size_t i = 0, more = 0;
    for (; i + HALF <= n; i += HALF) {
        half_words bits;
        memcpy(&bits, a + i, sizeof bits);
        nonzero(&bits, &bits);
        count += bits;
    }
    for (; i < n; i++)
        more += a[i] != 0;
    return more + (size_t)(count[0] + count[1] + count[2] + count[3]);
}

LANES_INLINE void add_descent(half_lanes sums[SUMS], const half_lanes *operands, double lambda,
                              double l1) {
    half_lanes s = operands[0] - operands[1], size = {l1, l1, l1, l1};
    half_words x, q, sign, there, bits;
    (void)lambda;
    bits_of(&x, &operands[1]);
    bits_of(&q, &operands[2]);
    orthant_of(&sign, &there, &x, &q);
    bits_of(&bits, &size);
    bits = (bits | sign) & there;
    number_of(&size, &bits);
    sums[0] += operands[2] * s;
    sums[1] += (operands[3] + size) * s;
    sums[2] += s * s;
}

VECTOR_CLONES
void orthant_descent(size_t n, const double *t, const double *x, const double *q, const double *h,
                     double l1, double sums[3]) {
    const double *const operands[] = {t, x, q, h};
    sum_halves(n, 4, operands, 0, l1, add_descent, sums);
}

LANES_INLINE void add_excess(half_lanes sums[SUMS], const half_lanes *operands, double lambda,
                             double l1) {
    half_lanes rest = operands[0] - lambda * operands[1], over;
    beyond(&over, &rest, l1);
    sums[0] += over * over;
}

VECTOR_CLONES
double orthant_excess(size_t n, const double *a, double lambda, const double *b, double l1) {
    const double *const operands[] = {a, b};
    double sums[SUMS];
    sum_halves(n, 2, operands, lambda, l1, add_excess, sums);
    return sums[0];
}
