/* A network's first layer by products of strips, and the layers above at its margins: together what
 * a pass over whole rows finds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "numeric/fixed.h"
#include "numeric/setup.h"
#include "objective/halves.h"
#include "tests/unit/network_fixture.h"
#include "tests/unit/suites.h"

enum { ROWS = 1300, NUMBERS = ROWS * 4, WIDTH = 2 }; /* rows of more than one batch */

/* What was found of a network, part by part. */
struct halves {
    double margins[NUMBERS], derivatives[NUMBERS];
    int64_t sum[NET_PARAMETERS_MAX];
    struct objective_result of_derivatives, of_upper, of_loss;
    struct bounds bounds; /* that hold for both */
};

static void find_margins(const struct net *net, struct halves *halves) {
    const size_t units = net->shape.network.units[0];
    for (uint32_t i = 0; i < net->rows.count; i++)
        for (uint32_t v = net->start[i]; v < net->start[i + 1]; v++)
            for (size_t k = 0; k < units; k++)
                halves->margins[i * units + k] +=
                    net->wide[v] * net->parameters[net->feature[v] * units + k];
}

static void find_derivatives(const struct net *net, const struct objective_shape *upper,
                             const struct upper_point *point, struct halves *halves) {
    const size_t units = net->shape.network.units[0];
    struct objective_scale scale = {.exponent = net->exponent + net->shape.features};
    scale.bounds.count = net->layout.count;
    for (uint32_t t = 0; t < scale.bounds.count; t++)
        scale.bounds.exponent[t] = FIXED_DERIVATIVE_MAX;
    struct objective_scratch *scratch = objective_scratch_new(upper);
    int64_t *bits = memory_new(NUMBERS, sizeof *bits);
    objective_derivatives(upper, &scale, &net->rows, point, bits, scratch, &halves->of_derivatives);
    memcpy(halves->derivatives, bits, net->rows.count * units * sizeof *bits);
    halves->bounds = net_bounds(&halves->of_derivatives.maxima);
    free(bits);
    objective_scratch_free(scratch);
}

static void find_upper(const struct net *net, const struct objective_shape *upper,
                       const struct upper_point *point, struct halves *halves) {
    const struct objective_scale scale = {.exponent = net->exponent + net->shape.features,
                                          .bounds = halves->bounds};
    struct objective_scratch *scratch = objective_scratch_new(upper);
    objective_upper_gradient(upper, &scale, &net->rows, point,
                             halves->sum + layout_upper(&net->layout).first, scratch,
                             &halves->of_upper);
    objective_scratch_free(scratch);
}

/* Without a scale: the loss alone, with the weight of the rows that are predicted correctly. */
static void find_loss(const struct net *net, const struct objective_shape *upper,
                      const struct upper_point *point, struct halves *halves) {
    struct objective_scratch *scratch = objective_scratch_new(upper);
    objective_upper_loss(upper, &net->rows, point, scratch, &halves->of_loss);
    objective_scratch_free(scratch);
}

/* The rows' values in the columns of a strip. */
static void find_strip(const struct net *net, uint32_t strip, struct halves *halves) {
    const struct objective_shape shape = objective_strip(&net->shape, WIDTH, strip);
    const struct layout_span span = layout_strip(&net->layout, WIDTH, strip);
    const struct objective_scale scale = {.exponent = net->exponent + strip * WIDTH,
                                          .bounds = halves->bounds};
    struct objective_scratch *scratch = objective_scratch_new(&shape);
    struct objective_result result;
    uint32_t *start = memory_new(NET_ROWS_MAX + 1, sizeof *start), count = 0;
    uint32_t *feature = memory_new(NET_VALUES_MAX, sizeof *feature);
    double *value = memory_new(NET_VALUES_MAX, sizeof *value);
    for (uint32_t i = 0; i < net->rows.count; i++) {
        for (uint32_t v = net->start[i]; v < net->start[i + 1]; v++)
            if (net->feature[v] / WIDTH == strip) {
                feature[count] = net->feature[v] - strip * WIDTH;
                value[count++] = net->wide[v];
            }
        start[i + 1] = count;
    }
    struct rows rows = net->rows;
    rows.features = objective_columns(&shape);
    rows.type = VALUE_DOUBLE;
    rows.start = start;
    rows.feature = feature;
    rows.value = value;
    rows.values = count;
    assert_int_equal(objective_parameters(&shape), span.count);
    objective_transpose(&shape, &scale, &rows, halves->derivatives, halves->sum + span.first,
                        scratch, &result);
    assert_false(result.exceeded);
    assert_true(result.maxima.value[0] == halves->of_derivatives.maxima.value[0]);
    free(start);
    free(feature);
    free(value);
    objective_scratch_free(scratch);
}

static struct halves *halves_of(const struct net *net) {
    struct halves *halves = memory_new(1, sizeof *halves);
    const struct objective_shape upper = objective_upper(&net->shape);
    const struct layout_span span = layout_upper(&net->layout);
    const struct upper_point point = {net->parameters + span.first, halves->margins};
    assert_int_equal(objective_parameters(&upper), span.count);
    find_margins(net, halves);
    find_derivatives(net, &upper, &point, halves);
    find_upper(net, &upper, &point, halves);
    find_loss(net, &upper, &point, halves);
    for (uint32_t s = 0; s < layout_strips(&net->layout, WIDTH); s++)
        find_strip(net, s, halves);
    return halves;
}

static bool are_close(double a, double b, double scale, double tolerance) {
    return fabs(a - b) <= tolerance * (fabs(b) + scale);
}

/* Sums of one tensor are compared with the largest of them. */
static void assert_sums(const struct net *net, const struct halves *halves, double tolerance) {
    int64_t *whole = memory_new(net->n, sizeof *whole);
    assert_false(net_block(net, &halves->bounds, whole).exceeded);
    for (uint32_t t = 0; t < net->layout.count; t++) {
        const struct layout_tensor *tensor = &net->layout.tensor[t];
        double most = 0;
        uint64_t end = tensor->first + tensor->rows * tensor->columns;
        for (uint64_t i = tensor->first; i < end; i++)
            most = fmax(most, fabs((double)whole[i]));
        for (uint64_t i = tensor->first; i < end; i++)
            if (!are_close((double)halves->sum[i], (double)whole[i], most + ROWS, tolerance))
                fail_msg("%s: element %llu of %s is %lld, not %lld",
                         objective_name(net->shape.kind), (unsigned long long)(i - tensor->first),
                         tensor->name, (long long)halves->sum[i], (long long)whole[i]);
    }
    free(whole);
}

static void assert_halves(const struct net *net, double tolerance) {
    struct halves *halves = halves_of(net);
    const struct objective_result *a = &halves->of_derivatives, *b = &halves->of_upper;
    struct objective_result whole = net_block(net, &halves->bounds, NULL);
    assert_true(a->loss == b->loss && !a->exceeded && !b->exceeded);
    assert_true(halves->of_loss.loss == a->loss && halves->of_loss.correct == whole.correct);
    assert_true(are_close(a->loss, whole.loss, 1e-3, tolerance));
    for (uint32_t t = 1; t < net->layout.count; t++)
        assert_true(a->maxima.value[t] == b->maxima.value[t]);
    assert_sums(net, halves, tolerance);
    free(halves);
}

static void for_all(enum precision precision, double tolerance) {
    for (int kind = 0; kind < OBJECTIVES; kind++)
        for (int a = 0; a < ACTIVATIONS; a++)
            for (int weighted = 0; weighted < 2; weighted++) {
                if (objective_of((enum objective_kind)kind)->parts_outputs)
                    continue; /* is for linear models alone */
                struct objective_shape shape =
                    net_shape((enum objective_kind)kind, (enum activation)a, precision);
                shape.network.layers = 1 + (uint32_t)kind % 2;
                struct net *net = net_new(shape, ROWS, false, VALUE_DOUBLE, (uint64_t)kind + 1);
                for (uint32_t i = 0; i < ROWS && weighted; i++)
                    net->weight[i] = i % 5 ? 0.375 * (i % 7) : 0;
                net->rows.weight = weighted ? net->weight : NULL;
                net_measure(net);
                assert_halves(net, tolerance);
                net_free(net);
            }
}

static void both_halves_of_a_pass_are_that_of_whole_rows(void **state) {
    (void)state;
    for_all(PRECISION_DOUBLE, 1e-11);
}

static void so_they_are_in_float_to_its_precision(void **state) {
    (void)state;
    for_all(PRECISION_FLOAT, 2e-4);
}

static void derivatives_that_are_not_finite_exceed_any_bound(void **state) {
    (void)state;
    struct net *net = net_new(net_shape(OBJECTIVE_SQUARED, ACTIVATION_RELU, PRECISION_DOUBLE), 12,
                              false, VALUE_DOUBLE, 1);
    net->parameters[net->n - 1] = INFINITY;
    struct halves *halves = memory_new(1, sizeof *halves);
    const struct objective_shape upper = objective_upper(&net->shape);
    const struct upper_point point = {net->parameters + layout_upper(&net->layout).first,
                                      halves->margins};
    find_margins(net, halves);
    find_derivatives(net, &upper, &point, halves);
    assert_true(halves->of_derivatives.exceeded);
    assert_true(halves->of_derivatives.maxima.value[0] == INFINITY);
    free(halves);
    net_free(net);
}

static void a_network_without_a_row_that_weighs_has_nothing(void **state) {
    (void)state;
    struct net *net = net_new(net_shape(OBJECTIVE_LOGISTIC, ACTIVATION_TANH, PRECISION_DOUBLE), 12,
                              false, VALUE_DOUBLE, 1);
    memset(net->weight, 0, sizeof net->weight);
    net->rows.weight = net->weight;
    struct halves *halves = halves_of(net);
    for (uint64_t i = 0; i < net->n; i++)
        assert_int_equal(halves->sum[i], 0);
    assert_true(halves->of_derivatives.loss == 0 && halves->derivatives[0] == 0);
    free(halves);
    net_free(net);
}

static int set_up(void **state) {
    (void)state;
    numeric_setup();
    return 0;
}

SUITE(network_layers) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_halves_of_a_pass_are_that_of_whole_rows),
        cmocka_unit_test(so_they_are_in_float_to_its_precision),
        cmocka_unit_test(derivatives_that_are_not_finite_exceed_any_bound),
        cmocka_unit_test(a_network_without_a_row_that_weighs_has_nothing),
    };
    return cmocka_run_group_tests_name("network layers", tests, set_up, NULL);
}
