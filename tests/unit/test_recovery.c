/* Replicas and shards that are lost: what goes back and what is kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/suites.h"
#include "base/clock.h"
#include "base/error.h"
#include "tests/unit/coordinator_bench.h"

static void restored(struct fixture *f, uint32_t link, uint32_t status) {
    struct message message = {.type = MESSAGE_RESTORED};
    message.restored =
        (struct message_restored){.attempt = coordinator_view(f->coordinator).attempt,
                                  .step = coordinator_view(f->coordinator).durable_step,
                                  .status = status,
                                  .reason = status ? "damaged" : ""};
    assert_int_equal(bench_feed(f, link, message), 0);
}

static bool has_event(const struct fixture *f, const char *text) {
    bool found = false;
    for (uint32_t i = 0; i < f->out.record_count; i++)
        found |=
            f->out.records[i].kind == RECORD_EVENT && !strcmp(f->out.records[i].event.text, text);
    return found;
}

/* ---- replicas ---- */

static void a_lost_replicas_chunks_go_back_and_it_is_started_anew(void **state) {
    struct fixture *f = *state;
    bench_start(f);
    uint64_t incarnation = coordinator_worker(f->coordinator, REPLICA_0).incarnation;
    uint32_t waiting = bench_chunks(f, CHUNK_WAITING);
    assert_int_equal(bench_lose(f, REPLICA_0), 0);
    assert_int_equal(bench_recorded(f, RECORD_START)->start.link, REPLICA_0);
    assert_int_equal(bench_chunks(f, CHUNK_WAITING), waiting + 2);
    assert_true(has_event(f, "2 chunks that replica 0 had in hand go to others"));
    assert_true(coordinator_worker(f->coordinator, REPLICA_0).incarnation != incarnation);
    bench_return(f, REPLICA_0);
    assert_int_equal(bench_count_sent(f, REPLICA_0, MESSAGE_SHARD_AT), 2);
    bench_ready(f, REPLICA_0);
    assert_int_equal(bench_sent(f, REPLICA_0, MESSAGE_EVALUATE).evaluate.evaluation, 1);
    assert_int_equal(bench_sent(f, REPLICA_0, MESSAGE_PORTION).portion.first, 0);
}

static void counted_chunks_of_a_lost_replica_stay_counted(void **state) {
    struct fixture *f = *state;
    bench_start(f);
    bench_flush(f, REPLICA_0, 1, 0, 2);
    uint32_t waiting = bench_chunks(f, CHUNK_WAITING);
    bench_lose(f, REPLICA_0);
    assert_int_equal(bench_chunks(f, CHUNK_WAITING), waiting);
    assert_int_equal(coordinator_view(f->coordinator).evaluation.counted, 2);
}

static void a_worker_that_is_lost_too_often_ends_the_run(void **state) {
    struct fixture *f = *state;
    bench_start(f);
    for (int i = 0; i < 3; i++)
        assert_int_equal(bench_lose(f, SHARD_0), 0);
    assert_int_equal(bench_lose(f, SHARD_0), ERROR_UNAVAILABLE);
    assert_int_equal(coordinator_phase(f->coordinator), PHASE_FAILED);
}

static void the_last_replica_alone_must_be_replaceable(void **state) {
    struct fixture *f = *state;
    bench_start(f);
    for (int i = 0; i < 9; i++)
        assert_int_equal(bench_lose(f, REPLICA_1), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(bench_lose(f, REPLICA_0), 0);
    assert_int_equal(bench_lose(f, REPLICA_0), ERROR_UNAVAILABLE);
    assert_int_equal(coordinator_phase(f->coordinator), PHASE_FAILED);
}

static void replicas_that_others_start_may_come_and_go_as_they_like(void **state) {
    struct fixture *f = *state;
    f->settings.by_hand[1] = true;
    bench_begin(f, &f->settings);
    bench_start(f);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(bench_lose(f, REPLICA_1), 0);
        bench_return(f, REPLICA_1);
    }
    assert_int_equal(bench_lose(f, REPLICA_1), 0);
    assert_int_equal(coordinator_phase(f->coordinator), PHASE_RUNNING);
}

static void a_shard_that_others_start_and_that_is_mute_is_not_lost_too_often(void **state) {
    struct fixture *f = *state;
    f->settings.by_hand[0] = true;
    bench_begin(f, &f->settings);
    for (int i = 0; i < 20; i++)
        assert_int_equal(bench_lose(f, SHARD_0), 0);
    for (int i = 0; i < 3; i++) {
        bench_return(f, SHARD_0);
        assert_int_equal(bench_lose(f, SHARD_0), 0);
    }
    bench_return(f, SHARD_0);
    assert_int_equal(bench_lose(f, SHARD_0), ERROR_UNAVAILABLE);
}

static void a_silent_worker_is_lost_and_a_pause_of_ones_own_is_forgiven(void **state) {
    struct fixture *f = *state;
    bench_start(f);
    int64_t second = 1000000000;
    for (int64_t now = 0; now <= 9 * second; now += second / 10) {
        output_clear(&f->out);
        assert_int_equal(coordinator_tick(f->coordinator, now, &f->out), 0);
        assert_true(coordinator_worker(f->coordinator, REPLICA_0).connected);
    }
    output_clear(&f->out);
    coordinator_tick(f->coordinator, 60 * second, &f->out); /* it was this process that slept */
    assert_true(coordinator_worker(f->coordinator, REPLICA_0).connected);
    for (int64_t now = 60 * second; now <= 71 * second; now += second / 10) {
        for (uint32_t link = 0; link < LINKS; link++) {
            struct message pong = {.type = MESSAGE_PONG, .term = TERM};
            if (link != REPLICA_0)
                coordinator_step(f->coordinator, link, &pong, now, &f->out);
        }
        coordinator_tick(f->coordinator, now, &f->out);
    }
    assert_false(coordinator_worker(f->coordinator, REPLICA_0).connected);
    assert_true(coordinator_worker(f->coordinator, REPLICA_1).connected);
}

static void a_slow_portion_is_copied_to_an_idle_replica_as_a_flush_of_its_own(void **state) {
    struct fixture *f = *state;
    int64_t ms = 1000000;
    bench_start(f);
    bench_move_away(f, REPLICA_1);
    bench_pace(f, REPLICA_0, 1e-6); /* a chunk a millisecond */
    bench_pace(f, REPLICA_1, 1e-6);
    bench_flush(f, REPLICA_0, 1, 0, 2);
    bench_pace(f, REPLICA_0, 1e-6);
    bench_hand_out_all(f);
    bench_rest(f, REPLICA_0);
    output_clear(&f->out);
    coordinator_tick(f->coordinator, 10 * ms, &f->out);
    assert_int_equal(bench_count_sent(f, REPLICA_0, MESSAGE_PORTION), 0);
    coordinator_tick(f->coordinator, 100 * ms, &f->out);
    struct message copy = bench_sent(f, REPLICA_0, MESSAGE_PORTION);
    assert_int_equal(copy.portion.first, 4);
    assert_int_equal(copy.portion.flags, PORTION_SOLO | PORTION_LAST);
    assert_int_equal(coordinator_view(f->coordinator).backup_copies, 1);
    bench_rest(f, REPLICA_0);
    output_clear(&f->out);
    coordinator_tick(f->coordinator, 500 * ms, &f->out); /* once is enough */
    assert_int_equal(bench_count_sent(f, REPLICA_0, MESSAGE_PORTION), 0);
}

/* All is handed out: replica 1 is slow with chunks 4 and 5, replica 0 has nothing left to do. */
static void leave_a_straggler(struct fixture *f) {
    bench_start(f);
    bench_hand_out_all(f);
    bench_pace(f, REPLICA_0, 1e-6); /* a chunk a millisecond */
    bench_pace(f, REPLICA_1, 1e-8);
}

static void who_has_flushed_its_last_is_given_a_copy_at_once(void **state) {
    struct fixture *f = *state;
    leave_a_straggler(f);
    bench_move_away(f, REPLICA_1);
    bench_flush(f, REPLICA_0, 1, 0, 2);
    assert_int_equal(bench_sent(f, REPLICA_0, MESSAGE_PORTION).portion.first, 4);
    assert_int_equal(coordinator_view(f->coordinator).backup_copies, 1);
}

static void what_is_computed_and_on_its_way_is_not_copied(void **state) {
    struct fixture *f = *state;
    int64_t ms = 1000000;
    bench_start(f);
    bench_hand_out_all(f);
    bench_move_away(f, REPLICA_1);
    bench_pace(f, REPLICA_0, 1e-6); /* a chunk a millisecond */
    bench_pace(f, REPLICA_1, 1e-6);
    bench_flush(f, REPLICA_0, 1, 0, 2);
    bench_pace(f, REPLICA_0, 1e-6);
    bench_rest(f, REPLICA_0);
    bench_delivery(f, 300e6);
    output_clear(&f->out);
    coordinator_tick(f->coordinator, 250 * ms, &f->out);
    assert_int_equal(bench_count_sent(f, REPLICA_0, MESSAGE_PORTION), 0);
    coordinator_tick(f->coordinator, 700 * ms, &f->out); /* later than a copy would be there */
    assert_int_equal(bench_count_sent(f, REPLICA_0, MESSAGE_PORTION), 1);
}

/* Replicas that rest cannot hold up a coordinator that has many of them. */
static void among_many_replicas_copies_are_looked_for_only_now_and_then(void **state) {
    struct fixture *f = *state;
    const uint32_t first = REPLICA_0 + 50, second = REPLICA_0 + 51;
    int64_t now_ns = 100000000, us = 1000;
    f->settings.replicas = 100;
    bench_begin(f, &f->settings);
    bench_start(f);
    bench_move_away(f, first);
    bench_move_away(f, second);
    bench_pace(f, first, 1e-6); /* a chunk a millisecond; of the others that is not known */
    output_clear(&f->out);
    coordinator_tick(f->coordinator, now_ns, &f->out);
    assert_int_equal(bench_count_sent(f, first, MESSAGE_PORTION), 1);
    bench_pace(f, second, 1e-6);
    output_clear(&f->out);
    coordinator_tick(f->coordinator, now_ns + 100 * us, &f->out);
    assert_int_equal(bench_count_sent(f, second, MESSAGE_PORTION), 0);
    coordinator_tick(f->coordinator, now_ns + 300 * us, &f->out);
    assert_int_equal(bench_count_sent(f, second, MESSAGE_PORTION), 1);
}

/* Four replicas on hosts of their own, each with two chunks: the first two are done with theirs. */
static void leave_two_late(struct fixture *f) {
    f->settings.replicas = 4;
    bench_begin(f, &f->settings);
    bench_start(f);
    bench_move_away(f, REPLICA_0);
    bench_move_away(f, REPLICA_1);
    bench_flush(f, REPLICA_0, 1, 0, 2);
    bench_flush(f, REPLICA_1, 1, 2, 2);
    bench_pace(f, REPLICA_0, 0);
    bench_pace(f, REPLICA_1, 0);
    bench_pace(f, REPLICA_0 + 2, 1e-8); /* a chunk in 100 ms, */
    bench_pace(f, REPLICA_0 + 3, 1e-9); /* and in a second */
    output_clear(&f->out);
}

static void what_takes_longest_is_copied_first_by_who_is_fast_enough(void **state) {
    struct fixture *f = *state;
    for (uint32_t slow = 0; slow <= 1; slow++) {
        leave_two_late(f);
        bench_pace(f, REPLICA_0, slow ? 1e-9 : 1e-6);
        bench_pace(f, REPLICA_1, 1e-6);
        coordinator_tick(f->coordinator, 1000000, &f->out);
        assert_int_equal(bench_count_sent(f, REPLICA_0, MESSAGE_PORTION), !slow);
        assert_int_equal(bench_sent(f, slow ? REPLICA_1 : REPLICA_0, MESSAGE_PORTION).portion.first,
                         6);
        if (!slow)
            assert_int_equal(bench_sent(f, REPLICA_1, MESSAGE_PORTION).portion.first, 4);
        output_clear(&f->out);
    }
}

/* Replica 0 has a copy of what replica 3 has flushed since. */
static void a_copy_of_what_is_counted_is_not_copied(void **state) {
    struct fixture *f = *state;
    leave_two_late(f);
    bench_pace(f, REPLICA_0, 1e-6);
    coordinator_tick(f->coordinator, 1000000, &f->out);
    bench_flush(f, REPLICA_0 + 3, 1, 6, 2);
    bench_back_up(f, REPLICA_0 + 2);
    bench_pace(f, REPLICA_1, 1e-6);
    output_clear(&f->out);
    coordinator_tick(f->coordinator, 60 * NS_PER_S, &f->out);
    assert_int_equal(bench_count_sent(f, REPLICA_1, MESSAGE_PORTION), 0);
}

static void a_replica_alone_is_handed_all_at_once_when_its_speed_is_known(void **state) {
    struct fixture *f = *state;
    struct message want = {.type = MESSAGE_WANT, .want = {.attempt = 1, .evaluation = 1}};
    f->settings.replicas = 1;
    f->settings.portion_chunks = 0;
    bench_begin(f, &f->settings);
    bench_start(f);
    assert_int_equal(bench_sent(f, REPLICA_0, MESSAGE_PORTION).portion.count, 1);
    f->busy_ns = 50000000;
    bench_flush(f, REPLICA_0, 1, 0, 1);
    bench_feed(f, REPLICA_0, want);
    struct message rest = bench_sent(f, REPLICA_0, MESSAGE_PORTION);
    assert_int_equal(rest.portion.first, 1);
    assert_int_equal(rest.portion.count, CHUNKS - 1);
    assert_int_equal(rest.portion.flags, PORTION_LAST); /* and no flush of its own */
}

/* Replica 1 is late by the factor that makes a copy worth it, but not by more. */
static void on_one_host_a_portion_is_copied_only_when_its_holder_fell_silent(void **state) {
    struct fixture *f = *state;
    int64_t ms = 1000000;
    bench_start(f);
    bench_pace(f, REPLICA_0, 1e-7); /* 10 ms a chunk */
    bench_pace(f, REPLICA_1, 1e-7);
    bench_flush(f, REPLICA_0, 1, 0, 2);
    bench_pace(f, REPLICA_0, 1e-7);
    bench_hand_out_all(f);
    bench_rest(f, REPLICA_0);
    output_clear(&f->out);
    coordinator_tick(f->coordinator, 79 * ms, &f->out);
    assert_int_equal(bench_count_sent(f, REPLICA_0, MESSAGE_PORTION), 0);
    coordinator_tick(f->coordinator, 81 * ms, &f->out); /* four times as long as expected */
    assert_int_equal(bench_sent(f, REPLICA_0, MESSAGE_PORTION).portion.first, 4);
}

/* A flush of one chunk that took the replica `ms`. */
static void flush_in(struct fixture *f, uint64_t ms, uint32_t replica, uint32_t sequence,
                     uint32_t chunk) {
    f->busy_ns = ms * 1000000;
    bench_flush(f, replica, sequence, chunk, 1);
}

/* Replica 1 has chunks 6 and 7 left, for which it will need 60 ms. Only the flush before the last
 * differs. */
static void on_one_host_a_portion_is_copied_if_its_holder_was_slow_twice(void **state) {
    struct fixture *f = *state;
    struct message want = {.type = MESSAGE_WANT, .want = {.attempt = 1, .evaluation = 1}};
    for (uint32_t slow = 1; slow <= 2; slow++) {
        bench_begin(f, &f->settings);
        bench_start(f);
        bench_feed(f, REPLICA_1, want);
        bench_hand_out_all(f);
        flush_in(f, 10, REPLICA_0, 1, 0);
        flush_in(f, slow == 2 ? 30 : 10, REPLICA_1, 1, 4);
        flush_in(f, 30, REPLICA_1, 2, 5);
        flush_in(f, 10, REPLICA_0, 2, 1);
        assert_int_equal(bench_count_sent(f, REPLICA_0, MESSAGE_PORTION), slow == 2);
    }
}

static void without_backup_copies_a_straggler_keeps_its_portion_until_it_is_lost(void **state) {
    struct fixture *f = *state;
    f->settings.backup_copies = false;
    bench_begin(f, &f->settings);
    leave_a_straggler(f);
    bench_flush(f, REPLICA_0, 1, 0, 2);
    for (int64_t now = 0; now < 5 * NS_PER_S; now += NS_PER_S / 10)
        coordinator_tick(f->coordinator, now, &f->out);
    assert_int_equal(bench_count_sent(f, REPLICA_0, MESSAGE_PORTION), 0);
    bench_lose(f, REPLICA_1);
    assert_int_equal(bench_sent(f, REPLICA_0, MESSAGE_PORTION).portion.first, 4);
    assert_int_equal(coordinator_view(f->coordinator).backup_copies, 0);
}

static void what_comes_back_late_goes_to_who_has_had_its_last_portion(void **state) {
    struct fixture *f = *state;
    struct message want = {.type = MESSAGE_WANT};
    bench_start(f);
    want.want = (struct message_want){.attempt = 1, .evaluation = 1};
    bench_feed(f, REPLICA_0, want);
    bench_feed(f, REPLICA_1, want); /* the last portion: it will not ask again */
    assert_true(bench_sent(f, REPLICA_1, MESSAGE_PORTION).portion.flags & PORTION_LAST);
    bench_flush(f, REPLICA_1, 1, 4, 4);
    bench_lose(f, REPLICA_0);
    assert_int_equal(bench_sent(f, REPLICA_1, MESSAGE_PORTION).portion.count, 2);
}

/* ---- shards ---- */

static void a_step_is_durable_when_every_shard_has_written_it(void **state) {
    struct fixture *f = *state;
    f->settings.shards_folder = "/shards";
    bench_begin(f, &f->settings);
    bench_finish_first(f, 1, 0.5);
    assert_int_equal(bench_count_sent(f, SHARD_1, MESSAGE_CHECKPOINT), 1);
    bench_checkpointed(f, SHARD_0, 11);
    bench_checkpointed(f, SHARD_0, 11); /* said twice */
    assert_false(coordinator_view(f->coordinator).durable);
    bench_checkpointed(f, SHARD_1, 22);
    const struct record *durable = bench_recorded(f, RECORD_DURABLE_STEP);
    assert_int_equal(durable->durable.step, 0);
    assert_int_equal(durable->durable.digests[1], 22);
    assert_int_equal(bench_count_sent(f, SHARD_1, MESSAGE_RETAIN), 1);
}

static void a_lost_shard_takes_all_back_to_the_durable_step_under_a_new_attempt(void **state) {
    struct fixture *f = *state;
    bench_start_durable(f);
    assert_int_equal(bench_lose(f, SHARD_1), 0);
    assert_int_equal(bench_recorded(f, RECORD_ATTEMPT)->attempt, 2);
    assert_int_equal(bench_recorded(f, RECORD_ROLL_BACK)->roll_back.step, 0);
    assert_int_equal(bench_sent(f, SHARD_0, MESSAGE_SHARD_SETUP).shard_setup.attempt, 2);
    bench_ready(f, SHARD_0);
    struct message restore = bench_sent(f, SHARD_0, MESSAGE_RESTORE);
    assert_int_equal(restore.restore.digest, 11);
    restored(f, SHARD_0, 0);
    bench_return(f, SHARD_1);
    assert_int_equal(bench_sent(f, REPLICA_0, MESSAGE_SHARD_AT).shard_at.attempt, 2);
    bench_ready(f, SHARD_1);
    assert_int_equal(bench_sent(f, SHARD_1, MESSAGE_RESTORE).restore.digest, 22);
    restored(f, SHARD_1, 0);
    bench_ready(f, REPLICA_0);
    assert_int_equal(coordinator_phase(f->coordinator), PHASE_SETTING_UP);
    bench_ready(f, REPLICA_1);
    assert_int_equal(coordinator_phase(f->coordinator), PHASE_RUNNING);
    assert_int_equal(bench_sent(f, SHARD_0, MESSAGE_PROGRAM).program.number, 1);
    assert_int_equal(coordinator_view(f->coordinator).step, 0);
    assert_true(coordinator_view(f->coordinator).started);
}

static void a_shard_lost_while_all_is_set_up_is_told_of_anew(void **state) {
    struct fixture *f = *state;
    bench_welcome_all(f);
    bench_ready(f, REPLICA_0);
    bench_lose(f, SHARD_1);
    bench_return(f, SHARD_1);
    assert_int_equal(bench_count_sent(f, REPLICA_0, MESSAGE_SHARD_AT), 2);
    assert_int_equal(bench_count_sent(f, REPLICA_1, MESSAGE_SHARD_AT), 2);
    bench_ready_all(f);
    assert_int_equal(coordinator_phase(f->coordinator), PHASE_RUNNING);
}

static void without_a_durable_step_all_goes_back_to_the_start(void **state) {
    struct fixture *f = *state;
    bench_finish_first(f, 1, 0.5);
    bench_lose(f, SHARD_0);
    assert_true(bench_recorded(f, RECORD_ROLL_BACK)->roll_back.to_start);
    assert_false(coordinator_view(f->coordinator).started);
}

static void an_answer_of_an_older_attempt_changes_nothing(void **state) {
    struct fixture *f = *state;
    bench_start_durable(f);
    bench_lose(f, SHARD_1);
    struct message message = {.type = MESSAGE_READY};
    message.ready.attempt = 1;
    bench_feed(f, SHARD_0, message);
    assert_int_equal(f->out.messages.count, 0);
    assert_false(coordinator_worker(f->coordinator, SHARD_0).ready);
}

static void a_damaged_checkpoint_sends_all_to_the_older_step(void **state) {
    struct fixture *f = *state;
    bench_start_durable(f);
    bench_add_durable(f, 99);
    bench_lose(f, SHARD_1);
    bench_ready(f, SHARD_0);
    restored(f, SHARD_0, 65);
    assert_int_equal(coordinator_view(f->coordinator).attempt, 3);
    assert_int_equal(coordinator_view(f->coordinator).durable_step, 99);
    bench_ready(f, SHARD_0);
    struct message message = {.type = MESSAGE_RESTORED};
    message.restored =
        (struct message_restored){.attempt = 3, .step = 99, .status = 65, .reason = "damaged too"};
    assert_int_equal(bench_feed(f, SHARD_0, message), ERROR_DATA);
    assert_non_null(strstr(error_text(), "--fresh"));
}

static void a_checkpoint_of_another_version_is_refused_and_given_up_by_nobody(void **state) {
    struct fixture *f = *state;
    bench_start_durable(f);
    bench_add_durable(f, 99);
    bench_lose(f, SHARD_1);
    bench_ready(f, SHARD_0);
    struct message message = {.type = MESSAGE_RESTORED};
    message.restored =
        (struct message_restored){.attempt = 2, .step = 0, .status = 69, .reason = "version 1"};
    assert_int_equal(bench_feed(f, SHARD_0, message), ERROR_UNAVAILABLE);
    assert_int_equal(bench_count_recorded(f, RECORD_ROLL_BACK), 0);
    error_clear();
}

/* The disk of shard 0 is full at the first checkpoint; shard 1 has not answered yet. */
static void fail_first_checkpoint(struct fixture *f) {
    struct message message = {.type = MESSAGE_CHECKPOINTED};
    f->settings.shards_folder = "/shards";
    bench_begin(f, &f->settings);
    bench_finish_first(f, 1, 0.5);
    message.checkpointed = (struct message_checkpointed){
        .attempt = 1, .step = 0, .status = 74, .reason = "No space left on device"};
    assert_int_equal(bench_feed(f, SHARD_0, message), 0);
}

static void a_checkpoint_that_cannot_be_written_costs_only_itself(void **state) {
    struct fixture *f = *state;
    fail_first_checkpoint(f);
    bench_checkpointed(f, SHARD_1, 22);
    assert_false(coordinator_view(f->coordinator).durable);
    assert_int_equal(coordinator_phase(f->coordinator), PHASE_RUNNING);
}

/* Else the answer of a slow shard may come when the next checkpoint, of the same number, is under
 * way. */
static void a_failed_checkpoint_is_over_when_all_shards_have_answered(void **state) {
    struct fixture *f = *state;
    fail_first_checkpoint(f);
    bench_checkpointed(f, SHARD_1, 22);
    assert_int_equal(coordinator_view(f->coordinator).stale, 0); /* it was waited for */
    bench_checkpointed(f, SHARD_1, 22);
    assert_int_equal(coordinator_view(f->coordinator).stale, 1);
    assert_false(coordinator_view(f->coordinator).durable);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, bench_set_up, bench_tear_down)

SUITE(recovery) {
    const struct CMUnitTest tests[] = {
        TEST(a_lost_replicas_chunks_go_back_and_it_is_started_anew),
        TEST(counted_chunks_of_a_lost_replica_stay_counted),
        TEST(a_worker_that_is_lost_too_often_ends_the_run),
        TEST(the_last_replica_alone_must_be_replaceable),
        TEST(replicas_that_others_start_may_come_and_go_as_they_like),
        TEST(a_shard_that_others_start_and_that_is_mute_is_not_lost_too_often),
        TEST(a_silent_worker_is_lost_and_a_pause_of_ones_own_is_forgiven),
        TEST(a_slow_portion_is_copied_to_an_idle_replica_as_a_flush_of_its_own),
        TEST(who_has_flushed_its_last_is_given_a_copy_at_once),
        TEST(among_many_replicas_copies_are_looked_for_only_now_and_then),
        TEST(what_takes_longest_is_copied_first_by_who_is_fast_enough),
        TEST(a_copy_of_what_is_counted_is_not_copied),
        TEST(what_is_computed_and_on_its_way_is_not_copied),
        TEST(a_replica_alone_is_handed_all_at_once_when_its_speed_is_known),
        TEST(on_one_host_a_portion_is_copied_only_when_its_holder_fell_silent),
        TEST(on_one_host_a_portion_is_copied_if_its_holder_was_slow_twice),
        TEST(without_backup_copies_a_straggler_keeps_its_portion_until_it_is_lost),
        TEST(what_comes_back_late_goes_to_who_has_had_its_last_portion),
        TEST(a_step_is_durable_when_every_shard_has_written_it),
        TEST(a_lost_shard_takes_all_back_to_the_durable_step_under_a_new_attempt),
        TEST(a_shard_lost_while_all_is_set_up_is_told_of_anew),
        TEST(without_a_durable_step_all_goes_back_to_the_start),
        TEST(an_answer_of_an_older_attempt_changes_nothing),
        TEST(a_damaged_checkpoint_sends_all_to_the_older_step),
        TEST(a_checkpoint_of_another_version_is_refused_and_given_up_by_nobody),
        TEST(a_checkpoint_that_cannot_be_written_costs_only_itself),
        TEST(a_failed_checkpoint_is_over_when_all_shards_have_answered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
