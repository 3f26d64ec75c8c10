/* Makes errors of estimates of the sums that the registers hold. */
#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/failpoint.h"
#include "base/memory.h"
#include "numeric/dense.h"
#include "numeric/inverse.h"
#include "shard/covariance.h"
#include "shard/covariance_rank.h"
#include "shard/pass_plan.h"
#include "shard/registers.h"

static double sum_at(const struct registers *registers, size_t r, size_t c) {
    size_t high = r > c ? r : c, low = r > c ? c : r;
    double sum;
    vector_from_fixed(1, &sum, &registers->sum[high * (high + 1) / 2 + low], 0, 1);
    return sum;
}

/* √(2^(62 + b − 2e)), e as the sums have it: a sum of element r and one of c stand for theirs
 * multiplied. */
static double unit_of(const struct registers *registers, int bound, size_t element) {
    int e = registers->exponents[element];
    if (registers->extra_bits)
        e += registers->extra_bits[layout_exponent_of(&registers->layout, element)];
    int exponent = 62 + bound - 2 * e, odd = exponent & 1;
    return ldexp(odd ? sqrt(2.0) : 1, (exponent - odd) / 2);
}

static bool is_regularized(const struct registers *registers, uint64_t element) {
    for (uint32_t i = 0; i < registers->regularized_count; i++)
        if (element >= registers->regularized[i].first &&
            element - registers->regularized[i].first < registers->regularized[i].count)
            return true;
    return false;
}

/* Λ of an element. */
static double ridge_of(const struct registers *registers, size_t element, double lambda) {
    double penalty =
        registers->scaling.used ? scaling_weight_penalty(&registers->scaling, element) : 1;
    return is_regularized(registers, element) ? lambda * penalty * registers->weight_sum : 0;
}

/* ---- COVARIANCE ---- */

/* How much of the square of a weight's column is left without its mean, where rows curve; 1 where
 * outputs share their weights, or have no biases. */
static double left_of_mean(const struct registers *registers, size_t element) {
    const struct layout_tensor *weights = &registers->layout.tensor[0],
                               *bias = layout_input_bias(&registers->layout);
    uint64_t count = weights->rows * weights->columns;
    if (!bias || bias->columns != weights->columns || element >= count)
        return 1;
    size_t of_bias = bias->first + element % weights->columns;
    double own = sum_at(registers, element, element), ones = sum_at(registers, of_bias, of_bias);
    double product = sum_at(registers, of_bias, element);
    double left = own > 0 && ones > 0 ? 1 - product / own * (product / ones) : 1;
    return left > 0 ? left : 0;
}

/* The roots, and what a sum of the row is multiplied by. `least` is by how little a pivot may be
 * above 0: each of the rows has rounded the sum by up to a half. */
static void scale_rows(struct covariance *covariance, const struct registers *registers, int bound,
                       double lambda, double *least) {
    for (size_t r = 0; r < covariance->order; r++) {
        size_t element = covariance->element[r];
        double sum = sum_at(registers, element, element);
        double own = sqrt(sum) * unit_of(registers, bound, element);
        double root = sqrt(own * own + ridge_of(registers, element, lambda));
        bool is_zero = !(root > 0) || covariance->aliased[r]; /* or known from before */
        covariance->root[r] = is_zero ? 1 : root;
        covariance->by[r] = unit_of(registers, bound, element) / covariance->root[r];
        double left = ALIASED_LEAST * left_of_mean(registers, element);
        least[r] = is_zero ? 2 : left > PIVOT_LEAST ? left : PIVOT_LEAST;
        if (sum > 0)
            least[r] += 8 * sqrt(registers->weight_sum) / sum;
    }
}

/* The triangle of sums, a row and a column multiplied by `by` each. */
static void fill_triangle(const struct covariance *covariance, const struct registers *registers,
                          const double *by, double *triangle) {
    for (size_t r = 0; r < covariance->order; r++) {
        double *row = triangle + triangle_row(r);
        for (size_t c = 0; c <= r; c++)
            row[c] =
                sum_at(registers, covariance->element[r], covariance->element[c]) * by[r] * by[c];
    }
}

static bool factor_rows(struct covariance *covariance, const struct registers *registers, int bound,
                        double lambda) {
    size_t n = covariance->order;
    double *least = memory_new(n, sizeof *least);
    scale_rows(covariance, registers, bound, lambda, least);
    fill_triangle(covariance, registers, covariance->by, covariance->triangle);
    for (size_t r = 0; r < n; r++)
        covariance->triangle[triangle_row(r) + r] = 1;
    bool found = cholesky_ranked(n, covariance->triangle, least);
    for (size_t r = 0; r < n; r++)
        covariance->aliased[r] = covariance->triangle[triangle_row(r) + r] == CHOLESKY_ALIASED;
    free(least);
    return found;
}

/* The biases of a model are b_k − Σ centre_j·w_jk: their variance follows from that of all these.
 * In units of the root of the bias, as the diagonal is. */
static void restate_biases(const struct covariance *covariance, const struct registers *registers,
                           const double *m, double *diagonal) {
    const struct scaling *scaling = &registers->scaling;
    size_t n = covariance->order, outputs = scaling->outputs;
    if (!scaling->used || !scaling->centre)
        return;
    double *u = memory_new(n, sizeof *u);
    for (size_t r = 0; r < n && covariance->element[r] >= scaling->weights; r++) {
        size_t k = (covariance->element[r] - scaling->weights) % outputs;
        for (size_t i = 0; i < n; i++) {
            size_t element = covariance->element[i];
            bool of_bias = element < scaling->weights && element % outputs == k;
            u[i] = i == r ? 1
                   : of_bias && !covariance->aliased[i]
                       ? -scaling->centre[element] * covariance->root[r] / covariance->root[i]
                       : 0;
        }
        if (!covariance->aliased[r])
            diagonal[r] = inverse_form(n, covariance->triangle, m, u);
    }
    free(u);
}

/* By rows, in units of the roots, to a register. */
static int write_diagonal(const struct covariance *covariance, struct registers *registers,
                          uint8_t number, const double *diagonal) {
    double *out = registers->vector[number].elements;
    for (size_t r = 0; r < covariance->order; r++) {
        double root = covariance->root[r];
        out[covariance->element[r]] = covariance->aliased[r] ? NAN : diagonal[r] / root / root;
    }
    return registers_push(registers, number, 0, registers->count);
}

/* tr((H + Λ)⁻¹H) = Σ 1 − Λ_r·((H + Λ)⁻¹)_rr. */
static void yield_trace(const struct covariance *covariance, const struct registers *registers,
                        double lambda, const double *diagonal, struct yield *yields) {
    for (size_t r = 0; r < covariance->order; r++) {
        double root = covariance->root[r];
        double ridge = ridge_of(registers, covariance->element[r], lambda) / root / root;
        exact_add(&yields[0].sum, covariance->aliased[r] ? 0 : 1 - ridge * diagonal[r]);
        exact_add(&yields[1].sum, covariance->aliased[r]);
    }
}

/* v = what the rows that follow from others are in terms of the rest, times their estimates: a
 * solution with (H_rr)⁻¹·H_ra·w_a, all in units of the roots. */
static void express_aliased(const struct covariance *covariance, const struct registers *registers,
                            const double *weights, double *v) {
    for (size_t a = 0; a < covariance->order; a++) {
        size_t element = covariance->element[a];
        double of_a = weights[element] * covariance->root[a] * covariance->by[a];
        if (!covariance->aliased[a])
            continue;
        for (size_t r = 0; r < covariance->order; r++)
            v[r] += sum_at(registers, covariance->element[r], element) * covariance->by[r] * of_a;
    }
    cholesky_solve(covariance->order, covariance->triangle, v);
}

/* The estimates, by weights and biases. */
static int restate(const struct covariance *covariance, struct registers *registers,
                   const struct operation *operation) {
    double *out = registers->vector[operation->b].elements;
    int code = registers_pull(registers, operation->c, 0, registers->count);
    if (code)
        return code;
    double *v = memory_new(covariance->order, sizeof *v);
    memcpy(out, registers->vector[operation->c].elements, registers->count * sizeof *out);
    if (registers->scaling.used)
        scaling_point_from_scaled(&registers->scaling, out);
    express_aliased(covariance, registers, out, v);
    for (size_t r = 0; r < covariance->order; r++)
        out[covariance->element[r]] =
            covariance->aliased[r] ? 0 : out[covariance->element[r]] + v[r] / covariance->root[r];
    free(v);
    return registers_push(registers, operation->b, 0, registers->count);
}

static void fill_unknown(struct registers *registers, uint8_t number) {
    double *out = registers->vector[number].elements;
    for (size_t i = 0; i < registers->count; i++)
        out[i] = NAN;
}

static int no_covariance(struct registers *registers, uint8_t number, struct yield *yields) {
    fill_unknown(registers, number);
    exact_add(&yields[0].sum, NAN);
    registers_set_covariance(registers, NULL);
    return registers_push(registers, number, 0, registers->count);
}

static int pull_triangle(struct registers *registers) {
    size_t sums = registers_sums(registers, SUMS_TRIANGLE);
    return registers->backend->pull_sum ? registers->backend->pull_sum(registers, sums) : 0;
}

/* What is off of the diagonal of the matrix, which is 1, by rounding. */
static void find_rounding(const struct covariance *covariance, const struct registers *registers,
                          int bound, double *rounding) {
    for (size_t r = 0; r < covariance->order; r++) {
        double unit = unit_of(registers, bound, covariance->element[r]) / covariance->root[r];
        rounding[r] = 8 * sqrt(registers->weight_sum) * unit * unit;
    }
}

/* Leaves out rows that follow from others, one after the other: a row shows that it does only when
 * those before it are known. With a penalty none does. */
static bool factor_ranked(struct covariance *covariance, const struct registers *registers,
                          int bound, double lambda) {
    size_t n = covariance->order, next = n;
    double *rounding = memory_new(n, sizeof *rounding);
    bool found;
    do {
        if (next < n)
            covariance->aliased[next] = true;
        found = factor_rows(covariance, registers, bound, lambda);
        next = n;
        if (found && lambda == 0) {
            find_rounding(covariance, registers, bound, rounding);
            next = covariance_next_aliased(n, covariance->triangle, rounding);
        }
    } while (next < n);
    free(rounding);
    return found;
}

static int covariance(struct registers *registers, const struct operation *operation,
                      const struct bounds *bounds, struct yield *yields) {
    int code = pull_triangle(registers);
    if (code)
        return code;
    struct covariance *made = covariance_new(&registers->layout, registers->count);
    registers_set_covariance(registers, made);
    if (!factor_ranked(made, registers, bounds->exponent[0], operation->alpha))
        return no_covariance(registers, operation->a, yields);
    double *diagonal = memory_new(made->order, sizeof *diagonal);
    inverse_diagonal(made->order, made->triangle, diagonal);
    yield_trace(made, registers, operation->alpha, diagonal, yields);
    restate_biases(made, registers, NULL, diagonal);
    code = write_diagonal(made, registers, operation->a, diagonal);
    if (!code)
        code = restate(made, registers, operation);
    free(diagonal);
    failpoint(FAILPOINT_covariance_done);
    return code;
}

/* ---- SANDWICH ---- */

/* An error that is a smaller multiple of the rounding of the product has too few digits. */
#define LOST 1e5

/* Where columns follow from others, or nearly, numbers as large as the squares of the inverse
 * cancel. */
static void mark_lost(const struct covariance *covariance, double *diagonal) {
    double *inverse = memory_new(covariance->order, sizeof *inverse);
    inverse_diagonal(covariance->order, covariance->triangle, inverse);
    for (size_t r = 0; r < covariance->order; r++)
        if (!(diagonal[r] >= LOST * DBL_EPSILON * inverse[r] * inverse[r]))
            diagonal[r] = NAN;
    free(inverse);
}

static int sandwich(struct registers *registers, const struct operation *operation,
                    const struct bounds *bounds) {
    const struct covariance *made = registers->covariance;
    if (!made) {
        fill_unknown(registers, operation->a);
        return registers_push(registers, operation->a, 0, registers->count);
    }
    size_t n = made->order;
    int code = pull_triangle(registers);
    if (code)
        return code;
    double *by = memory_new(n, sizeof *by), *diagonal = memory_new(n, sizeof *diagonal);
    double *triangle = memory_map(covariance_triangle_bytes(n));
    for (size_t r = 0; r < n; r++)
        by[r] = unit_of(registers, bounds->exponent[0], made->element[r]) / made->root[r];
    fill_triangle(made, registers, by, triangle);
    inverse_sandwich(n, made->triangle, triangle, diagonal);
    mark_lost(made, diagonal);
    restate_biases(made, registers, triangle, diagonal);
    code = write_diagonal(made, registers, operation->a, diagonal);
    memory_unmap(triangle, covariance_triangle_bytes(n));
    free(by);
    free(diagonal);
    return code;
}

int covariance_run(const struct operation_list *list, struct registers *registers,
                   const struct bounds *bounds, struct yield *yields) {
    int code = 0;
    for (size_t i = 0; i < list->count && !code; i++) {
        const struct operation *operation = &list->items[i];
        bool here = registers_factor_order(registers) > 0;
        if (operation->code == OPERATION_COVARIANCE && here)
            code = covariance(registers, operation, bounds, yields);
        else if (operation->code == OPERATION_SANDWICH && here)
            code = sandwich(registers, operation, bounds);
        yields += operation_scalars(operation);
    }
    return code;
}
