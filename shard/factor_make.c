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

/* What is added where columns are nearly collinear: a few times what rounding makes of the pivot of
 * a row that follows from others. */
#define LITTLE_ADDED 3e-14

/* A direction is hidden if what was added is more than a hundredth of its curvature. */
#define HIDDEN_BELOW 100.0
/* Rows with a larger pivot are not looked at. */
#define HIDDEN_PIVOT_MOST 1e-4
/* With more rows a second factor would cost too much. */
#define ORDER_REFINED 2048

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

/* The terms that stand first among the elements of a factor. */
enum { TERM_BETA, TERM_GAMMA, TERM_ADDED, TERM_LAMBDA, TERM_ROUNDING, TERMS };

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

/* False if the sum of the biases with themselves is below 0 or not a number. */
static bool scale_biases(struct making *m) {
    const size_t order = m->factor->order;
    /* Biases that share a weight count together: they are added to the same margins. */
    for (size_t b = 0; b < m->biases; b++) {
        for (size_t r = 0; r < order; r++)
            m->cross[r] += sum_at(m, order + b, r);
        for (size_t other = 0; other <= b; other++)
            m->bias += sum_at(m, order + b, order + other);
    }
    if (!(m->bias >= 0))
        return false;
    double inverse = m->bias > 0 ? 1 / sqrt(m->bias) : 0;
    for (size_t r = 0; r < order; r++)
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

static bool is_leading(const struct making *m) {
    return m->registers->precondition == PRECONDITION_LEADING;
}

/* What is added to the curvature of an element, by weights: l2, and of a leading block what is the
 * least for a column of its scale. */
static double ridge_of(const struct making *m, size_t element, bool regularized) {
    const struct scaling *scaling = &m->registers->scaling;
    double penalty = scaling->used ? scaling_weight_penalty(scaling, element) : 1;
    double ridge = regularized ? m->terms->lambda * penalty : 0;
    if (is_leading(m))
        ridge += FACTOR_CURVATURE_LEAST * m->terms->beta /
                 (scaling->scale[element] * scaling->scale[element]);
    return ridge;
}

/* The root of an element without curvature. */
static double root_of_nothing(const struct making *m, size_t element) {
    const struct scaling *scaling = &m->registers->scaling;
    return is_leading(m)
               ? sqrt(factor_curvature(m->terms, scaling, element)) / scaling->scale[element]
               : 1;
}

/* Roots are by weights; those of a leading block are then scaled, as its vectors are. */
static bool scale_row(struct making *m, size_t r, bool regularized) {
    struct row_scale *scale = &m->scale[r];
    size_t element = r * m->stride;
    double own = scale->left > 0
                     ? root_of(m, scale->sum, m->registers->exponents[element]) / scale->left
                     : 0;
    double root = hypotenuse(own, sqrt(ridge_of(m, element, regularized)));
    if (!(root > 0) || (is_leading(m) && !(own > 0)))
        root = root_of_nothing(m, element);
    scale->share = own / root;
    if (is_leading(m))
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

/* What of the pivot of row r is not its curvature, or may not be: with the direction u, 1 there and
 * in the rows before it what makes u·S·u least, which is the pivot, what was added is a share of
 * |u|², and what rounding leaves of (Σ|u_k|)². `a` has room for r elements. */
static double hidden_of(const struct factor *factor, size_t r, double *a) {
    const double *triangle = factor_triangle(factor);
    double square = 1, size = 1;
    memcpy(a, triangle + triangle_row(r), r * sizeof *a);
    for (size_t k = r; k-- > 0;) {
        const double *row = triangle + triangle_row(k);
        a[k] /= row[k];
        for (size_t j = 0; j < k; j++)
            a[j] -= row[j] * a[k];
        square += a[k] * a[k];
        size += fabs(a[k]);
    }
    return HIDDEN_BELOW * factor->elements[TERM_ADDED] * square +
           factor->elements[TERM_ROUNDING] * size * size;
}

/* The rows whose directions are hidden, by rising numbers. */
static void find_hidden(struct factor *factor) {
    const double *triangle = factor_triangle(factor);
    double *a = memory_new(factor->order, sizeof *a);
    size_t capacity = 0;
    factor->hidden_count = 0;
    factor->searched = true;
    for (size_t r = 0; r < factor->order; r++) {
        double root = triangle[triangle_row(r) + r], pivot = root * root;
        if (pivot > HIDDEN_PIVOT_MOST || pivot >= hidden_of(factor, r, a))
            continue;
        MEMORY_ROOM(factor->hidden, factor->hidden_count, capacity);
        factor->hidden[factor->hidden_count++] = (uint32_t)r;
    }
    free(a);
}

static bool is_hidden(const struct factor *factor, uint32_t r) {
    for (size_t i = 0; i < factor->hidden_count; i++)
        if (factor->hidden[i] == r)
            return true;
    return false;
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

/* Makes the factor once more, with less on the diagonal, if that shows a direction that is hidden.
 * Where columns follow from others exactly it shows none, and the factor stays. */
static void refine(struct making *m) {
    struct factor *factor = m->factor;
    size_t n = factor->order, bytes = triangle_row(n) * sizeof(double);
    if (is_leading(m) || n > ORDER_REFINED)
        return;
    find_hidden(factor);
    if (!factor->hidden_count)
        return;
    double *before = memory_map(bytes), added = factor->elements[TERM_ADDED];
    uint32_t *hidden = factor->hidden;
    size_t count = factor->hidden_count, shown = 0;
    memcpy(before, factor_triangle(factor), bytes);
    factor->hidden = NULL;
    factor->elements[TERM_ADDED] = LITTLE_ADDED;
    fill_scaled(m, LITTLE_ADDED);
    bool found = cholesky_factor(n, factor_triangle(factor));
    if (found)
        find_hidden(factor);
    for (size_t i = 0; i < count && found; i++)
        shown += !is_hidden(factor, hidden[i]);
    if (!shown) {
        memcpy(factor_triangle(factor), before, bytes);
        factor->elements[TERM_ADDED] = added;
        free(factor->hidden);
        factor->hidden = hidden;
        factor->hidden_count = count;
        hidden = NULL;
    }
    memory_unmap(before, bytes);
    free(hidden);
}

/* Takes the terms of a leading block, whose rows are centred if there are biases. Outputs that
 * share it have one. */
static bool take_terms(struct making *m) {
    const struct factor_terms *terms = m->terms;
    const struct scaling *scaling = &m->registers->scaling;
    if (!is_leading(m))
        return true;
    m->factor->elements[TERM_BETA] = terms->beta;
    m->factor->elements[TERM_GAMMA] = terms->gamma;
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
    if (sound) {
        m->factor->elements[TERM_ADDED] = ALWAYS_ADDED + *added;
        m->factor->elements[TERM_LAMBDA] = m->terms->lambda;
        /* What rounding makes of an element of S at most: each of the rows rounds a sum by up to a
         * half. */
        double most = 0;
        for (size_t r = 0; r < m->factor->order; r++)
            if (m->scale[r].sum > 0)
                most = fmax(most, 8 * sqrt(m->registers->weight_sum) / m->scale[r].sum);
        m->factor->elements[TERM_ROUNDING] = most;
        refine(m);
    }
    free(m->scale);
    free(m->cross);
    return sound;
}

/* By how much l2 curves a direction at least, in units of S. */
static double ridge_share(const struct registers *registers, size_t r) {
    const struct factor *factor = registers->factor;
    double root = factor_roots(factor)[r];
    bool regularized = false;
    for (uint32_t i = 0; i < registers->regularized_count; i++)
        regularized |= r >= registers->regularized[i].first &&
                       r - registers->regularized[i].first < registers->regularized[i].count;
    double penalty = registers->scaling.used && registers->scaling.penalty
                         ? scaling_weight_penalty(&registers->scaling, r)
                         : 1;
    return regularized ? factor->elements[TERM_LAMBDA] * penalty / root / root : 0;
}

/* With δ for what was added, δ·(S + δ)⁻² g leaves g/δ of a direction that has no curvature, and of
 * others next to nothing: δ times that has the length of g along what is hidden. */
double factor_hidden_gap(const struct registers *registers, const double *out) {
    struct factor *factor = registers->factor;
    const double *roots = factor_roots(factor);
    double added = factor->elements[TERM_ADDED], square = 0, ridge = 0;
    if (!factor->searched)
        find_hidden(factor);
    if (!factor->hidden_count)
        return 0;
    double *z = memory_new(factor->order, sizeof *z);
    for (size_t r = 0; r < factor->order; r++)
        z[r] = out[r] * roots[r];
    cholesky_solve(factor->order, factor_triangle(factor), z);
    for (size_t r = 0; r < factor->order; r++) {
        double part = added * added * z[r] * z[r] * added * added;
        square += part;
        ridge += part * ridge_share(registers, r);
    }
    free(z);
    double least = fmax(square > 0 ? ridge / square : 0, FACTOR_HIDDEN_LEAST);
    return fmax(square / least - square / added, 0);
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
    assert(LANES >= TERMS);
    if (make(&m, added))
        return m.factor;
    factor_drop(m.factor);
    *added = INFINITY;
    return NULL;
}
