/* Margins of networks: those of their layers, one after the other, whatever rows come together. */
#define _GNU_SOURCE
#include "tests/unit/suites.h"
#include "tests/unit/score_fixture.h"

#define FEATURES 3
#define OUTPUTS 3
#define UNITS                                                                                      \
    { 4, 2 }
#define SIZE (FEATURES * 4 + 4 * 2 + 2 * OUTPUTS + 4 + 2 + OUTPUTS)

static double parameters[SIZE];

static struct model network(enum activation activation) {
    struct model model = {.layout = softmax.layout, .vector = parameters};
    model.layout.network = (struct network){.layers = 2, .units = UNITS, .activation = activation};
    for (int i = 0; i < SIZE; i++)
        parameters[i] = sin(1 + i) / 2;
    return model;
}

/* Rows with and without each feature, and one that the model does not have. */
static void fill(uint32_t rows) {
    clear();
    for (uint32_t i = 0; i < rows; i++) {
        add_row(1 + i % 3, NULL);
        if (i % 2)
            add_value(2, cos(i));
        if (i % 5 == 0)
            add_value(4, 1);
        if (i % 3)
            add_value(5, sin(i));
        if (i % 7)
            add_value(9, i / 100.0);
    }
}

static double activated(enum activation activation, double a) {
    if (activation == ACTIVATION_TANH)
        return tanh(a);
    if (activation == ACTIVATION_RELU)
        return fmax(a, 0);
    return a / 2 * (1 + tanh(sqrt(2 / acos(-1)) * (a + 0.044715 * a * a * a)));
}

/* What one layer makes of `in` values. */
static void layer(const double *weight, const double *bias, int in, int out, double *values) {
    double result[4];
    for (int k = 0; k < out; k++) {
        result[k] = bias[k];
        for (int j = 0; j < in; j++)
            result[k] += values[j] * weight[j * out + k];
    }
    memcpy(values, result, (size_t)out * sizeof *result);
}

static void margins_by_hand(enum activation activation, uint32_t row, double values[4]) {
    const double *weight = parameters, *bias = parameters + SIZE - 9;
    memset(values, 0, 4 * sizeof *values);
    for (uint64_t i = table.start[row]; i < table.start[row + 1]; i++)
        for (int j = 0; j < FEATURES; j++)
            if (table.id[i] == ids[j])
                values[j] = table.value[i];
    layer(weight, bias, FEATURES, 4, values);
    for (int k = 0; k < 4; k++)
        values[k] = activated(activation, values[k]);
    layer(weight + 12, bias + 4, 4, 2, values);
    for (int k = 0; k < 2; k++)
        values[k] = activated(activation, values[k]);
    layer(weight + 20, bias + 6, 2, OUTPUTS, values);
}

/* The lines of margins of all rows of the table; free them. */
static char *margins_of(const struct model *model) {
    return predictions_of(model, (struct score_output){.shown = SCORE_MARGINS});
}

static void margins_of_a_network_are_those_of_its_layers(void **state) {
    (void)state;
    for (int activation = 0; activation < ACTIVATIONS; activation++) {
        struct model model = network((enum activation)activation);
        fill(30);
        char *text = margins_of(&model), *at = text;
        for (uint32_t row = 0; row < table.count; row++) {
            double expected[4];
            margins_by_hand((enum activation)activation, row, expected);
            for (int k = 0; k < OUTPUTS; k++)
                assert_close("a margin", strtod(at, &at), expected[k]);
        }
        free(text);
    }
}

/* The mock of a source hands the table out in two parts; each is scored in blocks. */
static void margins_do_not_depend_on_the_rows_beside(void **state) {
    (void)state;
    for (int activation = 0; activation < ACTIVATIONS; activation++) {
        struct model model = network((enum activation)activation);
        model.layout.network.precision = activation % 2 ? PRECISION_FLOAT : PRECISION_DOUBLE;
        fill(ROWS_MAX);
        char *all = margins_of(&model), *at = all;
        for (uint32_t row = 0; row < ROWS_MAX; row += 13) {
            fill(ROWS_MAX);
            uint64_t first = table.start[row], count = table.start[row + 1] - first;
            memmove(table.id, table.id + first, count * sizeof *table.id);
            memmove(table.value, table.value + first, count * sizeof *table.value);
            table.start[1] = count;
            table.count = 1;
            char *one = margins_of(&model);
            assert_memory_equal(at, one, strlen(one));
            free(one);
            for (int skipped = 0; skipped < 13 && at; skipped++)
                at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL;
        }
        free(all);
    }
}

static void features_that_a_network_does_not_have_are_ignored_and_counted(void **state) {
    (void)state;
    struct model model = network(ACTIVATION_TANH);
    fill(50);
    assert_int_equal(figures_of(&model).unseen_features, 10);
}

static void figures_of_a_network_are_those_of_its_margins(void **state) {
    (void)state;
    struct model model = network(ACTIVATION_GELU);
    double right = 0, loss = 0;
    fill(50);
    for (uint32_t row = 0; row < table.count; row++) {
        double margins[4];
        margins_by_hand(ACTIVATION_GELU, row, margins);
        double sum = exp(margins[0]) + exp(margins[1]) + exp(margins[2]);
        uint32_t best = margins[1] > margins[0] ? 1 : 0;
        best = margins[2] > margins[best] ? 2 : best;
        right += best == row % 3 && row % 3 < 2; /* no class is called 3 */
        loss += row % 3 < 2 ? log(sum) - margins[row % 3] : 0;
    }
    struct score_figures figures = figures_of(&model);
    assert_close("accuracy", figures.accuracy, right / 50);
    assert_close("loss", figures.loss, loss / 34);
    assert_int_equal(figures.unseen_labels, 16);
}

static void values_too_large_for_a_network_are_refused(void **state) {
    (void)state;
    struct model model = network(ACTIVATION_RELU);
    struct source_options options = {0};
    struct score_figures figures;
    char *paths[] = {(char *)"data", NULL};
    clear();
    add_row(1, NULL);
    add_value(2, 1e308);
    add_value(9, 1e308);
    for (int i = 0; i < SIZE; i++)
        parameters[i] = 9;
    assert_int_equal(score_files(&model, paths, NULL, &options, 1, NULL, &figures), ERROR_DATA);
    assert_non_null(strstr(error_text(), "too large for this model"));
}

static void thresholds_of_ordered_classes_share_the_last_weights(void **state) {
    (void)state;
    static const double shared[] = {2, 1, 0.5, /* W1 */ 3, /* W2 */ 0, /* b1 */ -1, -4 /* b2 */};
    struct model model = {.layout = ordinal.layout, .vector = shared};
    model.layout.network =
        (struct network){.layers = 1, .units = {1}, .activation = ACTIVATION_RELU};
    clear();
    add_row(1, NULL);
    add_value(2, 0.5);
    add_value(5, 1);
    char *text = margins_of(&model);
    assert_string_equal(text, "5 2\n");
    free(text);
}

SUITE(score_network) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(margins_of_a_network_are_those_of_its_layers),
        cmocka_unit_test(margins_do_not_depend_on_the_rows_beside),
        cmocka_unit_test(features_that_a_network_does_not_have_are_ignored_and_counted),
        cmocka_unit_test(figures_of_a_network_are_those_of_its_margins),
        cmocka_unit_test(values_too_large_for_a_network_are_refused),
        cmocka_unit_test(thresholds_of_ordered_classes_share_the_last_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
