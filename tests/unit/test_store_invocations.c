/* The record of commands that train: what each came to, and how repetitions are counted. */
#include "tests/unit/store_fixture.h"

#include "base/memory.h"
#include "tests/unit/suites.h"

static int64_t begin(struct store *store, int64_t *lost_ms) {
    int64_t number = 0, lost = -1;
    assert_int_equal(store_invocation_begin(store, "retrain", &number, &lost), 0);
    if (lost_ms)
        *lost_ms = lost;
    else
        assert_int_equal(lost, 0);
    return number;
}

static void end(struct store *store, int64_t number, const char *outcome, int status,
                const char *reason, int64_t run) {
    const struct store_invocation invocation = {
        .invocation = number, .outcome = outcome, .status = status, .reason = reason, .run = run};
    assert_int_equal(store_invocation_end(store, &invocation), 0);
}

static void one(struct store *store, const char *outcome, int status, const char *reason,
                int64_t run) {
    end(store, begin(store, NULL), outcome, status, reason, run);
}

static int add_words(void *context, const struct store_invocation *invocation) {
    char **text = context, *before = *text;
    assert_string_equal(invocation->command, "retrain");
    assert_true(invocation->first_ms > 0 && invocation->first_ms <= invocation->began_ms);
    assert_true(!invocation->ended_ms || invocation->ended_ms >= invocation->began_ms);
    *text =
        memory_format("%s%lld %s %d '%s' %lld x%llu;", before, (long long)invocation->invocation,
                      invocation->outcome, invocation->status, invocation->reason,
                      (long long)invocation->run, (unsigned long long)invocation->times);
    free(before);
    return 0;
}

static void assert_recorded(struct store *store, const char *expected) {
    char *text = memory_copy_string("");
    assert_int_equal(store_invocations(store, add_words, &text), 0);
    assert_string_equal(text, expected);
    free(text);
}

static void invocations_that_come_to_the_same_are_one_row(void **state) {
    (void)state;
    struct store *store = opened();
    for (int i = 0; i < 3; i++)
        one(store, "nothing new", 0, "no new data", 0);
    for (int i = 0; i < 2; i++)
        one(store, "failed", 65, "no file", 0);
    one(store, "failed", 65, "another file", 0);
    one(store, "failed", 74, "another file", 0);
    one(store, "published", 0, "it is better", 1);
    one(store, "published", 0, "it is better", 2);
    one(store, "nothing new", 0, "no new data", 0);
    store_close(store);
    store = opened();
    one(store, "nothing new", 0, "no new data", 0);
    assert_recorded(store, "3 nothing new 0 'no new data' 0 x3;5 failed 65 'no file' 0 x2;"
                           "6 failed 65 'another file' 0 x1;7 failed 74 'another file' 0 x1;"
                           "8 published 0 'it is better' 1 x1;9 published 0 'it is better' 2 x1;"
                           "11 nothing new 0 'no new data' 0 x2;");
    store_close(store);
}

static void begin_and_die(void) {
    int64_t number, lost_ms;
    store_invocation_begin(opened(), "retrain", &number, &lost_ms);
}

static void an_invocation_that_was_killed_is_lost_once_the_next_one_begins(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++)
        in_a_process_that_dies(begin_and_die);
    struct store *store = opened();
    int64_t lost_ms, number = begin(store, &lost_ms);
    assert_int_equal(number, 3);
    assert_true(lost_ms > 0);
    end(store, number, "stopped", 75, "terminated", 7);
    begin(store, NULL);
    assert_recorded(store, "2 lost -1 '" INVOCATION_LOST "' 0 x2;"
                           "3 stopped 75 'terminated' 7 x1;4  -1 '' 0 x1;");
    store_close(store);
}

static int count_rows(void *context, const struct store_invocation *invocation) {
    int64_t *rows = context;
    assert_int_equal(rows[0]++ + rows[1], invocation->invocation);
    return 0;
}

static void only_the_newest_invocations_are_kept(void **state) {
    (void)state;
    struct store *store = opened();
    for (int i = 1; i <= INVOCATIONS_KEPT + 20; i++)
        one(store, "published", 0, "", i);
    int64_t rows[2] = {0, 21};
    assert_int_equal(store_invocations(store, count_rows, rows), 0);
    assert_int_equal(rows[0], INVOCATIONS_KEPT);
    store_close(store);
}

/* The first database is made whole, without a log. */
static void a_log_of_invocations_alone_is_left_to_whoever_writes_more(void **state) {
    (void)state;
    store_close(opened());
    for (int i = 0; i < 3; i++) {
        struct store *store = opened();
        one(store, "nothing new", 0, "no new data", 0);
        store_close(store);
        assert_int_equal(access(wal, F_OK), 0);
    }
    struct store *store;
    assert_int_equal(store_open_to_read(folder, &store), 0);
    assert_recorded(store, "3 nothing new 0 'no new data' 0 x3;");
    store_close(store);
    assert_int_equal(access(wal, F_OK), 0);
    store = opened();
    begun(store, "one");
    store_close(store);
    assert_int_equal(access(wal, F_OK), -1);
    store = opened();
    assert_recorded(store, "3 nothing new 0 'no new data' 0 x3;");
    store_close(store);
}

SUITE(store_invocations) {
    const struct CMUnitTest tests[] = {
        TEST(invocations_that_come_to_the_same_are_one_row),
        TEST(an_invocation_that_was_killed_is_lost_once_the_next_one_begins),
        TEST(only_the_newest_invocations_are_kept),
        TEST(a_log_of_invocations_alone_is_left_to_whoever_writes_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
