#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/suites.h"
#include "coordinator/status/history.h"

#define P(number)                                                                                  \
    { .decision = DECISION_PUBLISHED, .run = (number) }
#define R(number)                                                                                  \
    { .decision = DECISION_REFUSED, .run = (number) }
#define B(number)                                                                                  \
    { .decision = DECISION_ROLLED_BACK, .run = (number) }

#define K(number)                                                                                  \
    { .decision = DECISION_KEPT, .run = (number) }

#define HISTORY(...)                                                                               \
    (&(struct history){.items = (struct history_item[]){__VA_ARGS__},                              \
                       .count = sizeof((struct history_item[]){__VA_ARGS__}) /                     \
                                sizeof(struct history_item)})

static void the_last_that_was_not_refused_is_live(void **state) {
    (void)state;
    assert_int_equal(history_live(&(struct history){0}), 0);
    assert_int_equal(history_live(HISTORY(R(1))), 0);
    assert_int_equal(history_live(HISTORY(P(1), P(2), R(3))), 2);
    assert_int_equal(history_live(HISTORY(P(1), P(2), B(1))), 1);
}

static void the_last_decision_about_a_run_counts(void **state) {
    (void)state;
    assert_null(history_of(HISTORY(P(1)), 2));
    assert_int_equal(history_of(HISTORY(R(1), P(2), B(1)), 1)->decision, DECISION_ROLLED_BACK);
    assert_int_equal(history_of(HISTORY(P(1), R(2)), 2)->decision, DECISION_REFUSED);
}

static void one_goes_back_version_by_version(void **state) {
    (void)state;
    assert_int_equal(history_before(HISTORY(P(1), P(2), R(3), P(4)), 4), 2);
    assert_int_equal(history_before(HISTORY(P(1), P(2), P(4), B(2)), 2), 1);
    assert_int_equal(history_before(HISTORY(P(1), P(2), P(4), B(2), B(1)), 1), 0);
    assert_int_equal(history_before(&(struct history){0}, 0), 0);
}

static void a_version_that_was_rolled_back_from_is_not_gone_back_to(void **state) {
    (void)state;
    assert_int_equal(history_before(HISTORY(P(1), P(2), B(1), P(3)), 3), 1);
    assert_int_equal(history_before(HISTORY(P(1), P(2), P(3), B(2), P(4), P(5)), 5), 4);
    assert_int_equal(history_before(HISTORY(P(1), P(2), P(3), B(2), P(4)), 4), 2);
}

static void a_refused_model_put_live_by_hand_is_gone_back_from(void **state) {
    (void)state;
    assert_int_equal(history_before(HISTORY(P(1), P(2), R(3), B(3)), 3), 2);
}

static void one_that_was_live_before_all_decisions_is_gone_back_to(void **state) {
    (void)state;
    struct history_item first = {.decision = DECISION_PUBLISHED, .run = 8, .previous_run = 6};
    struct history_item back = {.decision = DECISION_ROLLED_BACK, .run = 6, .previous_run = 8};
    assert_int_equal(history_before(HISTORY(first), 8), 6);
    assert_int_equal(history_before(HISTORY(first, P(9)), 9), 8);
    assert_int_equal(history_before(HISTORY(first, back), 6), 0);
}

static void one_that_was_made_live_by_other_means_is_gone_back_from(void **state) {
    (void)state;
    assert_int_equal(history_before(HISTORY(P(1), P(2)), 7), 2);
}

static void one_that_was_kept_was_never_live(void **state) {
    (void)state;
    assert_int_equal(history_live(HISTORY(P(1), K(2))), 1);
    assert_int_equal(history_live(HISTORY(K(1))), 0);
    assert_int_equal(history_before(HISTORY(P(1), K(2), P(3)), 3), 1);
    assert_int_equal(history_before(HISTORY(P(1), K(2), P(2)), 2), 1);
}

static void refusals_count_since_a_model_went_live(void **state) {
    (void)state;
    assert_int_equal(history_refusals(&(struct history){0}).count, 0);
    assert_int_equal(history_refusals(HISTORY(R(1), P(2))).count, 0);
    const struct history *history = HISTORY(R(1), P(2), R(3), K(4), R(5));
    struct history_refusals refusals = history_refusals(history);
    assert_int_equal(refusals.count, 2);
    assert_int_equal(refusals.last->run, 5);
    history->items[2].wall_ms = 7;
    assert_int_equal(history_refusals(history).since_ms, 7);
    assert_int_equal(history_refusals(HISTORY(P(1), R(2), B(1))).count, 0);
}

SUITE(history) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_that_was_not_refused_is_live),
        cmocka_unit_test(one_that_was_kept_was_never_live),
        cmocka_unit_test(refusals_count_since_a_model_went_live),
        cmocka_unit_test(the_last_decision_about_a_run_counts),
        cmocka_unit_test(one_goes_back_version_by_version),
        cmocka_unit_test(a_version_that_was_rolled_back_from_is_not_gone_back_to),
        cmocka_unit_test(a_refused_model_put_live_by_hand_is_gone_back_from),
        cmocka_unit_test(one_that_was_live_before_all_decisions_is_gone_back_to),
        cmocka_unit_test(one_that_was_made_live_by_other_means_is_gone_back_from),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
