/* The optimizer with a diagonal of its own for the initial inverse Hessian. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/suites.h"
#include "tests/unit/memory_backend.h"

enum { N = 60 };

static double curvature_of(uint32_t i) {
    return ldexp(1 + 0.01 * i, (int)(i * 7 % 16) - 8);
}

/* Its minimum is at 1; curvatures are from 2^-8 to 2^7. */
static double bowl(uint32_t n, const double *x, double *g) {
    double f = 0;
    for (uint32_t i = 0; i < n; i++) {
        double away = x[i] - 1;
        f += curvature_of(i) * away * away / 2;
        g[i] = curvature_of(i) * away;
    }
    return f;
}

/* The same with ends that get steeper, and neighbours that pull at each other. */
static double chain(uint32_t n, const double *x, double *g) {
    double f = 0;
    memset(g, 0, n * sizeof *g);
    for (uint32_t i = 0; i < n; i++) {
        double away = x[i] - 1, h = curvature_of(i), between = i ? x[i] - x[i - 1] : 0;
        f += h * (cosh(away) - 1) + 1e-3 * between * between / 2;
        g[i] += h * sinh(away) + 1e-3 * between;
        if (i)
            g[i - 1] -= 1e-3 * between;
    }
    return f;
}

static void hessian_of_bowl(uint32_t n, const double *x, double *hessian) {
    (void)x;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < n; j++)
            hessian[i * n + j] = i == j ? curvature_of(i) : 0;
}

static struct optimizer_settings settings_for(double tolerance) {
    return (struct optimizer_settings){.memory = 10,
                                       .bias_scale = 0.25, /* not to be used */
                                       .gradient_tolerance = tolerance,
                                       .steps_max = 2000};
}

static const double *inverse_curvatures(void) {
    static double diagonal[N];
    for (uint32_t i = 0; i < N; i++)
        diagonal[i] = 1 / curvature_of(i);
    return diagonal;
}

/* Some of them a few times too long. */
static const double *rough_curvatures(void) {
    static double diagonal[N];
    for (uint32_t i = 0; i < N; i++)
        diagonal[i] = (double)(1 << i % 4) / curvature_of(i);
    return diagonal;
}

static const double zero[N] = {0};

static void the_first_direction_is_by_the_diagonal_and_its_step_is_1(void **state) {
    (void)state;
    struct optimizer_settings settings = settings_for(1e-9);
    struct minimization result;
    minimize_scaled(bowl, NULL, inverse_curvatures(), false, N, zero, &settings, &result);
    assert_int_equal(result.optimizer.reason, REASON_GRADIENT_TOLERANCE);
    assert_int_equal(result.optimizer.evaluations, 2); /* the start, and the minimum */
    assert_true(result.optimizer.last_step_length == 1);
    for (uint32_t i = 0; i < N; i++)
        assert_true(fabs(result.x[i] - 1) < 1e-9);
    free(result.x);
}

static void later_directions_are_by_it_too(void **state) {
    (void)state;
    struct optimizer_settings settings = settings_for(1e-7);
    struct minimization scaled, plain;
    minimize_scaled(chain, NULL, inverse_curvatures(), false, N, zero, &settings, &scaled);
    minimize(chain, N, zero, &settings, &plain);
    assert_int_equal(scaled.optimizer.reason, REASON_GRADIENT_TOLERANCE);
    assert_true(scaled.optimizer.evaluations * 4 < plain.optimizer.evaluations);
    print_message("%llu evaluations, %llu without it\n",
                  (unsigned long long)scaled.optimizer.evaluations,
                  (unsigned long long)plain.optimizer.evaluations);
    free(scaled.x);
    free(plain.x);
}

static void going_on_after_each_step_changes_no_bit(void **state) {
    (void)state;
    for (int with_l1 = 0; with_l1 < 2; with_l1++) {
        struct optimizer_settings settings = settings_for(1e-7);
        struct minimization whole, pieces;
        settings.l1 = with_l1 ? 0.01 : 0;
        minimize_scaled(chain, NULL, rough_curvatures(), false, N, zero, &settings, &whole);
        minimize_scaled(chain, NULL, rough_curvatures(), true, N, zero, &settings, &pieces);
        assert_int_equal(whole.optimizer.reason, REASON_GRADIENT_TOLERANCE);
        assert_true(whole.optimizer.step > 5);
        assert_memory_equal(whole.x, pieces.x, N * sizeof *whole.x);
        assert_int_equal(whole.optimizer.evaluations, pieces.optimizer.evaluations);
        free(whole.x);
        free(pieces.x);
    }
}

static void with_l1_it_leads_to_the_same_minimum(void **state) {
    (void)state;
    struct optimizer_settings settings = settings_for(1e-9);
    struct minimization scaled, plain;
    settings.l1 = 0.01;
    minimize_scaled(chain, NULL, inverse_curvatures(), false, N, zero, &settings, &scaled);
    minimize(chain, N, zero, &settings, &plain);
    assert_int_equal(scaled.optimizer.reason, REASON_GRADIENT_TOLERANCE);
    assert_int_equal(scaled.optimizer.nonzero, plain.optimizer.nonzero);
    assert_true(scaled.optimizer.nonzero > 0 && scaled.optimizer.nonzero < N - 1);
    assert_true(fabs(scaled.optimizer.loss - plain.optimizer.loss) < 1e-9 * plain.optimizer.loss);
    free(scaled.x);
    free(plain.x);
}

static void a_diagonal_that_is_far_too_long_or_too_short_does_no_harm(void **state) {
    (void)state;
    const double factors[] = {1e12, 1e-12};
    for (size_t k = 0; k < sizeof factors / sizeof *factors; k++) {
        struct optimizer_settings settings = settings_for(1e-6);
        struct minimization result;
        double diagonal[N];
        for (uint32_t i = 0; i < N; i++)
            diagonal[i] = factors[k] / curvature_of(i);
        minimize_scaled(chain, NULL, diagonal, false, N, zero, &settings, &result);
        assert_int_equal(result.optimizer.reason, REASON_GRADIENT_TOLERANCE);
        assert_true(result.optimizer.evaluations < 50);
        free(result.x);
    }
}

/* A direction of nothing: the negative gradient takes its place. */
static void a_diagonal_of_zeros_leaves_the_negative_gradient(void **state) {
    (void)state;
    struct optimizer_settings settings = settings_for(1e-6);
    struct minimization result;
    settings.steps_max = 20;
    minimize_scaled(chain, NULL, zero, false, N, zero, &settings, &result);
    assert_int_equal(result.optimizer.reason, REASON_STEP_LIMIT);
    assert_true(result.optimizer.safeguards[SAFEGUARD_HISTORY_RESET] == 20);
    assert_true(result.loss_largest_rise < 0);
    free(result.x);
}

static void a_preconditioner_takes_its_place_while_it_is_in_force(void **state) {
    (void)state;
    struct optimizer_settings settings = settings_for(1e-9);
    struct minimization result;
    double misleading[N];
    for (uint32_t i = 0; i < N; i++)
        misleading[i] = curvature_of(i);
    settings.preconditioner = (struct preconditioner_settings){.form = PRECONDITION_FULL,
                                                               .rows = 1000,
                                                               .sample = 20 * N,
                                                               .columns = N,
                                                               .parts = 1,
                                                               .trace_first = 1,
                                                               .cost_all = 0.5,
                                                               .cost_term = 0.005};
    minimize_scaled(bowl, hessian_of_bowl, misleading, false, N, zero, &settings, &result);
    assert_int_equal(result.optimizer.reason, REASON_GRADIENT_TOLERANCE);
    assert_true(result.optimizer.preconditioner.refreshes > 0);
    assert_true(result.optimizer.evaluations < 6);
    free(result.x);
}

SUITE(diagonal) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_direction_is_by_the_diagonal_and_its_step_is_1),
        cmocka_unit_test(later_directions_are_by_it_too),
        cmocka_unit_test(going_on_after_each_step_changes_no_bit),
        cmocka_unit_test(with_l1_it_leads_to_the_same_minimum),
        cmocka_unit_test(a_diagonal_that_is_far_too_long_or_too_short_does_no_harm),
        cmocka_unit_test(a_diagonal_of_zeros_leaves_the_negative_gradient),
        cmocka_unit_test(a_preconditioner_takes_its_place_while_it_is_in_force),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
