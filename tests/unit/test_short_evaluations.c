/* Evaluations that take about as long as their messages: how they are handed out, and end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/unit/suites.h"
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
    struct flush_id id = bench_flush_id(f, REPLICA_0, 0);
    id.evaluation = 1;
    folded.folded.flushes = listed_flushes(&id, 1);
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

/* ---- handing out ---- */

/* The first minibatch begins, and these are the speeds of the replicas, in chunks a millisecond.
 */
/* Minibatches of all chunks. */
static void begin_downpour(struct fixture *f) {
    static const double rate = 0.1;
    static const uint32_t multiple = 1;
    f->data.block_rows = 1;
    f->settings.portion_chunks = 0;
    f->settings.downpour = (struct downpour_settings){.epochs = 9,
                                                      .batch = CHUNKS,
                                                      .rates = &rate,
                                                      .rate_count = 1,
                                                      .multiples = &multiple,
                                                      .multiple_count = 1};
    bench_begin(f, &f->settings);
}

/* The first minibatch begins, and these are the speeds of the replicas, in chunks a millisecond. */
static void start_paced(struct fixture *f, double first, double second) {
    begin_downpour(f);
    bench_welcome_all(f);
    bench_pace(f, REPLICA_0, first * 1e-6);
    bench_pace(f, REPLICA_1, second * 1e-6);
    bench_ready_all(f);
}

static void each_is_given_its_share_at_once_and_need_not_ask(void **state) {
    struct fixture *f = *state;
    start_paced(f, 3, 3);
    for (uint32_t replica = REPLICA_0; replica <= REPLICA_1; replica++) {
        struct message share = bench_sent(f, replica, MESSAGE_PORTION);
        assert_int_equal(share.portion.count, 4);
        assert_int_equal(share.portion.flags, PORTION_LAST);
    }
    assert_int_equal(bench_chunks(f, CHUNK_WAITING), 0);
}

static void who_is_faster_is_given_of_the_range_of_others_too(void **state) {
    struct fixture *f = *state;
    start_paced(f, 3, 1);
    assert_int_equal(bench_sent(f, REPLICA_0, MESSAGE_PORTION).portion.flags, 0);
    assert_int_equal(bench_count_sent(f, REPLICA_0, MESSAGE_PORTION), 2);
    assert_int_equal(bench_sent(f, REPLICA_1, MESSAGE_PORTION).portion.count, 2);
    assert_int_equal(bench_chunks(f, CHUNK_WAITING), 0);
}

static void a_long_evaluation_is_handed_out_bit_by_bit(void **state) {
    struct fixture *f = *state;
    start_paced(f, 0.3, 0.3); /* eight chunks take 13 ms */
    assert_true(bench_chunks(f, CHUNK_WAITING) > 0);
}

static void what_one_does_in_no_time_goes_to_one_alone(void **state) {
    struct fixture *f = *state;
    start_paced(f, 1000, 1000);
    assert_int_equal(bench_sent(f, REPLICA_0, MESSAGE_PORTION).portion.count, CHUNKS);
    assert_int_equal(bench_count_sent(f, REPLICA_1, MESSAGE_PORTION), 0);
    assert_int_equal(bench_count_sent(f, REPLICA_1, MESSAGE_EVALUATE), 0);
}

static void who_would_end_after_the_other_has_done_all_is_passed_over(void **state) {
    struct fixture *f = *state;
    start_paced(f, 3, 0.3);
    assert_int_equal(bench_sent(f, REPLICA_0, MESSAGE_PORTION).portion.count, CHUNKS);
    assert_int_equal(bench_count_sent(f, REPLICA_1, MESSAGE_PORTION), 0);
    assert_int_equal(bench_count_sent(f, REPLICA_1, MESSAGE_EVALUATE), 0);
}

static void one_slow_flush_after_a_fast_one_passes_nobody_over(void **state) {
    struct fixture *f = *state;
    start_paced(f, 3, 3);
    f->busy_ns = 40 * NS_PER_MS; /* for its four chunks */
    bench_flush(f, REPLICA_1, 0, 4, 4);
    f->busy_ns = 1300000;
    bench_flush(f, REPLICA_0, 0, 0, 4);
    assert_int_equal(bench_sent(f, REPLICA_1, MESSAGE_EVALUATE).evaluate.evaluation, 2);
    assert_int_equal(bench_sent(f, REPLICA_1, MESSAGE_PORTION).portion.count, 4);
}

static void who_was_passed_over_for_long_is_tried_and_nobody_waits_for_that(void **state) {
    struct fixture *f = *state;
    begin_downpour(f);
    bench_pass_over(f, REPLICA_1, 32);
    bench_welcome_all(f);
    bench_pace(f, REPLICA_0, 3e-6);
    bench_pace(f, REPLICA_1, 3e-7);
    bench_ready_all(f);
    struct message tried = bench_sent(f, REPLICA_1, MESSAGE_PORTION);
    assert_int_equal(tried.portion.count, 1);
    assert_int_equal(tried.portion.flags, PORTION_SOLO | PORTION_LAST);
    bench_flush(f, REPLICA_0, 0, 0, 4);
    bench_flush(f, REPLICA_0, 1, 5, 3);
    struct message copy = bench_sent(f, REPLICA_0, MESSAGE_PORTION);
    assert_int_equal(copy.portion.first, tried.portion.first);
    assert_int_equal(copy.portion.count, 1);
    assert_int_equal(copy.portion.flags, PORTION_SOLO | PORTION_LAST);
    bench_flush(f, REPLICA_0, 2, 4, 1);
    assert_int_equal(bench_count_sent(f, SHARD_0, MESSAGE_PROGRAM), 1);
}

static void a_minibatch_of_one_chunk_does_not_wait_for_who_is_tried(void **state) {
    struct fixture *f = *state;
    begin_downpour(f);
    f->settings.downpour.batch = 1;
    bench_begin(f, &f->settings);
    bench_pass_over(f, REPLICA_1, 32);
    bench_welcome_all(f);
    bench_pace(f, REPLICA_0, 3e-6);
    bench_pace(f, REPLICA_1, 3e-7);
    bench_ready_all(f);
    struct message tried = bench_sent(f, REPLICA_1, MESSAGE_PORTION);
    struct message copy = bench_sent(f, REPLICA_0, MESSAGE_PORTION);
    assert_int_equal(copy.portion.first, tried.portion.first);
}

static void without_backup_copies_nobody_is_passed_over_for_being_slow(void **state) {
    struct fixture *f = *state;
    f->settings.backup_copies = false;
    start_paced(f, 0.3, 0.03);
    assert_int_equal(bench_count_sent(f, REPLICA_1, MESSAGE_PORTION), 1);
}

/* What was expected did not come: the first replica may stand still. */
static void who_was_passed_over_gets_what_waits_if_the_others_are_late(void **state) {
    struct fixture *f = *state;
    start_paced(f, 0.3, 0.03); /* expected to take 27 ms */
    assert_int_equal(bench_count_sent(f, REPLICA_1, MESSAGE_PORTION), 0);
    assert_true(bench_chunks(f, CHUNK_WAITING) > 0);
    output_clear(&f->out);
    coordinator_tick(f->coordinator, 40 * NS_PER_MS, &f->out);
    assert_int_equal(bench_count_sent(f, REPLICA_1, MESSAGE_PORTION), 0);
    coordinator_tick(f->coordinator, 70 * NS_PER_MS, &f->out);
    assert_int_equal(bench_count_sent(f, REPLICA_1, MESSAGE_EVALUATE), 1);
    assert_int_equal(bench_count_sent(f, REPLICA_1, MESSAGE_PORTION), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, bench_set_up, bench_tear_down)

SUITE(short_evaluations) {
    const struct CMUnitTest tests[] = {
        TEST(the_next_program_follows_the_last_fold_at_once),
        TEST(a_flush_that_is_repeated_after_the_end_has_no_verdict_before_all_have_folded),
        TEST(a_fold_that_is_confirmed_in_the_next_evaluation_is_no_stale_message),
        TEST(a_program_that_is_journalled_waits_for_every_fold),
        TEST(after_a_short_evaluation_programs_are_not_journalled_any_more),
        TEST(each_is_given_its_share_at_once_and_need_not_ask),
        TEST(who_is_faster_is_given_of_the_range_of_others_too),
        TEST(a_long_evaluation_is_handed_out_bit_by_bit),
        TEST(what_one_does_in_no_time_goes_to_one_alone),
        TEST(who_would_end_after_the_other_has_done_all_is_passed_over),
        TEST(one_slow_flush_after_a_fast_one_passes_nobody_over),
        TEST(who_was_passed_over_for_long_is_tried_and_nobody_waits_for_that),
        TEST(a_minibatch_of_one_chunk_does_not_wait_for_who_is_tried),
        TEST(without_backup_copies_nobody_is_passed_over_for_being_slow),
        TEST(who_was_passed_over_gets_what_waits_if_the_others_are_late),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
