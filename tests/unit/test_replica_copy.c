/* A replica whose set comes by messages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "tests/unit/replica_bench.h"
#include "tests/unit/suites.h"

#define MIB (UINT64_C(1) << 20)

static const struct set_range head = {0, 400}, no_bytes;
static const struct set_range places[] = {{500, 3 * MIB}, {4 * MIB, 100}, {5 * MIB, 2 * MIB + 5}};
static uint8_t bytes[SET_PIECE_BYTES_MAX];

static bool sees_nothing(void *context, const char *state, const char *holder) {
    (void)context, (void)state, (void)holder;
    return false;
}

/* Greeted, by a coordinator whose files it does not see. */
static int apart(void **state) {
    static struct bench bench;
    *state = &bench;
    bench_new(&bench, 1);
    replica_free(bench.replica);
    bench.replica = replica_new(&(struct replica_identity){
        .pid = 1, .threads = 2, .host = "host", .description = "test", .shares = sees_nothing});
    hello(&bench, TERM, "run 1");
    assert_int_equal(sent(&bench, COORDINATOR, MESSAGE_WELCOME).welcome.shares, 0);
    return 0;
}

static int tear_down(void **state) {
    bench_free(*state);
    return 0;
}

static void expect_question(struct bench *bench, uint64_t offset, uint64_t length) {
    const struct message_read_set question = sent(bench, COORDINATOR, MESSAGE_READ_SET).read_set;
    assert_string_equal(question.fingerprint, "f00");
    assert_int_equal(question.offset, offset);
    assert_int_equal(question.bytes, length);
}

static void answer_of(struct bench *bench, const char *fingerprint, uint64_t offset,
                      uint64_t length) {
    give(bench, COORDINATOR,
         (struct message){.type = MESSAGE_SET_BYTES,
                          .set_bytes = {fingerprint, offset, 9 * MIB, ""},
                          .bulk = {.data = bytes, .length = length}});
}

static void answer(struct bench *bench, uint64_t offset, uint64_t length) {
    answer_of(bench, "f00", offset, length);
}

static void expect_kept(struct bench *bench, uint32_t place, uint64_t at, uint64_t length) {
    const struct action kept = asked(bench, ACTION_KEEP);
    assert_int_equal(kept.place, place);
    assert_int_equal(kept.at, at);
    assert_int_equal(kept.byte_count, length);
    assert_ptr_equal(kept.bytes, bytes);
}

static void looked(struct bench *bench, uint32_t place, bool here) {
    assert_int_equal(asked(bench, ACTION_LOOK).place, place);
    replica_looked(bench->replica, place, here, 0, "", bench->now_ns, &bench->outbox);
}

static void head_lacks(struct bench *bench, struct set_range range) {
    replica_head_lacks(bench->replica, range, 0, "", &bench->outbox);
}

/* A portion of one chunk. */
static void one_chunk(struct bench *bench, uint32_t chunk, uint8_t flags) {
    give(
        bench, COORDINATOR,
        (struct message){.type = MESSAGE_PORTION, .portion = {bench->attempt, 1, chunk, 1, flags}});
}

static void computes(struct bench *bench, uint32_t chunk) {
    const struct computation computation = asked(bench, ACTION_COMPUTE).computation;
    assert_int_equal(computation.first, chunk);
    assert_int_equal(computation.count, 1);
}

/* The head comes, and the set is opened over it. */
static void open_copy(struct bench *bench) {
    setup_message(bench);
    assert_true(asked(bench, ACTION_COPY_SET).setup.copied);
    head_lacks(bench, head);
    expect_question(bench, 0, 400);
    answer(bench, 0, 400);
    expect_kept(bench, PLACE_HEAD, 0, 400);
    assert_int_equal(asked(bench, ACTION_LOOK).place, PLACE_HEAD);
    head_lacks(bench, no_bytes);
    assert_true(asked(bench, ACTION_OPEN_SET).setup.copied);
    replica_set_is_copied(bench->replica, places, 3, 0);
    replica_opened(bench->replica, 0, "", bench->now_ns, &bench->outbox);
    shard_at(bench, 0, 100);
    connect_shard(bench, 0);
    greeted(bench, 0);
    sent(bench, COORDINATOR, MESSAGE_READY);
    nothing_more(bench);
}

static void a_portion_waits_for_its_chunks_and_the_one_ahead_comes_meanwhile(void **state) {
    struct bench *bench = *state;
    open_copy(bench);
    begin(bench, 1);
    one_chunk(bench, 1, 0);
    looked(bench, 1, false);
    expect_question(bench, places[1].offset, 100);
    nothing_more(bench);
    answer(bench, places[1].offset, 100);
    expect_kept(bench, 1, 0, 100);
    looked(bench, 1, true);
    computes(bench, 1);
    sent(bench, COORDINATOR, MESSAGE_WANT);
    nothing_more(bench);
    one_chunk(bench, 2, PORTION_LAST); /* while threads compute */
    looked(bench, 2, false);
    for (uint64_t at = 0; at < 3; at++)
        expect_question(bench, places[2].offset + at * MIB, at < 2 ? MIB : 5);
    nothing_more(bench);
    assert_int_equal(replica_counters(bench->replica)->set_bytes, 500);
}

static void what_the_copy_has_is_not_asked_for(void **state) {
    struct bench *bench = *state;
    open_copy(bench);
    begin(bench, 1);
    one_chunk(bench, 0, 0);
    looked(bench, 0, true);
    computes(bench, 0);
    sent(bench, COORDINATOR, MESSAGE_WANT);
    nothing_more(bench);
}

static void a_chunk_with_a_wrong_checksum_is_asked_for_again_and_then_named(void **state) {
    struct bench *bench = *state;
    open_copy(bench);
    begin(bench, 1);
    one_chunk(bench, 1, 0);
    looked(bench, 1, false);
    for (int i = 0; i < 8; i++) {
        expect_question(bench, places[1].offset, 100);
        answer(bench, places[1].offset, 100);
        expect_kept(bench, 1, 0, 100);
        looked(bench, 1, false);
    }
    const struct message_failed failed = sent(bench, COORDINATOR, MESSAGE_FAILED).failed;
    assert_int_equal(failed.status, -ERROR_DATA);
    assert_non_null(strstr(failed.reason, "a wrong checksum"));
    nothing_more(bench);
}

static void answers_that_were_not_asked_for_are_ignored(void **state) {
    struct bench *bench = *state;
    open_copy(bench);
    begin(bench, 1);
    one_chunk(bench, 1, 0);
    looked(bench, 1, false);
    expect_question(bench, places[1].offset, 100);
    answer_of(bench, "f01", places[1].offset, 100);
    answer(bench, places[1].offset, 99);
    answer(bench, places[0].offset, 100);
    nothing_more(bench);
    assert_int_equal(replica_counters(bench->replica)->stale, 3);
}

static void what_is_not_answered_is_asked_for_again(void **state) {
    struct bench *bench = *state;
    open_copy(bench);
    begin(bench, 1);
    one_chunk(bench, 1, 0);
    looked(bench, 1, false);
    expect_question(bench, places[1].offset, 100);
    const int64_t deadline_ns = replica_deadline_ns(bench->replica);
    assert_in_range(deadline_ns, bench->now_ns + 19 * NS_PER_S, bench->now_ns + 20 * NS_PER_S);
    replica_timer(bench->replica, deadline_ns, &bench->outbox);
    expect_question(bench, places[1].offset, 100);
    nothing_more(bench);
}

static void the_next_coordinator_is_asked_for_what_the_last_did_not_send(void **state) {
    struct bench *bench = *state;
    open_copy(bench);
    begin(bench, 1);
    one_chunk(bench, 0, 0);
    looked(bench, 0, false);
    for (uint64_t at = 0; at < 3; at++)
        expect_question(bench, places[0].offset + at * MIB, MIB);
    answer(bench, places[0].offset, MIB);
    expect_kept(bench, 0, 0, MIB);
    replica_gone(bench->replica, COORDINATOR, &bench->outbox);
    hello(bench, ++bench->term, "run 1");
    sent(bench, COORDINATOR, MESSAGE_WELCOME);
    setup_message(bench);
    shard_at(bench, 0, 100);
    sent(bench, COORDINATOR, MESSAGE_READY);
    sent(bench, COORDINATOR, MESSAGE_WANT);
    nothing_more(bench); /* of the portions none is its own any more */
    one_chunk(bench, 0, 0);
    for (uint64_t at = 1; at < 3; at++)
        expect_question(bench, places[0].offset + at * MIB, MIB);
    nothing_more(bench);
}

static void a_coordinator_of_another_set_says_so(void **state) {
    struct bench *bench = *state;
    setup_message(bench);
    asked(bench, ACTION_COPY_SET);
    head_lacks(bench, head);
    expect_question(bench, 0, 400);
    give(bench, COORDINATOR,
         (struct message){.type = MESSAGE_SET_BYTES, .set_bytes = {"f00", 0, 0, "another set"}});
    assert_string_equal(sent(bench, COORDINATOR, MESSAGE_FAILED).failed.reason, "another set");
    nothing_more(bench);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, apart, tear_down)

SUITE(replica_copy) {
    const struct CMUnitTest tests[] = {
        TEST(a_portion_waits_for_its_chunks_and_the_one_ahead_comes_meanwhile),
        TEST(what_the_copy_has_is_not_asked_for),
        TEST(a_chunk_with_a_wrong_checksum_is_asked_for_again_and_then_named),
        TEST(answers_that_were_not_asked_for_are_ignored),
        TEST(what_is_not_answered_is_asked_for_again),
        TEST(the_next_coordinator_is_asked_for_what_the_last_did_not_send),
        TEST(a_coordinator_of_another_set_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
