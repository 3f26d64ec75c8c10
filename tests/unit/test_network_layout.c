/* The layout of a network's parameters, their start, base exponents and first bounds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/suites.h"
#include "objective/shape.h"

static struct objective_shape two_layers(enum activation activation) {
    return (struct objective_shape){
        .kind = OBJECTIVE_SOFTMAX,
        .features = 6,
        .outputs = 3,
        .intercept = true,
        .network = {.layers = 2, .units = {4, 5}, .activation = activation, .seed = 9}};
}

static void a_network_is_a_weight_a_layer_and_then_a_bias_a_layer(void **state) {
    (void)state;
    static const struct {
        const char *name;
        uint64_t rows, columns;
    } expected[] = {{"W1", 6, 4}, {"W2", 4, 5}, {"W3", 5, 3},
                    {"b1", 1, 4}, {"b2", 1, 5}, {"b3", 1, 3}};
    const struct objective_shape shape = two_layers(ACTIVATION_TANH);
    struct layout layout = objective_layout(&shape);
    assert_int_equal(layout.count, 6);
    for (uint32_t i = 0; i < 6; i++) {
        const struct layout_tensor *tensor = &layout.tensor[i];
        assert_string_equal(tensor->name, expected[i].name);
        assert_int_equal(tensor->rows, expected[i].rows);
        assert_int_equal(tensor->columns, expected[i].columns);
        assert_int_equal(tensor->regularized, i < 3);
        assert_int_equal(tensor->exponents, i == 0 ? LAYOUT_EXPONENT_A_ROW : LAYOUT_ONE_EXPONENT);
    }
    assert_int_equal(objective_parameters(&shape), 24 + 20 + 15 + 4 + 5 + 3);
    assert_int_equal(layout_exponents(&layout), 6 + 5);
}

static double largest(const struct layout_tensor *tensor, const double *start) {
    double most = 0;
    for (uint64_t i = 0; i < tensor->rows * tensor->columns; i++)
        most = fmax(most, fabs(start[tensor->first + i]));
    return most;
}

/* Glorot's bound from both widths, He's of relu from the inputs alone. */
static void weights_start_within_the_bound_of_their_activation_and_biases_at_rest(void **state) {
    (void)state;
    for (int a = 0; a < ACTIVATIONS; a++) {
        struct objective_shape shape = two_layers((enum activation)a);
        shape.features = 600;
        shape.start = -0.75;
        struct layout layout = objective_layout(&shape);
        double bound = sqrt(6.0 / (a == ACTIVATION_RELU ? 600 : 604));
        assert_true(layout.tensor[0].bound == bound);
        uint64_t n = layout_parameters(&layout);
        double *start = calloc(n, sizeof *start);
        layout_start(&layout, 0, n, start);
        assert_true(largest(&layout.tensor[0], start) <= bound);
        assert_true(largest(&layout.tensor[0], start) > 0.99 * bound);
        assert_true(largest(&layout.tensor[1], start) > 0.5 * layout.tensor[1].bound);
        assert_true(largest(&layout.tensor[3], start) == 0);
        assert_true(largest(&layout.tensor[4], start) == 0);
        assert_true(start[n - 3] == -0.75 && start[n - 1] == -0.75);
        free(start);
    }
}

static void the_start_follows_from_the_seed(void **state) {
    (void)state;
    struct objective_shape shape = two_layers(ACTIVATION_TANH);
    struct layout layout = objective_layout(&shape);
    double one[71], other[71];
    layout_start(&layout, 0, 71, one);
    layout_start(&layout, 0, 71, other);
    assert_memory_equal(one, other, sizeof one);
    shape.network.seed++;
    layout = objective_layout(&shape);
    layout_start(&layout, 0, 71, other);
    assert_true(one[0] != other[0]);
}

static void a_network_is_read_off_its_layout(void **state) {
    (void)state;
    static const enum objective_kind kinds[] = {OBJECTIVE_SOFTMAX, OBJECTIVE_ORDINAL};
    for (size_t i = 0; i < 2; i++) {
        struct objective_shape shape = two_layers(ACTIVATION_RELU);
        shape.kind = kinds[i];
        shape.start = 0.5;
        struct layout layout = objective_layout(&shape);
        struct objective_shape read = {
            .kind = kinds[i], .features = 6, .network = {.activation = ACTIVATION_RELU}};
        objective_read_layout(&read, &layout);
        assert_int_equal(read.outputs, 3);
        assert_true(read.intercept && read.start == 0.5);
        assert_memory_equal(&read.network, &shape.network, sizeof read.network);
    }
}

/* As many layers as there may be are all of the tensors that there may be. */
static void layers_end_at_the_limit(void **state) {
    (void)state;
    struct objective_shape shape = two_layers(ACTIVATION_GELU);
    shape.network.layers = NETWORK_LAYERS_MAX;
    for (uint32_t i = 0; i < NETWORK_LAYERS_MAX; i++)
        shape.network.units[i] = i + 1;
    struct layout layout = objective_layout(&shape);
    assert_int_equal(layout.count, TENSORS_MAX);
    struct objective_shape read = {
        .kind = shape.kind, .features = 6, .network = {.activation = ACTIVATION_GELU}};
    objective_read_layout(&read, &layout);
    assert_memory_equal(&read.network, &shape.network, sizeof read.network);
}

static void networks_that_cannot_be_have_no_layout(void **state) {
    (void)state;
    struct objective_shape shape = two_layers(ACTIVATION_TANH);
    shape.intercept = false;
    assert_int_equal(objective_layout(&shape).count, 0);
    shape = two_layers(ACTIVATION_TANH);
    shape.network.units[1] = 0;
    assert_int_equal(objective_layout(&shape).count, 0);
    shape = two_layers(ACTIVATION_TANH);
    shape.network.units[0] = shape.network.units[1] = 1u << 31;
    assert_int_equal(objective_layout(&shape).count, 0);
    assert_int_equal(objective_parameters(&shape), 0);
}

/* A layout that comes over the wire may hold any tensors: what is read off it is then another. */
static void a_layout_that_is_no_network_is_not_taken_for_one(void **state) {
    (void)state;
    struct objective_shape shape = two_layers(ACTIVATION_TANH);
    struct layout layout = objective_layout(&shape);
    layout.tensor[1].rows = 7;
    struct objective_shape read = {.kind = shape.kind, .features = 6};
    objective_read_layout(&read, &layout);
    struct layout made = objective_layout(&read);
    assert_false(layout_equal(&made, &layout));
    layout = objective_layout(&shape);
    layout.count--;
    objective_read_layout(&read, &layout);
    made = objective_layout(&read);
    assert_false(layout_equal(&made, &layout));
}

static void terms_of_all_chunks_together_stay_within_64_bits(void **state) {
    (void)state;
    static const struct {
        uint64_t chunks;
        int share;
    } cases[] = {{1, 61}, {2, 60}, {3, 59}, {256, 53}, {257, 52}};
    const struct objective_shape shape = two_layers(ACTIVATION_TANH);
    const int16_t columns[7] = {62, 50, 80, 1023, -1000, -1022, 33};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int16_t *exponents = objective_exponents(&shape, columns, cases[i].chunks);
        for (size_t e = 6; e < 11; e++)
            assert_int_equal(exponents[e], cases[i].share);
        for (size_t j = 0; j < 4; j++)
            assert_int_equal(exponents[j], cases[i].share + columns[j] - 62);
        assert_true(exponents[4] >= -1022 && exponents[5] == -1022);
        free(exponents);
    }
}

static void a_linear_model_keeps_the_exponents_of_its_columns(void **state) {
    (void)state;
    const int16_t columns[4] = {5, -7, 1023, 60};
    struct objective_shape shape = {
        .kind = OBJECTIVE_LOGISTIC, .features = 3, .outputs = 1, .intercept = true};
    int16_t *exponents = objective_exponents(&shape, columns, 10);
    assert_memory_equal(exponents, columns, sizeof columns);
    free(exponents);
}

static void first_bounds_are_one_a_tensor_and_have_room_for_a_chunk(void **state) {
    (void)state;
    struct objective_shape shape = two_layers(ACTIVATION_TANH);
    struct bounds bounds = objective_first_bounds(&shape, 0, 6400, 100);
    assert_int_equal(bounds.count, 6);
    assert_int_equal(bounds.exponent[0], 4);
    for (uint32_t t = 1; t < 6; t++)
        assert_int_equal(bounds.exponent[t], 10); /* 64 rows, and 16 times that */
    shape.network.layers = 0;
    bounds = objective_first_bounds(&shape, 0, 6400, 100);
    assert_int_equal(bounds.count, 1);
    assert_int_equal(bounds.exponent[0], 0);
}

static void slopes_of_activations_are_those_of_their_functions_in_both_precisions(void **state) {
    (void)state;
    const double step = 1e-6, one = 1;
    for (int a = 0; a < ACTIVATIONS; a++) {
        const struct activation_row *row = &activation_rows[a];
        for (double x = -3.05; x < 3; x += .1) {
            const double ends[2] = {x - step, x + step};
            const float x_float = (float)x, one_float = 1;
            double y, slope, values[2];
            float y_float, slope_float;
            row->forward(2, values, ends);
            row->forward(1, &y, &x);
            row->back(1, &slope, &one, row->back_takes_sums ? &x : &y);
            row->forward_float(1, &y_float, &x_float);
            row->back_float(1, &slope_float, &one_float,
                            row->back_takes_sums ? &x_float : &y_float);
            assert_true(fabs((values[1] - values[0]) / (2 * step) - slope) < 1e-8);
            assert_true(fabs(slope_float - slope) < 1e-5 && fabs(y_float - y) < 1e-5);
        }
    }
}

static void activations_are_found_by_their_names(void **state) {
    (void)state;
    for (int a = 0; a < ACTIVATIONS; a++)
        assert_int_equal(activation_from_name(activation_name((enum activation)a)), a);
    assert_int_equal(activation_from_name("sigmoid"), -1);
}

SUITE(network_layout) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_network_is_a_weight_a_layer_and_then_a_bias_a_layer),
        cmocka_unit_test(weights_start_within_the_bound_of_their_activation_and_biases_at_rest),
        cmocka_unit_test(the_start_follows_from_the_seed),
        cmocka_unit_test(a_network_is_read_off_its_layout),
        cmocka_unit_test(layers_end_at_the_limit),
        cmocka_unit_test(networks_that_cannot_be_have_no_layout),
        cmocka_unit_test(a_layout_that_is_no_network_is_not_taken_for_one),
        cmocka_unit_test(terms_of_all_chunks_together_stay_within_64_bits),
        cmocka_unit_test(a_linear_model_keeps_the_exponents_of_its_columns),
        cmocka_unit_test(first_bounds_are_one_a_tensor_and_have_room_for_a_chunk),
        cmocka_unit_test(slopes_of_activations_are_those_of_their_functions_in_both_precisions),
        cmocka_unit_test(activations_are_found_by_their_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
