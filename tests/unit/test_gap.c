/* How far a run that claims to be at an optimum is above it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "tests/unit/suites.h"
#include "coordinator/job/key.h"
#include "coordinator/run/convergence.h"

enum { COLUMNS = 2 };

static double means[COLUMNS] = {0, 1e9};
static double variances[COLUMNS] = {4, 1e12};
static uint64_t nonzero[COLUMNS] = {100, 100};
static const struct moments moments = {means, variances, nonzero, 100, MOMENTS_EXACT};
static struct label_summary targets;
static const struct set_info data = {.rows = 100, .features = COLUMNS, .targets = &targets};

static int two_units_wide(void **state) {
    (void)state;
    for (size_t i = 0; i < LABEL_QUANTILES; i++)
        targets.quantile[i] = 2.5 * (double)i / (LABEL_QUANTILES - 1);
    return 0;
}

static void assert_near(double found, double expected) {
    assert_true(fabs(found - expected) <= 1e-12 * fabs(expected));
}

static const struct objective_shape squared = {.kind = OBJECTIVE_SQUARED, .outputs = 1};

static struct gap_settings settings_for(const struct objective_shape *shape) {
    bool given[512] = {false};
    const struct job job = {.gap_tolerance = 1e-3, .given = given};
    return gap_settings_of(&job, shape, &data);
}

/* Gradients of columns that are not scaled are not centred. */
static void columns_count_in_their_own_scale(void **state) {
    (void)state;
    double squares[] = {4, INFINITY};
    struct column_scaling columns[2];
    gap_unscaled(&data, squares);
    assert_near(squares[0], 4);
    assert_near(squares[1], 0);
    columns[0] = (struct column_scaling){.mean = 0, .scale = 0.5, .penalty = 1};
    columns[1] = (struct column_scaling){.mean = 1e9, .scale = 1e-6, .penalty = 3};
    gap_measure(&data, &moments, columns);
    assert_near(columns[0].square, 1);
    assert_near(columns[1].square, 1);
}

/* A row of 3,000 units, and 150 rows: the bias is one of 150 directions that the columns make. */
static void a_bias_that_columns_can_replace_hardly_curves(void **state) {
    (void)state;
    struct gap_settings settings = settings_for(&squared);
    const double squares[] = {1000, 2000};
    struct set_info wide = {.rows = 2, .features = COLUMNS};
    assert_near(gap_bias_share(&settings, &wide, 1e-4, squares), 1e-4 / (1e-4 + 1500));
    wide.rows = 200;
    assert_near(gap_bias_share(&settings, &wide, 1e-4, squares), 0.99);
    assert_near(gap_bias_share(&settings, &wide, 1e4, squares), 1e4 / (1e4 + 15));
    wide.rows = 2;
    assert_near(gap_bias_share(&settings, &wide, 0, squares), 1);
    assert_near(settings.bias_share, 1);
}

static void l2_alone_is_asked_where_rows_curve_little_beyond_it(void **state) {
    (void)state;
    struct gap_settings settings = settings_for(&squared);
    struct set_info wide = {.rows = 2, .features = COLUMNS};
    assert_true(gap_by_columns(&settings));
    assert_true(gap_is_by_l2(&settings, &wide, 0.5, 8));
    assert_false(gap_is_by_l2(&settings, &wide, 0.49, 8));
    assert_false(gap_is_by_l2(&settings, &wide, 0, 0));
    wide.rows = 3;
    assert_false(gap_is_by_l2(&settings, &wide, 0.5, 8));
    settings.mean_square = 8;
    assert_false(gap_by_columns(&settings));
}

static void a_loss_with_sharp_corners_curves_as_it_does_over_a_unit(void **state) {
    (void)state;
    const struct objective_shape sharp = {
        .kind = OBJECTIVE_HUBER, .outputs = 1, .loss = {.value = {1e-6}}};
    struct gap_settings settings = settings_for(&sharp);
    assert_near(settings.second, 1);
    assert_near(settings.typical_second, 1e-6);
    assert_false(settings.newton); /* most rows have no curvature in P */
}

static void tolerances_wait_where_they_are_left_or_the_gap_is_given(void **state) {
    (void)state;
    bool given[512] = {false};
    struct job job = {
        .gradient_tolerance = 1e-5, .loss_tolerance = 1e-9, .gap_tolerance = 1e-6, .given = given};
    assert_true(gap_settings_of(&job, &squared, &data).waited_for);
    given[key_find("loss_tolerance") - keys] = true;
    assert_false(gap_settings_of(&job, &squared, &data).waited_for);
    assert_false(gap_settings_of(&job, &squared, &data).asked_for);
    given[key_find("gap_tolerance") - keys] = true;
    assert_true(gap_settings_of(&job, &squared, &data).waited_for);
    assert_true(gap_settings_of(&job, &squared, &data).asked_for);
}

static void a_gap_is_small_against_the_loss_or_what_its_labels_make_of_one(void **state) {
    (void)state;
    const struct objective_shape logistic = {.kind = OBJECTIVE_LOGISTIC, .outputs = 1};
    struct gap_settings settings = settings_for(&logistic);
    struct gap gap =
        gap_of(&settings, &(struct coordinator_view){.answer = {.loss = .5, .gap_estimate = 4e-4}});
    assert_true(gap.known && gap_is_small(&gap));
    gap =
        gap_of(&settings, &(struct coordinator_view){.answer = {.loss = .5, .gap_estimate = 6e-4}});
    assert_false(gap_is_small(&gap));
    gap = gap_of(&settings,
                 &(struct coordinator_view){.answer = {.loss = 1e-9, .gap_estimate = 1e-9}});
    assert_true(gap_is_small(&gap));
    gap = gap_of(&settings, &(struct coordinator_view){.answer = {.loss = 1, .gap_estimate = NAN}});
    assert_true(!gap.known && gap_is_small(&gap));
    double least = settings_for(&squared).least;
    for (size_t i = 0; i < LABEL_QUANTILES; i++)
        targets.quantile[i] *= 1e-4;
    assert_true(settings_for(&squared).least < 1e-7 * least);
}

static void networks_and_plug_ins_have_none(void **state) {
    (void)state;
    struct objective_shape shape = squared;
    const struct objective_plugin plugin = {0};
    assert_true(settings_for(&shape).known);
    shape.plugin = &plugin;
    assert_false(settings_for(&shape).known);
    shape = squared;
    shape.network.layers = 1;
    assert_false(settings_for(&shape).known);
}

SUITE(gap) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_count_in_their_own_scale),
        cmocka_unit_test(a_bias_that_columns_can_replace_hardly_curves),
        cmocka_unit_test(l2_alone_is_asked_where_rows_curve_little_beyond_it),
        cmocka_unit_test(a_loss_with_sharp_corners_curves_as_it_does_over_a_unit),
        cmocka_unit_test(tolerances_wait_where_they_are_left_or_the_gap_is_given),
        cmocka_unit_test(a_gap_is_small_against_the_loss_or_what_its_labels_make_of_one),
        cmocka_unit_test(networks_and_plug_ins_have_none),
    };
    return cmocka_run_group_tests(tests, two_units_wide, NULL);
}
