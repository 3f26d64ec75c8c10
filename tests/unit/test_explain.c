/* Contributions of columns to margins: they add up, and are those of their definition. */
#define _GNU_SOURCE
#include "model/explain.h"
#include "tests/unit/suites.h"
#include "tests/unit/score_fixture.h"

#define FEATURES 3

static const double means[FEATURES] = {0.5, -1, 1e9};
static const uint64_t all[FEATURES] = {0, 1, 2};

static struct model with_means(const struct model *model, const double *mean) {
    struct model copy = *model;
    copy.layout.mean = mean;
    copy.folder = (char *)"the model";
    return copy;
}

static struct explainer *explainer_of(const struct model *model) {
    struct explainer *explainer;
    if (explainer_new(model, &explainer))
        fail_msg("%s", error_text());
    assert_int_equal(explainer_columns(explainer), FEATURES);
    return explainer;
}

static void a_contribution_is_a_weight_times_the_distance_from_the_mean(void **state) {
    (void)state;
    const struct model model = with_means(&softmax, means);
    struct explainer *explainer = explainer_of(&model);
    const uint64_t feature[] = {2, 0}; /* of the second the row has a 0 */
    const double value[] = {1e9 + 0.1, 3};
    double found[3 * FEATURES];
    explainer_row(explainer, feature, value, 2, found);
    for (int k = 0; k < 3; k++) {
        const double *weight = weights + k * FEATURES;
        assert_true(found[k * FEATURES] == weight[0] * 2.5);
        assert_true(found[k * FEATURES + 1] == weight[1]);
        assert_true(found[k * FEATURES + 2] == weight[2] * (1e9 + 0.1 - 1e9));
        assert_true(explainer_base(explainer)[k] ==
                    biases[k] + (weight[0] * 0.5 - weight[1] + weight[2] * 1e9));
    }
    assert_string_equal(explainer_names(explainer)[1], "5");
    explainer_free(explainer);
}

static void outputs_that_share_their_weights_have_the_same_contributions(void **state) {
    (void)state;
    const struct model model = with_means(&ordinal, means);
    struct explainer *explainer = explainer_of(&model);
    double found[2 * FEATURES];
    explainer_row(explainer, all, (double[]){1, 2, 3}, FEATURES, found);
    assert_memory_equal(found, found + FEATURES, FEATURES * sizeof *found);
    assert_true(explainer_base(explainer)[1] - explainer_base(explainer)[0] ==
                biases[2] - biases[1]);
    explainer_free(explainer);
}

static void the_largest_come_by_falling_size(void **state) {
    (void)state;
    const struct model model = with_means(&squared, means);
    struct explainer *explainer = explainer_of(&model);
    uint32_t column[FEATURES] = {9, 9, 9};
    explainer_largest(explainer, (double[]){1, -2, 2}, 2, column);
    assert_true(column[0] == 1 && column[1] == 2 && column[2] == 9);
    explainer_largest(explainer, (double[]){1, -2, 2}, 3, column);
    assert_true(column[0] == 1 && column[1] == 2 && column[2] == 0);
    explainer_free(explainer);
}

static void a_model_without_finite_means_is_refused(void **state) {
    (void)state;
    static const double infinite[FEATURES] = {0, INFINITY, 0};
    struct explainer *explainer;
    struct model model = with_means(&squared, NULL);
    error_clear();
    assert_int_equal(explainer_new(&model, &explainer), ERROR_USAGE);
    assert_non_null(strstr(error_text(), "does not have the means"));
    error_clear();
    model.layout.mean = infinite;
    assert_int_equal(explainer_new(&model, &explainer), ERROR_DATA);
    assert_non_null(strstr(error_text(), "feature 5 is not finite"));
    error_clear();
}

/* ---- networks ---- */

#define OUTPUTS 3
#define UNITS 4

static double parameters[(FEATURES + UNITS + OUTPUTS) * UNITS + 2 * UNITS + OUTPUTS];

static struct model network(enum activation activation, uint32_t layers) {
    static const double mean[FEATURES] = {0.5, -1, 0.25};
    struct model model = with_means(&softmax, mean);
    model.weight = model.bias = NULL;
    model.vector = parameters;
    model.layout.network =
        (struct network){.layers = layers, .units = {UNITS, UNITS}, .activation = activation};
    for (size_t i = 0; i < sizeof parameters / sizeof *parameters; i++)
        parameters[i] = 1.5 * sin(1 + 3.0 * (double)i);
    return model;
}

static double activated(enum activation activation, double a) {
    if (activation == ACTIVATION_TANH)
        return tanh(a);
    if (activation == ACTIVATION_RELU)
        return fmax(a, 0);
    return a / 2 * (1 + tanh(sqrt(2 / acos(-1)) * (a + 0.044715 * a * a * a)));
}

static void margins_by_hand(const struct model *model, const double *x, double *margins) {
    const struct layout vector = model_tensors(&model->layout);
    const uint32_t layers = vector.count / 2;
    double in[UNITS], out[UNITS];
    memcpy(in, x, FEATURES * sizeof *in);
    for (uint32_t l = 0; l < layers; l++) {
        const struct layout_tensor *weight = &vector.tensor[l];
        for (uint32_t u = 0; u < weight->columns; u++) {
            out[u] = parameters[vector.tensor[layers + l].first + u];
            for (uint32_t i = 0; i < weight->rows; i++)
                out[u] += in[i] * parameters[weight->first + i * weight->columns + u];
        }
        for (uint32_t u = 0; u < weight->columns; u++)
            in[u] = l + 1 < layers ? activated(model->layout.network.activation, out[u]) : out[u];
    }
    memcpy(margins, in, OUTPUTS * sizeof *margins);
}

/* The integral by differences at so many points. */
#define POINTS 2000

static void integrate_by_hand(const struct model *model, const double *x, double *found) {
    const double *mean = model->layout.mean, small = 1e-5;
    memset(found, 0, OUTPUTS * FEATURES * sizeof *found);
    for (int point = 0; point < POINTS; point++)
        for (int j = 0; j < FEATURES; j++) {
            double at[FEATURES], above[OUTPUTS], below[OUTPUTS];
            for (int i = 0; i < FEATURES; i++)
                at[i] = mean[i] + (point + 0.5) / POINTS * (x[i] - mean[i]);
            at[j] += small;
            margins_by_hand(model, at, above);
            at[j] -= 2 * small;
            margins_by_hand(model, at, below);
            for (int k = 0; k < OUTPUTS; k++)
                found[k * FEATURES + j] +=
                    (above[k] - below[k]) / (2 * small) / POINTS * (x[j] - mean[j]);
        }
}

static void assert_integrated(enum activation activation, uint32_t layers, double tolerance) {
    const struct model model = network(activation, layers);
    struct explainer *explainer = explainer_of(&model);
    for (int row = 0; row < 8; row++) {
        const double x[FEATURES] = {cos(row), 2 * sin(row), row == 3 ? 0.25 : cos(7.0 * row)};
        double found[OUTPUTS * FEATURES], expected[OUTPUTS * FEATURES], margins[OUTPUTS];
        explainer_row(explainer, all, x, FEATURES, found);
        margins_by_hand(&model, x, margins);
        integrate_by_hand(&model, x, expected);
        for (int k = 0; k < OUTPUTS; k++) {
            double sum = explainer_base(explainer)[k];
            for (int j = 0; j < FEATURES; j++) {
                sum += found[k * FEATURES + j];
                const double error = fabs(found[k * FEATURES + j] - expected[k * FEATURES + j]);
                if (!(error <= tolerance))
                    fail_msg("%s, %u layers: %g", activation_name(activation), layers, error);
            }
            assert_close("the sum", sum, margins[k]);
        }
    }
    explainer_free(explainer);
}

static void those_of_networks_are_integrated_gradients_that_add_up(void **state) {
    (void)state;
    for (uint32_t layers = 1; layers <= 2; layers++) {
        assert_integrated(ACTIVATION_TANH, layers, layers == 1 ? 1e-6 : 1e-3);
        assert_integrated(ACTIVATION_GELU, layers, layers == 1 ? 1e-6 : 1e-3);
        assert_integrated(ACTIVATION_RELU, layers, 2e-2); /* by hand it is not nearer */
    }
}

SUITE(explain) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_contribution_is_a_weight_times_the_distance_from_the_mean),
        cmocka_unit_test(outputs_that_share_their_weights_have_the_same_contributions),
        cmocka_unit_test(the_largest_come_by_falling_size),
        cmocka_unit_test(a_model_without_finite_means_is_refused),
        cmocka_unit_test(those_of_networks_are_integrated_gradients_that_add_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
