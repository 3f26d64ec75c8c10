#include "tests/unit/canned.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "numeric/fixed.h"
#include "numeric/vector.h"

void canned_assert_every_loss(const struct objective_shape *shapes, size_t count,
                              enum canned_losses which) {
    for (int kind = 0; kind < OBJECTIVES; kind++) {
        size_t s = 0;
        while (s < count && shapes[s].kind != (enum objective_kind)kind)
            s++;
        const struct objective *objective = objective_of((enum objective_kind)kind);
        bool left_out = which == CANNED_OF_ONE_OUTPUT  ? objective->second_row != NULL
                        : which == CANNED_OF_CURVATURE ? objective->second_sums != NULL
                                                       : false;
        if (s == count && !left_out)
            fail_msg("no shape of %s is tested", objective_name((enum objective_kind)kind));
    }
}

static double label_of(const struct objective_shape *shape, struct random *random) {
    enum label_kind labels = objective_of(shape->kind)->labels;
    if (labels == LABEL_LISTS)
        return (double)random_below(random, CANNED_LISTS);
    if (labels == LABEL_CLASSES)
        return (double)random_below(random, shape->outputs);
    if (labels != LABEL_TARGET)
        return (double)random_below(random, shape->outputs + 1);
    double label = 10 * (random_unit(random) - 0.5);
    bool (*fits)(double) = objective_of(shape->kind)->label_fits;
    return !fits || fits(label) ? label : fits(0) ? 0 : -label;
}

static uint32_t weights_of(const struct objective_shape *shape) {
    return objective_weights(objective_of(shape->kind), shape->outputs);
}

uint64_t canned_place(const struct objective_shape *shape, uint64_t j, uint32_t k) {
    uint32_t weights = weights_of(shape);
    return j * weights + (j < CANNED_FEATURES && weights == 1 ? 0 : k);
}

uint64_t canned_column(const struct objective_shape *shape, uint64_t parameter) {
    uint64_t column = parameter / weights_of(shape);
    return column < CANNED_FEATURES ? column : CANNED_FEATURES;
}

void canned_list(uint32_t classes, uint32_t start[CANNED_LISTS + 1], uint32_t *class) {
    uint32_t count = start[0] = 0;
    for (uint32_t i = 0; i < CANNED_LISTS; i++) {
        for (uint32_t k = 0; k < classes; k++)
            if (canned_has(i, k))
                class[count++] = k;
        start[i + 1] = count;
    }
}

static void add_row(struct canned *canned, const double *scale, struct random *random) {
    for (uint32_t j = 0; j < CANNED_FEATURES; j++) {
        if (!canned->rows.dense && random_next(random) & 1)
            continue;
        uint64_t at = canned->rows.values++;
        float value = (float)(random_unit(random) - 0.5);
        if (canned->rows.type == VALUE_ONES)
            value = 1;
        if (canned->rows.type == VALUE_BYTE)
            value = canned->byte[at] = (uint8_t)(4 * (value + 0.5f));
        canned->feature[at] = j;
        canned->wide[at] = scale ? (double)value * scale[j] : (double)value;
        canned->narrow[at] = (float)canned->wide[at];
        if (canned->rows.type == VALUE_FLOAT)
            canned->wide[at] = (double)canned->narrow[at];
    }
}

void canned_measure(struct canned *canned) {
    memset(canned->absolute_sum, 0, sizeof canned->absolute_sum);
    memset(canned->count, 0, sizeof canned->count);
    for (uint32_t i = 0; i < CANNED_ROWS; i++) {
        double weight = fixed_weight(canned->weight[i]);
        for (uint32_t v = canned->start[i]; v < canned->start[i + 1]; v++) {
            canned->absolute_sum[canned->feature[v]] += weight * fabs(canned->wide[v]);
            canned->count[canned->feature[v]]++;
        }
        canned->absolute_sum[CANNED_FEATURES] += weight;
    }
    canned->count[CANNED_FEATURES] = CANNED_ROWS;
    canned->uniform = FIXED_EXPONENT_MAX;
    for (int j = 0; j <= CANNED_FEATURES; j++) {
        int e = fixed_exponent(canned->absolute_sum[j], canned->count[j]);
        canned->exponent[j] = (int16_t)e;
        canned->uniform = e < canned->uniform ? e : canned->uniform;
    }
}

void canned_weigh(struct canned *canned, double decades, uint64_t seed) {
    struct random random;
    random_init(&random, seed);
    for (uint32_t i = 0; i < CANNED_ROWS; i++)
        canned->weight[i] = i % 7 == 3 ? 0 : pow(10, decades * 2 * (random_unit(&random) - 0.5));
    canned->rows.weight = canned->weight;
    canned_measure(canned);
}

struct canned *canned_new(struct objective_shape shape, bool dense, enum value_type type,
                          const double *scale, uint64_t seed) {
    struct canned *canned = memory_new(1, sizeof *canned);
    struct random random;
    random_init(&random, seed);
    canned->shape = shape;
    canned->rows = (struct rows){.count = CANNED_ROWS,
                                 .features = CANNED_FEATURES,
                                 .dense = dense,
                                 .type = type,
                                 .start = dense ? NULL : canned->start,
                                 .feature = dense ? NULL : canned->feature,
                                 .label = canned->label,
                                 .lists = &canned->lists};
    canned->lists = (struct label_lists){CANNED_LISTS, canned->list_start, canned->list_class};
    canned_list(shape.outputs, canned->list_start, canned->list_class);
    for (uint32_t i = 0; i < CANNED_ROWS; i++) {
        canned->label[i] = label_of(&shape, &random);
        canned->weight[i] = 1;
        add_row(canned, scale, &random);
        canned->start[i + 1] = (uint32_t)canned->rows.values;
    }
    const void *const values[] = {
        [VALUE_BYTE] = canned->byte, [VALUE_FLOAT] = canned->narrow, [VALUE_DOUBLE] = canned->wide};
    canned->rows.value = values[type];
    for (uint64_t p = 0; p < objective_parameters(&shape); p++) {
        uint64_t j = canned_column(&shape, p);
        canned->parameters[p] = 4 * (random_unit(&random) - 0.5);
        if (objective_of(shape.kind)->label_fits) /* whose losses grow exponentially */
            canned->parameters[p] /= 8;
        if (type == VALUE_BYTE) /* values are up to 3 */
            canned->parameters[p] /= 4;
        if (scale && j < CANNED_FEATURES)
            canned->parameters[p] /= scale[j];
    }
    for (uint32_t k = 0; objective_of(shape.kind)->parts_outputs && k < shape.outputs; k++)
        canned->parameters[canned_place(&shape, CANNED_FEATURES, k)] =
            0.25 * shape.outputs - 0.5 * k - 0.1 * random_unit(&random);
    canned_measure(canned);
    return canned;
}

/* Half the unit deviance of a power p of the mean. */
static long double deviance(long double p, double label, long double *m) {
    long double y = label, mean = expl(*m), log_ratio = y > 0 ? logl(y) - *m : 0;
    *m = (mean - y) * expl(-p * (*m)) * mean;
    if (p == 1)
        return y * log_ratio - (y - mean);
    if (p == 2)
        return (y - mean) / mean - log_ratio;
    long double a = 2 - p, b = p - 1, zero = y > 0 ? powl(y, a) : 0;
    return -zero / (a * b) + y * powl(mean, -b) / b + powl(mean, a) / a;
}

long double canned_second(const struct objective_shape *shape, double label, long double m) {
    long double sign = label > 0 ? 1 : -1, p;
    switch (shape->kind) {
    case OBJECTIVE_QUANTILE:
        p = shape->loss.value[1];
        return 1 / (2 * fmaxl(p, fabsl(m - label)));
    case OBJECTIVE_SMOOTH_HINGE:
        return sign * m > 0 && sign * m < 1;
    case OBJECTIVE_HUBER:
        return shape->loss.value[0] / fmaxl(shape->loss.value[0], fabsl(m - label));
    case OBJECTIVE_SQUARED_HINGE:
        return sign * m < 1 ? 2 : 0;
    case OBJECTIVE_LOGISTIC:
        return 1 / ((1 + expl(m)) * (1 + expl(-m)));
    case OBJECTIVE_POISSON:
        return expl(m);
    case OBJECTIVE_GAMMA:
        return label * expl(-m);
    case OBJECTIVE_TWEEDIE:
        p = shape->loss.value[0];
        return (2 - p) * expl((2 - p) * m) + (p - 1) * label * expl((1 - p) * m);
    default:
        assert_int_equal(shape->kind, OBJECTIVE_SQUARED);
        return 1;
    }
}

/* By the rule for −log P: P_k·P_l/P² less P_kl/P, with P the difference of two probabilities. */
static void second_of_odds(const struct objective_shape *shape, const long double *m, size_t own,
                           long double *s) {
    uint32_t outputs = shape->outputs;
    long double p[2] = {1, 0}, first[2], second[2];
    memset(s, 0, outputs * outputs * sizeof *s);
    for (size_t i = 0; i < 2; i++) {
        size_t k = own - 1 + i;
        p[i] = k < outputs ? 1 / (1 + expl(-m[k])) : p[i];
        first[i] = (i ? -1 : 1) * p[i] * (1 - p[i]);
        second[i] = first[i] * (1 - 2 * p[i]);
    }
    for (size_t i = 0; i < 4; i++) {
        size_t k = own - 1 + i / 2, l = own - 1 + i % 2;
        long double all = p[0] - p[1];
        if (k < outputs && l < outputs)
            s[k * outputs + l] =
                first[i / 2] * first[i % 2] / all / all - (k == l ? second[i / 2] / all : 0);
    }
}

void canned_second_matrix(const struct objective_shape *shape, const long double *m, double label,
                          long double *s) {
    uint32_t outputs = shape->outputs;
    long double p[CANNED_OUTPUTS_MAX], total = 0;
    bool apart = shape->kind == OBJECTIVE_ONE_VS_REST || shape->kind == OBJECTIVE_ORDINAL ||
                 shape->kind == OBJECTIVE_MULTILABEL;
    if (shape->kind == OBJECTIVE_PROPORTIONAL_ODDS) {
        second_of_odds(shape, m, (size_t)label, s);
        return;
    }
    if (outputs == 1 && !apart) {
        s[0] = canned_second(shape, label, m[0]);
        return;
    }
    for (uint32_t k = 0; apart && k < outputs; k++)
        for (uint32_t l = 0; l < outputs; l++)
            s[k * outputs + l] = k == l ? 1 / ((1 + expl(m[k])) * (1 + expl(-m[k]))) : 0;
    if (apart)
        return;
    for (uint32_t k = 0; k < outputs; k++)
        total += expl(m[k]);
    for (uint32_t k = 0; k < outputs; k++)
        p[k] = expl(m[k]) / total;
    for (uint32_t k = 0; k < outputs; k++)
        for (uint32_t l = 0; l < outputs; l++)
            s[k * outputs + l] = (k == l ? p[k] : 0) - p[k] * p[l];
}

/* A logistic loss for each output. */
static long double logistics(const struct objective_shape *shape, double label, long double *m) {
    long double sum = 0;
    for (uint32_t k = 0; k < shape->outputs; k++) {
        bool own = shape->kind == OBJECTIVE_ORDINAL      ? k < label
                   : shape->kind == OBJECTIVE_MULTILABEL ? canned_has(label, k)
                                                         : k == (size_t)label;
        long double sign = own ? 1 : -1, z = sign * m[k];
        sum += log1pl(expl(-z));
        m[k] = -sign / (1 + expl(z));
    }
    return sum;
}

/* −log of the probability of the label, as a difference. */
static long double proportional_odds(const struct objective_shape *shape, double label,
                                     long double *m) {
    size_t own = (size_t)label, outputs = shape->outputs;
    long double above = own > 0 ? 1 / (1 + expl(-m[own - 1])) : 1;
    long double below = own < outputs ? 1 / (1 + expl(-m[own])) : 0;
    for (size_t k = 0; k < outputs; k++)
        m[k] = 0;
    if (own > 0)
        m[own - 1] = -above * (1 - above) / (above - below);
    if (own < outputs)
        m[own] = below * (1 - below) / (above - below);
    return -logl(above - below);
}

long double canned_loss(const struct objective_shape *shape, double label, long double *m) {
    if (shape->kind == OBJECTIVE_PROPORTIONAL_ODDS)
        return proportional_odds(shape, label, m);
    if (shape->kind == OBJECTIVE_SQUARED) {
        m[0] -= label;
        return m[0] * m[0] / 2;
    }
    if (shape->kind == OBJECTIVE_POISSON || shape->kind == OBJECTIVE_GAMMA)
        return deviance(shape->kind == OBJECTIVE_POISSON ? 1 : 2, label, m);
    if (shape->kind == OBJECTIVE_QUANTILE) {
        long double r = m[0] - label, tau = shape->loss.value[0], epsilon = shape->loss.value[1];
        long double slope = fmaxl(-0.5L, fminl(0.5L, r / (2 * epsilon)));
        m[0] = slope + 0.5L - tau;
        if (fabsl(r) < epsilon)
            return r * r / (4 * epsilon) + (0.5L - tau) * r + epsilon / 4;
        return r > 0 ? (1 - tau) * r : -tau * r;
    }
    if (shape->kind == OBJECTIVE_SMOOTH_HINGE) {
        long double sign = label > 0 ? 1 : -1, z = sign * m[0];
        m[0] = sign * fmaxl(-1, fminl(0, z - 1));
        return z >= 1 ? 0 : z > 0 ? (1 - z) * (1 - z) / 2 : 0.5L - z;
    }
    if (shape->kind == OBJECTIVE_ONE_VS_REST || shape->kind == OBJECTIVE_ORDINAL ||
        shape->kind == OBJECTIVE_MULTILABEL)
        return logistics(shape, label, m);
    if (shape->kind == OBJECTIVE_TWEEDIE)
        return deviance(shape->loss.value[0], label, m);
    if (shape->kind == OBJECTIVE_HUBER) {
        long double residual = m[0] - label, delta = shape->loss.value[0];
        bool inside = fabsl(residual) <= delta;
        m[0] = inside ? residual : copysignl(delta, residual);
        return inside ? residual * residual / 2 : delta * (fabsl(residual) - delta / 2);
    }
    if (shape->kind == OBJECTIVE_SQUARED_HINGE) {
        long double sign = label > 0 ? 1 : -1;
        long double short_by = fmaxl(0, 1 - sign * m[0]);
        m[0] = -2 * sign * short_by;
        return short_by * short_by;
    }
    if (shape->kind == OBJECTIVE_LOGISTIC) {
        long double sign = label > 0 ? 1 : -1;
        long double margin = sign * m[0];
        m[0] = -sign / (1 + expl(margin));
        return log1pl(expl(-margin));
    }
    assert_int_equal(shape->kind, OBJECTIVE_SOFTMAX);
    long double total = 0;
    long double own = m[(size_t)label];
    for (uint32_t k = 0; k < shape->outputs; k++)
        total += expl(m[k]);
    for (uint32_t k = 0; k < shape->outputs; k++)
        m[k] = expl(m[k]) / total - (k == (size_t)label);
    return logl(total) - own;
}

void canned_margins(const struct canned *canned, uint32_t row, long double *m) {
    const struct objective_shape *shape = &canned->shape;
    for (uint32_t k = 0; k < shape->outputs; k++) {
        uint64_t intercept = canned_place(shape, CANNED_FEATURES, k);
        m[k] = shape->intercept ? canned->parameters[intercept] : 0;
        for (uint32_t v = canned->start[row]; v < canned->start[row + 1]; v++)
            m[k] += (long double)canned->wide[v] *
                    canned->parameters[canned_place(shape, canned->feature[v], k)];
    }
}

long double canned_reference(const struct canned *canned, long double *gradient) {
    const struct objective_shape *shape = &canned->shape;
    const uint32_t outputs = shape->outputs;
    long double loss = 0;
    for (uint64_t p = 0; p < objective_parameters(shape); p++)
        gradient[p] = 0;
    for (uint32_t i = 0; i < CANNED_ROWS; i++) {
        long double m[CANNED_OUTPUTS_MAX];
        canned_margins(canned, i, m);
        loss += canned->weight[i] * canned_loss(shape, canned->label[i], m);
        for (uint32_t k = 0; k < outputs; k++) {
            m[k] *= canned->weight[i];
            for (uint32_t v = canned->start[i]; v < canned->start[i + 1]; v++)
                gradient[canned_place(shape, canned->feature[v], k)] += m[k] * canned->wide[v];
            if (shape->intercept)
                gradient[canned_place(shape, CANNED_FEATURES, k)] += m[k];
        }
    }
    return loss;
}

struct objective_result canned_gradient(const struct canned *canned, bool uniform,
                                        int derivative_exponent, double *gradient) {
    static _Alignas(64) int64_t sum[CANNED_PARAMETERS];
    memset(sum, 0, sizeof sum);
    struct objective_scale scale = {.exponent = uniform ? NULL : canned->exponent,
                                    .uniform = canned->uniform,
                                    .bounds = bounds_of_one(derivative_exponent)};
    struct objective_scratch *scratch = objective_scratch_new(&canned->shape);
    struct objective_result result;
    objective_block(&canned->shape, &scale, &canned->rows, canned->parameters, sum, scratch,
                    &result);
    objective_scratch_free(scratch);
    uint64_t n = objective_parameters(&canned->shape);
    int16_t exponent[CANNED_PARAMETERS];
    for (uint64_t p = 0; p < n; p++)
        exponent[p] = (int16_t)(uniform ? canned->uniform
                                        : canned->exponent[canned_column(&canned->shape, p)]);
    vector_from_fixed_columns(n, gradient, sum, exponent, derivative_exponent, 1);
    return result;
}
