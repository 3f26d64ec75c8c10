/* Loss and gradient of networks over one chunk. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/suites.h"
#include "base/memory.h"
#include "numeric/fixed.h"
#include "numeric/matrix.h"
#include "tests/unit/network_fixture.h"

/* ---- against the definitions ---- */

static long double central_difference(const struct net *net, uint64_t parameter) {
    static const long double step = 1e-6L;
    long double at[NET_PARAMETERS_MAX], up;
    for (uint64_t i = 0; i < net->n; i++)
        at[i] = net->parameters[i];
    at[parameter] += step;
    up = net_loss(net, at);
    at[parameter] -= 2 * step;
    return (up - net_loss(net, at)) / (2 * step);
}

static void assert_gradient(const struct net *net, double tolerance) {
    long double at[NET_PARAMETERS_MAX];
    double gradient[NET_PARAMETERS_MAX];
    for (uint64_t i = 0; i < net->n; i++)
        at[i] = net->parameters[i];
    struct objective_result result = net_gradient(net, gradient);
    long double loss = net_loss(net, at);
    assert_true(fabsl(result.loss - loss) <= tolerance * 0.1L * (1 + fabsl(loss)));
    for (uint64_t i = 0; i < net->n; i++) {
        long double expected = central_difference(net, i);
        if (!(fabsl(gradient[i] - expected) <= tolerance * (1 + fabsl(expected))))
            fail_msg("%s, %s: element %llu is %.17g, not %.17Lg", objective_name(net->shape.kind),
                     activation_name(net->shape.network.activation), (unsigned long long)i,
                     gradient[i], expected);
    }
}

enum { EACH_FORMAT = SANITIZED ? 3 : 1 };

static void assert_gradients(enum precision precision, double tolerance) {
    for (int kind = 0; kind < OBJECTIVES; kind++)
        for (int a = 0; a < ACTIVATIONS; a++)
            for (int f = (kind + a) % EACH_FORMAT; f < NET_FORMATS; f += EACH_FORMAT) {
                if (objective_of((enum objective_kind)kind)->parts_outputs)
                    continue; /* is for linear models alone */
                struct objective_shape shape =
                    net_shape((enum objective_kind)kind, (enum activation)a, precision);
                struct net *net = net_new(shape, 12, net_formats[f].dense, net_formats[f].type,
                                          (uint64_t)(100 * kind + 10 * a + f));
                assert_gradient(net, tolerance);
                net_free(net);
            }
}

static void gradients_are_central_differences_of_every_loss_activation_and_format(void **state) {
    (void)state;
    assert_gradients(PRECISION_DOUBLE, 2e-10);
}

static void gradients_in_float_are_those_to_its_precision(void **state) {
    (void)state;
    assert_gradients(PRECISION_FLOAT, 2e-5);
}

static void rows_count_as_much_as_they_weigh(void **state) {
    (void)state;
    for (int f = 0; f < NET_FORMATS; f++) {
        struct objective_shape shape =
            net_shape(OBJECTIVE_SOFTMAX, ACTIVATION_GELU, PRECISION_DOUBLE);
        struct net *net = net_new(shape, 12, net_formats[f].dense, net_formats[f].type, 3);
        for (uint32_t i = 0; i < 12; i++)
            net->weight[i] = i % 4 ? 0.125 * i : 0;
        net->rows.weight = net->weight;
        net_measure(net);
        assert_gradient(net, 2e-10);
        net_free(net);
    }
}

/* ---- rows of weight 0 ---- */

static void assert_same(const struct net *net, const double *gradient, double loss) {
    double again[NET_PARAMETERS_MAX];
    struct objective_result result = net_gradient(net, again);
    assert_true(result.loss == loss);
    assert_memory_equal(again, gradient, net->n * sizeof *gradient);
}

/* Not even values whose units are no numbers leave a trace. */
static void a_row_of_weight_0_counts_for_nothing_whatever_its_values(void **state) {
    (void)state;
    for (int a = 0; a < ACTIVATIONS; a++)
        for (int precision = 0; precision < 2; precision++)
            for (int dense = 0; dense < 2; dense++) {
                struct objective_shape shape =
                    net_shape(OBJECTIVE_SOFTMAX, (enum activation)a, (enum precision)precision);
                struct net *net = net_new(shape, 12, dense, VALUE_DOUBLE, 4);
                double gradient[NET_PARAMETERS_MAX];
                net->weight[3] = 0;
                net->rows.weight = net->weight;
                net_measure(net);
                struct objective_result result = net_gradient(net, gradient);
                for (uint32_t v = net->start[3]; v < net->start[4]; v++)
                    net->wide[v] = v % 2 ? 1.7e308 : -1.7e308;
                assert_same(net, gradient, result.loss);
                net_free(net);
            }
}

static void a_chunk_of_rows_of_weight_0_has_no_gradient(void **state) {
    (void)state;
    struct net *net = net_new(net_shape(OBJECTIVE_SOFTMAX, ACTIVATION_TANH, PRECISION_DOUBLE), 4,
                              true, VALUE_FLOAT, 4);
    memset(net->weight, 0, sizeof net->weight);
    net->rows.weight = net->weight;
    for (uint64_t i = 0; i < net->n; i++)
        net->parameters[i] = NAN;
    const struct bounds bounds = {.count = net->layout.count};
    struct objective_result result = net_block(net, &bounds, NULL);
    assert_true(result.loss == 0 && !result.exceeded);
    assert_int_equal(result.maxima.count, net->layout.count);
    assert_true(maxima_largest(&result.maxima) == 0);
    net_free(net);
}

/* ---- shapes at the limits ---- */

static void fifteen_layers_of_one_unit_have_a_gradient(void **state) {
    (void)state;
    struct objective_shape shape = net_shape(OBJECTIVE_SQUARED, ACTIVATION_TANH, PRECISION_DOUBLE);
    shape.network.layers = NETWORK_LAYERS_MAX;
    for (uint32_t i = 0; i < NETWORK_LAYERS_MAX; i++)
        shape.network.units[i] = 1;
    for (int dense = 0; dense < 2; dense++) {
        struct net *net = net_new(shape, 5, dense, VALUE_FLOAT, 6);
        assert_gradient(net, 2e-10);
        net_free(net);
    }
}

static void one_row_has_a_gradient(void **state) {
    (void)state;
    for (int f = 0; f < NET_FORMATS; f++) {
        struct net *net = net_new(net_shape(OBJECTIVE_ORDINAL, ACTIVATION_RELU, PRECISION_DOUBLE),
                                  1, net_formats[f].dense, net_formats[f].type, 8);
        assert_gradient(net, 2e-10);
        net_free(net);
    }
}

/* Then only biases have a gradient, and weights above the first layer. */
static void rows_without_values_have_a_gradient(void **state) {
    (void)state;
    for (int precision = 0; precision < 2; precision++) {
        struct net *net =
            net_new(net_shape(OBJECTIVE_SOFTMAX, ACTIVATION_TANH, (enum precision)precision), 6,
                    false, VALUE_ONES, 8);
        memset(net->start, 0, sizeof net->start);
        net->rows.values = 0;
        assert_gradient(net, precision == PRECISION_FLOAT ? 2e-5 : 2e-10);
        net_free(net);
    }
}

static void a_model_without_features_has_a_gradient(void **state) {
    (void)state;
    struct objective_shape shape = net_shape(OBJECTIVE_SOFTMAX, ACTIVATION_TANH, PRECISION_DOUBLE);
    shape.features = 0;
    for (int dense = 0; dense < 2; dense++) {
        struct net *net = net_new(shape, 6, dense, VALUE_DOUBLE, 8);
        assert_gradient(net, 2e-10);
        net_free(net);
    }
}

/* ---- the order of sums ---- */

struct naive {
    const struct net *net;
    double units[20], below[20], gradient[NET_PARAMETERS_MAX], loss;
};

/* One row through a network with one hidden layer of relu and squared loss, by fma() alone. */
static void naive_row(struct naive *naive, const double *x, double label) {
    const struct net *net = naive->net;
    const struct layout_tensor *t = net->layout.tensor;
    const double *p = net->parameters;
    size_t features = net->shape.features, units = t[0].columns;
    double margin = 0;
    for (size_t k = 0; k < units; k++) {
        double sum = 0;
        for (size_t j = 0; j < features; j++)
            sum = fma(x[j], p[j * units + k], sum);
        sum += p[t[2].first + k];
        naive->units[k] = sum > 0 ? sum : 0;
        margin = fma(naive->units[k], p[t[1].first + k], margin);
    }
    double error = margin + p[t[3].first] - label;
    naive->loss += error * error / 2;
    naive->gradient[t[3].first] += error;
    for (size_t k = 0; k < units; k++) {
        double *weight = &naive->gradient[t[1].first + k];
        *weight = fma(naive->units[k], error, *weight);
        double below = naive->units[k] > 0 ? fma(error, p[t[1].first + k], 0) : 0;
        naive->gradient[t[2].first + k] += below;
        for (size_t j = 0; j < features; j++)
            naive->gradient[j * units + k] = fma(x[j], below, naive->gradient[j * units + k]);
    }
}

/* Long enough for several batches, whose ends do not show. */
static void a_chunk_is_added_up_row_by_row_with_fused_products(void **state) {
    (void)state;
    struct objective_shape shape = net_shape(OBJECTIVE_SQUARED, ACTIVATION_RELU, PRECISION_DOUBLE);
    shape.features = 23;
    shape.network.layers = 1;
    shape.network.units[0] = 17;
    struct net *net = net_new(shape, NET_ROWS_MAX, true, VALUE_FLOAT, 11);
    struct naive *naive = memory_new(1, sizeof *naive);
    naive->net = net;
    for (uint32_t i = 0; i < NET_ROWS_MAX; i++)
        naive_row(naive, net->wide + (size_t)i * shape.features, net->label[i]);
    struct bounds bounds = {.count = net->layout.count};
    struct objective_result result = net_block(net, &bounds, NULL);
    assert_true(result.loss == naive->loss);
    bounds = net_bounds(&result.maxima);
    int64_t *sum = memory_new(net->n, sizeof *sum);
    net_block(net, &bounds, sum);
    for (uint64_t i = 0; i < net->n; i++) {
        int base = net->exponent[layout_exponent_of(&net->layout, i)];
        int bound = bounds.exponent[layout_locate(&net->layout, i).tensor - net->layout.tensor];
        assert_int_equal(sum[i], fixed_round(ldexp(naive->gradient[i], base - bound)));
    }
    free(sum);
    free(naive);
    net_free(net);
}

/* The same rows written out. */
static struct net *made_dense(const struct net *sparse) {
    struct net *net = net_new(sparse->shape, sparse->rows.count, true, VALUE_DOUBLE, 1);
    memset(net->wide, 0, sizeof net->wide);
    for (uint32_t i = 0; i < net->rows.count; i++)
        for (uint32_t v = sparse->start[i]; v < sparse->start[i + 1]; v++)
            net->wide[i * net->shape.features + sparse->feature[v]] = sparse->wide[v];
    memcpy(net->label, sparse->label, sizeof net->label);
    memcpy(net->parameters, sparse->parameters, sizeof net->parameters);
    net_measure(net);
    return net;
}

static void sparse_rows_give_the_bits_of_dense_ones(void **state) {
    (void)state;
    for (int precision = 0; precision < 2; precision++)
        for (int type = VALUE_FLOAT; type <= VALUE_DOUBLE; type++) {
            struct objective_shape shape =
                net_shape(OBJECTIVE_SOFTMAX, ACTIVATION_TANH, (enum precision)precision);
            struct net *sparse = net_new(shape, 1500, false, (enum value_type)type, 15);
            struct net *dense = made_dense(sparse);
            double gradient[NET_PARAMETERS_MAX];
            struct objective_result result = net_gradient(sparse, gradient);
            assert_same(dense, gradient, result.loss);
            net_free(sparse);
            net_free(dense);
        }
}

static uint64_t hash_by(enum matrix_processor processor) {
    return matrix_choose(processor) ? objective_proof() : 0;
}

static void every_processor_computes_the_same_bits(void **state) {
    (void)state;
    static const enum matrix_processor processors[] = {MATRIX_ANY, MATRIX_AVX2, MATRIX_AVX512};
    uint64_t expected = objective_proof();
    for (size_t i = 0; i < 3; i++) {
        uint64_t hash = hash_by(processors[i]);
        assert_true(hash == 0 || hash == expected);
    }
}

/* ---- scratch memory ---- */

static void assert_as_with_fresh_scratch(const struct net *net, const struct rows *rows,
                                         struct objective_scratch *used) {
    struct objective_scale scale = {.exponent = net->exponent,
                                    .bounds = {.count = net->layout.count}};
    for (uint32_t t = 0; t < net->layout.count; t++)
        scale.bounds.exponent[t] = 10;
    struct objective_scratch *fresh = objective_scratch_new(&net->shape);
    struct objective_result result, expected;
    int64_t *sum = memory_new(2 * net->n, sizeof *sum);
    objective_block(&net->shape, &scale, rows, net->parameters, sum, used, &result);
    objective_block(&net->shape, &scale, rows, net->parameters, sum + net->n, fresh, &expected);
    assert_true(!expected.exceeded && result.loss == expected.loss);
    assert_memory_equal(sum, sum + net->n, net->n * sizeof *sum);
    objective_scratch_free(fresh);
    free(sum);
}

/* Chunks of other columns and sizes, sparse and dense, leave nothing behind. */
static void a_chunk_does_not_notice_those_before_it(void **state) {
    (void)state;
    struct objective_shape shape = net_shape(OBJECTIVE_SOFTMAX, ACTIVATION_GELU, PRECISION_FLOAT);
    shape.features = NET_FEATURES_MAX;
    struct objective_scratch *scratch = objective_scratch_new(&shape);
    static const uint32_t cuts[] = {0, 1, 2, 5, 5, 60, 62, 63};
    for (int round = 0; round < 2 * NET_FORMATS; round++) {
        const struct net_format *format =
            &net_formats[round < NET_FORMATS ? round : 2 * NET_FORMATS - 1 - round];
        struct net *net = net_new(shape, 63, format->dense, format->type, 20);
        net->parameters[net->n - 1] += round; /* another point at times, and another bias */
        objective_scratch_at(scratch, (uint64_t)round + 1);
        for (size_t c = 0; c + 1 < sizeof cuts / sizeof *cuts; c++) {
            struct rows rows = net->rows;
            uint32_t start[64];
            rows.count = cuts[c + 1] - cuts[c];
            rows.label += cuts[c];
            for (uint32_t i = 0; i <= rows.count; i++)
                start[i] = net->start[cuts[c] + i] - net->start[cuts[c]];
            size_t size = value_bytes(rows.type);
            if (rows.value)
                rows.value = (const char *)rows.value + net->start[cuts[c]] * size;
            rows.start = rows.dense ? NULL : start;
            rows.feature = rows.dense ? NULL : rows.feature + net->start[cuts[c]];
            assert_as_with_fresh_scratch(net, &rows, scratch);
        }
        net_free(net);
    }
    objective_scratch_free(scratch);
}

/* ---- bounds ---- */

static void maxima_belong_to_the_chunk_whatever_the_bounds(void **state) {
    (void)state;
    struct net *net = net_new(net_shape(OBJECTIVE_SOFTMAX, ACTIVATION_TANH, PRECISION_DOUBLE), 12,
                              false, VALUE_FLOAT, 12);
    struct bounds bounds = {.count = net->layout.count};
    struct objective_result wide = net_block(net, &bounds, NULL);
    bounds = net_bounds(&wide.maxima);
    struct objective_result close = net_block(net, &bounds, NULL);
    assert_false(close.exceeded);
    assert_memory_equal(&wide.maxima, &close.maxima, sizeof wide.maxima);
    for (uint32_t t = 0; t < bounds.count; t++) {
        struct bounds tight = bounds;
        tight.exponent[t]--;
        int64_t *sum = memory_new(net->n, sizeof *sum);
        int64_t *nothing = memory_new(net->n, sizeof *nothing);
        struct objective_result result = net_block(net, &tight, sum);
        assert_true(result.exceeded && result.loss == wide.loss);
        assert_memory_equal(&wide.maxima, &result.maxima, sizeof wide.maxima);
        assert_memory_equal(sum, nothing, net->n * sizeof *sum);
        free(sum);
        free(nothing);
    }
    net_free(net);
}

/* The largest element of a tensor is then just within its bound. */
static void a_chunk_within_its_bounds_adds_at_most_its_share(void **state) {
    (void)state;
    struct net *net = net_new(net_shape(OBJECTIVE_SOFTMAX, ACTIVATION_TANH, PRECISION_DOUBLE), 12,
                              true, VALUE_FLOAT, 12);
    for (uint64_t e = 0; e < layout_exponents(&net->layout); e++)
        net->exponent[e] = (int16_t)(net->exponent[e] - 8); /* as of 256 chunks */
    struct bounds bounds = {.count = net->layout.count};
    struct objective_result result = net_block(net, &bounds, NULL);
    bounds = net_bounds(&result.maxima);
    int64_t *sum = memory_new(net->n, sizeof *sum);
    net_block(net, &bounds, sum);
    for (uint32_t t = 0; t < net->layout.count; t++) {
        const struct layout_tensor *tensor = &net->layout.tensor[t];
        int64_t most = 0;
        for (uint64_t i = 0; i < tensor->rows * tensor->columns; i++)
            most = llabs(sum[tensor->first + i]) > most ? llabs(sum[tensor->first + i]) : most;
        assert_true(most <= INT64_C(1) << 53);
        assert_true(most > INT64_C(1) << 52);
    }
    free(sum);
    net_free(net);
}

static void parameters_that_are_no_numbers_give_no_loss_and_no_bounds(void **state) {
    (void)state;
    static const double wrong[] = {NAN, INFINITY, -INFINITY, 1e308};
    for (int dense = 0; dense < 2; dense++)
        for (int precision = 0; precision < 2; precision++)
            for (size_t i = 0; i < 4; i++) {
                struct net *net = net_new(
                    net_shape(OBJECTIVE_SQUARED, ACTIVATION_RELU, (enum precision)precision), 12,
                    dense, VALUE_FLOAT, 12);
                for (uint64_t p = 0; p < net->n; p++)
                    net->parameters[p] = wrong[i];
                const struct bounds bounds = {.count = net->layout.count};
                struct objective_result result = net_block(net, &bounds, NULL);
                assert_true(!isfinite(result.loss));
                assert_true(result.exceeded);
                for (uint32_t t = 0; t < result.maxima.count; t++)
                    assert_true(isinf(result.maxima.value[t]));
                net_free(net);
            }
}

/* ---- other ways to the same margins ---- */

static void the_loss_alone_is_the_same(void **state) {
    (void)state;
    for (int f = 0; f < NET_FORMATS; f++) {
        struct net *net = net_new(net_shape(OBJECTIVE_SOFTMAX, ACTIVATION_GELU, PRECISION_FLOAT),
                                  1500, net_formats[f].dense, net_formats[f].type, 13);
        struct objective_scratch *scratch = objective_scratch_new(&net->shape);
        struct objective_result result;
        objective_block(&net->shape, NULL, &net->rows, net->parameters, NULL, scratch, &result);
        const struct bounds bounds = {.count = net->layout.count};
        assert_true(net_block(net, &bounds, NULL).loss == result.loss);
        assert_false(result.exceeded);
        objective_scratch_free(scratch);
        net_free(net);
    }
}

static void assert_margins(const struct net *net) {
    uint32_t outputs = net->shape.outputs;
    double *margins = memory_new((size_t)net->rows.count * outputs, sizeof *margins);
    struct objective_scratch *scratch = objective_scratch_new(&net->shape);
    struct objective_result result;
    objective_margins(&net->shape, &net->rows, net->parameters, scratch, margins);
    objective_block(&net->shape, NULL, &net->rows, net->parameters, NULL, scratch, &result);
    double loss = 0, correct = 0;
    for (uint32_t i = 0; i < net->rows.count; i++) {
        correct += objective_has_classes(objective_of(net->shape.kind)) &&
                   objective_is_correct(objective_of(net->shape.kind), outputs,
                                        margins + (size_t)i * outputs, &net->label[i]);
        loss += objective_loss(objective_of(net->shape.kind), &net->shape.loss, outputs,
                               margins + (size_t)i * outputs, net->label[i]);
    }
    assert_true(result.correct == correct);
    assert_true(fabs(loss - result.loss) <= 1e-13 * loss);
    objective_scratch_free(scratch);
    free(margins);
}

/* One scratch serves both, and rows of any kind. */
static void margins_are_those_of_the_loss_and_of_correct_rows(void **state) {
    (void)state;
    static const enum objective_kind kinds[] = {OBJECTIVE_SOFTMAX, OBJECTIVE_ORDINAL,
                                                OBJECTIVE_SQUARED};
    for (size_t i = 0; i < 3; i++)
        for (int f = 0; f < NET_FORMATS; f++)
            for (uint32_t layers = 0; layers < 3; layers += 2) {
                struct objective_shape shape =
                    net_shape(kinds[i], ACTIVATION_TANH, PRECISION_DOUBLE);
                struct net *net =
                    net_new(shape, 1500, net_formats[f].dense, net_formats[f].type, 14);
                net->shape.network.layers = layers; /* 0: the same numbers as a linear model's */
                assert_margins(net);
                net_free(net);
            }
}

SUITE(network) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_central_differences_of_every_loss_activation_and_format),
        cmocka_unit_test(gradients_in_float_are_those_to_its_precision),
        cmocka_unit_test(rows_count_as_much_as_they_weigh),
        cmocka_unit_test(a_row_of_weight_0_counts_for_nothing_whatever_its_values),
        cmocka_unit_test(a_chunk_of_rows_of_weight_0_has_no_gradient),
        cmocka_unit_test(fifteen_layers_of_one_unit_have_a_gradient),
        cmocka_unit_test(one_row_has_a_gradient),
        cmocka_unit_test(rows_without_values_have_a_gradient),
        cmocka_unit_test(a_model_without_features_has_a_gradient),
        cmocka_unit_test(a_chunk_is_added_up_row_by_row_with_fused_products),
        cmocka_unit_test(sparse_rows_give_the_bits_of_dense_ones),
        cmocka_unit_test(every_processor_computes_the_same_bits),
        cmocka_unit_test(a_chunk_does_not_notice_those_before_it),
        cmocka_unit_test(maxima_belong_to_the_chunk_whatever_the_bounds),
        cmocka_unit_test(a_chunk_within_its_bounds_adds_at_most_its_share),
        cmocka_unit_test(parameters_that_are_no_numbers_give_no_loss_and_no_bounds),
        cmocka_unit_test(the_loss_alone_is_the_same),
        cmocka_unit_test(margins_are_those_of_the_loss_and_of_correct_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
