/* Working sets: which parameters are in, what a step promises, and what it costs. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/unit/suites.h"
#include "base/codec.h"
#include "base/memory.h"
#include "base/random.h"
#include "optimizer/working.h"

static const struct preconditioner_settings settings = {.form = PRECONDITION_LISTED,
                                                        .rows = 100000,
                                                        .columns = 5000,
                                                        .block_columns = 2047,
                                                        .parts = 1,
                                                        .trace_first = 0.25,
                                                        .cost_all = 0.5,
                                                        .cost_term = 1e-5};

static struct working *working_new(void) {
    struct working *w = memory_new(1, sizeof *w);
    working_init(w, &settings);
    return w;
}

static struct listed weight(uint64_t number, double x, double gradient) {
    return (struct listed){.number = number,
                           .regularized = true,
                           .x = x,
                           .gradient = gradient,
                           .scale = 1,
                           .penalty = 1,
                           .lasso = 1,
                           .low = -INFINITY,
                           .high = INFINITY,
                           .excess = x != 0 ? INFINITY : fabs(gradient) - 0.5};
}

static void the_set_is_the_support_the_bias_and_the_worst_violators_in_their_order(void **state) {
    (void)state;
    struct working *w = working_new();
    struct listed listed[] = {weight(9, 0, 0.7),  weight(5, 0, -0.9), weight(3, 1, 0.1),
                              weight(30, 0, 0.8), weight(7, 0, 0.8),  weight(40, 0, 0)};
    listed[5].regularized = false;
    listed[5].excess = INFINITY;
    working_choose(w, listed, 6, 2);
    const uint64_t expected[] = {3, 5, 7, 40};
    assert_int_equal(w->count, 4);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(w->items[i].number, expected[i]);
    uint64_t weights[WORKING_SET_MAX];
    assert_int_equal(working_weights(w, weights), 3);
    assert_memory_equal(weights, expected, 3 * sizeof *weights);
    free(w);
}

/* Shards answer in any order. */
static void the_order_of_the_answers_does_not_count(void **state) {
    (void)state;
    struct working *w = working_new(), *other = working_new();
    struct listed listed[300];
    struct random random;
    random_init(&random, 7);
    for (size_t i = 0; i < 300; i++)
        listed[i] = weight(3 * i, i % 4 ? 0 : 1, 0.1 * (double)(10 + random_below(&random, 9)));
    working_choose(w, listed, 300, 50);
    for (size_t i = 300; i > 1; i--) {
        size_t at = random_below(&random, i);
        struct listed moved = listed[i - 1];
        listed[i - 1] = listed[at];
        listed[at] = moved;
    }
    working_choose(other, listed, 300, 50);
    assert_int_equal(w->count, 75 + 50);
    assert_int_equal(other->count, w->count);
    for (size_t i = 0; i < w->count; i++)
        assert_int_equal(w->items[i].number, other->items[i].number);
    free(w);
    free(other);
}

static void a_set_has_room_for_a_share_of_the_support_and_fits(void **state) {
    (void)state;
    struct preconditioner_settings several = settings;
    several.parts = 3;
    struct working *w = working_new();
    assert_int_equal(working_limit(w, &settings, 0), 64);
    assert_int_equal(working_limit(w, &settings, 500), 375);
    assert_int_equal(working_limit(w, &several, 500), 500);
    assert_int_equal(working_limit(w, &settings, 2000), 47);
    w->damping = 1e-6;
    assert_int_equal(working_limit(w, &settings, 500), 250);
    assert_int_equal(working_limit(w, &several, 500), 500);
    struct preconditioner_settings close = settings;
    close.near = true;
    assert_int_equal(working_limit(w, &close, 500), 125);
    const struct preconditioner p = {0};
    assert_true(working_due(w, &p, &settings, 2047 - 64));
    assert_false(working_due(w, &p, &settings, 2048 - 64));
    struct preconditioner_settings few = settings, none = settings;
    few.columns = few.block_columns + 1;
    assert_true(working_due(w, &p, &few, 2047));
    assert_false(working_due(w, &p, &few, 2048));
    none.form = PRECONDITION_NONE;
    assert_false(working_due(w, &p, &none, 1));
    free(w);
}

/* 100/√4 rows a parameter, and count²/2 terms each. */
static void dear_second_derivatives_of_several_outputs_are_waited_for(void **state) {
    (void)state;
    struct working *w = working_new();
    struct preconditioner p = {0};
    struct preconditioner_settings several = settings;
    several.parts = 4;
    several.cost_all = 0;
    several.cost_term = 1e-6;
    w->count = 10;
    working_paid(w, &(struct curvature_found){.rows = 500, .terms = 500 * 50}, 0.025);
    assert_true(w->density == 0.5);
    struct working *fresh = working_new();
    assert_true(working_due(fresh, &p, &several, 55));
    several.density = 1; /* dense rows: known at the start */
    assert_false(working_due(fresh, &p, &several, 55));
    free(fresh);
    assert_true(working_due(w, &p, &several, 45));  /* 2.3 passes */
    assert_false(working_due(w, &p, &several, 55)); /* 4.2 */
    p.passes = 4;
    assert_false(working_due(w, &p, &several, 55));
    p.passes = 5;
    assert_true(working_due(w, &p, &several, 55));
    w->count = 55;
    assert_false(working_is_too_costly(w, &p, &several));
    p.passes = 100;
    w->count = 60; /* 5.4 */
    assert_true(working_is_too_costly(w, &p, &several));
    assert_false(working_is_too_costly(w, &p, &settings));
    free(w);
}

static void a_promise_is_the_change_of_slope_and_penalty(void **state) {
    (void)state;
    struct working *w = working_new();
    const struct listed listed[] = {weight(1, 1, 0.2), weight(2, 0, -0.9)};
    const double step[] = {-3, 2};
    working_choose(w, listed, 2, 10);
    assert_true(fabs(working_promise(w, step, 0.5) - (-0.6 + 0.5 * (2 - 1) - 1.8 + 0.5 * 2)) <
                1e-15);
    assert_true(isnan(working_promise(w, (const double[]){NAN, 0}, 0.5)));
    free(w);
}

static void steps_that_lead_nowhere_or_cost_too_much_are_left(void **state) {
    (void)state;
    struct working *w = working_new();
    const struct preconditioner p = {0};
    const struct curvature_found found = {.rows = 1, .terms = 1};
    double first = working_damping(w);
    w->count = 3;
    working_stepped(w, 1, -2, 1);
    assert_true(working_damping(w) < first);
    working_failed(w);
    working_failed(w);
    assert_true(w->growth == 2 && working_damping(w) > first);
    assert_true(working_due(w, &p, &settings, 3));
    working_stepped(w, 0.7, -2, 1);
    working_failed(w);
    working_failed(w);
    working_failed(w);
    assert_false(working_due(w, &p, &settings, 3));
    free(w);
    w = working_new();
    w->count = 3;
    working_paid(w, &found, 20);
    assert_true(working_due(w, &p, &settings, 3));
    working_paid(w, &found, 20.5);
    assert_false(working_due(w, &p, &settings, 3));
    free(w);
}

static void damping_follows_what_f_falls_by(void **state) {
    (void)state;
    struct working *w = working_new();
    double before = working_damping(w);
    working_stepped(w, 1, -2, 0.5); /* half of what the quadratic says */
    assert_true(working_damping(w) == before);
    working_stepped(w, 0.7, -2, 1);
    assert_true(working_damping(w) == before);
    working_stepped(w, 1, -2, 0.2);
    assert_true(working_damping(w) > before);
    before = working_damping(w);
    working_stepped(w, 1, -2, 0.9);
    assert_true(working_damping(w) < before);
    before = working_damping(w);
    working_stepped(w, 0.3, -2, 0.9);
    assert_true(working_damping(w) > before);
    free(w);
}

/* Near the minimum each step leaves the share of the one before it, or less. */
static void whole_steps_with_little_damping_tell_what_is_left(void **state) {
    (void)state;
    struct working *w = working_new();
    struct preconditioner_settings near = settings;
    near.near = true;
    working_init(w, &near);
    assert_true(isnan(working_rest(w)));
    working_stepped(w, 1, -2e-2, 1e-2);
    assert_true(isnan(working_rest(w)));
    working_stepped(w, 1, -2e-4, 1e-4);
    assert_true(fabs(working_rest(w) - 1e-6) < 1e-15);
    working_stepped(w, 1, -2e-3, 1e-3); /* no better than the last one */
    assert_true(fabs(working_rest(w) - 1e-3) < 1e-15);
    working_stepped(w, 0.5, -2e-6, 1e-6);
    assert_true(isnan(working_rest(w)));
    working_stepped(w, 1, -2e-6, 1e-6);
    assert_true(isnan(working_rest(w))); /* beside one that was cut */
    working_stepped(w, 1, -2e-6, 1e-6);
    assert_true(!isnan(working_rest(w)));
    working_stepped(w, 1, -2e-6, 0.3e-6); /* not as the quadratic says */
    assert_true(isnan(working_rest(w)));
    working_stepped(w, 1, -2e-6, 1e-6);
    working_stepped(w, 1, -2e-6, 1e-6);
    working_passed_over(w);
    assert_true(isnan(working_rest(w)));
    free(w);
}

static void much_damping_hides_what_is_left(void **state) {
    (void)state;
    struct working *far = working_new(), *close = working_new();
    struct preconditioner_settings near = settings;
    preconditioner_starts_near(&near);
    working_init(far, &settings);
    working_init(close, &near);
    assert_true(working_damping(close) < working_damping(far));
    for (unsigned i = 0; i < 2; i++) {
        working_stepped(far, 1, -2, 1);
        working_stepped(close, 1, -2, 1);
    }
    assert_true(isnan(working_rest(far)) && !isnan(working_rest(close)));
    free(far);
    free(close);
}

static void the_sample_grows_with_the_set_up_to_all_rows(void **state) {
    (void)state;
    struct working *w = working_new();
    const struct preconditioner p = {.refreshes = 4, .found = {.score = 1e6}};
    struct listed listed[100];
    for (size_t i = 0; i < 100; i++)
        listed[i] = weight(i, 1, 0);
    working_choose(w, listed, 100, 0);
    struct row_sampling sampling = working_sampling(w, &p, &settings);
    assert_true(sampling.sample_seed == 5 && sampling.floor > 0 && sampling.floor < 1);
    w->growth = 4;
    assert_true(working_sampling(w, &p, &settings).floor == 1);
    free(w);
}

SUITE(working) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_set_is_the_support_the_bias_and_the_worst_violators_in_their_order),
        cmocka_unit_test(the_order_of_the_answers_does_not_count),
        cmocka_unit_test(a_set_has_room_for_a_share_of_the_support_and_fits),
        cmocka_unit_test(a_promise_is_the_change_of_slope_and_penalty),
        cmocka_unit_test(steps_that_lead_nowhere_or_cost_too_much_are_left),
        cmocka_unit_test(damping_follows_what_f_falls_by),
        cmocka_unit_test(whole_steps_with_little_damping_tell_what_is_left),
        cmocka_unit_test(much_damping_hides_what_is_left),
        cmocka_unit_test(dear_second_derivatives_of_several_outputs_are_waited_for),
        cmocka_unit_test(the_sample_grows_with_the_set_up_to_all_rows),
    };
    return cmocka_run_group_tests_name("working", tests, NULL, NULL);
}
