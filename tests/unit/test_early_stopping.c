/* The optimizer with a holdout to look at: when it ends, and with which point. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/suites.h"
#include "tests/unit/memory_backend.h"
#include "wire/program.h"

enum { N = 12 };
static const double start[N];

/* Its minimum is where d_i·x_i = 1, for d from 1 to 100. */
static double curvature(uint32_t i) {
    return pow(10, 2.0 * i / (N - 1));
}

static double bowl(uint32_t n, const double *x, double *g) {
    double f = 0;
    for (uint32_t i = 0; i < n; i++) {
        f += x[i] * (curvature(i) * x[i] / 2 - 1);
        g[i] = curvature(i) * x[i] - 1;
    }
    return f;
}

/* Best where the flat directions have come a part of the way: falls, then rises. */
static double overfitted(uint32_t n, const double *x) {
    double sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += pow(x[i] - (i < 3 ? 0.4 : 1) / curvature(i), 2);
    return sum;
}

static double always_the_same(uint32_t n, const double *x) {
    (void)n, (void)x;
    return 0.25;
}

static double like_the_training(uint32_t n, const double *x) {
    double g[N];
    return bowl(n, x, g);
}

static double never_finite(uint32_t n, const double *x) {
    (void)n;
    return x[0] > 0.1 ? NAN : INFINITY;
}

/* Finite at the start alone. */
static double out_of_reach(uint32_t n, const double *x) {
    for (uint32_t i = 0; i < n; i++)
        if (x[i] != 0)
            return i % 2 ? NAN : -INFINITY;
    return 1e300;
}

static struct optimizer_settings patient(uint32_t patience) {
    return (struct optimizer_settings){.memory = 4,
                                       .bias_scale = 1,
                                       .gradient_tolerance = 1e-9,
                                       .steps_max = 100,
                                       .patience = patience};
}

/* The point after as many steps, when nothing is looked at. */
static double *point_after(uint64_t steps) {
    struct optimizer_settings settings = patient(0);
    struct minimization result;
    settings.steps_max = steps;
    minimize(bowl, N, start, &settings, &result);
    assert_int_equal(result.optimizer.step, steps);
    return result.x;
}

static void assert_is_of_step(const struct minimization *result, uint64_t step) {
    struct optimizer_point answer = lbfgs_answer(&result->optimizer);
    double *expected = point_after(step), g[N], largest = 0;
    assert_int_equal(answer.step, step);
    assert_memory_equal(result->x, expected, sizeof start);
    assert_true(fabs(answer.loss - bowl(N, expected, g)) <= 1e-12);
    for (uint32_t i = 0; i < N; i++)
        largest = fmax(largest, fabs(g[i]));
    assert_true(answer.gradient_max == largest);
    free(expected);
}

/* The step after which the holdout's loss is least, of as many. */
static uint64_t best_step(test_holdout *holdout, uint64_t steps) {
    uint64_t best = 0;
    double least = INFINITY;
    for (uint64_t step = 0; step <= steps; step++) {
        double *x = point_after(step);
        if (holdout(N, x) < least) {
            least = holdout(N, x);
            best = step;
        }
        free(x);
    }
    return best;
}

static void the_run_ends_when_patience_is_over_with_the_best_point(void **state) {
    (void)state;
    struct optimizer_settings settings = patient(3);
    struct minimization result;
    minimize_watched(bowl, overfitted, false, N, start, &settings, &result);
    const struct lbfgs *o = &result.optimizer;
    assert_int_equal(o->reason, REASON_EARLY_STOPPING);
    assert_true(o->best.step > 0);
    assert_int_equal(o->best.step, best_step(overfitted, o->step));
    assert_int_equal(o->step, o->best.step + 3);
    assert_int_equal(lbfgs_answer_register(o), REGISTER_BEST);
    assert_true(lbfgs_answer(o).holdout.loss == overfitted(N, result.x));
    assert_true(o->holdout.loss > o->best.holdout.loss);
    assert_is_of_step(&result, o->best.step);
    free(result.x);
}

static void equal_losses_are_not_better(void **state) {
    (void)state;
    struct optimizer_settings settings = patient(2);
    struct minimization result;
    minimize_watched(bowl, always_the_same, false, N, start, &settings, &result);
    assert_int_equal(result.optimizer.reason, REASON_EARLY_STOPPING);
    assert_int_equal(result.optimizer.step, 2);
    assert_is_of_step(&result, 0);
    free(result.x);
}

static void a_loss_that_gets_better_with_every_step_ends_nothing(void **state) {
    (void)state;
    struct optimizer_settings settings = patient(1);
    struct minimization result;
    settings.gradient_tolerance = 1e-3;
    minimize_watched(bowl, like_the_training, false, N, start, &settings, &result);
    assert_int_equal(result.optimizer.reason, REASON_GRADIENT_TOLERANCE);
    assert_int_equal(lbfgs_answer_register(&result.optimizer), REGISTER_X);
    assert_is_of_step(&result, result.optimizer.step);
    free(result.x);
}

static void another_end_has_the_best_point_as_well(void **state) {
    (void)state;
    struct optimizer_settings settings = patient(90);
    struct minimization result;
    settings.gradient_tolerance = 1e-4;
    minimize_watched(bowl, overfitted, false, N, start, &settings, &result);
    assert_int_equal(result.optimizer.reason, REASON_GRADIENT_TOLERANCE);
    assert_true(result.optimizer.best.step < result.optimizer.step);
    assert_is_of_step(&result, best_step(overfitted, result.optimizer.step));
    free(result.x);
}

static void a_loss_that_is_not_finite_is_never_better(void **state) {
    (void)state;
    test_holdout *const holdouts[] = {never_finite, out_of_reach};
    for (unsigned i = 0; i < 2; i++) {
        struct optimizer_settings settings = patient(2);
        struct minimization result;
        minimize_watched(bowl, holdouts[i], false, N, start, &settings, &result);
        assert_int_equal(result.optimizer.reason, REASON_EARLY_STOPPING);
        assert_is_of_step(&result, 0);
        free(result.x);
    }
}

/* Every step is followed by a restart from what is durable then. */
static void patience_and_the_best_point_outlive_restarts(void **state) {
    (void)state;
    for (uint32_t patience = 1; patience <= 4; patience++) {
        struct optimizer_settings settings = patient(patience);
        struct minimization once, resumed;
        minimize_watched(bowl, overfitted, false, N, start, &settings, &once);
        minimize_watched(bowl, overfitted, true, N, start, &settings, &resumed);
        assert_int_equal(resumed.optimizer.reason, once.optimizer.reason);
        assert_int_equal(resumed.optimizer.step, once.optimizer.step);
        assert_int_equal(resumed.optimizer.best.step, once.optimizer.best.step);
        assert_memory_equal(resumed.x, once.x, sizeof start);
        free(once.x);
        free(resumed.x);
    }
}

static void without_patience_the_holdout_changes_nothing(void **state) {
    (void)state;
    struct optimizer_settings settings = patient(0);
    struct minimization watched, plain;
    minimize_watched(bowl, overfitted, false, N, start, &settings, &watched);
    minimize(bowl, N, start, &settings, &plain);
    assert_int_equal(watched.optimizer.reason, REASON_GRADIENT_TOLERANCE);
    assert_int_equal(lbfgs_answer_register(&watched.optimizer), REGISTER_X);
    assert_memory_equal(watched.x, plain.x, sizeof start);
    free(watched.x);
    free(plain.x);
}

SUITE(early_stopping) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_run_ends_when_patience_is_over_with_the_best_point),
        cmocka_unit_test(equal_losses_are_not_better),
        cmocka_unit_test(a_loss_that_gets_better_with_every_step_ends_nothing),
        cmocka_unit_test(another_end_has_the_best_point_as_well),
        cmocka_unit_test(a_loss_that_is_not_finite_is_never_better),
        cmocka_unit_test(patience_and_the_best_point_outlive_restarts),
        cmocka_unit_test(without_patience_the_holdout_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
