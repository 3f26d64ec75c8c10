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

/* How rows are scaled: element (r, c) of S is the correlation sum·inverse_r·inverse_c, centred if
 * the block has means, times share_r·share_c. The sums of rare and of frequent columns are of one
 * size, since each has its exponent, but H itself can leave the range of doubles. */
struct row_scale {
    double sum;     /* sum_rr */
    double inverse; /* 1/√sum_rr; 0 for a row of zeros */
    double share;   /* √ of what the sums are of H_rr; lambda is the rest */
    double mean;    /* of the column, in units in which row and bias have a curvature of 1 */
    double left;    /* 1/√ of the share of sum_rr that centring leaves; 0 if it leaves nothing */
};

/* A column whose curvature centring takes away but for this is constant, but for rounding. */
#define CENTRED_LEAST 1e-12

struct making {
    const struct registers *registers;
    const struct factor_terms *terms;
    struct factor *factor;
    int bound; /* b: exponents are undone by it */
    struct row_scale *scale;
    size_t stride; /* from the element of a row to that of the next: outputs that share H */
    size_t biases; /* rows of the triangle below those of H, by which these are centred; 0: no row
                      is */
    double bias;   /* Σ of them with themselves */
    double *cross; /* [order] correlations of them and rows */
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

static double sum_at(const struct making *m, size_t r, size_t c) {
    double sum;
    vector_from_fixed(1, &sum, &m->registers->sum[sums_row(r) + c], 0, 1);
    return sum;
}

/* √(sum/weight), base exponents e undone: H_rr = sum·2^(62 + b − 2e)/weight. */
static double root_of(const struct making *m, double sum, int e) {
    int exponent = 62 + m->bound - 2 * e, odd = exponent & 1;
    return ldexp(sqrt(sum * (1 + odd) / m->registers->weight_sum), (exponent - odd) / 2);
}

/* ---- means ---- */

/* Biases that share a weight count together: they are added to the same margins. */
static void add_biases(struct making *m) {
    size_t order = m->factor->order;
    for (size_t b = 0; b < m->biases; b++) {
        for (size_t r = 0; r < order; r++)
            m->cross[r] += sum_at(m, order + b, r);
        for (size_t other = 0; other <= b; other++)
            m->bias += sum_at(m, order + b, order + other);
    }
}

/* False if the sum of the biases with themselves is below 0 or not a number. */
static bool scale_biases(struct making *m) {
    add_biases(m);
    if (!(m->bias >= 0))
        return false;
    double inverse = m->bias > 0 ? 1 / sqrt(m->bias) : 0;
    for (size_t r = 0; r < m->factor->order; r++)
        m->cross[r] *= inverse * m->scale[r].inverse;
    return true;
}

static double centred(const struct making *m, size_t r, size_t c, double correlation) {
    double a = m->scale[r].mean, b = m->scale[c].mean, corner = m->bias > 0;
    return correlation - a * m->cross[c] - b * m->cross[r] + a * b * corner;
}

/* ---- rows ---- */

/* False if an element of the diagonal is below 0 or not a number. */
static bool read_diagonal(struct making *m) {
    for (size_t r = 0; r < m->factor->order; r++) {
        double sum = sum_at(m, r, r);
        if (!(sum >= 0))
            return false;
        m->scale[r] =
            (struct row_scale){.sum = sum, .inverse = sum > 0 ? 1 / sqrt(sum) : 0, .left = 1};
    }
    return true;
}

/* How much of each row is left once its mean is taken out. */
static void centre_rows(struct making *m) {
    const struct scaling *scaling = &m->registers->scaling;
    for (size_t r = 0; r < m->factor->order; r++) {
        struct row_scale *scale = &m->scale[r];
        double bias = root_of(m, m->bias, scaling->block_bias_exponent);
        double own = root_of(m, scale->sum, m->registers->exponents[r * m->stride]);
        scale->mean = own > 0 ? scaling->mean[r * m->stride] * bias / own : 0;
        double left = centred(m, r, r, 1);
        scale->left = own > 0 && left > CENTRED_LEAST ? 1 / sqrt(left) : 0;
    }
}

static bool is_heavy(const struct making *m) {
    return m->registers->precondition == PRECONDITION_HEAVY;
}

/* What is added to the curvature of an element, by weights: l2, and of a heavy block what is the
 * least for a column of its scale. */
static double ridge_of(const struct making *m, size_t element, bool regularized) {
    const struct scaling *scaling = &m->registers->scaling;
    double penalty = scaling->used ? scaling_weight_penalty(scaling, element) : 1;
    double ridge = regularized ? m->terms->lambda * penalty : 0;
    if (is_heavy(m))
        ridge += FACTOR_CURVATURE_LEAST * m->terms->beta /
                 (scaling->scale[element] * scaling->scale[element]);
    return ridge;
}

/* The root of an element without curvature. */
static double root_of_nothing(const struct making *m, size_t element) {
    const struct scaling *scaling = &m->registers->scaling;
    return is_heavy(m)
               ? sqrt(factor_curvature(m->terms, scaling, element)) / scaling->scale[element]
               : 1;
}

/* Roots are by weights; those of a heavy block are then scaled, as its vectors are. */
static bool scale_row(struct making *m, size_t r, bool regularized) {
    struct row_scale *scale = &m->scale[r];
    size_t element = r * m->stride;
    double own = scale->left > 0
                     ? root_of(m, scale->sum, m->registers->exponents[element]) / scale->left
                     : 0;
    double root = hypotenuse(own, sqrt(ridge_of(m, element, regularized)));
    if (!(root > 0) || (is_heavy(m) && !(own > 0)))
        root = root_of_nothing(m, element);
    scale->share = own / root;
    if (is_heavy(m))
        root *= m->registers->scaling.scale[element];
    factor_roots(m->factor)[r] = root;
    return isfinite(root) && root > 0;
}

static bool scale_rows(struct making *m) {
    const struct registers *registers = m->registers;
    uint32_t span = 0;
    if (!read_diagonal(m) || (m->biases && !scale_biases(m)))
        return false;
    if (m->biases)
        centre_rows(m);
    for (size_t r = 0; r < m->factor->order; r++) {
        uint64_t element = r * m->stride;
        while (span < registers->regularized_count &&
               element >= registers->regularized[span].first + registers->regularized[span].count)
            span++;
        bool regularized =
            span < registers->regularized_count && element >= registers->regularized[span].first;
        if (!scale_row(m, r, regularized))
            return false;
    }
    return true;
}

/* No correlation is beyond 1, though rounding may say so. */
static double within_1(double correlation) {
    return correlation > 1 ? 1 : correlation < -1 ? -1 : correlation;
}

/* The triangle of S, with `added` on its diagonal. */
static void fill_scaled(const struct making *m, double added) {
    const struct row_scale *scale = m->scale;
    for (size_t r = 0; r < m->factor->order; r++) {
        double *row = factor_triangle(m->factor) + triangle_row(r);
        vector_from_fixed(r, row, m->registers->sum + sums_row(r), 0, 1);
        for (size_t c = 0; c < r; c++) {
            double correlation = row[c] * scale[r].inverse * scale[c].inverse;
            if (m->biases)
                correlation = centred(m, r, c, correlation) * scale[r].left * scale[c].left;
            row[c] = within_1(correlation) * scale[r].share * scale[c].share;
        }
        row[r] = 1 + added;
    }
}

/* If no correlation is beyond 1, a diagonal of more than the order is dominant and has a factor. */
static bool find_factor(const struct making *m, double *added) {
    const double most = ADDED_GROWTH * (double)(m->factor->order + 1);
    for (double now = ALWAYS_ADDED; now <= most; now *= ADDED_GROWTH) {
        fill_scaled(m, now);
        *added = now - ALWAYS_ADDED;
        if (cholesky_factor(m->factor->order, factor_triangle(m->factor)))
            return true;
    }
    return false;
}

/* Of a heavy block, whose rows are centred if there are biases. Outputs that share it have one. */
static bool take_terms(struct making *m) {
    const struct factor_terms *terms = m->terms;
    const struct scaling *scaling = &m->registers->scaling;
    if (!is_heavy(m))
        return true;
    m->factor->elements[0] = terms->beta;
    m->factor->elements[1] = terms->gamma;
    m->stride = scaling->outputs;
    if (m->factor->order)
        m->biases = m->stride > 1 ? scaling->biases / m->stride : scaling->biases;
    return terms->beta > 0 && isfinite(terms->beta) && isfinite(terms->gamma);
}

static bool make(struct making *m, double *added) {
    size_t order = m->factor->order;
    bool sound = take_terms(m) && m->terms->lambda >= 0 && isfinite(m->terms->lambda);
    m->scale = memory_new(order, sizeof *m->scale);
    m->cross = memory_new(order, sizeof *m->cross);
    sound = sound && scale_rows(m) && find_factor(m, added);
    free(m->scale);
    free(m->cross);
    return sound;
}

struct factor *factor_make(const struct registers *registers, int derivative_exponent,
                           const struct factor_terms *terms, double *added) {
    assert(terms->serial && registers->precondition);
    struct making m = {.registers = registers,
                       .terms = terms,
                       .factor = factor_new(terms->serial, registers_factor_order(registers)),
                       .bound = derivative_exponent,
                       .stride = 1};
    *added = 0;
    if (make(&m, added))
        return m.factor;
    factor_drop(m.factor);
    *added = INFINITY;
    return NULL;
}
