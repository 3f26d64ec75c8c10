/* A coordinator that is lost or stopped, and the one that takes the run up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/suites.h"
#include "base/error.h"
#include "coordinator/machine/machine.h"
#include "tests/unit/coordinator_bench.h"

static void a_state_survives_being_stored(void **state) {
    struct fixture *f = *state;
    struct bytes first, second;
    bytes_init(&first);
    bytes_init(&second);
    f->data.holdout_chunks = 1;
    f->data.holdout_rows = 8;
    f->data.holdout_weight_sum = 8;
    f->settings.optimizer.patience = 3;
    bench_begin(f, &f->settings);
    bench_finish_first(f, 1, 0.5);
    struct optimizer_point best = coordinator_view(f->coordinator).answer;
    assert_true(best.holdout.loss == CHUNKS / 2.0 / 8 && best.holdout.accuracy == CHUNKS / 4.0 / 8);
    state_encode(f->coordinator, &first);
    bench_begin(f, &f->settings);
    assert_true(state_decode(f->coordinator, first.data, first.length));
    state_encode(f->coordinator, &second);
    assert_int_equal(first.length, second.length);
    assert_memory_equal(first.data, second.data, first.length);
    struct optimizer_point decoded = coordinator_view(f->coordinator).answer;
    assert_memory_equal(&decoded, &best, sizeof best);
    assert_true(bench_optimizer(f)->search.guessed); /* the first search */
    bytes_release(&first);
    bytes_release(&second);
}

static void a_damaged_state_is_refused_and_changes_nothing(void **state) {
    struct fixture *f = *state;
    struct bytes good, before, after;
    bytes_init(&good);
    bytes_init(&before);
    bytes_init(&after);
    bench_finish_first(f, 1, 0.5);
    state_encode(f->coordinator, &good);
    bench_begin(f, &f->settings);
    state_encode(f->coordinator, &before);
    for (size_t i = 0; i < good.length; i++) {
        good.data[i] ^= 1;
        assert_false(state_decode(f->coordinator, good.data, good.length));
        good.data[i] ^= 1;
        assert_false(state_decode(f->coordinator, good.data, i));
    }
    state_encode(f->coordinator, &after);
    assert_memory_equal(before.data, after.data, before.length);
    bytes_release(&good);
    bytes_release(&before);
    bytes_release(&after);
}

/* A coordinator of these settings that finds two durable steps: states of `newer` and `older`. */
static struct coordinator *taken_up(const struct fixture *f, const struct bytes *newer,
                                    const struct bytes *older) {
    uint64_t digests[] = {1, 2};
    struct store_saved saved = {.attempt = 1, .step_count = 2};
    const struct bytes *states[] = {newer, older};
    for (uint32_t i = 0; i < 2; i++) {
        saved.steps[i].step = 9 - i;
        saved.steps[i].state = (struct store_blob){states[i]->data, states[i]->length};
        saved.steps[i].digests = digests;
    }
    struct coordinator_settings settings = f->settings;
    settings.saved = &saved;
    return coordinator_new(&settings);
}

static void a_run_is_not_taken_up_from_a_state_of_another_shape(void **state) {
    struct fixture *f = *state;
    struct bytes good, other;
    bytes_init(&good);
    bytes_init(&other);
    state_encode(f->coordinator, &good);
    f->settings.optimizer.memory++;
    bench_begin(f, &f->settings);
    state_encode(f->coordinator, &other);
    assert_null(taken_up(f, &good, &other));
    assert_non_null(strstr(error_text(), "step 9"));
    assert_non_null(strstr(error_text(), "--fresh"));
    error_clear();
    struct coordinator *coordinator = taken_up(f, &other, &good); /* the older does not count */
    assert_int_equal(coordinator_view(coordinator).durable_step, 9);
    coordinator_free(coordinator);
    bytes_release(&good);
    bytes_release(&other);
}

/* The journal that a coordinator would find, gathered from the records of its predecessor. */
struct kept {
    struct bytes entries[8];
    struct store_blob blobs[8];
    uint32_t count;
    uint64_t hash; /* of the program that was out */
};

static void keep(struct kept *kept, const struct fixture *f) {
    for (uint32_t i = 0; i < f->out.record_count; i++) {
        const struct record *record = &f->out.records[i];
        if (record->kind != RECORD_JOURNAL)
            continue;
        if (record->journal.begins)
            kept->count = 0;
        struct bytes *entry = &kept->entries[kept->count];
        bytes_clear(entry);
        bytes_append(entry, f->out.blobs.data + record->journal.offset, record->journal.length);
        kept->blobs[kept->count++] =
            (struct store_blob){.data = entry->data, .length = entry->length};
    }
}

static void release(struct kept *kept) {
    for (int i = 0; i < 8; i++)
        bytes_release(&kept->entries[i]);
}

/* A coordinator of the next term, with so many replicas, finds this journal. */
static void take_up(struct fixture *f, struct kept *kept, uint32_t replicas) {
    struct store_saved saved = {.attempt = 1, .journal = kept->blobs, .journal_count = kept->count};
    struct coordinator_settings settings = f->settings;
    settings.term++;
    settings.saved = &saved;
    settings.replicas = replicas;
    bench_begin(f, &settings);
}

static void holding_in(struct fixture *f, uint32_t evaluation, uint32_t shard, uint64_t number,
                       uint64_t hash, const struct flush_id *folded) {
    struct bytes ids;
    bytes_init(&ids);
    if (folded) {
        bytes_put_u32(&ids, folded->attempt);
        bytes_put_u32(&ids, folded->evaluation);
        bytes_put_u64(&ids, folded->incarnation);
        bytes_put_u32(&ids, folded->sequence);
    }
    struct message message = {.type = MESSAGE_HOLDING};
    message.holding = (struct message_holding){
        .attempt = 1,
        .number = number,
        .hash = hash,
        .evaluation = evaluation,
        .folded = {.data = ids.data, .length = (uint32_t)ids.length},
        .device = "emulated",
    };
    assert_int_equal(bench_feed(f, shard, message), 0);
    bytes_release(&ids);
}

static void holding(struct fixture *f, uint32_t shard, uint64_t number, uint64_t hash,
                    const struct flush_id *folded) {
    holding_in(f, 1, shard, number, hash, folded);
}

/* A coordinator whose first evaluation is long enough to be journalled, with two chunks of one
 * replica counted, is replaced by another of the next term, with so many replicas. */
static struct flush_id replace_with(struct fixture *f, struct kept *kept, uint32_t replica,
                                    uint32_t replicas) {
    bench_start(f);
    kept->hash = bench_sent(f, SHARD_0, MESSAGE_PROGRAM).program.hash;
    output_clear(&f->out);
    coordinator_tick(f->coordinator, 200000000, &f->out);
    keep(kept, f);
    bench_flush(f, replica, 1, 0, 2);
    keep(kept, f);
    struct flush_id flush = bench_flush_id(f, replica, 1);
    take_up(f, kept, replicas);
    return flush;
}

static struct flush_id replace(struct fixture *f, struct kept *kept) {
    return replace_with(f, kept, REPLICA_0, 2);
}

static void a_new_coordinator_goes_on_from_the_counted_chunks(void **state) {
    struct fixture *f = *state;
    struct kept kept = {0};
    uint64_t incarnation = coordinator_worker(f->coordinator, REPLICA_1).incarnation;
    struct flush_id flush = replace(f, &kept);
    assert_int_equal(kept.count, 2);
    assert_int_equal(coordinator_phase(f->coordinator), PHASE_REJOINING);
    assert_true(coordinator_worker(f->coordinator, REPLICA_1).incarnation == incarnation);
    bench_welcome_all(f);
    holding(f, SHARD_0, 1, kept.hash, &flush);
    holding(f, SHARD_1, 1, kept.hash, &flush);
    assert_int_equal(coordinator_phase(f->coordinator), PHASE_RUNNING);
    assert_string_equal(coordinator_worker(f->coordinator, SHARD_0).device, "emulated");
    assert_int_equal(coordinator_view(f->coordinator).attempt, 1);
    assert_int_equal(coordinator_view(f->coordinator).evaluation.counted, 2);
    assert_int_equal(bench_sent(f, SHARD_0, MESSAGE_PROGRAM).program.number, 1);
    assert_int_equal(bench_count_sent(f, SHARD_0, MESSAGE_FOLD), 1);
    keep(&kept, f);
    assert_int_equal(kept.count, 2); /* for the next one, should this one die too */
    bench_ready(f, REPLICA_0);
    assert_int_equal(bench_sent(f, REPLICA_0, MESSAGE_EVALUATE).evaluate.evaluation, 1);
    release(&kept);
}

/* It goes on with the evaluation that the former coordinator told it of, while it is set up. */
static void a_replica_may_ask_for_work_before_it_is_ready_again(void **state) {
    struct fixture *f = *state;
    struct kept kept = {0};
    struct flush_id flush = replace(f, &kept);
    bench_welcome_all(f);
    holding(f, SHARD_0, 1, kept.hash, &flush);
    holding(f, SHARD_1, 1, kept.hash, &flush);
    struct message message = {.type = MESSAGE_WANT, .want = {.attempt = 1, .evaluation = 1}};
    assert_int_equal(bench_feed(f, REPLICA_0, message), 0);
    bench_sent(f, REPLICA_0, MESSAGE_PORTION);
    release(&kept);
}

/* The state that is taken up knows of fewer incarnations than this coordinator has issued. */
static void replicas_that_are_added_at_a_restart_have_incarnations_of_their_own(void **state) {
    struct fixture *f = *state;
    struct kept kept = {0};
    replace_with(f, &kept, REPLICA_0, 4);
    assert_int_equal(coordinator_phase(f->coordinator), PHASE_REJOINING);
    assert_int_equal(bench_lose(f, REPLICA_0), 0);
    uint64_t given = coordinator_worker(f->coordinator, REPLICA_0).incarnation;
    for (uint32_t link = REPLICA_1; link < coordinator_links(f->coordinator); link++)
        assert_true(coordinator_worker(f->coordinator, link).incarnation != given);
    release(&kept);
}

/* The job may say another number of replicas than when the run was cut off. */
static void flushes_of_replicas_that_are_no_more_still_count(void **state) {
    struct fixture *f = *state;
    struct kept kept = {0};
    struct flush_id flush = replace_with(f, &kept, REPLICA_1, 1);
    assert_int_equal(coordinator_phase(f->coordinator), PHASE_REJOINING);
    for (uint32_t link = SHARD_0; link <= REPLICA_0; link++)
        assert_int_equal(bench_feed(f, link, bench_welcome(f, link, 42)), 0);
    holding(f, SHARD_0, 1, kept.hash, &flush);
    holding(f, SHARD_1, 1, kept.hash, &flush);
    assert_int_equal(coordinator_view(f->coordinator).evaluation.counted, 2);
    for (uint32_t shard = SHARD_0; shard <= SHARD_1; shard++) {
        struct message folded = {.type = MESSAGE_FOLDED,
                                 .folded = {.flushes = listed_flushes(&flush, 1)}};
        assert_int_equal(bench_feed(f, shard, folded), 0);
    }
    struct chunk_view chunks[CHUNKS];
    coordinator_chunks(f->coordinator, chunks);
    assert_int_equal(chunks[0].state, CHUNK_COUNTED);
    assert_int_equal(chunks[0].replica, 1);
    release(&kept);
}

/* What it was given to do by the former coordinator may take long, and it answers only then. */
static void a_worker_of_a_large_model_may_leave_a_new_coordinator_waiting(void **state) {
    struct fixture *f = *state;
    struct kept kept = {0};
    int64_t second = 1000000000;
    f->settings.shape.features = 99999999;
    f->settings.layout = layout_linear(f->settings.shape.features, 1, true);
    bench_begin(f, &f->settings);
    replace(f, &kept);
    assert_int_equal(coordinator_phase(f->coordinator), PHASE_REJOINING);
    bench_feed(f, REPLICA_1, bench_welcome(f, REPLICA_1, 42));
    for (int64_t now = 0; now <= 61 * second; now += second / 10) {
        output_clear(&f->out);
        assert_int_equal(coordinator_tick(f->coordinator, now, &f->out), 0);
        assert_true(coordinator_worker(f->coordinator, REPLICA_0).connected ==
                    (now <= 60 * second));
        assert_true(coordinator_worker(f->coordinator, REPLICA_1).connected ==
                    (now <= 10 * second));
    }
    release(&kept);
}

static void a_process_that_took_a_workers_place_gets_an_incarnation_of_its_own(void **state) {
    struct fixture *f = *state;
    struct kept kept = {0};
    replace(f, &kept);
    uint64_t incarnation = coordinator_worker(f->coordinator, REPLICA_0).incarnation;
    struct message stranger = bench_welcome(f, REPLICA_0, 42);
    stranger.welcome.since = TERM + 1; /* it was greeted under that name by this one only */
    assert_int_equal(bench_feed(f, REPLICA_0, stranger), 0);
    assert_false(coordinator_worker(f->coordinator, REPLICA_0).welcomed);
    uint64_t given = bench_sent(f, REPLICA_0, MESSAGE_HELLO).hello.incarnation;
    assert_true(given != incarnation);
    bench_feed(f, REPLICA_0, bench_welcome(f, REPLICA_0, 42));
    assert_true(coordinator_worker(f->coordinator, REPLICA_0).welcomed);
    release(&kept);
}

static void a_shard_that_folded_what_is_not_journalled_sends_all_back(void **state) {
    struct fixture *f = *state;
    struct kept kept = {0};
    struct flush_id flush = replace(f, &kept);
    bench_welcome_all(f);
    flush.sequence++;
    holding(f, SHARD_0, 1, kept.hash, &flush);
    assert_int_equal(coordinator_phase(f->coordinator), PHASE_SETTING_UP);
    assert_int_equal(coordinator_view(f->coordinator).attempt, 2);
    release(&kept);
}

static void a_shard_that_is_further_than_the_journal_sends_all_back(void **state) {
    struct fixture *f = *state;
    struct kept kept = {0};
    struct flush_id flush = replace(f, &kept);
    bench_welcome_all(f);
    holding(f, SHARD_0, 2, 1, &flush);
    assert_int_equal(coordinator_view(f->coordinator).attempt, 2);
    release(&kept);
}

/* The next program did not wait for FOLDED, and neither it nor FOLD came to shard 1. */
static void a_shard_that_missed_a_fold_before_the_journal_sends_all_back(void **state) {
    struct fixture *f = *state;
    struct kept kept = {0};
    f->settings.shape.kind = OBJECTIVE_SQUARED; /* a bound that is exceeded: evaluated again */
    f->exceeded = true;
    f->maxima = maxima_of_one(1e9);
    bench_begin(f, &f->settings);
    bench_start(f);
    bench_flush(f, REPLICA_0, 1, 0, CHUNKS);
    assert_int_equal(bench_sent(f, SHARD_1, MESSAGE_PROGRAM).program.number, 2);
    output_clear(&f->out);
    coordinator_tick(f->coordinator, 200000000, &f->out);
    keep(&kept, f);
    assert_int_equal(kept.count, 1);
    take_up(f, &kept, 2);
    bench_welcome_all(f);
    holding(f, SHARD_1, 1, 0, NULL);
    assert_int_equal(coordinator_phase(f->coordinator), PHASE_SETTING_UP);
    assert_int_equal(coordinator_view(f->coordinator).attempt, 2);
    release(&kept);
}

static void a_cancelled_run_makes_its_last_step_durable_and_stops(void **state) {
    struct fixture *f = *state;
    f->settings.shards_folder = "/shards";
    f->settings.checkpoint_ns = INT64_MAX;
    bench_begin(f, &f->settings);
    bench_finish_first(f, 1, 0.5);
    output_clear(&f->out);
    coordinator_stop(f->coordinator, REASON_CANCELLED, 0, &f->out);
    assert_int_equal(coordinator_phase(f->coordinator), PHASE_FINAL_CHECKPOINT);
    assert_int_equal(bench_count_sent(f, SHARD_0, MESSAGE_CHECKPOINT), 1);
    bench_checkpointed(f, SHARD_0, 1);
    bench_checkpointed(f, SHARD_1, 2);
    assert_int_equal(coordinator_phase(f->coordinator), PHASE_STOPPED);
}

/* A coordinator that is to stop in the middle of a long evaluation is killed while its last step is
 * being written. What it dropped of that evaluation some shards would have forgotten, though the
 * replica that was not told so reports it to the next coordinator. */
static void a_flush_that_comes_while_a_run_stops_counts_with_the_next_coordinator(void **state) {
    struct fixture *f = *state;
    struct kept kept = {0};
    f->settings.shards_folder = "/shards";
    f->settings.checkpoint_ns = INT64_MAX;
    bench_begin(f, &f->settings);
    bench_finish_first(f, 1, 0.5);
    struct message_program program = bench_sent(f, SHARD_0, MESSAGE_PROGRAM).program;
    output_clear(&f->out);
    coordinator_tick(f->coordinator, 200000000, &f->out);
    keep(&kept, f);
    coordinator_stop(f->coordinator, REASON_CANCELLED, 200000000, &f->out);
    assert_int_equal(coordinator_phase(f->coordinator), PHASE_FINAL_CHECKPOINT);
    assert_int_equal(bench_flush(f, REPLICA_0, 1, 0, 2), 0);
    assert_int_equal(f->out.messages.count, 0);
    take_up(f, &kept, 2);
    bench_welcome_all(f);
    holding_in(f, 2, SHARD_0, program.number, program.hash, NULL);
    holding_in(f, 2, SHARD_1, program.number, program.hash, NULL);
    assert_int_equal(coordinator_phase(f->coordinator), PHASE_RUNNING);
    assert_int_equal(bench_flush(f, REPLICA_0, 1, 0, 2), 0);
    assert_int_equal(bench_count_sent(f, SHARD_0, MESSAGE_FOLD), 1);
    assert_int_equal(bench_count_sent(f, SHARD_1, MESSAGE_FOLD), 1);
    assert_int_equal(coordinator_view(f->coordinator).evaluation.counted, 2);
    release(&kept);
}

static void an_abandoned_run_stops_at_once_and_hears_nobody(void **state) {
    struct fixture *f = *state;
    bench_start_durable(f);
    coordinator_stop(f->coordinator, REASON_TIME_LIMIT, 0, &f->out);
    coordinator_abandon(f->coordinator);
    assert_int_equal(coordinator_phase(f->coordinator), PHASE_STOPPED);
    assert_int_equal(coordinator_view(f->coordinator).reason, REASON_CANCELLED);
    bench_flush(f, REPLICA_0, 1, 0, 2);
    bench_lose(f, SHARD_0);
    assert_int_equal(f->out.messages.count, 0);
    assert_int_equal(f->out.record_count, 0);
    assert_int_equal(coordinator_phase(f->coordinator), PHASE_STOPPED);
}

static void a_shard_whose_folder_a_later_coordinator_had_ends_the_older_one(void **state) {
    struct fixture *f = *state;
    for (uint32_t hosts = 0; hosts <= 2; hosts += 2) {
        f->settings.on_hosts = hosts;
        bench_begin(f, &f->settings);
        bench_start(f);
        struct message message = {.type = MESSAGE_FAILED};
        message.failed = (struct message_failed){.status = 75, .reason = "a newer coordinator"};
        assert_int_equal(bench_feed(f, SHARD_1, message), ERROR_AGAIN);
        assert_non_null(strstr(error_text(), "a newer coordinator"));
        assert_true(coordinator_is_fenced(f->coordinator));
        error_clear();
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, bench_set_up, bench_tear_down)

SUITE(takeover) {
    const struct CMUnitTest tests[] = {
        TEST(a_shard_whose_folder_a_later_coordinator_had_ends_the_older_one),
        TEST(a_state_survives_being_stored),
        TEST(a_damaged_state_is_refused_and_changes_nothing),
        TEST(a_run_is_not_taken_up_from_a_state_of_another_shape),
        TEST(a_new_coordinator_goes_on_from_the_counted_chunks),
        TEST(a_replica_may_ask_for_work_before_it_is_ready_again),
        TEST(replicas_that_are_added_at_a_restart_have_incarnations_of_their_own),
        TEST(flushes_of_replicas_that_are_no_more_still_count),
        TEST(a_worker_of_a_large_model_may_leave_a_new_coordinator_waiting),
        TEST(a_process_that_took_a_workers_place_gets_an_incarnation_of_its_own),
        TEST(a_shard_that_folded_what_is_not_journalled_sends_all_back),
        TEST(a_shard_that_is_further_than_the_journal_sends_all_back),
        TEST(a_shard_that_missed_a_fold_before_the_journal_sends_all_back),
        TEST(a_cancelled_run_makes_its_last_step_durable_and_stops),
        TEST(a_flush_that_comes_while_a_run_stops_counts_with_the_next_coordinator),
        TEST(an_abandoned_run_stops_at_once_and_hears_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
