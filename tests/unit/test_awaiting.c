/* For whom a run waits, and for how long. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/suites.h"
#include "base/clock.h"
#include "base/error.h"
#include "coordinator/run/missing_workers.h"

/* Two shards and three replicas. */
static const char *const addresses[] = {"unix:/s0", "unix:/s1", "unix:/r0", "h:1", "h:2"};
enum { SHARD_0, SHARD_1, REPLICA_0, REPLICA_1, REPLICA_2, LINKS };

static struct missing_workers begin(double seconds) {
    struct missing_workers missing;
    missing_init(&missing, addresses, 2, 3);
    for (uint32_t i = 0; i < LINKS; i++)
        missing_begin(&missing, i, 0, seconds);
    return missing;
}

static int check(struct missing_workers *missing, bool replica_there, double seconds) {
    error_clear();
    return missing_check(missing, replica_there, (int64_t)(seconds * (double)NS_PER_S));
}

static void assert_text(const struct missing_workers *missing, const char *expected) {
    char *text = missing_text(missing);
    assert_string_equal(text, expected);
    free(text);
}

static void a_shard_that_never_comes_ends_the_run_with_what_to_start(void **state) {
    (void)state;
    struct missing_workers missing = begin(60);
    missing_failed(&missing, SHARD_1, "unix:/s1: cannot connect: Connection refused");
    for (uint32_t i = 0; i < LINKS; i++)
        if (i != SHARD_1)
            missing_came(&missing, i);
    assert_int_equal(check(&missing, true, 59.9), 0);
    assert_text(&missing, "shard 1 at unix:/s1");
    assert_int_equal(check(&missing, true, 60), ERROR_UNAVAILABLE);
    assert_string_equal(error_text(),
                        "shard 1 is not there (unix:/s1: cannot connect: Connection refused); "
                        "start dml-shard --listen unix:/s1, or wait longer for them with --wait");
    missing_release(&missing);
}

static void what_is_to_be_started_stands_as_a_shell_takes_it(void **state) {
    (void)state;
    const char *const odd[] = {"unix:/a b/$s", "h:1"};
    struct missing_workers missing;
    missing_init(&missing, odd, 1, 1);
    missing_begin(&missing, 0, 0, 1);
    assert_int_equal(check(&missing, true, 1), ERROR_UNAVAILABLE);
    assert_non_null(strstr(error_text(), "start dml-shard --listen 'unix:/a b/$s', or wait"));
    missing_release(&missing);
}

static void a_replica_that_never_comes_is_done_without_if_another_is_there(void **state) {
    (void)state;
    struct missing_workers missing = begin(60);
    for (uint32_t i = 0; i < LINKS; i++)
        if (i != REPLICA_1)
            missing_came(&missing, i);
    assert_int_equal(check(&missing, true, 61), 0);
    assert_true(missing_gave_up(&missing, REPLICA_1));
    assert_null(missing_text(&missing));
    missing_came(&missing, REPLICA_1);
    assert_false(missing_gave_up(&missing, REPLICA_1));
    missing_release(&missing);
}

static void a_run_with_no_replica_at_all_ends_and_names_them(void **state) {
    (void)state;
    struct missing_workers missing = begin(60);
    missing_came(&missing, SHARD_0);
    missing_came(&missing, SHARD_1);
    assert_int_equal(check(&missing, false, 60), ERROR_UNAVAILABLE);
    assert_non_null(
        strstr(error_text(), "replica 0 is not there (unix:/r0: no answer), replica 1"));
    assert_non_null(strstr(error_text(), "dml-replica --listen h:2"));
    missing_release(&missing);
}

/* It joined late, was the last one that worked, and is lost: the time of the others is over. */
static void the_last_replica_that_is_lost_is_waited_for_again(void **state) {
    (void)state;
    struct missing_workers missing = begin(60);
    for (uint32_t i = 0; i < LINKS; i++)
        if (i != REPLICA_1)
            missing_came(&missing, i);
    assert_int_equal(check(&missing, true, 70), 0);
    missing_begin(&missing, REPLICA_0, 100 * NS_PER_S, 30);
    assert_int_equal(check(&missing, false, 129), 0);
    assert_text(&missing, "replica 0 at unix:/r0");
    assert_int_equal(check(&missing, false, 130), ERROR_UNAVAILABLE);
    assert_non_null(strstr(error_text(), "replica 0 is not there"));
    missing_release(&missing);
}

static void without_a_wait_the_first_failure_ends_the_run_and_no_failure_does_not(void **state) {
    (void)state;
    struct missing_workers missing = begin(0);
    assert_int_equal(check(&missing, true, 1), 0);
    missing_failed(&missing, REPLICA_2, "h:2: cannot connect: Connection refused");
    assert_int_equal(check(&missing, true, 1), ERROR_UNAVAILABLE);
    missing_release(&missing);
}

static void a_worker_that_is_lost_again_while_it_is_awaited_gets_no_more_time(void **state) {
    (void)state;
    struct missing_workers missing = begin(60);
    missing_begin(&missing, SHARD_0, 50 * NS_PER_S, 60);
    assert_int_equal(check(&missing, true, 60), ERROR_UNAVAILABLE);
    missing_release(&missing);
}

static void many_are_shortened(void **state) {
    (void)state;
    struct missing_workers missing = begin(60);
    assert_text(&missing, "shard 0 at unix:/s0, shard 1 at unix:/s1, replica 0 at unix:/r0, "
                          "replica 1 at h:1, 1 more");
    missing_release(&missing);
}

SUITE(awaiting) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_shard_that_never_comes_ends_the_run_with_what_to_start),
        cmocka_unit_test(what_is_to_be_started_stands_as_a_shell_takes_it),
        cmocka_unit_test(a_replica_that_never_comes_is_done_without_if_another_is_there),
        cmocka_unit_test(a_run_with_no_replica_at_all_ends_and_names_them),
        cmocka_unit_test(the_last_replica_that_is_lost_is_waited_for_again),
        cmocka_unit_test(without_a_wait_the_first_failure_ends_the_run_and_no_failure_does_not),
        cmocka_unit_test(a_worker_that_is_lost_again_while_it_is_awaited_gets_no_more_time),
        cmocka_unit_test(many_are_shortened),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
