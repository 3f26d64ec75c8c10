/* The optimizer on the standard problems of Moré, Garbow and Hillstrom, "Testing unconstrained
 * optimization software", ACM TOMS 7 (1981); numbers in parentheses are theirs. Minima are those
 * published there. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/suites.h"
#include "base/memory.h"
#include "optimizer/lbfgs_phase.h"
#include "tests/unit/memory_backend.h"

#define PI 3.14159265358979323846

/* (1) */
static double rosenbrock(uint32_t n, const double *x, double *g) {
    (void)n;
    double a = 10 * (x[1] - x[0] * x[0]), b = 1 - x[0];
    g[0] = 2 * a * -20 * x[0] - 2 * b;
    g[1] = 20 * a;
    return a * a + b * b;
}

/* (22) extended Powell singular */
static double extended_powell(uint32_t n, const double *x, double *g) {
    double f = 0;
    for (uint32_t i = 0; i < n; i += 4) {
        double a = x[i] + 10 * x[i + 1], b = x[i + 2] - x[i + 3];
        double c = x[i + 1] - 2 * x[i + 2], d = x[i] - x[i + 3];
        f += a * a + 5 * b * b + c * c * c * c + 10 * d * d * d * d;
        g[i] = 2 * a + 40 * d * d * d;
        g[i + 1] = 20 * a + 4 * c * c * c;
        g[i + 2] = 10 * b - 8 * c * c * c;
        g[i + 3] = -10 * b - 40 * d * d * d;
    }
    return f;
}

/* (14) */
static double wood(uint32_t n, const double *x, double *g) {
    (void)n;
    double a = x[1] - x[0] * x[0], b = 1 - x[0], c = x[3] - x[2] * x[2], d = 1 - x[2];
    double e = x[1] + x[3] - 2, h = x[1] - x[3];
    g[0] = -400 * a * x[0] - 2 * b;
    g[1] = 200 * a + 20 * e + 0.2 * h;
    g[2] = -360 * c * x[2] - 2 * d;
    g[3] = 180 * c + 20 * e - 0.2 * h;
    return 100 * a * a + b * b + 90 * c * c + d * d + 10 * e * e + 0.1 * h * h;
}

/* (7) */
static double helical_valley(uint32_t n, const double *x, double *g) {
    (void)n;
    double theta = atan(x[1] / x[0]) / (2 * PI) + (x[0] < 0 ? 0.5 : 0);
    double square = x[0] * x[0] + x[1] * x[1], r = sqrt(square);
    double a = 10 * (x[2] - 10 * theta), b = 10 * (r - 1), c = x[2];
    double by0 = -x[1] / (2 * PI * square), by1 = x[0] / (2 * PI * square);
    g[0] = 2 * a * -100 * by0 + 20 * b * x[0] / r;
    g[1] = 2 * a * -100 * by1 + 20 * b * x[1] / r;
    g[2] = 20 * a + 2 * c;
    return a * a + b * b + c * c;
}

/* (4) */
static double brown_badly_scaled(uint32_t n, const double *x, double *g) {
    (void)n;
    double a = x[0] - 1e6, b = x[1] - 2e-6, c = x[0] * x[1] - 2;
    g[0] = 2 * a + 2 * c * x[1];
    g[1] = 2 * b + 2 * c * x[0];
    return a * a + b * b + c * c;
}

/* (26) */
static double trigonometric(uint32_t n, const double *x, double *g) {
    double cosines = 0, f = 0, sum = 0;
    for (uint32_t j = 0; j < n; j++)
        cosines += cos(x[j]);
    for (uint32_t i = 0; i < n; i++) {
        double r = n - cosines + (i + 1) * (1 - cos(x[i])) - sin(x[i]);
        f += r * r;
        sum += r;
        g[i] = 2 * r * ((i + 1) * sin(x[i]) - cos(x[i]));
    }
    for (uint32_t j = 0; j < n; j++)
        g[j] += 2 * sum * sin(x[j]);
    return f;
}

/* (25) */
static double variably_dimensioned(uint32_t n, const double *x, double *g) {
    double f = 0, weighted = 0;
    for (uint32_t i = 0; i < n; i++) {
        f += (x[i] - 1) * (x[i] - 1);
        weighted += (i + 1) * (x[i] - 1);
    }
    for (uint32_t i = 0; i < n; i++)
        g[i] = 2 * (x[i] - 1) + (2 * weighted + 4 * weighted * weighted * weighted) * (i + 1);
    return f + weighted * weighted + pow(weighted, 4);
}

/* (23) */
static double penalty_1(uint32_t n, const double *x, double *g) {
    double f = 0, square = -0.25;
    for (uint32_t i = 0; i < n; i++) {
        f += 1e-5 * (x[i] - 1) * (x[i] - 1);
        square += x[i] * x[i];
    }
    for (uint32_t i = 0; i < n; i++)
        g[i] = 2e-5 * (x[i] - 1) + 4 * square * x[i];
    return f + square * square;
}

/* Weights that curve little, and a bias, the last, that curves a thousand times more. */
static double steep_bias(uint32_t n, const double *x, double *g) {
    double margin = x[n - 1] - 3, f = 0;
    for (uint32_t i = 0; i + 1 < n; i++)
        margin += x[i] / n;
    for (uint32_t i = 0; i + 1 < n; i++) {
        double curvature = 1e-4 * (1 + i % 17);
        f += curvature / 2 * (x[i] - 1) * (x[i] - 1);
        g[i] = curvature * (x[i] - 1) + tanh(margin) / n;
    }
    g[n - 1] = tanh(margin);
    return f + log(cosh(margin));
}

static struct optimizer_settings settings_for(double gradient_tolerance) {
    return (struct optimizer_settings){
        .memory = 10, .bias_scale = 1, .gradient_tolerance = gradient_tolerance, .steps_max = 2000};
}

/* Minimizes and holds the end to the published minimum, and F to falling all the way. */
static void expect_minimum(test_function *function, uint32_t n, const double *start,
                           double gradient_tolerance, double minimum, double room) {
    struct optimizer_settings settings = settings_for(gradient_tolerance);
    struct minimization result;
    minimize(function, n, start, &settings, &result);
    print_message(
        "F %.9g, gradient %.2g, %llu steps, %llu evaluations, %s\n", result.optimizer.loss,
        result.optimizer.gradient_max, (unsigned long long)result.optimizer.step,
        (unsigned long long)result.optimizer.evaluations, reason_text(result.optimizer.reason));
    assert_int_equal(result.optimizer.reason, REASON_GRADIENT_TOLERANCE);
    assert_true(fabs(result.optimizer.loss - minimum) <= room);
    assert_true(result.loss_largest_rise <= 1e-10 * fabs(result.optimizer.loss));
    free(result.x);
}

static void rosenbrock_reaches_its_minimum(void **state) {
    (void)state;
    expect_minimum(rosenbrock, 2, (double[]){-1.2, 1}, 1e-8, 0, 1e-14);
}

static void extended_powell_reaches_its_minimum(void **state) {
    (void)state;
    double start[40];
    for (int i = 0; i < 40; i += 4)
        memcpy(start + i, (double[]){3, -1, 0, 1}, 4 * sizeof(double));
    expect_minimum(extended_powell, 40, start, 1e-8, 0, 1e-8);
}

static void wood_reaches_its_minimum(void **state) {
    (void)state;
    expect_minimum(wood, 4, (double[]){-3, -1, -3, -1}, 1e-7, 0, 1e-12);
}

static uint64_t evaluations_with_bias_scale(double scale) {
    double start[200] = {0};
    struct optimizer_settings settings = settings_for(1e-7);
    struct minimization result;
    settings.bias_scale = scale;
    minimize(steep_bias, 200, start, &settings, &result);
    assert_int_equal(result.optimizer.reason, REASON_GRADIENT_TOLERANCE);
    assert_true(result.optimizer.loss < 1e-5);
    free(result.x);
    return result.optimizer.evaluations;
}

static void a_scale_of_its_own_for_the_bias_saves_evaluations(void **state) {
    (void)state;
    uint64_t scaled = evaluations_with_bias_scale(0x1p-10), plain = evaluations_with_bias_scale(1);
    print_message("%llu evaluations, %llu without it\n", (unsigned long long)scaled,
                  (unsigned long long)plain);
    assert_true(3 * scaled < 2 * plain);
}

static void helical_valley_reaches_its_minimum(void **state) {
    (void)state;
    expect_minimum(helical_valley, 3, (double[]){-1, 0, 0}, 1e-8, 0, 1e-13);
}

static void brown_badly_scaled_reaches_its_minimum(void **state) {
    (void)state;
    expect_minimum(brown_badly_scaled, 2, (double[]){1, 1}, 1e-4, 0, 1e-8);
}

static void trigonometric_reaches_a_minimum(void **state) {
    (void)state;
    double start[10];
    for (int i = 0; i < 10; i++)
        start[i] = 0.1;
    struct optimizer_settings settings = settings_for(1e-8);
    struct minimization result;
    minimize(trigonometric, 10, start, &settings, &result);
    assert_int_equal(result.optimizer.reason, REASON_GRADIENT_TOLERANCE);
    /* Two minima are published for n = 10: 0 and 2.79506e-5. */
    double loss = result.optimizer.loss;
    assert_true(loss <= 1e-12 || fabs(loss - 2.79506e-5) <= 1e-10);
    free(result.x);
}

static void variably_dimensioned_reaches_its_minimum(void **state) {
    (void)state;
    double start[10];
    for (int i = 0; i < 10; i++)
        start[i] = 1 - (i + 1) / 10.0;
    expect_minimum(variably_dimensioned, 10, start, 1e-7, 0, 1e-12);
}

static void penalty_1_reaches_its_minimum(void **state) {
    (void)state;
    double four[] = {1, 2, 3, 4}, ten[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    expect_minimum(penalty_1, 4, four, 1e-10, 2.24997e-5, 1e-10);
    expect_minimum(penalty_1, 10, ten, 1e-10, 7.08765e-5, 1e-10);
}

/* ½·Σ d_i·x_i² − Σ x_i, d from 1 to 10⁴; F is offset so that rounding matters near the end. */
static double offset_quadratic(uint32_t n, const double *x, double *g) {
    double f = 1e3;
    for (uint32_t i = 0; i < n; i++) {
        double d = pow(10, 4.0 * i / (n - 1));
        f += x[i] * (d * x[i] / 2 - 1);
        g[i] = d * x[i] - 1;
    }
    return f;
}

static void rounding_in_f_does_not_end_a_run_early(void **state) {
    (void)state;
    double start[50] = {0};
    struct optimizer_settings settings = settings_for(1e-12);
    struct minimization result;
    minimize(offset_quadratic, 50, start, &settings, &result);
    assert_int_equal(result.optimizer.reason, REASON_GRADIENT_TOLERANCE);
    free(result.x);
}

/* ½·mean(residual²) of y = 1e6, −1e6, 1e6 over x = 1, 2, 3, with an intercept: the second step must
 * be many times its first trial. */
static double steep_residuals(uint32_t n, const double *x, double *g) {
    static const double at[] = {1, 2, 3}, label[] = {1e6, -1e6, 1e6};
    double f = 0;
    (void)n;
    g[0] = g[1] = 0;
    for (int i = 0; i < 3; i++) {
        double residual = x[0] * at[i] + x[1] - label[i];
        f += residual * residual / 6;
        g[0] += residual * at[i] / 3;
        g[1] += residual / 3;
    }
    return f;
}

static void a_search_that_must_extrapolate_far_reaches_the_minimum(void **state) {
    (void)state;
    struct optimizer_settings settings = settings_for(1e-5);
    struct minimization result;
    minimize(steep_residuals, 2, (double[]){0, 0}, &settings, &result);
    assert_int_equal(result.optimizer.reason, REASON_GRADIENT_TOLERANCE);
    assert_true(fabs(result.optimizer.loss - 4e12 / 9) <= 1);
    assert_true(result.optimizer.step <= 12 && result.optimizer.evaluations <= 30);
    free(result.x);
}

/* log-like barrier: not finite for x ≤ 0. */
static double barrier(uint32_t n, const double *x, double *g) {
    (void)n;
    g[0] = 1 - 1e-3 / x[0];
    return x[0] > 0 ? x[0] - 1e-3 * log(x[0]) : NAN;
}

static void a_trial_that_is_not_finite_shrinks_the_step(void **state) {
    (void)state;
    struct optimizer_settings settings = settings_for(1e-8);
    struct minimization result;
    minimize(barrier, 1, (double[]){0.9}, &settings, &result);
    assert_int_equal(result.optimizer.reason, REASON_GRADIENT_TOLERANCE);
    assert_true(result.optimizer.safeguards[SAFEGUARD_TRIAL_NOT_FINITE] > 0);
    assert_true(fabs(result.x[0] - 1e-3) < 1e-8);
    free(result.x);
}

/* A gradient that points the wrong way: no step along it decreases F. */
static double wrong_gradient(uint32_t n, const double *x, double *g) {
    double f = 0;
    for (uint32_t i = 0; i < n; i++) {
        f += x[i] * x[i];
        g[i] = -2 * x[i];
    }
    return f;
}

static void a_hopeless_line_search_ends_stalled_at_the_best_point(void **state) {
    (void)state;
    struct optimizer_settings settings = settings_for(1e-8);
    struct minimization result;
    minimize(wrong_gradient, 2, (double[]){1, 2}, &settings, &result);
    assert_int_equal(result.optimizer.reason, REASON_STALLED);
    assert_true(result.x[0] == 1 && result.x[1] == 2);
    free(result.x);
}

static void the_step_limit_ends_a_run_at_its_last_accepted_point(void **state) {
    (void)state;
    struct optimizer_settings settings = settings_for(1e-8);
    struct minimization result;
    double gradient[2];
    settings.steps_max = 7;
    minimize(rosenbrock, 2, (double[]){-1.2, 1}, &settings, &result);
    assert_int_equal(result.optimizer.reason, REASON_STEP_LIMIT);
    assert_int_equal(result.optimizer.step, 7);
    assert_true(rosenbrock(2, result.x, gradient) == result.optimizer.loss);
    free(result.x);
}

static void the_loss_tolerance_looks_ten_steps_back(void **state) {
    (void)state;
    double start[50] = {0};
    struct optimizer_settings settings = settings_for(0);
    struct minimization result;
    settings.loss_tolerance = 1e-6;
    minimize(offset_quadratic, 50, start, &settings, &result);
    assert_int_equal(result.optimizer.reason, REASON_LOSS_TOLERANCE);
    assert_true(result.optimizer.step >= LOSSES_KEPT);
    free(result.x);
}

static void a_step_takes_two_rounds_whatever_the_history(void **state) {
    (void)state;
    double start[50] = {0};
    for (uint32_t memory = 5; memory <= 100; memory += 95) {
        struct optimizer_settings settings = settings_for(1e-9);
        struct minimization result;
        settings.memory = memory;
        minimize(offset_quadratic, 50, start, &settings, &result);
        const struct lbfgs *o = &result.optimizer;
        assert_int_equal(o->reason, REASON_GRADIENT_TOLERANCE);
        assert_true(o->rounds <= 2 * o->step + o->retries + 2);
        free(result.x);
    }
}

static void a_run_can_go_on_from_a_limit_and_a_stop_and_from_no_other_end(void **state) {
    (void)state;
    for (enum reason reason = REASON_NONE; reason < REASONS; reason++) {
        bool can = reason == REASON_STEP_LIMIT || reason == REASON_EPOCH_LIMIT ||
                   reason == REASON_TIME_LIMIT || reason == REASON_CANCELLED;
        assert_int_equal(reason_can_resume(reason), can);
        assert_int_equal(reason_text_can_resume(reason_text(reason)), can);
    }
    assert_false(reason_text_can_resume("step"));
}

/* Weights that curve little: where its gradient is small, F may still be far. */
static void a_tolerance_waits_until_the_gap_is_small(void **state) {
    (void)state;
    struct optimizer_settings settings = settings_for(1e-3);
    double start[40] = {0};
    struct minimization early, late;
    minimize(steep_bias, 40, start, &settings, &early);
    settings.gap = (struct gap_settings){.known = true,
                                         .second = 1e-4,
                                         .typical_second = INFINITY,
                                         .bias_share = 1,
                                         .least = 1e-3,
                                         .tolerance = 1e-6};
    struct minimization told;
    minimize(steep_bias, 40, start, &settings, &told);
    assert_int_equal(told.optimizer.step, early.optimizer.step);
    assert_true(told.optimizer.gap_estimate > 1e-6);
    assert_false(lbfgs_gap_is_small(&told.optimizer));
    settings.gap.waited_for = true;
    minimize(steep_bias, 40, start, &settings, &late);
    assert_int_equal(late.optimizer.reason, REASON_GRADIENT_TOLERANCE);
    assert_true(late.optimizer.step > early.optimizer.step);
    assert_true(lbfgs_gap_is_small(&late.optimizer));
    assert_true(isnan(early.optimizer.gap_estimate));
    free(early.x);
    free(told.x);
    free(late.x);
}

/* Else a run that waits for its estimate would wait anew after each coordinator that is lost. */
static void for_how_long_the_loss_has_settled_outlives_the_process(void **state) {
    (void)state;
    struct optimizer_settings settings = settings_for(1e-3);
    struct minimization result;
    struct bytes written;
    minimize(steep_bias, 40, (double[40]){0}, &settings, &result);
    result.optimizer.settled = 57;
    bytes_init(&written);
    lbfgs_row.serialize(&(struct codec){.out = &written}, &result.optimizer);
    struct lbfgs next = result.optimizer;
    next.settled = 0;
    lbfgs_row.serialize(&(struct codec){.in = cursor_over(written.data, written.length)}, &next);
    assert_int_equal(next.settled, 57);
    bytes_release(&written);
    free(result.x);
}

/* Its steps showed that P has more curvature than there is: the next estimate may be as wrong. */
static void an_estimate_by_a_p_that_steps_disproved_is_the_largest_of_the_last(void **state) {
    (void)state;
    struct lbfgs *o = memory_new(1, sizeof *o);
    struct optimizer_settings settings = settings_for(1e-3);
    settings.gap = (struct gap_settings){.known = true, .newton = true, .waited_for = true};
    lbfgs_init(o, &settings, &(struct optimizer_data){.weight_sum = 1});
    o->started = o->history.preconditioned = true;
    const double estimates[] = {1e-3, 1e-5, 1e-6};
    for (int doubted = 0; doubted < 2; doubted++) {
        struct measured last = {0};
        for (o->step = 0; o->step < 3; o->step++) {
            last = (struct measured){.loss = 1,
                                     .gap = estimates[o->step],
                                     .steepness = doubted && !o->step ? 0.125 : 0.75,
                                     .gap_bound = NAN};
            lbfgs_note_gap(o, &last);
        }
        o->step--;
        double flatness = doubted ? 8 : 1 / 0.75, estimate = doubted ? 1e-3 : 1e-6;
        assert_true(fabs(lbfgs_gap_estimate(o, &last) / (estimate * flatness) - 1) < 1e-9);
    }
    free(o);
}

static void an_estimate_by_masked_pairs_is_the_largest_of_seven(void **state) {
    (void)state;
    struct lbfgs *o = memory_new(1, sizeof *o);
    struct optimizer_settings settings = settings_for(1e-3);
    settings.l1 = 1e-3;
    settings.gap = (struct gap_settings){.known = true, .waited_for = true};
    lbfgs_init(o, &settings, &(struct optimizer_data){.weight_sum = 1});
    o->started = true;
    for (o->step = 0; o->step <= GAPS_KEPT_BARE; o->step++) {
        const struct measured m = {
            .loss = 1, .gap = o->step ? 1e-6 : 1e-3, .steepness = 1, .gap_bound = NAN};
        lbfgs_note_gap(o, &m);
        double expected = o->step < GAPS_KEPT_BARE ? 1e-3 : 1e-6;
        assert_true(fabs(lbfgs_gap_estimate(o, &m) / expected - 1) < 1e-9);
    }
    free(o);
}

/* The step at which a run ends whose loss is level, with this estimate of the gap. */
static uint64_t end_of_a_level_run(bool asked_for, double estimate) {
    struct lbfgs *o = memory_new(1, sizeof *o);
    struct optimizer_settings settings = settings_for(0);
    settings.loss_tolerance = 1e-9;
    settings.steps_max = 1000;
    settings.gap = (struct gap_settings){
        .known = true, .tolerance = 1e-12, .waited_for = true, .asked_for = asked_for};
    lbfgs_init(o, &settings, &(struct optimizer_data){.weight_sum = 1});
    o->started = true;
    o->loss = o->gradient_max = 1;
    o->gap_estimate = estimate;
    enum reason reason = REASON_NONE;
    for (lbfgs_note_loss(o); !(reason = lbfgs_reason_to_end(o)); lbfgs_note_loss(o))
        o->step++;
    uint64_t step = o->step;
    assert_int_equal(reason, REASON_LOSS_TOLERANCE);
    assert_false(lbfgs_gap_is_small(o));
    free(o);
    return step;
}

static void
a_level_loss_ends_a_run_late_where_a_gap_was_asked_for_that_is_no_rounding(void **state) {
    (void)state;
    assert_int_equal(end_of_a_level_run(false, 1e-4), LOSSES_KEPT);
    assert_int_equal(end_of_a_level_run(true, 1e-10), LOSSES_KEPT);
    assert_int_equal(end_of_a_level_run(true, 1e-4), LOSSES_KEPT + 99);
}

SUITE(optimizer) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_can_go_on_from_a_limit_and_a_stop_and_from_no_other_end),
        cmocka_unit_test(rosenbrock_reaches_its_minimum),
        cmocka_unit_test(extended_powell_reaches_its_minimum),
        cmocka_unit_test(wood_reaches_its_minimum),
        cmocka_unit_test(a_scale_of_its_own_for_the_bias_saves_evaluations),
        cmocka_unit_test(helical_valley_reaches_its_minimum),
        cmocka_unit_test(brown_badly_scaled_reaches_its_minimum),
        cmocka_unit_test(trigonometric_reaches_a_minimum),
        cmocka_unit_test(variably_dimensioned_reaches_its_minimum),
        cmocka_unit_test(penalty_1_reaches_its_minimum),
        cmocka_unit_test(rounding_in_f_does_not_end_a_run_early),
        cmocka_unit_test(a_search_that_must_extrapolate_far_reaches_the_minimum),
        cmocka_unit_test(a_trial_that_is_not_finite_shrinks_the_step),
        cmocka_unit_test(a_hopeless_line_search_ends_stalled_at_the_best_point),
        cmocka_unit_test(the_step_limit_ends_a_run_at_its_last_accepted_point),
        cmocka_unit_test(the_loss_tolerance_looks_ten_steps_back),
        cmocka_unit_test(a_tolerance_waits_until_the_gap_is_small),
        cmocka_unit_test(an_estimate_by_masked_pairs_is_the_largest_of_seven),
        cmocka_unit_test(
            a_level_loss_ends_a_run_late_where_a_gap_was_asked_for_that_is_no_rounding),
        cmocka_unit_test(for_how_long_the_loss_has_settled_outlives_the_process),
        cmocka_unit_test(an_estimate_by_a_p_that_steps_disproved_is_the_largest_of_the_last),
        cmocka_unit_test(a_step_takes_two_rounds_whatever_the_history),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
