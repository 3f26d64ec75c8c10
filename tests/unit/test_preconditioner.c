/* When the preconditioner is refreshed, and L-BFGS with it. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/suites.h"
#include "tests/unit/memory_backend.h"

/* ---- the rule ---- */

static const struct preconditioner_settings rule = {
    .form = PRECONDITION_FULL,
    .rows = 100000,
    .sample = 2000,
    .columns = 100,
    .parts = 1,
    .trace_first = 0.25,
    .cost_all = 0.5,
    .cost_term = 1e-5,
};

/* What a sample of 2,000 rows finds: a refresh with it costs one pass. */
static const struct curvature_found found = {.rows = 2010, .terms = 50000, .score = 1e6};

static void
the_first_refresh_is_due_at_the_start_and_draws_as_many_rows_as_the_settings_say(void **state) {
    (void)state;
    struct preconditioner p = {0};
    assert_true(preconditioner_due(&p, &rule, 0.7));
    assert_int_equal(preconditioner_sample(&p, &rule), 2000);
    struct row_sampling sampling = preconditioner_sampling(&p, &rule);
    /* If every row has its share of the leverage, the chances add up to the sample. */
    double chance = sampling.floor + sampling.rate * 0.25 * 100;
    assert_true(fabs(chance * 100000 - 2000) < 1e-6 * 2000);
    assert_true(sampling.floor == 0.002);
}

static void there_is_no_refresh_without_a_form(void **state) {
    (void)state;
    struct preconditioner p = {0};
    struct preconditioner_settings none = rule;
    none.form = PRECONDITION_NONE;
    assert_false(preconditioner_due(&p, &none, 0.7));
}

static void a_refresh_waits_for_two_steps_its_cost_and_another_loss(void **state) {
    (void)state;
    struct preconditioner p = {0};
    preconditioner_refreshed(&p, &rule, 0.7, &found);
    assert_false(preconditioner_due(&p, &rule, 0.1));
    preconditioner_stepped(&p, 1, 5);
    assert_false(preconditioner_due(&p, &rule, 0.1)); /* one step */
    preconditioner_stepped(&p, 1, 1);
    assert_true(preconditioner_due(&p, &rule, 0.1));
    assert_true(preconditioner_due(&p, &rule, 0.69)); /* of no use for more than four costs */
    preconditioner_refreshed(&p, &rule, 0.7, &found);
    preconditioner_stepped(&p, 1, 2);
    preconditioner_stepped(&p, 1, 1);
    assert_true(preconditioner_due(&p, &rule, 0.6));
    assert_false(preconditioner_due(&p, &rule, 0.69)); /* the same loss, nearly */
    preconditioner_refreshed(&p, &rule, 0.1, &found);
    preconditioner_stepped(&p, 1, 1);
    preconditioner_stepped(&p, 1, 1);
    assert_false(preconditioner_due(&p, &rule, 0.01)); /* twice the cost from the second on */
    preconditioner_stepped(&p, 1, 1);
    assert_true(preconditioner_due(&p, &rule, 0.01));
}

/* Which rows curve a sharp corner changes while the loss hardly does. */
static void a_loss_may_change_less_before_a_refresh(void **state) {
    (void)state;
    struct preconditioner p = {0};
    struct preconditioner_settings sharp = rule;
    sharp.change = 1e-5;
    preconditioner_refreshed(&p, &sharp, 0.7, &found);
    preconditioner_stepped(&p, 1, 2);
    preconditioner_stepped(&p, 1, 1);
    assert_false(preconditioner_due(&p, &rule, 0.69));
    assert_true(preconditioner_due(&p, &sharp, 0.69));
    assert_false(preconditioner_due(&p, &sharp, 0.7 - 6e-6));
}

/* Twice the cost, then four times, eight times: what pairs learned of the rest is lost each time.
 */
static void refreshes_of_a_leading_block_become_rarer(void **state) {
    (void)state;
    struct preconditioner p = {0};
    struct preconditioner_settings leading = rule;
    leading.form = PRECONDITION_LEADING;
    double loss = 1, cost = 1; /* of a refresh that found this */
    for (uint64_t refreshes = 1; refreshes <= 12; refreshes++) {
        preconditioner_refreshed(&p, &leading, loss, &found);
        assert_true(preconditioner_cost(&p, &leading) == cost && p.refreshes == refreshes);
        loss /= 2;
        preconditioner_stepped(&p, 1, 1);
        preconditioner_stepped(&p, 1, (UINT64_C(1) << refreshes) - 1);
        assert_false(preconditioner_due(&p, &leading, loss)); /* 2^refreshes passes */
        preconditioner_stepped(&p, 1, 1);
        assert_true(preconditioner_due(&p, &leading, loss));
    }
    p.refreshes = p.evaluations = 1000; /* without a bound, no number of passes would do */
    p.passes = UINT64_C(1) << 31;
    assert_true(preconditioner_due(&p, &leading, loss / 2));
}

static void a_sample_that_does_not_help_grows_until_it_has_all_rows(void **state) {
    (void)state;
    struct preconditioner p = {0};
    preconditioner_refreshed(&p, &rule, 0.7, &found);
    uint64_t samples[] = {8000, 32000, 100000};
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 200; j++)
            preconditioner_stepped(&p, 1, 1);
        assert_true(preconditioner_due(&p, &rule, p.loss));
        assert_int_equal(preconditioner_sample(&p, &rule), samples[i]);
        preconditioner_refreshed(&p, &rule, p.loss, &found);
    }
    assert_true(preconditioner_sampling(&p, &rule).floor == 1);
    for (int j = 0; j < 1000; j++)
        preconditioner_stepped(&p, 1, 1);
    assert_false(preconditioner_due(&p, &rule, p.loss));
}

/* A larger one says nothing of the columns beyond the block. */
static void a_sample_of_a_leading_block_does_not_grow(void **state) {
    (void)state;
    struct preconditioner p = {0};
    struct preconditioner_settings leading = rule;
    leading.form = PRECONDITION_LEADING;
    preconditioner_refreshed(&p, &leading, 0.7, &found);
    for (int j = 0; j < 1000; j++)
        preconditioner_stepped(&p, 1, 1);
    assert_false(preconditioner_due(&p, &leading, p.loss));
    assert_true(preconditioner_due(&p, &leading, p.loss / 2));
    assert_int_equal(preconditioner_sample(&p, &leading), 2000);
}

static void a_full_block_begins_with_a_larger_sample_at_a_model(void **state) {
    (void)state;
    struct preconditioner p = {0};
    struct preconditioner_settings full = rule, leading = rule, none = {.form = PRECONDITION_NONE};
    preconditioner_starts_near(&full);
    assert_int_equal(preconditioner_sample(&p, &full), 8000);
    preconditioner_starts_near(&full);
    preconditioner_starts_near(&full);
    assert_int_equal(preconditioner_sample(&p, &full), 100000); /* all rows */
    leading.form = PRECONDITION_LEADING;
    preconditioner_starts_near(&leading);
    assert_int_equal(preconditioner_sample(&p, &leading), 2000);
    preconditioner_starts_near(&none);
    assert_int_equal(none.sample, 0);
}

/* Later steps may be short. */
static void each_first_step_that_is_short_doubles_the_wait_for_good(void **state) {
    (void)state;
    struct preconditioner p = {0};
    const double first[] = {1, 0.09, 0.01, 0.1};
    const uint64_t wait[] = {1, 4, 8, 8}; /* the first one, and twice that later */
    for (int i = 0; i < 4; i++) {
        preconditioner_refreshed(&p, &rule, pow(0.5, i), &found);
        preconditioner_stepped(&p, first[i], 1);
        while (p.passes < wait[i])
            preconditioner_stepped(&p, 0.01, 1);
        assert_false(preconditioner_due(&p, &rule, 0));
        preconditioner_stepped(&p, 0.01, 1);
        assert_true(preconditioner_due(&p, &rule, 0));
    }
}

/* It is no fault of a factor that is not in force. */
static void short_steps_without_a_factor_double_nothing(void **state) {
    (void)state;
    struct preconditioner p = {0};
    preconditioner_refreshed(&p, &rule, 0.7, &found);
    preconditioner_failed(&p);
    preconditioner_stepped(&p, 1e-3, 1);
    assert_int_equal(p.overshoots, 0);
}

static void a_constant_curvature_is_taken_once_on_all_rows(void **state) {
    (void)state;
    struct preconditioner p = {0};
    struct preconditioner_settings constant = rule;
    constant.constant = true;
    assert_int_equal(preconditioner_sample(&p, &constant), 100000);
    preconditioner_refreshed(&p, &constant, 0.7, &found);
    for (int j = 0; j < 1000; j++)
        preconditioner_stepped(&p, 1, 1);
    assert_false(preconditioner_due(&p, &constant, 0.01));
}

static void after_three_failures_there_is_none(void **state) {
    (void)state;
    struct preconditioner p = {0};
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 100; j++)
            preconditioner_stepped(&p, 1, 1);
        assert_true(preconditioner_due(&p, &rule, 0.7));
        preconditioner_unfactored(&p, &rule, 0.7);
        assert_false(p.in_force);
    }
    for (int j = 0; j < 100; j++)
        preconditioner_stepped(&p, 1, 1);
    assert_false(preconditioner_due(&p, &rule, 0.7));
}

/* A score that overflowed, or of no rows, must not make chances that are not numbers. */
static void without_a_usable_score_all_rows_are_taken(void **state) {
    (void)state;
    struct preconditioner p = {0};
    struct preconditioner_settings extreme = rule;
    extreme.trace_first = 0;
    assert_true(preconditioner_sampling(&p, &extreme).floor == 1);
    assert_true(preconditioner_sampling(&p, &extreme).rate == 0);
}

/* ---- the optimizer with it ---- */

#define N 12

/* A convex function with a Hessian that changes and is badly scaled:
 * Σ_i c_i (e^{a_i·x} + e^{−a_i·x}) + ½ λ|x|² with c_i from 1 to 1e8, and a_i rows of a full matrix.
 */
static double coefficient(uint32_t i, uint32_t j) {
    return (i == j) + 0.3 * sin(1.0 + i * 7 + j * 3);
}

static double weight(uint32_t i) {
    return pow(10, 8.0 * i / (N - 1));
}

static double inner(uint32_t i, const double *x) {
    double a = 0;
    for (uint32_t j = 0; j < N; j++)
        a += coefficient(i, j) * (x[j] - 0.1);
    return a;
}

static double scaled_cosh(uint32_t n, const double *x, double *g) {
    double f = 0;
    memset(g, 0, n * sizeof *g);
    for (uint32_t i = 0; i < n; i++) {
        double a = inner(i, x);
        f += weight(i) * 2 * cosh(a);
        for (uint32_t j = 0; j < n; j++)
            g[j] += weight(i) * 2 * sinh(a) * coefficient(i, j);
    }
    return f;
}

static void hessian_of_cosh(uint32_t n, const double *x, double *h) {
    memset(h, 0, (size_t)n * n * sizeof *h);
    for (uint32_t i = 0; i < n; i++) {
        double second = weight(i) * 2 * cosh(inner(i, x));
        for (uint32_t j = 0; j < n; j++)
            for (uint32_t k = 0; k < n; k++)
                h[j * n + k] += second * coefficient(i, j) * coefficient(i, k);
    }
}

/* A matrix that is positive definite and of no use: the scales are turned round. */
static void misleading_hessian(uint32_t n, const double *x, double *h) {
    (void)x;
    memset(h, 0, (size_t)n * n * sizeof *h);
    for (uint32_t i = 0; i < n; i++)
        h[i * n + i] = 1e-3 / weight(i);
}

static struct optimizer_settings settings_with(enum precondition form) {
    return (struct optimizer_settings){
        .memory = 10,
        .bias_scale = 1,
        .gradient_tolerance = 1e-4,
        .steps_max = 3000,
        .preconditioner = {.form = form,
                           .rows = 1000,
                           .sample = 20 * N,
                           .columns = N,
                           .parts = 1,
                           .trace_first = 1,
                           .cost_all = 0.5,
                           .cost_term = 0.005},
    };
}

static struct minimization minimized(test_hessian *hessian, enum precondition form, bool resumes) {
    const double start[N] = {1, -1, 0.5, 0.3, -0.2, 0.7, 1.5, -0.4, 0.2, 0.9, -1.1, 0.6};
    struct optimizer_settings settings = settings_with(form);
    struct minimization result;
    minimize_conditioned(scaled_cosh, hessian, 1000, resumes, N, start, &settings, &result);
    print_message("F %.9g, gradient %.2g, %llu steps, %llu evaluations, %llu refreshes, %s\n",
                  result.optimizer.loss, result.optimizer.gradient_max,
                  (unsigned long long)result.optimizer.step,
                  (unsigned long long)result.optimizer.evaluations,
                  (unsigned long long)result.optimizer.preconditioner.refreshes,
                  reason_text(result.optimizer.reason));
    return result;
}

static void a_badly_scaled_function_needs_far_fewer_evaluations(void **state) {
    (void)state;
    struct minimization plain = minimized(hessian_of_cosh, PRECONDITION_NONE, false);
    struct minimization conditioned = minimized(hessian_of_cosh, PRECONDITION_FULL, false);
    assert_int_equal(conditioned.optimizer.reason, REASON_GRADIENT_TOLERANCE);
    assert_true(conditioned.optimizer.evaluations * 4 < plain.optimizer.evaluations);
    for (int i = 0; i < N; i++)
        assert_true(fabs(conditioned.x[i] - 0.1) < 1e-4);
    free(plain.x);
    free(conditioned.x);
}

static void going_on_after_each_step_changes_no_bit(void **state) {
    (void)state;
    struct minimization quiet = minimized(hessian_of_cosh, PRECONDITION_FULL, false);
    struct minimization resumed = minimized(hessian_of_cosh, PRECONDITION_FULL, true);
    assert_memory_equal(quiet.x, resumed.x, N * sizeof(double));
    assert_int_equal(quiet.optimizer.step, resumed.optimizer.step);
    assert_int_equal(quiet.optimizer.preconditioner.refreshes,
                     resumed.optimizer.preconditioner.refreshes);
    free(quiet.x);
    free(resumed.x);
}

static void a_misleading_preconditioner_keeps_no_one_from_the_minimum(void **state) {
    (void)state;
    struct minimization result = minimized(misleading_hessian, PRECONDITION_FULL, false);
    assert_int_equal(result.optimizer.reason, REASON_GRADIENT_TOLERANCE);
    for (int i = 0; i < N; i++)
        assert_true(fabs(result.x[i] - 0.1) < 1e-4);
    free(result.x);
}

/* ---- with a leading block ---- */

enum { BLOCK = 4 };
#define RIDGE 0.25     /* of l2 in the scale of columns: their variance is 1 − this */
#define SECOND 0x1p-10 /* of a row by its margin */

/* The first columns are of one kind, badly scaled; all others were scaled alike. */
static double curvature_beyond(uint32_t i, uint32_t n) {
    return SECOND * (i == n - 1 ? 1 : 1 - RIDGE);
}

static double margin_of_block(uint32_t i, const double *x) {
    double a = 0;
    for (uint32_t j = 0; j < BLOCK; j++)
        a += coefficient(i, j) * (x[j] - 0.1);
    return a;
}

static double table_loss(uint32_t n, const double *x, double *g) {
    double f = 0;
    memset(g, 0, n * sizeof *g);
    for (uint32_t i = 0; i < BLOCK; i++) {
        double a = margin_of_block(i, x), scale = pow(10, i);
        f += scale * 2 * cosh(a);
        for (uint32_t j = 0; j < BLOCK; j++)
            g[j] += scale * 2 * sinh(a) * coefficient(i, j);
    }
    for (uint32_t i = BLOCK; i < n; i++) {
        g[i] = curvature_beyond(i, n) * (x[i] - 0.1);
        f += g[i] * (x[i] - 0.1) / 2;
    }
    return f;
}

static void hessian_of_table(uint32_t n, const double *x, double *h) {
    memset(h, 0, (size_t)n * n * sizeof *h);
    for (uint32_t i = 0; i < BLOCK; i++) {
        double second = pow(10, i) * 2 * cosh(margin_of_block(i, x));
        for (uint32_t j = 0; j < BLOCK; j++)
            for (uint32_t k = 0; k < BLOCK; k++)
                h[j * n + k] += second * coefficient(i, j) * coefficient(i, k);
    }
    for (uint32_t i = BLOCK; i < n; i++)
        h[i * n + i] = curvature_beyond(i, n);
}

static struct minimization minimized_table(enum precondition form, bool resumes) {
    const double start[N] = {1, -1, 0.5, 0.3, -9, 7, 15, -4, 20, 9, -11, 6};
    struct optimizer_settings settings = settings_with(form);
    struct minimization result;
    settings.gradient_tolerance = 1e-9;
    settings.l2 = SECOND / 4;
    settings.preconditioner.block_columns = BLOCK;
    settings.preconditioner.ridge = RIDGE;
    minimize_conditioned(table_loss, hessian_of_table, 1000, resumes, N, start, &settings, &result);
    assert_int_equal(result.optimizer.reason, REASON_GRADIENT_TOLERANCE);
    print_message("form %d: %llu steps, %llu evaluations, %llu refreshes\n", (int)form,
                  (unsigned long long)result.optimizer.step,
                  (unsigned long long)result.optimizer.evaluations,
                  (unsigned long long)result.optimizer.preconditioner.refreshes);
    return result;
}

/* The diagonal of what is beyond the block follows from the mean second derivative of a margin. One
 * that has all parameters needs no scale from pairs, which costs a step or two. */
static void a_leading_block_is_as_good_as_all_where_the_rest_is_diagonal(void **state) {
    (void)state;
    struct minimization full = minimized_table(PRECONDITION_FULL, false);
    struct minimization leading = minimized_table(PRECONDITION_LEADING, false);
    struct minimization none = minimized_table(PRECONDITION_NONE, false);
    assert_true(leading.optimizer.preconditioner.refreshes > 0);
    assert_true(leading.optimizer.evaluations <= full.optimizer.evaluations + 2);
    assert_true(4 * leading.optimizer.evaluations < none.optimizer.evaluations);
    free(full.x);
    free(leading.x);
    free(none.x);
}

static void going_on_with_a_leading_block_changes_no_bit(void **state) {
    (void)state;
    struct minimization quiet = minimized_table(PRECONDITION_LEADING, false);
    struct minimization resumed = minimized_table(PRECONDITION_LEADING, true);
    assert_memory_equal(quiet.x, resumed.x, N * sizeof(double));
    assert_int_equal(quiet.optimizer.step, resumed.optimizer.step);
    free(quiet.x);
    free(resumed.x);
}

SUITE(preconditioner) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            the_first_refresh_is_due_at_the_start_and_draws_as_many_rows_as_the_settings_say),
        cmocka_unit_test(there_is_no_refresh_without_a_form),
        cmocka_unit_test(a_refresh_waits_for_two_steps_its_cost_and_another_loss),
        cmocka_unit_test(a_loss_may_change_less_before_a_refresh),
        cmocka_unit_test(refreshes_of_a_leading_block_become_rarer),
        cmocka_unit_test(a_sample_that_does_not_help_grows_until_it_has_all_rows),
        cmocka_unit_test(a_sample_of_a_leading_block_does_not_grow),
        cmocka_unit_test(a_full_block_begins_with_a_larger_sample_at_a_model),
        cmocka_unit_test(each_first_step_that_is_short_doubles_the_wait_for_good),
        cmocka_unit_test(short_steps_without_a_factor_double_nothing),
        cmocka_unit_test(a_constant_curvature_is_taken_once_on_all_rows),
        cmocka_unit_test(after_three_failures_there_is_none),
        cmocka_unit_test(without_a_usable_score_all_rows_are_taken),
        cmocka_unit_test(a_badly_scaled_function_needs_far_fewer_evaluations),
        cmocka_unit_test(going_on_after_each_step_changes_no_bit),
        cmocka_unit_test(a_misleading_preconditioner_keeps_no_one_from_the_minimum),
        cmocka_unit_test(a_leading_block_is_as_good_as_all_where_the_rest_is_diagonal),
        cmocka_unit_test(going_on_with_a_leading_block_changes_no_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
