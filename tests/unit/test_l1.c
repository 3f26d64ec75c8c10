/* The optimizer with l1, on functions whose minima are known. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "optimizer/linesearch.h"
#include "tests/unit/suites.h"
#include "tests/unit/memory_backend.h"

enum { N = 41 }; /* the last is a bias */

static struct optimizer_settings settings_for(double l1) {
    return (struct optimizer_settings){
        .memory = 10, .bias_scale = 1, .l1 = l1, .gradient_tolerance = 1e-10, .steps_max = 2000};
}

/* Where the separable function below is least, and how it curves. */
static double centre(uint32_t i) {
    return i % 3 == 0 ? 0.01 * (i + 1) : i % 3 == 1 ? -3.0 / (i + 1) : 1;
}

static double curvature(uint32_t i) {
    return pow(10, i % 5 - 2.0);
}

/* Σ c_i/2 (x_i − centre_i)²: with l1 its minimiser is the centre, shrunk by l1/c_i. */
static double separable(uint32_t n, const double *x, double *g) {
    double f = 0;
    for (uint32_t i = 0; i < n; i++) {
        double away = x[i] - centre(i);
        f += curvature(i) / 2 * away * away;
        g[i] = curvature(i) * away;
    }
    return f;
}

static double shrunk(uint32_t i, double l1) {
    double left = fabs(centre(i)) - (i == N - 1 ? 0 : l1 / curvature(i));
    return left <= 0 ? 0 : copysign(left, centre(i));
}

static void expect_shrunk(const struct minimization *result, double l1) {
    uint64_t nonzero = 0;
    for (uint32_t i = 0; i < N; i++) {
        double expected = shrunk(i, l1);
        assert_true(fabs(result->x[i] - expected) <= 1e-7);
        assert_true(expected != 0 || (result->x[i] == 0 && !signbit(result->x[i])));
        nonzero += i != N - 1 && expected != 0;
    }
    assert_int_equal(result->optimizer.nonzero, nonzero);
    assert_int_equal(result->optimizer.reason, REASON_GRADIENT_TOLERANCE);
    assert_true(result->optimizer.gradient_max <= 1e-10);
}

static void a_separable_minimum_is_the_centre_shrunk(void **state) {
    (void)state;
    const double zero[N] = {0};
    const double l1[] = {1e-300, 1e-3, 0.02, 0.5, 20};
    for (size_t i = 0; i < sizeof l1 / sizeof *l1; i++) {
        struct optimizer_settings settings = settings_for(l1[i]);
        struct minimization result;
        minimize(separable, N, zero, &settings, &result);
        expect_shrunk(&result, l1[i]);
        assert_true(result.loss_largest_rise <= 1e-10);
        assert_true(result.optimizer.rounds <=
                    2 * result.optimizer.step + result.optimizer.retries + 2);
        free(result.x);
    }
}

static void a_dense_start_loses_what_belongs_to_zero(void **state) {
    (void)state;
    double start[N];
    for (uint32_t i = 0; i < N; i++)
        start[i] = i % 2 ? 2 : -2;
    struct optimizer_settings settings = settings_for(0.02);
    struct minimization result;
    minimize(separable, N, start, &settings, &result);
    expect_shrunk(&result, 0.02);
    free(result.x);
}

static void an_l1_that_zeroes_all_weights_leaves_the_bias_fitted(void **state) {
    (void)state;
    const double zero[N] = {0};
    struct optimizer_settings settings = settings_for(1e20);
    struct minimization result;
    minimize(separable, N, zero, &settings, &result);
    assert_int_equal(result.optimizer.nonzero, 0);
    expect_shrunk(&result, 1e20);
    assert_true(result.optimizer.evaluations <= 6);
    free(result.x);
}

/* Two columns that are the same, and F with l2: the weight is shared between them. */
static double duplicated(uint32_t n, const double *x, double *g) {
    double f = 0, margin = x[0] + x[1] - 1;
    (void)n;
    f = margin * margin / 2;
    g[0] = g[1] = margin;
    g[2] = 0;
    return f;
}

static void equal_columns_share_their_weight(void **state) {
    (void)state;
    struct optimizer_settings settings = settings_for(0.25);
    struct minimization result;
    settings.l2 = 0.5;
    minimize(duplicated, 3, (double[]){0, 0, 0}, &settings, &result);
    assert_true(fabs(result.x[0] - 0.3) <= 1e-9 && fabs(result.x[1] - 0.3) <= 1e-9);
    assert_true(fabs(result.optimizer.loss - (0.08 + 0.25 * 0.6 + 0.25 * 0.18)) <= 1e-12);
    free(result.x);
}

/* log-like, and correlated: no coordinate is alone. */
static double correlated(uint32_t n, const double *x, double *g) {
    double f = 0;
    memset(g, 0, n * sizeof *g);
    for (uint32_t r = 0; r < 60; r++) {
        double margin = 0, sign = (r * r) % 7 < 3 ? 1 : -1;
        for (uint32_t i = 0; i < n; i++)
            margin += x[i] * (1 + sin(1.7 * r + 0.01 * i * r));
        f += log1p(exp(-sign * margin)) / 60;
        double slope = -sign / (1 + exp(sign * margin)) / 60;
        for (uint32_t i = 0; i < n; i++)
            g[i] += slope * (1 + sin(1.7 * r + 0.01 * i * r));
    }
    return f;
}

static void a_run_that_goes_on_after_each_step_ends_at_the_same_bits(void **state) {
    (void)state;
    const double zero[N] = {0};
    struct optimizer_settings settings = settings_for(3e-3);
    struct minimization whole, pieces;
    settings.gradient_tolerance = 1e-7;
    settings.bias_scale = 0.25;
    minimize(correlated, N, zero, &settings, &whole);
    minimize_watched(correlated, NULL, true, N, zero, &settings, &pieces);
    assert_int_equal(whole.optimizer.reason, REASON_GRADIENT_TOLERANCE);
    assert_true(whole.optimizer.nonzero > 0 && whole.optimizer.nonzero < N - 1);
    assert_memory_equal(whole.x, pieces.x, N * sizeof *whole.x);
    assert_int_equal(whole.optimizer.evaluations, pieces.optimizer.evaluations);
    free(whole.x);
    free(pieces.x);
}

/* Without a bias: its last element does nothing. */
static double without_bias(uint32_t n, const double *x, double *g) {
    double f = correlated(n - 1, x, g);
    g[n - 1] = 0;
    return f;
}

static double gap_after(uint64_t steps, double l2, double *loss) {
    const double zero[N] = {0};
    struct optimizer_settings settings = settings_for(3e-3);
    struct minimization result;
    settings.l2 = l2;
    settings.bounds_gap = true;
    settings.steps_max = steps;
    minimize(without_bias, N, zero, &settings, &result);
    *loss = result.optimizer.loss;
    free(result.x);
    return result.optimizer.gap_bound;
}

static void the_bound_on_the_gap_holds_at_each_step_and_vanishes_at_the_end(void **state) {
    (void)state;
    for (int with_l2 = 0; with_l2 < 2; with_l2++) {
        double least, loss, l2 = with_l2 ? 1e-3 : 0;
        assert_true(gap_after(2000, l2, &least) <= 1e-6 * least);
        for (uint64_t steps = 0; steps < 30; steps += 3) {
            double bound = gap_after(steps, l2, &loss);
            assert_true(loss - least <= bound + 1e-9);
        }
    }
}

static void searches_shrink_by_the_quadratic_and_give_up_after_thirty_trials(void **state) {
    (void)state;
    struct linesearch search;
    linesearch_begin(&search, 1, -2, 1e-11, 1, false);
    struct box_trial trial = {.loss = 3, .falls = -1, .ends = 9};
    assert_int_equal(box_search_next(&search, &trial), LINESEARCH_TRY);
    assert_true(search.step == 0.25); /* of −2α + 4α² */
    trial.loss = NAN;
    assert_int_equal(box_search_next(&search, &trial), LINESEARCH_TRY);
    assert_true(search.step == 0.25 * 0.1);
    trial.loss = 1 + 1e-12; /* rounding: the slopes tell */
    trial.ends = -0.5;
    struct linesearch again = search;
    assert_int_equal(box_search_next(&again, &trial), LINESEARCH_ACCEPT);
    trial.falls = 0; /* nothing moved */
    uint32_t trials = search.trials;
    while (box_search_next(&search, &trial) == LINESEARCH_TRY)
        trials++;
    assert_int_equal(trials + 1, 30);
}

SUITE(l1) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_separable_minimum_is_the_centre_shrunk),
        cmocka_unit_test(a_dense_start_loses_what_belongs_to_zero),
        cmocka_unit_test(an_l1_that_zeroes_all_weights_leaves_the_bias_fitted),
        cmocka_unit_test(equal_columns_share_their_weight),
        cmocka_unit_test(a_run_that_goes_on_after_each_step_ends_at_the_same_bits),
        cmocka_unit_test(the_bound_on_the_gap_holds_at_each_step_and_vanishes_at_the_end),
        cmocka_unit_test(searches_shrink_by_the_quadratic_and_give_up_after_thirty_trials),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
