#include "numeric/steps.h"

#include <assert.h>
#include <math.h>

#include "numeric/step_element.h"
#include "numeric/clones.h"

static_assert(LANES == 2 * HALF, "the sums of lanes are kept in two halves");
static_assert(sizeof(half_lanes) == HALF * sizeof(double) &&
                  sizeof(half_words) == sizeof(half_lanes),
              "a mask has a word for each lane");

LANES_INLINE void roots(half_lanes *out, const half_lanes *of) {
    for (int k = 0; k < HALF; k++)
        (*out)[k] = sqrt((*of)[k]);
}

#define NAME(function) lanes_##function
#define STEP LANES_INLINE
#define NUMBERS half_lanes
#define WORDS half_words
#define ALL(number)                                                                                \
    { number, number, number, number }
#define ROOT roots
#include "numeric/steps.def"

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

VECTOR_CLONES
void orthant_pseudo_gradient(size_t n, double *q, const double *x, const double *g, double l1) {
    each_half(n, q, x, g, l1, lanes_pseudo);
}

VECTOR_CLONES
void orthant_project(size_t n, double *t, const double *x, const double *q) {
    each_half(n, t, x, q, 0, lanes_project);
}

VECTOR_CLONES
void orthant_align(size_t n, double *d, const double *x, const double *q) {
    each_half(n, d, x, q, 0, lanes_align);
}

VECTOR_CLONES
static void mask_double(size_t n, double *y, const double *x, const double *t) {
    each_half(n, y, x, t, 0, lanes_mask);
}

typedef uint32_t half_short_words __attribute__((vector_size(16)));
static_assert(sizeof(half_short_words) == HALF * sizeof(float), "the bits of half lanes of floats");

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
        lanes_moving(&keep, &of_x, &of_t);
        bits &= __builtin_convertvector(keep, half_short_words);
        memcpy(stored + i, &bits, sizeof bits);
    }
    for (; i < n; i++)
        stored[i] = x[i] != 0 || t[i] != 0 ? stored[i] : 0;
}

void orthant_mask(enum history_type type, size_t n, void *stored, double *y, const double *x,
                  const double *t) {
    assert(n <= BLOCK_ELEMENTS);
    mask_double(n, y, x, t);
    if (type == HISTORY_FLOAT)
        mask_float(n, stored, x, t);
    else
        mask_double(n, stored, x, t);
}

/* ---- sums ---- */

#define OPERANDS 4 /* of orthant_descent(), which has most */
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

VECTOR_CLONES
double orthant_norm(size_t n, const double *a) {
    double sums[SUMS];
    sum_halves(n, 1, &a, 0, 0, lanes_add_size, sums);
    return sums[0];
}

VECTOR_CLONES
size_t orthant_nonzeros(size_t n, const double *a) {
    half_words count = {0};
    size_t i = 0, more = 0;
    for (; i + HALF <= n; i += HALF) {
        half_words bits;
        memcpy(&bits, a + i, sizeof bits);
        lanes_nonzero(&bits, &bits);
        count += bits;
    }
    for (; i < n; i++)
        more += a[i] != 0;
    return more + (size_t)(count[0] + count[1] + count[2] + count[3]);
}

VECTOR_CLONES
void orthant_descent(size_t n, const double *t, const double *x, const double *q, const double *h,
                     double l1, double sums[3]) {
    const double *const operands[] = {t, x, q, h};
    sum_halves(n, 4, operands, 0, l1, lanes_add_descent, sums);
}

VECTOR_CLONES
double orthant_excess(size_t n, const double *a, double lambda, const double *b, double l1) {
    const double *const operands[] = {a, b};
    double sums[SUMS];
    sum_halves(n, 2, operands, lambda, l1, lanes_add_excess, sums);
    return sums[0];
}

/* ---- Adagrad ---- */

VECTOR_CLONES
void adagrad_step(size_t n, double *x, double *sums, const double *g, double rate, double beta) {
    half_lanes of_x, of_sums, of_g;
    size_t i = 0;
    for (; i + HALF <= n; i += HALF) {
        memcpy(&of_x, x + i, sizeof of_x);
        memcpy(&of_sums, sums + i, sizeof of_sums);
        memcpy(&of_g, g + i, sizeof of_g);
        lanes_adagrad_step(&of_x, &of_sums, &of_g, rate, beta);
        memcpy(x + i, &of_x, sizeof of_x);
        memcpy(sums + i, &of_sums, sizeof of_sums);
    }
    for (; i < n; i++)
        element_adagrad_step(&x[i], &sums[i], &g[i], rate, beta);
}

VECTOR_CLONES
void adagrad_shrink(size_t n, double *x, const double *sums, const double *l1, double rate,
                    double beta) {
    half_lanes of_x, of_sums, of_l1;
    size_t i = 0;
    for (; i + HALF <= n; i += HALF) {
        memcpy(&of_x, x + i, sizeof of_x);
        memcpy(&of_sums, sums + i, sizeof of_sums);
        memcpy(&of_l1, l1 + i, sizeof of_l1);
        lanes_adagrad_shrink(&of_x, &of_sums, &of_l1, rate, beta);
        memcpy(x + i, &of_x, sizeof of_x);
    }
    for (; i < n; i++)
        element_adagrad_shrink(&x[i], &sums[i], &l1[i], rate, beta);
}

VECTOR_CLONES
void adagrad_diagonal(size_t n, double *sums, double alpha, double beta) {
    half_lanes of_sums;
    size_t i = 0;
    for (; i + HALF <= n; i += HALF) {
        memcpy(&of_sums, sums + i, sizeof of_sums);
        lanes_adagrad_diagonal(&of_sums, alpha, beta);
        memcpy(sums + i, &of_sums, sizeof of_sums);
    }
    for (; i < n; i++)
        element_adagrad_diagonal(&sums[i], alpha, beta);
}
