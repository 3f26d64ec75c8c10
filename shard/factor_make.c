/* Makes a factor of the sums that the registers hold. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "numeric/dense.h"
#include "numeric/fixed.h"
#include "shard/factor.h"
#include "shard/registers.h"

/* What is always added to the diagonal of 1. It bounds P where columns repeat each other, and is
 * far smaller than the error of a sample of the rows. */
#define ALWAYS_ADDED 1e-10
#define ADDED_GROWTH 10 /* from one attempt to find a factor to the next */

/* How rows are scaled: element (r, c) of S is sum·inverse_r·inverse_c, which is a correlation,
 * times share_r·share_c. The sums of rare and of frequent columns are of one size, since each has
 * its exponent, but H itself can leave the range of doubles. */
struct row_scale {
    double inverse; /* 1/√sum_rr; 0 for a row of zeros */
    double share;   /* √ of what the sums are of H_rr; lambda is the rest */
};

/* √(a² + b²), neither below 0. Not hypot(): its rounding differs between C libraries. */
static double hypotenuse(double a, double b) {
    double large = a > b ? a : b, small = a > b ? b : a;
    double ratio = large > 0 ? small / large : 0;
    return large * sqrt(1 + ratio * ratio);
}

static size_t sums_row(size_t r) {
    return r * (r + 1) / 2;
}

/* False if the element of the diagonal is below 0 or not finite. */
static bool scale_row(const struct registers *registers, size_t r, int b, double lambda,
                      struct row_scale *scale, double *root) {
    double sum;
    vector_from_fixed(1, &sum, &registers->sum[sums_row(r) + r], 0, 1);
    if (!(sum >= 0))
        return false;
    /* √(sum_rr/weight), its exponents undone: H_rr = sum·2^(62 + b − 2e_r)/weight. */
    int exponent = 62 + b - 2 * registers->exponents[r];
    int odd = exponent & 1;
    double own = ldexp(sqrt(sum * (1 + odd) / registers->weight_sum), (exponent - odd) / 2);
    double whole = hypotenuse(own, sqrt(lambda));
    *root = whole > 0 ? whole : 1;
    scale->inverse = sum > 0 ? 1 / sqrt(sum) : 0;
    scale->share = own / *root;
    return isfinite(*root);
}

static bool scale_rows(const struct registers *registers, int b, double lambda,
                       struct row_scale *scale, double *roots) {
    uint32_t span = 0;
    for (size_t r = 0; r < registers->count; r++) {
        while (span < registers->regularized_count &&
               r >= registers->regularized[span].first + registers->regularized[span].count)
            span++;
        bool regularized =
            span < registers->regularized_count && r >= registers->regularized[span].first;
        double penalty =
            registers->scaling.used ? scaling_weight_penalty(&registers->scaling, r) : 1;
        if (!scale_row(registers, r, b, regularized ? lambda * penalty : 0, &scale[r], &roots[r]))
            return false;
    }
    return true;
}

/* No correlation is beyond 1, though rounding may say so. */
static double within_1(double correlation) {
    return correlation > 1 ? 1 : correlation < -1 ? -1 : correlation;
}

/* The triangle of S, with `added` on its diagonal. */
static void fill_scaled(const struct registers *registers, const struct row_scale *scale,
                        double added, double *triangle) {
    for (size_t r = 0; r < registers->count; r++) {
        double *row = triangle + triangle_row(r);
        vector_from_fixed(r, row, registers->sum + sums_row(r), 0, 1);
        for (size_t c = 0; c < r; c++)
            row[c] = within_1(row[c] * scale[r].inverse * scale[c].inverse) * scale[r].share *
                     scale[c].share;
        row[r] = 1 + added;
    }
}

/* If no correlation is beyond 1, a diagonal of more than the order is dominant and has a factor. */
static bool find_factor(const struct registers *registers, const struct row_scale *scale,
                        struct factor *factor, double *added) {
    const double most = ADDED_GROWTH * (double)(factor->order + 1);
    for (double now = ALWAYS_ADDED; now <= most; now *= ADDED_GROWTH) {
        fill_scaled(registers, scale, now, factor_triangle(factor));
        *added = now - ALWAYS_ADDED;
        if (cholesky_factor(factor->order, factor_triangle(factor)))
            return true;
    }
    return false;
}

struct factor *factor_make(const struct registers *registers, int derivative_exponent,
                           double lambda, uint64_t serial, double *added) {
    assert(serial && registers->precondition);
    struct factor *factor = factor_new(serial, registers->count);
    struct row_scale *scale = memory_new(registers->count, sizeof *scale);
    *added = 0;
    bool sound = lambda >= 0 && isfinite(lambda) &&
                 scale_rows(registers, derivative_exponent, lambda, scale, factor->elements) &&
                 find_factor(registers, scale, factor, added);
    free(scale);
    if (sound)
        return factor;
    factor_drop(factor);
    *added = INFINITY;
    return NULL;
}
