#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/suites.h"
#include "numeric/fixed.h"
#include "numeric/setup.h"
#include "tests/unit/canned.h"

static const struct objective_shape logistic = CANNED_SHAPE(LOGISTIC, 1, true, 0);
static const struct objective_shape squared = CANNED_SHAPE(SQUARED, 1, true, 0);
static const struct objective_shape softmax = CANNED_SHAPE(SOFTMAX, 4, true, 0);

static double gradient[CANNED_PARAMETERS];
static long double expected[CANNED_PARAMETERS];

static void badly_scaled_columns_keep_their_precision(void **state) {
    (void)state;
    double scale[CANNED_FEATURES];
    for (int j = 0; j < CANNED_FEATURES; j++)
        scale[j] = j % 3 == 0 ? 1e-12 : j % 3 == 1 ? 1 : 1e12;
    const struct objective_shape shapes[] = {logistic, squared, softmax};
    for (int s = 0; s < 3; s++)
        for (int dense = 0; dense < 2; dense++)
            for (int type = VALUE_FLOAT; type <= VALUE_DOUBLE; type++) {
                struct canned *canned =
                    canned_new(shapes[s], dense, (enum value_type)type, scale, 5);
                int b = shapes[s].kind == OBJECTIVE_SQUARED ? 6 : 0;
                canned_reference(canned, expected);
                struct objective_result result = canned_gradient(canned, false, b, gradient);
                assert_false(result.exceeded);
                for (uint64_t p = 0; p < objective_parameters(&shapes[s]); p++) {
                    long double room =
                        1e-12L * canned->absolute_sum[p / shapes[s].outputs] * fixed_power(b);
                    assert_true(fabsl(gradient[p] - expected[p]) <= room);
                }
                free(canned);
            }
}

/* One row with one value 1, so that the margin is the parameter. */
static struct objective_result at_margins(enum objective_kind kind, uint32_t outputs,
                                          const double *margins, double label, int b,
                                          int64_t *sum) {
    struct objective_shape shape = {
        .kind = kind, .features = 1, .outputs = outputs, .loss = objective_defaults(kind)};
    struct objective_scale scale = {.uniform = 50, .bounds = bounds_of_one(b)};
    const uint32_t start[] = {0, 1}, feature[] = {0}, listed[] = {0, 0, 1}, class[] = {0};
    const struct label_lists lists = {2, listed, class};
    struct rows rows = {.count = 1,
                        .features = 1,
                        .values = 1,
                        .type = VALUE_ONES,
                        .start = start,
                        .feature = feature,
                        .label = &label,
                        .lists = &lists};
    struct objective_scratch *scratch = objective_scratch_new(&shape);
    struct objective_result result;
    objective_block(&shape, &scale, &rows, margins, sum, scratch, &result);
    objective_scratch_free(scratch);
    return result;
}

static void assert_close(double value, long double reference) {
    assert_true(fabsl(value - reference) <= 4e-16L * fabsl(reference));
}

static void logistic_losses_keep_their_digits_at_any_margin(void **state) {
    (void)state;
    for (double m = -700; m <= 700; m += 3.7) {
        struct objective_result result = at_margins(OBJECTIVE_LOGISTIC, 1, &m, 1, 0, NULL);
        assert_close(result.loss, log1pl(expl(-(long double)m)));
        assert_close(result.maxima.value[0], 1 / (1 + expl((long double)m)));
    }
}

static void softmax_losses_keep_their_digits_when_tiny(void **state) {
    (void)state;
    for (double m = 0; m <= 700; m += 3.7) {
        double margins[3] = {m, 0, -1};
        long double others = expl(-(long double)m) + expl(-(long double)m - 1);
        struct objective_result result = at_margins(OBJECTIVE_SOFTMAX, 3, margins, 0, 0, NULL);
        assert_close(result.loss, log1pl(others));
        assert_close(result.maxima.value[0], others / (1 + others));
    }
}

static void huge_margins_do_not_overflow(void **state) {
    (void)state;
    int64_t sum[2] = {0, 0};
    double m = -1e300;
    struct objective_result result = at_margins(OBJECTIVE_LOGISTIC, 1, &m, 1, 0, sum);
    assert_true(result.loss == 1e300 && result.maxima.value[0] == 1 && !result.exceeded);
    double margins[2] = {1e5, -1e5};
    result = at_margins(OBJECTIVE_SOFTMAX, 2, margins, 1, 0, sum);
    assert_true(result.loss == 2e5 && result.maxima.value[0] == 1 && !result.exceeded);
}

static void margins_that_are_not_finite_never_reach_the_sum(void **state) {
    (void)state;
    const double odd[] = {NAN, INFINITY, -INFINITY};
    for (int i = 0; i < 3; i++)
        for (int kind = 0; kind < OBJECTIVES; kind++)
            for (int label = 0; label < 2; label++) {
                int64_t sum[2] = {0, 0};
                double margins[2] = {odd[i], 0};
                struct objective_result result =
                    at_margins((enum objective_kind)kind,
                               objective_outputs(objective_of((enum objective_kind)kind), 2),
                               margins, label, 0, sum);
                assert_true(!isfinite(result.loss));
                assert_true(result.maxima.value[0] == INFINITY && result.exceeded);
                assert_true(sum[0] == 0 && sum[1] == 0);
            }
}

static void a_squared_loss_that_overflows_is_out_of_reach(void **state) {
    (void)state;
    double m = 1e200;
    int64_t sum = 0;
    struct objective_result result =
        at_margins(OBJECTIVE_SQUARED, 1, &m, 0, FIXED_DERIVATIVE_MAX, &sum);
    assert_true(!isfinite(result.loss));
    assert_true(result.maxima.value[0] == INFINITY && result.exceeded && sum == 0);
}

/* The largest derivative of a dense block, row by row. */
static double largest_derivative(const struct canned *canned) {
    struct objective_scale scale = {.uniform = canned->uniform};
    struct objective_scratch *scratch = objective_scratch_new(&canned->shape);
    double largest = 0;
    for (uint32_t i = 0; i < CANNED_ROWS; i++) {
        struct rows row = canned->rows;
        struct objective_result result;
        row.count = 1;
        row.label += i;
        row.value = canned->wide + (size_t)i * CANNED_FEATURES;
        objective_block(&canned->shape, &scale, &row, canned->parameters, NULL, scratch, &result);
        largest = fmax(largest, result.maxima.value[0]);
    }
    objective_scratch_free(scratch);
    return largest;
}

static void a_bound_exceeded_yields_the_exact_largest_derivative(void **state) {
    (void)state;
    struct canned *canned = canned_new(squared, true, VALUE_DOUBLE, NULL, 6);
    double largest = largest_derivative(canned);
    struct objective_result result = canned_gradient(canned, false, -3, gradient);
    assert_true(result.exceeded && result.maxima.value[0] == largest);
    int b = fixed_derivative_exponent(largest);
    double loss = result.loss;
    result = canned_gradient(canned, false, b, gradient);
    assert_false(result.exceeded);
    assert_true(result.maxima.value[0] == largest && result.loss == loss);
    assert_true(canned_gradient(canned, false, b - 1, gradient).exceeded);
    free(canned);
}

static void a_derivative_at_the_bound_is_within_it(void **state) {
    (void)state;
    double m = 8;
    int64_t sum = 0;
    struct objective_result result = at_margins(OBJECTIVE_SQUARED, 1, &m, 0, 3, &sum);
    assert_true(!result.exceeded && result.maxima.value[0] == 8);
    int64_t expected_sum = 0;
    fixed_add(&expected_sum, 0x1p50);
    assert_true(sum == expected_sum);
}

static int set_up(void **state) {
    (void)state;
    numeric_setup();
    return 0;
}

SUITE(robust) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(badly_scaled_columns_keep_their_precision),
        cmocka_unit_test(logistic_losses_keep_their_digits_at_any_margin),
        cmocka_unit_test(softmax_losses_keep_their_digits_when_tiny),
        cmocka_unit_test(huge_margins_do_not_overflow),
        cmocka_unit_test(margins_that_are_not_finite_never_reach_the_sum),
        cmocka_unit_test(a_squared_loss_that_overflows_is_out_of_reach),
        cmocka_unit_test(a_bound_exceeded_yields_the_exact_largest_derivative),
        cmocka_unit_test(a_derivative_at_the_bound_is_within_it),
    };
    return cmocka_run_group_tests_name("robust", tests, set_up, NULL);
}
