/* Evaluations that take as long as their messages: how they end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/clock.h"
#include "tests/unit/coordinator_bench.h"
#include "wire/program.h"

/* Everything counted by replica 0 in one flush. */
static void count_all(struct fixture *f) {
    bench_flush(f, REPLICA_0, 0, 0, CHUNKS);
}

/* The program that is sent begins with CHECK, for the one flush that was folded. */
static void assert_checks(const struct fixture *f, uint32_t shard) {
    struct message message = bench_sent(f, shard, MESSAGE_PROGRAM);
    struct cursor cursor =
        cursor_over(message.program.operations.data, message.program.operations.length);
    struct operation operation;
    struct flush_id id = bench_flush_id(f, REPLICA_0, 0);
    assert_true(program_next(&cursor, &operation));
    assert_int_equal(operation.code, OPERATION_CHECK);
    assert_int_equal(operation.folds, 1);
    assert_true(operation.hash == flush_id_hash(&id));
}

static void the_next_program_follows_the_last_fold_at_once(void **state) {
    struct fixture *f = *state;
    bench_start(f);
    count_all(f);
    assert_int_equal(coordinator_view(f->coordinator).evaluation.counted, CHUNKS);
    for (uint32_t shard = SHARD_0; shard <= SHARD_1; shard++) {
        assert_true(bench_place(f, shard, MESSAGE_FOLD) < bench_place(f, shard, MESSAGE_PROGRAM));
        assert_checks(f, shard);
    }
    bench_folded(f, SHARD_0, REPLICA_0, 0);
    assert_int_equal(bench_count_sent(f, REPLICA_0, MESSAGE_VERDICT), 0);
    bench_folded(f, SHARD_1, REPLICA_0, 0);
    assert_int_equal(bench_sent(f, REPLICA_0, MESSAGE_VERDICT).verdict.accepted, 1);
}

/* Its memory may be in use yet. */
static void
a_flush_that_is_repeated_after_the_end_has_no_verdict_before_all_have_folded(void **state) {
    struct fixture *f = *state;
    bench_start(f);
    count_all(f);
    count_all(f);
    assert_int_equal(bench_count_sent(f, REPLICA_0, MESSAGE_VERDICT), 0);
    assert_int_equal(bench_count_sent(f, SHARD_0, MESSAGE_DROP), 0);
    bench_folded(f, SHARD_0, REPLICA_0, 0);
    bench_folded(f, SHARD_1, REPLICA_0, 0);
    count_all(f);
    assert_int_equal(bench_sent(f, REPLICA_0, MESSAGE_VERDICT).verdict.accepted, 1);
}

static void a_fold_that_is_confirmed_in_the_next_evaluation_is_no_stale_message(void **state) {
    struct fixture *f = *state;
    bench_start(f);
    count_all(f);
    bench_answer(f, (double[]){0, 1, 0.5, 0}, 4);
    assert_int_equal(coordinator_view(f->coordinator).evaluation.number, 2);
    struct message folded = {.type = MESSAGE_FOLDED};
    folded.folded.flush = bench_flush_id(f, REPLICA_0, 0);
    folded.folded.flush.evaluation = 1;
    bench_feed(f, SHARD_0, folded);
    assert_int_equal(coordinator_view(f->coordinator).stale, 0);
    assert_int_equal(f->out.messages.count, 0);
}

static void a_program_that_is_journalled_waits_for_every_fold(void **state) {
    struct fixture *f = *state;
    bench_start(f);
    f->now_ns = 100 * NS_PER_MS;
    coordinator_tick(f->coordinator, f->now_ns, &f->out);
    count_all(f);
    assert_int_equal(coordinator_view(f->coordinator).evaluation.counted, CHUNKS);
    assert_int_equal(bench_count_sent(f, SHARD_0, MESSAGE_PROGRAM), 0);
    bench_folded(f, SHARD_1, REPLICA_0, 0);
    assert_int_equal(bench_count_sent(f, SHARD_0, MESSAGE_PROGRAM), 0);
    bench_folded(f, SHARD_0, REPLICA_0, 0);
    assert_int_equal(bench_recorded(f, RECORD_JOURNAL)->journal.begins, true);
    assert_checks(f, SHARD_0);
}

static void after_a_short_evaluation_programs_are_not_journalled_any_more(void **state) {
    struct fixture *f = *state;
    bench_start(f);
    f->now_ns = 100 * NS_PER_MS;
    coordinator_tick(f->coordinator, f->now_ns, &f->out);
    count_all(f);
    bench_folded(f, SHARD_1, REPLICA_0, 0);
    bench_folded(f, SHARD_0, REPLICA_0, 0);
    bench_answer(f, (double[]){0, 1, 0.5, 0}, 4);
    assert_int_equal(bench_count_recorded(f, RECORD_JOURNAL), 1);
    count_all(f); /* of the second evaluation, which takes no time */
    assert_int_equal(bench_count_sent(f, SHARD_0, MESSAGE_PROGRAM), 1);
    assert_int_equal(bench_count_recorded(f, RECORD_JOURNAL), 1); /* the verdict alone */
    assert_false(bench_recorded(f, RECORD_JOURNAL)->journal.begins);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, bench_set_up, bench_tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(the_next_program_follows_the_last_fold_at_once),
        TEST(a_flush_that_is_repeated_after_the_end_has_no_verdict_before_all_have_folded),
        TEST(a_fold_that_is_confirmed_in_the_next_evaluation_is_no_stale_message),
        TEST(a_program_that_is_journalled_waits_for_every_fold),
        TEST(after_a_short_evaluation_programs_are_not_journalled_any_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
