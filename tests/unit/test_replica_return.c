/* A replica that loses its coordinator, or its shards, and finds them again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/suites.h"
#include "base/error.h"
#include "replica/flush.h"
#include "tests/unit/replica_bench.h"

/* ---- what the tests begin with ---- */

static int being_set_up(void **state) {
    static struct bench bench;
    *state = &bench;
    bench_new(&bench, 1);
    set_up(&bench);
    return 0;
}

static int ready(void **state, uint32_t shards) {
    static struct bench bench;
    *state = &bench;
    bench_ready(&bench, shards);
    return 0;
}

static int ready_1(void **state) {
    return ready(state, 1);
}

/* In evaluation 1, with its parameters. */
static int begun_1(void **state) {
    ready(state, 1);
    begin(*state, 1);
    return 0;
}

static int begun_2(void **state) {
    ready(state, 2);
    begin(*state, 1);
    return 0;
}

static int tear_down(void **state) {
    bench_free(*state);
    return 0;
}

/* ---- another coordinator ---- */

/* The next coordinator takes up the run where it was. */
static void set_up_again(struct bench *bench) {
    setup_message(bench);
    nothing_more(bench);
    for (uint32_t i = 0; i < bench->shards; i++) {
        nothing_more(bench);
        shard_at(bench, i, 100 + i);
    }
    assert_int_equal(sent(bench, COORDINATOR, MESSAGE_READY).ready.attempt, bench->attempt);
}

/* The coordinator goes; the next one has a later term. */
static void coordinator_returns(struct bench *bench) {
    replica_gone(bench->replica, COORDINATOR, &bench->outbox);
    nothing_more(bench);
    bench->term++;
    hello(bench, bench->term, "run 1");
    assert_int_equal(sent(bench, COORDINATOR, MESSAGE_WELCOME).welcome.incarnation,
                     bench->incarnation);
}

/* Else the next coordinator would take it for another process, and count nothing of it. */
static void a_replica_says_since_which_term_it_is_its_incarnation(void **state) {
    struct bench *bench = *state;
    uint64_t first = bench->term;
    replica_gone(bench->replica, COORDINATOR, &bench->outbox);
    hello(bench, ++bench->term, "run 1");
    assert_int_equal(sent(bench, COORDINATOR, MESSAGE_WELCOME).welcome.since, first);
    bench->incarnation++;
    hello(bench, ++bench->term, "run 1");
    assert_int_equal(sent(bench, COORDINATOR, MESSAGE_WELCOME).welcome.since, bench->term);
    sent(bench, FIRST_SHARD, MESSAGE_GREET);
}

static void the_next_coordinator_is_told_of_flushes_without_a_verdict(void **state) {
    struct bench *bench = *state;
    struct flush_id decided = solo(bench, 0), reported = solo(bench, 2);
    for (uint32_t i = 0; i < 2; i++)
        staged(bench, i, decided);
    for (uint32_t i = 0; i < 2; i++)
        staged(bench, i, reported);
    sent(bench, COORDINATOR, MESSAGE_FLUSHED);
    sent(bench, COORDINATOR, MESSAGE_FLUSHED);
    verdict(bench, decided, true);
    coordinator_returns(bench);
    nothing_more(bench); /* it may not know yet where the run is */
    set_up_again(bench);
    struct message_flushed again = sent(bench, COORDINATOR, MESSAGE_FLUSHED).flushed;
    assert_true(flush_id_equal(&again.flush, &reported));
    assert_int_equal(again.incarnations.items[1], 101);
    sent(bench, COORDINATOR, MESSAGE_WANT);
    nothing_more(bench);
    verdict(bench, reported, true);
    assert_int_equal(replica_counters(bench->replica)->accepted, 2);
}

static void shards_are_sent_again_what_they_ignored_in_the_name_of_the_former(void **state) {
    struct bench *bench = *state;
    struct flush_id id = solo(bench, 0);
    staged(bench, 0, id);
    coordinator_returns(bench);
    struct message again = sent(bench, FIRST_SHARD + 1, MESSAGE_STAGE);
    assert_true(flush_id_equal(&again.stage.flush, &id));
    assert_int_equal(again.bulk.length, count_of(bench, 1) * 8);
    nothing_more(bench);
    staged(bench, 1, id);
    nothing_more(bench);
    set_up_again(bench);
    sent(bench, COORDINATOR, MESSAGE_FLUSHED);
    sent(bench, COORDINATOR, MESSAGE_WANT);

    evaluate(bench, 2); /* and the question for the trial point */
    sent(bench, FIRST_SHARD, MESSAGE_FETCH);
    sent(bench, FIRST_SHARD + 1, MESSAGE_FETCH);
    parameters(bench, 2, 0);
    coordinator_returns(bench);
    sent(bench, FIRST_SHARD + 1, MESSAGE_FETCH);
    nothing_more(bench);
}

/* No shard has heard of evaluation 2, and the journal ends before it. */
static void the_next_coordinator_may_be_at_an_older_evaluation(void **state) {
    struct bench *bench = *state;
    evaluate(bench, 2);
    sent(bench, FIRST_SHARD, MESSAGE_FETCH);
    coordinator_returns(bench);
    sent(bench, FIRST_SHARD, MESSAGE_FETCH);
    set_up_again(bench);
    while (bench->seen < bench->outbox.count)
        sent(bench, COORDINATOR, MESSAGE_WANT);
    evaluate(bench, 1);
    fetch(bench, 1);
    take_up(bench, 1, 0, PORTION_LAST);
    assert_int_equal(one_portion_computed(bench).flush.evaluation, 1);
    uint64_t stale = replica_counters(bench->replica)->stale;
    evaluate(bench, 1); /* it goes on */
    evaluate(bench, 0); /* nothing older of the same coordinator */
    assert_int_equal(replica_counters(bench->replica)->stale, stale + 2);
    nothing_more(bench);
}

static void a_shard_that_ignored_the_greeting_is_greeted_again(void **state) {
    struct bench *bench = *state;
    replica_opened(bench->replica, 0, "", bench->now_ns, &bench->outbox);
    shard_at(bench, 0, 100);
    connect_shard(bench, 0);
    coordinator_returns(bench);
    sent(bench, FIRST_SHARD, MESSAGE_GREET);
    nothing_more(bench);
    greeted(bench, 0);
    nothing_more(bench); /* it has not been set up */
    shard_at(bench, 0, 100);
    sent(bench, COORDINATOR, MESSAGE_READY);
}

/* The next coordinator ignores what comes before it knows where the run is. A replica that had
 * reported then would never report again, and with all buffers in use it would never compute. */
static void a_link_that_comes_back_before_the_set_up_reports_nothing(void **state) {
    struct bench *bench = *state;
    struct flush_id id = solo(bench, 0);
    for (uint32_t i = 0; i < 2; i++)
        staged(bench, i, id);
    sent(bench, COORDINATOR, MESSAGE_FLUSHED);
    coordinator_returns(bench);
    replica_gone(bench->replica, FIRST_SHARD, &bench->outbox);
    connect_shard(bench, 0);
    greeted(bench, 0);
    nothing_more(bench);
    set_up_again(bench);
    struct message_flushed again = sent(bench, COORDINATOR, MESSAGE_FLUSHED).flushed;
    assert_true(flush_id_equal(&again.flush, &id));
    sent(bench, COORDINATOR, MESSAGE_WANT);
}

static void work_goes_on_without_a_coordinator_and_is_reported_to_the_next(void **state) {
    struct bench *bench = *state;
    evaluate(bench, 1);
    portion(bench, 1, 0, PORTION_SOLO);
    portion(bench, 1, 2, 0);
    fetch(bench, 1);
    started(bench, 0);
    replica_gone(bench->replica, COORDINATOR, &bench->outbox);
    computed(bench, 0.5, false);
    struct flush_id id = flushed(bench);
    started(bench, 2);
    nothing_more(bench); /* WANT has nowhere to go */
    staged(bench, 0, id);
    nothing_more(bench);
    coordinator_returns(bench);
    set_up_again(bench);
    struct message_flushed report = sent(bench, COORDINATOR, MESSAGE_FLUSHED).flushed;
    assert_true(flush_id_equal(&report.flush, &id));
    nothing_more(bench); /* it computes */
    computed(bench, 0.5, false);
    flushed(bench); /* what the next one does not know of goes by itself */
    take_up(bench, 1, 4, PORTION_LAST);
}

static void portions_not_begun_are_left_to_the_next_coordinator(void **state) {
    struct bench *bench = *state;
    evaluate(bench, 1);
    portion(bench, 1, 0, 0);
    portion(bench, 1, 2, 0);
    fetch(bench, 1);
    started(bench, 0);
    coordinator_returns(bench);
    set_up_again(bench);
    nothing_more(bench);
    struct message_stage stage = one_portion_computed(bench);
    assert_int_equal(stage.portions.items[0].first, 0);
    nothing_more(bench);
    take_up(bench, 1, 2, PORTION_LAST);
}

static void a_replica_at_rest_wants_nothing(void **state) {
    struct bench *bench = *state;
    rest(bench, 1);
    coordinator_returns(bench);
    set_up_again(bench);
}

static void a_failure_is_told_again(void **state) {
    struct bench *bench = *state;
    replica_opened(bench->replica, ERROR_DATA, "data.set: damaged", bench->now_ns, &bench->outbox);
    sent(bench, COORDINATOR, MESSAGE_FAILED);
    coordinator_returns(bench);
    assert_string_equal(sent(bench, COORDINATOR, MESSAGE_FAILED).failed.reason,
                        "data.set: damaged");
    set_up(bench); /* opens it anew */
}

static void another_incarnation_forgets_everything_but_the_set(void **state) {
    struct bench *bench = *state;
    struct flush_id id = {0};
    for (uint32_t i = 0; i < FLUSH_BUFFERS_MAX; i++)
        id = solo(bench, 2 * i);
    bench->incarnation++;
    coordinator_returns(bench);
    assert_int_equal(sent(bench, FIRST_SHARD, MESSAGE_GREET).greet.incarnation, bench->incarnation);
    nothing_more(bench);
    staged(bench, 0, id);
    verdict(bench, id, true);
    assert_int_equal(replica_counters(bench->replica)->stale, 2);
    greeted(bench, 0);
    nothing_more(bench); /* not before it is set up */
    setup_message(bench);
    nothing_more(bench);
    shard_at(bench, 0, 100);
    sent(bench, COORDINATOR, MESSAGE_READY);
    begin(bench, 1); /* the same evaluation, with every buffer free */
    for (uint32_t i = 0; i < FLUSH_BUFFERS_MAX; i++)
        assert_int_equal(solo(bench, 2 * i).incarnation, bench->incarnation);
}

/* ---- a new attempt ---- */

static void a_new_attempt_keeps_the_set_and_the_shards_that_are_still_there(void **state) {
    struct bench *bench = *state;
    struct flush_id id = solo(bench, 0);
    take_up(bench, 1, 2, PORTION_LAST);
    bench->attempt++;
    setup_message(bench);
    asked(bench, ACTION_STOP);
    nothing_more(bench); /* neither opened nor closed */
    evaluate(bench, 1);
    shard_at(bench, 0, 100);
    nothing_more(bench);
    shard_at(bench, 1, 201); /* this one was lost */
    assert_int_equal(asked(bench, ACTION_CLOSE).link, FIRST_SHARD + 1);
    connect_shard(bench, 1);
    nothing_more(bench);
    give(bench, FIRST_SHARD + 1, (struct message){.type = MESSAGE_GREETED, .greeted = {1, 201}});
    assert_int_equal(sent(bench, COORDINATOR, MESSAGE_READY).ready.attempt, bench->attempt);
    nothing_more(bench); /* the workers still have the old point */
    computed(bench, 0.5, false);
    staged(bench, 0, id);
    fetch(bench, 1);
    portion(bench, 1, 0, PORTION_LAST);
    assert_true(started(bench, 0).clear);
    struct message_stage stage = one_portion_computed(bench);
    assert_int_equal(stage.flush.attempt, bench->attempt);
    sent(bench, FIRST_SHARD + 1, MESSAGE_STAGE);
}

static void the_same_attempt_set_up_again_goes_on_where_it_was(void **state) {
    struct bench *bench = *state;
    take_up(bench, 1, 0, PORTION_LAST);
    coordinator_returns(bench);
    set_up_again(bench);
    evaluate(bench, 1); /* known */
    nothing_more(bench);
    computed(bench, 0.5, false);
    flushed(bench);
}

static void a_shard_that_could_not_be_reached_is_tried_again_when_it_is_named_again(void **state) {
    struct bench *bench = *state;
    replica_gone(bench->replica, FIRST_SHARD, &bench->outbox);
    asked(bench, ACTION_CONNECT);
    replica_connected(bench->replica, 0, 0, ERROR_UNAVAILABLE, "nobody listens", &bench->outbox);
    nothing_more(bench);
    shard_at(bench, 0, 100);
    connect_shard(bench, 0);
    nothing_more(bench);
    greeted(bench, 0);
    sent(bench, COORDINATOR, MESSAGE_READY);
}

/* A second time its part would come while threads compute with the first. */
static void
the_point_of_a_shard_that_is_named_while_its_link_is_down_is_not_fetched_again(void **state) {
    struct bench *bench = *state;
    replica_gone(bench->replica, FIRST_SHARD + 1, &bench->outbox);
    asked(bench, ACTION_CONNECT);
    replica_connected(bench->replica, 1, 0, ERROR_UNAVAILABLE, "nobody listens", &bench->outbox);
    coordinator_returns(bench);
    setup_message(bench);
    shard_at(bench, 0, 100);
    shard_at(bench, 1, 101);
    connect_shard(bench, 1);
    greeted(bench, 1);
    sent(bench, COORDINATOR, MESSAGE_READY);
    sent(bench, COORDINATOR, MESSAGE_WANT);
    replica_gone(bench->replica, FIRST_SHARD + 1, &bench->outbox);
    connect_shard(bench, 1);
    greeted(bench, 1);
    sent(bench, COORDINATOR, MESSAGE_READY);
    nothing_more(bench);
}

/* What came of the point from the former is not to be computed with: the other has begun nothing.
 */
static void another_incarnation_of_a_shard_ends_the_evaluation(void **state) {
    struct bench *bench = *state;
    shard_at(bench, 1, 201);
    asked(bench, ACTION_CLOSE);
    connect_shard(bench, 1);
    give(bench, FIRST_SHARD + 1, (struct message){.type = MESSAGE_GREETED, .greeted = {1, 201}});
    sent(bench, COORDINATOR, MESSAGE_READY);
    portion(bench, 1, 0, 0);
    nothing_more(bench);
}

#define TEST(name, begin) cmocka_unit_test_setup_teardown(name, begin, tear_down)

SUITE(replica_return) {
    const struct CMUnitTest tests[] = {
        TEST(a_replica_says_since_which_term_it_is_its_incarnation, ready_1),
        TEST(the_next_coordinator_is_told_of_flushes_without_a_verdict, begun_2),
        TEST(the_next_coordinator_may_be_at_an_older_evaluation, begun_1),
        TEST(shards_are_sent_again_what_they_ignored_in_the_name_of_the_former, begun_2),
        TEST(a_shard_that_ignored_the_greeting_is_greeted_again, being_set_up),
        TEST(a_link_that_comes_back_before_the_set_up_reports_nothing, begun_2),
        TEST(work_goes_on_without_a_coordinator_and_is_reported_to_the_next, ready_1),
        TEST(portions_not_begun_are_left_to_the_next_coordinator, ready_1),
        TEST(a_replica_at_rest_wants_nothing, begun_1),
        TEST(a_failure_is_told_again, being_set_up),
        TEST(another_incarnation_forgets_everything_but_the_set, begun_1),
        TEST(a_new_attempt_keeps_the_set_and_the_shards_that_are_still_there, begun_2),
        TEST(the_same_attempt_set_up_again_goes_on_where_it_was, begun_1),
        TEST(a_shard_that_could_not_be_reached_is_tried_again_when_it_is_named_again, ready_1),
        TEST(another_incarnation_of_a_shard_ends_the_evaluation, begun_2),
        TEST(the_point_of_a_shard_that_is_named_while_its_link_is_down_is_not_fetched_again,
             begun_2),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
