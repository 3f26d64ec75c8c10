/* How fast a run goes, and how long it still takes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "tests/unit/suites.h"
#include "base/clock.h"
#include "coordinator/status/eta.h"

static struct coordinator_view run;
static struct eta pace;
static double now; /* seconds, as last noted */

/* Ten chunks, a tolerance of 1e-6, at most 1000 steps. */
static int begin(void **state) {
    (void)state;
    run = (struct coordinator_view){.phase = PHASE_RUNNING,
                                    .evaluation.chunks = 10,
                                    .gradient_tolerance = 1e-6,
                                    .steps_max = 1000};
    pace = (struct eta){0};
    return 0;
}

static void note(double seconds, uint64_t evaluations, uint32_t counted) {
    run.evaluations = evaluations;
    run.evaluation.counted = counted;
    now = seconds;
    eta_note(&pace, &run, now);
}

static void step(double seconds, uint64_t number, double gradient) {
    run.started = true;
    run.step = number;
    run.gradient_max = gradient;
    now = seconds;
    eta_note(&pace, &run, now);
}

static void the_rate_counts_parts_of_the_running_evaluation(void **state) {
    (void)state;
    note(100, 1, 0);
    assert_true(isnan(eta_rate(&pace, &run, now)));
    note(104, 1, 8);
    assert_float_equal(eta_rate(&pace, &run, now), 0.2, 1e-12);
}

static void the_rate_is_of_the_last_seconds_only(void **state) {
    (void)state;
    note(0, 1, 0); /* slow at first: a reading of 20 s */
    note(20, 1, 10);
    for (int i = 1; i <= 20; i++)
        note(20 + i, (uint64_t)(2 * i + 1), 10);
    assert_float_equal(eta_rate(&pace, &run, now), 2, 1e-12);
}

static void a_step_back_begins_a_new_rate(void **state) {
    (void)state;
    note(1, 50, 0);
    note(2, 20, 0);
    note(3, 24, 0);
    assert_float_equal(eta_rate(&pace, &run, now), 4, 1e-12);
}

static void the_time_left_follows_the_fall_of_the_gradient(void **state) {
    (void)state;
    step(10, 0, 1);
    assert_true(isnan(eta_seconds_left(&pace, &run, now, INFINITY)));
    step(16, 30, 1e-3);
    assert_float_equal(eta_seconds_left(&pace, &run, now, INFINITY), 6, 1e-9);
    step(22, 60, 1e-6);
    assert_float_equal(eta_seconds_left(&pace, &run, now, INFINITY), 0, 1e-9);
}

static void a_limit_that_comes_first_ends_the_run(void **state) {
    (void)state;
    step(10, 0, 1);
    step(16, 30, 1e-3);
    assert_float_equal(eta_seconds_left(&pace, &run, now, 18), 2, 1e-9);
    run.steps_max = 40;
    assert_float_equal(eta_seconds_left(&pace, &run, now, INFINITY), 2, 1e-9);
}

static void without_a_fall_only_a_limit_is_in_sight(void **state) {
    (void)state;
    step(10, 0, 1);
    step(16, 30, 1.5);
    assert_float_equal(eta_seconds_left(&pace, &run, now, INFINITY), 194, 1e-9);
}

static void pour(double seconds, uint64_t epoch, uint64_t minibatch) {
    run.downpour.running = true;
    run.downpour.epochs = 4;
    run.downpour.minibatches = 100;
    run.downpour.epoch = epoch;
    run.downpour.minibatch = minibatch;
    run.downpour.done = 100 * epoch + minibatch;
    now = seconds;
    eta_note(&pace, &run, now);
}

static void minibatches_have_a_rate_of_their_own(void **state) {
    (void)state;
    pour(10, 0, 50);
    pour(14, 2, 50);
    assert_float_equal(eta_rate(&pace, &run, now), 50, 1e-12);
    run.downpour.running = false;
    note(16, 300, 0); /* more evaluations than there were minibatches */
    assert_true(isnan(eta_rate(&pace, &run, now)));
    note(18, 302, 0);
    assert_float_equal(eta_rate(&pace, &run, now), 1, 1e-12);
}

static void what_a_checkpoint_brings_back_is_in_no_rate(void **state) {
    (void)state;
    run.phase = PHASE_SETTING_UP;
    pour(10, 0, 0); /* as if nothing were done */
    assert_true(isnan(eta_rate(&pace, &run, now)));
    run.phase = PHASE_RUNNING;
    pour(11, 2, 50);
    assert_true(isnan(eta_rate(&pace, &run, now)));
    pour(13, 2, 70);
    assert_float_equal(eta_rate(&pace, &run, now), 10, 1e-12);
    run.downpour.alone = true;
    assert_float_equal(eta_seconds_left(&pace, &run, now, INFINITY), 13, 1e-9);
}

static void the_time_left_of_minibatches_alone_is_that_of_their_epochs(void **state) {
    (void)state;
    pour(10, 0, 50);
    pour(14, 2, 50);
    assert_true(isnan(eta_seconds_left(&pace, &run, now, INFINITY)));
    run.downpour.alone = true;
    assert_float_equal(eta_seconds_left(&pace, &run, now, INFINITY), 3, 1e-9);
    assert_float_equal(eta_seconds_left(&pace, &run, now, 16), 2, 1e-9);
}

#define TEST(name) cmocka_unit_test_setup(name, begin)

/* Lines of a run of so many seconds, a step a second. */
static int lines_of(int64_t seconds) {
    int lines = 1;
    int64_t logged = 0;
    for (int64_t second = 1; second < seconds; second++)
        if ((second - logged) * NS_PER_S >= eta_log_pause_ns(second * NS_PER_S)) {
            logged = second;
            lines++;
        }
    return lines;
}

static void steps_are_logged_the_more_seldom_the_longer_a_run_takes(void **state) {
    (void)state;
    assert_in_range(lines_of(50), 10, 11);
    assert_in_range(lines_of(3600), 40, 60);
    assert_in_range(lines_of(8 * 3600), 80, 110);
}

static void a_long_run_still_shows_that_it_lives(void **state) {
    (void)state;
    assert_int_equal(eta_log_pause_ns(0), 5 * NS_PER_S);
    assert_int_equal(eta_log_pause_ns(INT64_MAX), 600 * NS_PER_S);
}

SUITE(pace) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_are_logged_the_more_seldom_the_longer_a_run_takes),
        cmocka_unit_test(a_long_run_still_shows_that_it_lives),
        TEST(the_rate_counts_parts_of_the_running_evaluation),
        TEST(the_rate_is_of_the_last_seconds_only),
        TEST(a_step_back_begins_a_new_rate),
        TEST(the_time_left_follows_the_fall_of_the_gradient),
        TEST(a_limit_that_comes_first_ends_the_run),
        TEST(without_a_fall_only_a_limit_is_in_sight),
        TEST(minibatches_have_a_rate_of_their_own),
        TEST(what_a_checkpoint_brings_back_is_in_no_rate),
        TEST(the_time_left_of_minibatches_alone_is_that_of_their_epochs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
