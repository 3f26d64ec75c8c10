/* How far a run that claims to be at an optimum is above it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>

#include "tests/unit/suites.h"
#include "coordinator/run/convergence.h"

enum { COLUMNS = 2 };

static double means[COLUMNS] = {0, 1e9};
static double variances[COLUMNS] = {4, 1e12};
static uint64_t nonzero[COLUMNS] = {100, 100};
static const struct moments moments = {means, variances, nonzero, 100};
static struct label_summary targets;
static const struct set_info data = {.rows = 100, .features = COLUMNS, .targets = &targets};

static int two_units_wide(void **state) {
    (void)state;
    for (size_t i = 0; i < LABEL_QUANTILES; i++)
        targets.quantile[i] = 2.5 * (double)i / (LABEL_QUANTILES - 1);
    return 0;
}

static double estimate(struct objective_shape shape, double l2,
                       const struct column_scaling *columns, const double *gradient) {
    shape.features = COLUMNS;
    shape.outputs = 1;
    struct layout layout = objective_layout(&shape);
    return gap_by_columns(&(struct gap_problem){.shape = &shape,
                                                .layout = &layout,
                                                .data = &data,
                                                .moments = &moments,
                                                .columns = columns,
                                                .l2 = l2,
                                                .loss = 1},
                          gradient);
}

static void assert_near(double found, double expected) {
    assert_true(fabs(found - expected) <= 1e-12 * fabs(expected));
}

static const struct objective_shape squared = {.kind = OBJECTIVE_SQUARED};

static void each_column_counts_in_its_own_scale(void **state) {
    (void)state;
    const double gradient[] = {3, 1e6};
    assert_near(estimate(squared, 0.5, NULL, gradient), 5 * (9 / 4.5 + 1e12 / (1e12 + 1e18 + 0.5)));
}

static void an_intercept_takes_out_what_columns_share_with_it(void **state) {
    (void)state;
    struct objective_shape shape = squared;
    shape.intercept = true;
    /* All of the gradient by the second weight is its mean times that by the intercept. */
    assert_near(estimate(shape, 0.5, NULL, (double[]){3, 2e6, 2e-3}), 5 * (9 / 4.5 + 4e-6));
}

static void scaling_scales_the_curvature(void **state) {
    (void)state;
    const struct column_scaling columns[COLUMNS] = {{0, 0.5, 1}, {1e9, 1e-6, 3}};
    struct objective_shape shape = squared;
    shape.intercept = true;
    assert_near(estimate(shape, 0.5, columns, (double[]){3, 2, 0}), 5 * (9 / 1.5 + 4 / 2.5));
}

static void a_loss_with_sharp_corners_curves_as_it_does_over_a_unit(void **state) {
    (void)state;
    const struct objective_shape sharp = {.kind = OBJECTIVE_HUBER, .loss = {.value = {1e-6}}};
    double found = estimate(sharp, 0, NULL, (double[]){1e-6, 0});
    assert_near(found, 0.5 * 1e-12 / (1e-6 * 4)); /* not the tenfold of 0.5 * 1e-12 / 4 */
}

static void a_newton_step_tells_the_fall_that_is_left(void **state) {
    (void)state;
    struct gap_vectors vectors = {0};
    gap_vector_take(&vectors.gradient, 2, 0, 1, (double[]){3});
    assert_false(gap_vector_is_whole(&vectors.gradient));
    gap_vector_take(&vectors.gradient, 2, 1, 1, (double[]){-2});
    assert_true(gap_vector_is_whole(&vectors.gradient));
    gap_vector_take(&vectors.newton, 2, 0, 2, (double[]){1, -4});
    assert_near(gap_by_newton(&vectors), 11);
    gap_vectors_release(&vectors);
    assert_false(gap_vector_is_whole(&vectors.gradient));
}

static void a_gap_is_small_against_the_loss_or_what_its_labels_make_of_one(void **state) {
    (void)state;
    const struct objective_shape logistic = {.kind = OBJECTIVE_LOGISTIC};
    struct gap gap = gap_of(&logistic, &data, 0.5, 4e-4);
    assert_true(gap_is_small(&gap));
    gap = gap_of(&logistic, &data, 0.5, 6e-4);
    assert_false(gap_is_small(&gap));
    gap = gap_of(&logistic, &data, 1e-9, 1); /* the loss is all that is left */
    assert_true(gap.estimate == 1e-9 && gap_is_small(&gap));
    gap = gap_of(&squared, &data, 1e-9, 1);
    assert_true(gap_is_small(&gap));
    for (size_t i = 0; i < LABEL_QUANTILES; i++)
        targets.quantile[i] *= 1e-4;
    gap = gap_of(&squared, &data, 1e-9, 1);
    assert_false(gap_is_small(&gap));
}

static void networks_and_plug_ins_have_none(void **state) {
    (void)state;
    struct objective_shape shape = squared;
    const struct objective_plugin plugin = {0};
    assert_true(gap_is_known(&shape) && gap_trusts_newton(&shape));
    shape.kind = OBJECTIVE_HUBER;
    assert_true(gap_is_known(&shape) && !gap_trusts_newton(&shape));
    shape.plugin = &plugin;
    assert_false(gap_is_known(&shape));
    shape = squared;
    shape.network.layers = 1;
    assert_false(gap_is_known(&shape));
}

SUITE(gap) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_column_counts_in_its_own_scale),
        cmocka_unit_test(an_intercept_takes_out_what_columns_share_with_it),
        cmocka_unit_test(scaling_scales_the_curvature),
        cmocka_unit_test(a_loss_with_sharp_corners_curves_as_it_does_over_a_unit),
        cmocka_unit_test(a_newton_step_tells_the_fall_that_is_left),
        cmocka_unit_test(a_gap_is_small_against_the_loss_or_what_its_labels_make_of_one),
        cmocka_unit_test(networks_and_plug_ins_have_none),
    };
    return cmocka_run_group_tests(tests, two_units_wide, NULL);
}
