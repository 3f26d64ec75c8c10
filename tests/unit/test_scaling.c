/* The scaling that a job is trained in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "tests/unit/suites.h"
#include "base/error.h"
#include "coordinator/job/scaling.h"

enum { COLUMNS = 3, ROWS = 1000 };

static const uint64_t ids[COLUMNS] = {4, 9, 11};

/* Of Σ|value| just below and just above a mean of 100. */
enum { BELOW = 62 - 17, ABOVE = 62 - 18 };
static const int16_t exponents[COLUMNS + 1] = {BELOW, BELOW, BELOW, BELOW};
static const struct set_info data = {.rows = ROWS,
                                     .values = COLUMNS * ROWS,
                                     .features = COLUMNS,
                                     .feature_id = ids,
                                     .exponent = exponents};
static const struct objective_shape logistic = {
    .kind = OBJECTIVE_LOGISTIC, .features = COLUMNS, .outputs = 1, .intercept = true};

/* A column far from 0, a rare one of ones, a constant one. */
static double means[COLUMNS] = {2000, 0.01, 7};
static double variances[COLUMNS] = {25, 0.0099, 0};
static uint64_t nonzero[COLUMNS] = {ROWS, 10, ROWS};
static const struct moments moments = {means, variances, nonzero, ROWS, MOMENTS_EXACT};

static struct scaling chosen(const struct job *job, const struct objective_shape *shape) {
    struct scaling scaling;
    assert_int_equal(scaling_choose(job, &data, shape, PRECONDITION_NONE, &moments, NULL, &scaling),
                     0);
    return scaling;
}

static void assert_near(double found, double expected) {
    assert_true(fabs(found - expected) <= 1e-12 * fabs(expected));
}

static void standardised_columns_have_deviation_1_and_are_regularised_alike(void **state) {
    (void)state;
    const struct job job = {
        .standardise = true, .precondition = PRECONDITION_OFF, .l2 = {.value = 0.5}};
    struct scaling scaling = chosen(&job, &logistic);
    assert_false(scaling.diagonal);
    for (unsigned j = 0; j < COLUMNS; j++) {
        assert_near(scaling.columns[j].mean, means[j]);
        assert_true(scaling.columns[j].penalty == 1);
    }
    assert_near(scaling.columns[0].scale, 0.2);
    assert_near(scaling.columns[1].scale, 1 / sqrt(0.0099));
    assert_true(scaling.columns[2].scale == 1);
    scaling_release(&scaling);
}

static void bytes_are_0_to_1_for_networks_alone(void **state) {
    (void)state;
    struct set_info images = data;
    struct job job = {.precondition = PRECONDITION_OFF, .trains = TRAINS_NETWORK};
    struct scaling scaling;
    for (int network = 0; network < 2; network++)
        for (int standardised = 0; standardised < 2; standardised++)
            for (int bytes = 0; bytes < 2; bytes++) {
                job.trains = network ? TRAINS_NETWORK : OBJECTIVE_LOGISTIC;
                job.standardise = standardised;
                images.type = bytes ? VALUE_BYTE : VALUE_FLOAT;
                assert_int_equal(scaling_choose(&job, &images, &logistic, PRECONDITION_NONE,
                                                &moments, NULL, &scaling),
                                 0);
                double rest = network && bytes ? 1 / 255.0 : 1;
                assert_near(scaling.columns[0].scale, standardised ? 0.2 : rest);
                assert_near(scaling.columns[2].scale, rest); /* it is constant */
                assert_true(scaling.columns[0].mean == means[0]);
                assert_true(scaling.columns[0].penalty == 1);
                scaling_release(&scaling);
            }
}

/* With h = 1/4 for the logistic loss. The weights themselves are regularised. */
static void a_diagonal_has_the_curvature_of_centred_columns(void **state) {
    (void)state;
    const struct job job = {.precondition = PRECONDITION_DIAGONAL, .l2 = {.value = 0.01}};
    struct scaling scaling = chosen(&job, &logistic);
    assert_true(scaling.diagonal);
    const double curvature[COLUMNS] = {25 + 0.04, 0.0099 / sqrt(0.01) + 0.04, 0.04};
    for (unsigned j = 0; j < COLUMNS; j++) {
        assert_near(scaling.columns[j].mean, means[j]);
        assert_near(scaling.columns[j].scale, 1 / sqrt(curvature[j]));
        assert_near(scaling.columns[j].penalty, 1 / curvature[j]);
    }
    scaling_release(&scaling);
}

static void a_standardised_diagonal_regularises_what_is_standardised(void **state) {
    (void)state;
    const struct job job = {
        .standardise = true, .precondition = PRECONDITION_DIAGONAL, .l2 = {.value = 0.01}};
    struct scaling scaling = chosen(&job, &logistic);
    for (unsigned j = 0; j < COLUMNS - 1; j++)
        assert_near(scaling.columns[j].penalty,
                    variances[j] * scaling.columns[j].scale * scaling.columns[j].scale);
    assert_near(scaling.columns[0].scale, 1 / sqrt(25 + 0.04 * 25));
    scaling_release(&scaling);
}

static void without_an_intercept_nothing_is_shifted(void **state) {
    (void)state;
    struct objective_shape shape = logistic;
    const struct job diagonal = {.precondition = PRECONDITION_DIAGONAL};
    const struct job standardised = {.standardise = true, .precondition = PRECONDITION_OFF};
    shape.intercept = false;
    struct scaling scaling = chosen(&diagonal, &shape);
    assert_true(scaling.columns[0].mean == 0);
    assert_near(scaling.columns[0].scale, 1 / sqrt(2000.0 * 2000 + 25));
    scaling_release(&scaling);
    scaling = chosen(&standardised, &shape);
    assert_true(scaling.columns[0].mean == 0);
    assert_near(scaling.columns[0].scale, 0.2);
    scaling_release(&scaling);
}

static void columns_of_a_network_are_centred_and_keep_their_scale(void **state) {
    (void)state;
    const struct job job = {.trains = TRAINS_NETWORK, .precondition = PRECONDITION_AUTO};
    assert_true(scaling_needs_moments(&job, &data, PRECONDITION_NONE));
    struct scaling scaling = chosen(&job, &logistic);
    assert_false(scaling.diagonal);
    for (unsigned j = 0; j < COLUMNS; j++) {
        assert_true(scaling.columns[j].mean == means[j]);
        assert_true(scaling.columns[j].scale == 1 && scaling.columns[j].penalty == 1);
    }
    scaling_release(&scaling);
}

/* A column that is always there has its deviation, another one its values that are not 0. */
static void columns_of_minibatches_have_units_of_their_own(void **state) {
    (void)state;
    struct objective_shape shape = logistic;
    const struct job job = {.precondition = PRECONDITION_OFF, .optimizer = JOB_DOWNPOUR};
    double small[COLUMNS] = {2000, 0.0005, 7};  /* ten rows of a thousand have 0.05 */
    double varies[COLUMNS] = {25, 2.475e-5, 0}; /* 0.01·0.05² less the square of the mean */
    const struct moments found = {small, varies, nonzero, ROWS, MOMENTS_EXACT};
    struct set_info floats = data;
    struct scaling scaling;
    assert_false(scaling_needs_moments(&job, &data, PRECONDITION_NONE)); /* they are all 1 */
    floats.type = VALUE_FLOAT;
    assert_true(scaling_needs_moments(&job, &floats, PRECONDITION_NONE));
    for (int intercept = 0; intercept < 2; intercept++) {
        shape.intercept = intercept;
        assert_int_equal(
            scaling_choose(&job, &floats, &shape, PRECONDITION_NONE, &found, NULL, &scaling), 0);
        const double unit[COLUMNS] = {intercept ? 5 : sqrt(2000.0 * 2000 + 25), 0.05, 7};
        for (unsigned j = 0; j < COLUMNS; j++) {
            assert_true(scaling.columns[j].mean == (intercept && j == 0 ? 2000 : 0));
            assert_near(scaling.columns[j].scale, 1 / unit[j]);
            assert_near(scaling.columns[j].penalty, 1 / (unit[j] * unit[j]));
        }
        assert_int_equal(scaling_form(&scaling, &data, 0), 8192);
        scaling_release(&scaling);
    }
}

static void columns_of_codes_and_those_beyond_all_scales_stay_as_they_are(void **state) {
    (void)state;
    const struct job job = {.precondition = PRECONDITION_AUTO, .optimizer = JOB_DOWNPOUR};
    double rare[COLUMNS] = {0.01, 0.001, 0}, of_ones[COLUMNS] = {0.0099, 0.000999, 0};
    double beyond[COLUMNS] = {0.0099, INFINITY, 1e-320};
    uint64_t some[COLUMNS] = {10, 1, 0};
    const struct moments codes = {rare, of_ones, some, ROWS, MOMENTS_EXACT},
                         odd = {rare, beyond, some, ROWS, MOMENTS_EXACT};
    const struct moments *const either[] = {&codes, &odd};
    struct set_info thin = data;
    struct scaling scaling;
    thin.values = 11;
    thin.type = VALUE_FLOAT;
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(
            scaling_choose(&job, &thin, &logistic, PRECONDITION_NONE, either[i], NULL, &scaling),
            0);
        assert_null(scaling.columns);
    }
}

/* L-BFGS that follows has coordinates in which l2 is even; networks and these keys have others. */
static void units_are_for_minibatches_alone_of_linear_models(void **state) {
    (void)state;
    const struct job others[] = {
        {.optimizer = JOB_LBFGS, .start = JOB_START_DOWNPOUR},
        {.optimizer = JOB_DOWNPOUR, .standardise = true},
        {.optimizer = JOB_DOWNPOUR, .trains = TRAINS_NETWORK},
        {.optimizer = JOB_DOWNPOUR, .trains = TRAINS_PLUGIN},
        {.optimizer = JOB_DOWNPOUR, .precondition = PRECONDITION_DIAGONAL},
    };
    const struct job own = {.optimizer = JOB_DOWNPOUR};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(job_has_units(&others[i]));
    assert_true(job_has_units(&own));
}

static void a_column_beyond_all_scales_is_named(void **state) {
    (void)state;
    const struct job job = {.standardise = true, .precondition = PRECONDITION_OFF};
    const struct job automatic = {.precondition = PRECONDITION_AUTO};
    double odd[COLUMNS] = {1, INFINITY, 1};
    const struct moments found = {means, odd, nonzero, ROWS, MOMENTS_EXACT};
    struct scaling scaling;
    assert_int_equal(
        scaling_choose(&job, &data, &logistic, PRECONDITION_NONE, &found, NULL, &scaling),
        ERROR_DATA);
    assert_non_null(strstr(error_text(), "feature 9 "));
    assert_null(scaling.columns);
    error_clear();
    assert_int_equal(
        scaling_choose(&automatic, &data, &logistic, PRECONDITION_NONE, &found, NULL, &scaling), 0);
    assert_null(scaling.columns);
}

static void a_diagonal_is_chosen_where_columns_are_badly_scaled_and_have_values(void **state) {
    (void)state;
    const struct job job = {.precondition = PRECONDITION_AUTO};
    const struct job standardised = {.precondition = PRECONDITION_AUTO, .standardise = true};
    double alike[COLUMNS] = {25, 1, 4}, apart[COLUMNS] = {25, 1e-4, 4};
    uint64_t all[COLUMNS] = {ROWS, ROWS, ROWS};
    const struct moments level = {means, alike, all, ROWS, MOMENTS_EXACT},
                         steep = {means, apart, all, ROWS, MOMENTS_EXACT};
    struct set_info thin = data;
    struct scaling scaling;
    thin.values = 99 * COLUMNS;
    assert_true(scaling_needs_moments(&job, &data, PRECONDITION_NONE));
    assert_false(scaling_needs_moments(&job, &data, PRECONDITION_FULL));
    assert_false(scaling_needs_moments(&job, &thin, PRECONDITION_NONE));
    assert_true(scaling_needs_moments(&standardised, &thin, PRECONDITION_FULL));
    assert_int_equal(
        scaling_choose(&job, &data, &logistic, PRECONDITION_NONE, &steep, NULL, &scaling), 0);
    assert_true(scaling.diagonal && scaling.columns);
    scaling_release(&scaling);
    assert_int_equal(
        scaling_choose(&job, &data, &logistic, PRECONDITION_NONE, &level, NULL, &scaling), 0);
    assert_true(!scaling.diagonal && !scaling.columns);
    const struct job sparse = {.precondition = PRECONDITION_AUTO, .l1 = {.value = 0.1}};
    assert_int_equal(
        scaling_choose(&sparse, &data, &logistic, PRECONDITION_NONE, &level, NULL, &scaling), 0);
    assert_true(scaling.diagonal && scaling.columns);
    scaling_release(&scaling);
    const struct moments *const either[] = {&level, &steep};
    for (size_t i = 0; i < 2; i++) { /* standardised columns are not apart */
        assert_int_equal(scaling_choose(&standardised, &data, &logistic, PRECONDITION_NONE,
                                        either[i], NULL, &scaling),
                         0);
        assert_true(!scaling.diagonal && scaling.columns);
        assert_true(scaling.columns[0].penalty == 1);
        scaling_release(&scaling);
    }
}

static void a_diagonal_is_chosen_among_words_where_a_number_is_large(void **state) {
    (void)state;
    const struct job job = {.precondition = PRECONDITION_AUTO};
    const int16_t large[COLUMNS + 1] = {BELOW, ABOVE, BELOW, BELOW};
    double alike[COLUMNS] = {25, 1, 4}, apart[COLUMNS] = {25, 1e-4, 4};
    const struct moments level = {means, alike, nonzero, ROWS, MOMENTS_EXACT};
    const struct moments steep = {means, apart, nonzero, ROWS, MOMENTS_EXACT};
    struct set_info words = data;
    words.values = COLUMNS;
    assert_false(scaling_needs_moments(&job, &words, PRECONDITION_NONE));
    words.exponent = large;
    assert_true(scaling_needs_moments(&job, &words, PRECONDITION_NONE));
    struct scaling scaling;
    assert_int_equal(
        scaling_choose(&job, &words, &logistic, PRECONDITION_NONE, &level, NULL, &scaling), 0);
    assert_false(scaling.diagonal);
    assert_int_equal(
        scaling_choose(&job, &words, &logistic, PRECONDITION_NONE, &steep, NULL, &scaling), 0);
    assert_true(scaling.diagonal);
    scaling_release(&scaling);
}

SUITE(scaling) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(standardised_columns_have_deviation_1_and_are_regularised_alike),
        cmocka_unit_test(bytes_are_0_to_1_for_networks_alone),
        cmocka_unit_test(a_diagonal_has_the_curvature_of_centred_columns),
        cmocka_unit_test(a_standardised_diagonal_regularises_what_is_standardised),
        cmocka_unit_test(without_an_intercept_nothing_is_shifted),
        cmocka_unit_test(columns_of_a_network_are_centred_and_keep_their_scale),
        cmocka_unit_test(columns_of_minibatches_have_units_of_their_own),
        cmocka_unit_test(columns_of_codes_and_those_beyond_all_scales_stay_as_they_are),
        cmocka_unit_test(units_are_for_minibatches_alone_of_linear_models),
        cmocka_unit_test(a_column_beyond_all_scales_is_named),
        cmocka_unit_test(a_diagonal_is_chosen_where_columns_are_badly_scaled_and_have_values),
        cmocka_unit_test(a_diagonal_is_chosen_among_words_where_a_number_is_large),
    };
    return cmocka_run_group_tests_name("scaling", tests, NULL, NULL);
}
