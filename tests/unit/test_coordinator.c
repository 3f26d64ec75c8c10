/* The coordinator's state machine, message by message, the test plays two
 * shards and two replicas. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/suites.h"
#include "base/error.h"
#include "numeric/fixed.h"
#include "tests/unit/coordinator_bench.h"
#include "wire/program.h"

/* ---- tests ---- */

static void workers_are_greeted_with_incarnations_of_their_own(void **state) {
    struct fixture *f = *state;
    uint64_t seen[LINKS];
    for (uint32_t link = 0; link < LINKS; link++) {
        seen[link] = bench_sent(f, link, MESSAGE_HELLO).hello.incarnation;
        for (uint32_t other = 0; other < link; other++)
            assert_true(seen[other] != seen[link]);
    }
}

static void ranges_fall_on_blocks_and_cover_everything(void **state) {
    struct fixture *f = *state;
    uint64_t first, count, next = 0;
    for (uint32_t shard = 0; shard < 2; shard++) {
        coordinator_range(f->coordinator, shard, &first, &count);
        assert_int_equal(first, next);
        assert_int_equal(first % BLOCK_ELEMENTS, 0);
        next = first + count;
    }
    assert_int_equal(next, 10001);
}

static void a_worker_that_computes_other_bits_is_refused(void **state) {
    struct fixture *f = *state;
    assert_int_equal(bench_feed(f, SHARD_0, bench_welcome(f, SHARD_0, 42)), 0);
    assert_int_equal(bench_feed(f, REPLICA_0, bench_welcome(f, REPLICA_0, 43)),
                     0); /* other role: other proof */
    assert_int_equal(bench_feed(f, SHARD_1, bench_welcome(f, SHARD_1, 44)), ERROR_UNAVAILABLE);
    assert_int_equal(bench_count_sent(f, SHARD_1, MESSAGE_REFUSED), 1);
    assert_non_null(strstr(error_text(), "other bits"));
    assert_int_equal(coordinator_phase(f->coordinator), PHASE_FAILED);
}

static uint32_t count_apart(const struct fixture *f) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < f->out.record_count; i++)
        count += f->out.records[i].kind == RECORD_EVENT &&
                 strstr(f->out.records[i].event.text, "host here does not see");
    return count;
}

/* A socket of this machine needs no proof that its files are here. */
static void a_worker_elsewhere_says_whether_it_sees_the_state_folder(void **state) {
    struct fixture *f = *state;
    const char *shards[] = {"tls:a:1", "unix:/b"}, *replicas[] = {"tls:b:1", "unix:/c"};
    struct coordinator_settings settings = f->settings;
    settings.shard_addresses = shards;
    settings.replica_addresses = replicas;
    settings.state = "/state";
    settings.holder = "1 here 7\n";
    bench_begin(f, &settings);
    const uint32_t links[] = {SHARD_0, REPLICA_0, SHARD_1, REPLICA_1};
    for (size_t i = 0; i < LINKS; i++) {
        struct message_hello hello = bench_sent(f, links[i], MESSAGE_HELLO).hello;
        assert_string_equal(hello.state, i < 2 ? "/state" : "");
        assert_string_equal(hello.holder, i < 2 ? "1 here 7\n" : "");
    }
    for (size_t i = 0; i < LINKS; i++) {
        struct message welcome = bench_welcome(f, links[i], 42);
        welcome.welcome.shares = i >= 2;
        assert_int_equal(bench_feed(f, links[i], welcome), 0);
        assert_int_equal(count_apart(f), i == 0); /* of that host, once */
    }
}

static void replicas_hear_of_the_shards_when_all_shards_are_there(void **state) {
    struct fixture *f = *state;
    bench_feed(f, REPLICA_0, bench_welcome(f, REPLICA_0, 42));
    bench_feed(f, SHARD_1, bench_welcome(f, SHARD_1, 42));
    assert_int_equal(bench_count_sent(f, REPLICA_0, MESSAGE_SHARD_AT), 0);
    bench_feed(f, SHARD_0, bench_welcome(f, SHARD_0, 42));
    assert_int_equal(bench_count_sent(f, REPLICA_0, MESSAGE_SHARD_AT), 2);
    assert_int_equal(bench_count_sent(f, REPLICA_1, MESSAGE_SHARD_AT), 0);
    bench_feed(f, REPLICA_1, bench_welcome(f, REPLICA_1, 42));
    assert_int_equal(bench_count_sent(f, REPLICA_0, MESSAGE_SHARD_AT), 0);
    assert_int_equal(bench_count_sent(f, REPLICA_1, MESSAGE_SHARD_AT), 2);
}

static void replicas_hear_the_secrets_of_shards_on_their_host(void **state) {
    struct fixture *f = *state;
    static const char *const shards[] = {"tls:a:1", "tls:b:1"}, *const replicas[] = {"a:2", "b:2"};
    const char *secret[] = {"00000000000000000000000000000000", "11111111111111111111111111111111"};
    f->settings.shard_addresses = shards;
    f->settings.replica_addresses = replicas;
    bench_begin(f, &f->settings);
    for (uint32_t i = 0; i < 2; i++) {
        struct message welcome = bench_welcome(f, SHARD_0 + i, 42);
        welcome.welcome.local = secret[i];
        assert_int_equal(bench_feed(f, SHARD_0 + i, welcome), 0);
    }
    bench_feed(f, REPLICA_1, bench_welcome(f, REPLICA_1, 42));
    for (size_t i = 0; i < f->out.messages.count; i++) {
        const struct envelope *envelope = &f->out.messages.envelopes[i];
        if (envelope->to != REPLICA_1 || envelope->type != MESSAGE_SHARD_AT)
            continue;
        struct message at = decoded(&f->out.messages, envelope);
        assert_string_equal(at.shard_at.local, at.shard_at.index == 1 ? secret[1] : "");
    }
    assert_int_equal(bench_count_sent(f, REPLICA_1, MESSAGE_SHARD_AT), 2);
}

static void the_first_evaluation_begins_when_all_are_ready(void **state) {
    struct fixture *f = *state;
    bench_start(f);
    struct message program = bench_sent(f, SHARD_1, MESSAGE_PROGRAM);
    assert_int_equal(program.program.number, 1);
    assert_true(program.program.hash ==
                program_hash(program.program.operations.data, program.program.operations.length));
    assert_int_equal(bench_sent(f, REPLICA_0, MESSAGE_EVALUATE).evaluate.evaluation, 1);
    struct message portion = bench_sent(f, REPLICA_1, MESSAGE_PORTION);
    assert_int_equal(portion.portion.first, CHUNKS / 2);
    assert_int_equal(portion.portion.count, 2);
}

/* Welcomes and readies all but the last replica. */
static void nobody_is_ready_before_it_has_said_welcome(void **state) {
    struct fixture *f = *state;
    struct message restored = {.type = MESSAGE_RESTORED, .restored = {.attempt = 1, .reason = ""}};
    bench_ready_all(f);
    assert_int_equal(bench_feed(f, SHARD_0, restored), 0);
    for (uint32_t link = 0; link < LINKS; link++)
        assert_false(coordinator_worker(f->coordinator, link).ready);
    bench_welcome_all(f);
    assert_int_equal(coordinator_phase(f->coordinator), PHASE_SETTING_UP);
    bench_ready_all(f);
    assert_int_equal(coordinator_phase(f->coordinator), PHASE_RUNNING);
}

static void begin_without_replica_1(struct fixture *f) {
    for (uint32_t link = 0; link < REPLICA_1; link++)
        assert_int_equal(bench_feed(f, link, bench_welcome(f, link, 1)), 0);
    for (uint32_t link = 0; link < REPLICA_1; link++) {
        assert_int_equal(coordinator_phase(f->coordinator), PHASE_SETTING_UP);
        bench_ready(f, link);
    }
}

static void a_replica_that_has_not_come_is_not_waited_for_if_others_start_it(void **state) {
    struct fixture *f = *state;
    f->settings.by_hand[1] = true;
    bench_begin(f, &f->settings);
    begin_without_replica_1(f);
    assert_int_equal(coordinator_phase(f->coordinator), PHASE_RUNNING);
    assert_int_equal(bench_feed(f, REPLICA_1, bench_welcome(f, REPLICA_1, 1)), 0);
    assert_int_equal(bench_count_sent(f, REPLICA_1, MESSAGE_REPLICA_SETUP), 1);
}

static void a_replica_of_this_machine_is_waited_for(void **state) {
    struct fixture *f = *state;
    begin_without_replica_1(f);
    assert_int_equal(coordinator_phase(f->coordinator), PHASE_SETTING_UP);
    assert_int_equal(bench_feed(f, REPLICA_1, bench_welcome(f, REPLICA_1, 1)), 0);
    bench_ready(f, REPLICA_1);
    assert_int_equal(coordinator_phase(f->coordinator), PHASE_RUNNING);
}

static void a_busy_worker_is_greeted_again_under_another_name_and_not_lost(void **state) {
    struct fixture *f = *state;
    uint64_t before = coordinator_worker(f->coordinator, SHARD_1).incarnation;
    struct message refused = {.type = MESSAGE_REFUSED, .refused = {"it is busy", true}};
    for (int i = 0; i < 100; i++) {
        coordinator_opened(f->coordinator, SHARD_1, 0, &f->out);
        assert_int_equal(bench_feed(f, SHARD_1, refused), 0);
    }
    assert_int_equal(bench_recorded(f, RECORD_BUSY)->busy, SHARD_1);
    assert_string_equal(bench_recorded(f, RECORD_BUSY)->note, "it is busy");
    assert_int_equal(coordinator_worker(f->coordinator, SHARD_1).restarts, 0);
    assert_int_not_equal(coordinator_worker(f->coordinator, SHARD_1).incarnation, before);
}

/* Two replicas join one after the other, while there may be three. */
static void begin_with_elastic(struct fixture *f) {
    struct coordinator_settings settings = f->settings;
    settings.replicas = 1;
    settings.replicas_most = 3;
    settings.by_hand[1] = true;
    bench_begin(f, &settings);
}

static void join(struct fixture *f, uint32_t link, uint64_t proof) {
    coordinator_expect(f->coordinator, link);
    coordinator_opened(f->coordinator, link, 0, &f->out);
    assert_int_equal(bench_feed(f, link, bench_welcome(f, link, proof)), 0);
}

static void start_with_elastic(struct fixture *f) {
    begin_with_elastic(f);
    for (uint32_t i = SHARD_0; i < REPLICA_0; i++) {
        bench_feed(f, i, bench_welcome(f, i, 42));
        bench_ready(f, i);
    }
    join(f, REPLICA_0, 42);
    bench_ready(f, REPLICA_0);
    assert_int_equal(coordinator_phase(f->coordinator), PHASE_RUNNING);
}

static void a_run_with_vacant_places_begins_with_the_first_replica_that_joins(void **state) {
    struct fixture *f = *state;
    start_with_elastic(f);
    assert_int_equal(coordinator_links(f->coordinator), LINKS - 1);
    join(f, REPLICA_1, 42);
    bench_ready(f, REPLICA_1);
    assert_int_equal(coordinator_links(f->coordinator), LINKS);
    assert_int_equal(bench_count_sent(f, REPLICA_1, MESSAGE_PORTION), 1); /* at once */
}

static void
a_replica_that_joins_and_computes_other_bits_is_refused_and_the_run_goes_on(void **state) {
    struct fixture *f = *state;
    start_with_elastic(f);
    join(f, REPLICA_1, 43);
    assert_int_equal(bench_count_sent(f, REPLICA_1, MESSAGE_REFUSED), 1);
    assert_false(coordinator_worker(f->coordinator, REPLICA_1).welcomed);
    assert_int_equal(coordinator_phase(f->coordinator), PHASE_RUNNING);
}

static void a_replica_that_is_let_go_works_on_until_the_evaluation_ends(void **state) {
    struct fixture *f = *state;
    start_with_elastic(f);
    join(f, REPLICA_1, 42);
    bench_ready(f, REPLICA_1);
    uint64_t before = coordinator_worker(f->coordinator, REPLICA_0).incarnation;
    coordinator_let_go(f->coordinator, REPLICA_0, 0, &f->out);
    assert_true(coordinator_worker(f->coordinator, REPLICA_0).ready);
    coordinator_lost(f->coordinator, REPLICA_0, "closed", 0,
                     &f->out); /* it counts as having left */
    struct worker_view place = coordinator_worker(f->coordinator, REPLICA_0);
    assert_true(place.vacant && place.incarnation != before && !place.restarts);
    assert_int_equal(bench_recorded(f, RECORD_LEFT)->left, REPLICA_0);
}

static void the_last_replica_that_works_stays_until_another_one_is_ready(void **state) {
    struct fixture *f = *state;
    begin_with_elastic(f);
    join(f, REPLICA_0, 42);
    bench_feed(f, SHARD_0, bench_welcome(f, SHARD_0, 42));
    bench_feed(f, SHARD_1, bench_welcome(f, SHARD_1, 42));
    bench_ready(f, REPLICA_0);
    coordinator_let_go(f->coordinator, REPLICA_0, 0, &f->out);
    assert_false(coordinator_worker(f->coordinator, REPLICA_0).vacant);
    join(f, REPLICA_1, 42);
    bench_ready(f, REPLICA_1);
    assert_int_equal(coordinator_tick(f->coordinator, 0, &f->out), 0);
    assert_true(coordinator_worker(f->coordinator, REPLICA_0).vacant);
    assert_int_equal(bench_count_sent(f, REPLICA_0, MESSAGE_BYE), 1);
}

static void who_wants_is_given_the_next_portion_and_then_a_rest(void **state) {
    struct fixture *f = *state;
    bench_start(f);
    struct message want = {.type = MESSAGE_WANT};
    want.want = (struct message_want){.attempt = 1, .evaluation = 1};
    bench_feed(f, REPLICA_0, want);
    assert_int_equal(bench_sent(f, REPLICA_0, MESSAGE_PORTION).portion.first, 2);
    bench_feed(f, REPLICA_0, want);
    struct message last = bench_sent(f, REPLICA_0, MESSAGE_PORTION);
    assert_int_equal(last.portion.first, 6);
    assert_true(last.portion.flags & PORTION_LAST);
    bench_feed(f, REPLICA_0, want);
    assert_int_equal(bench_count_sent(f, REPLICA_0, MESSAGE_REST), 1);
    want.want.evaluation = 9;
    bench_feed(f, REPLICA_0, want);
    assert_int_equal(f->out.messages.count, 0);
}

static void an_accepted_flush_is_folded_by_every_shard_before_its_verdict(void **state) {
    struct fixture *f = *state;
    bench_start(f);
    assert_int_equal(bench_flush(f, REPLICA_0, 0, 0, 2), 0);
    assert_int_equal(bench_count_sent(f, SHARD_0, MESSAGE_FOLD), 1);
    assert_int_equal(bench_count_sent(f, SHARD_1, MESSAGE_FOLD), 1);
    assert_int_equal(bench_count_sent(f, REPLICA_0, MESSAGE_VERDICT), 0);
    bench_folded(f, SHARD_0, REPLICA_0, 0);
    bench_folded(f, SHARD_0, REPLICA_0, 0); /* said twice, counted once */
    assert_int_equal(bench_count_sent(f, REPLICA_0, MESSAGE_VERDICT), 0);
    bench_folded(f, SHARD_1, REPLICA_0, 0);
    assert_int_equal(bench_sent(f, REPLICA_0, MESSAGE_VERDICT).verdict.accepted, 1);
}

/* As the shell has it: what comes in one turn of its loop is sent together. */
static void flushes_of_one_turn_are_folded_by_one_message(void **state) {
    struct fixture *f = *state;
    bench_start(f);
    const struct flush_id ids[] = {bench_flush_id(f, REPLICA_0, 0), bench_flush_id(f, REPLICA_1, 0),
                                   bench_flush_id(f, REPLICA_0, 1)};
    f->turn = 3;
    bench_flush(f, REPLICA_0, 0, 0, 2);
    bench_flush(f, REPLICA_1, 0, 2, 2);
    assert_int_equal(bench_count_sent(f, SHARD_0, MESSAGE_FOLD), 0);
    bench_flush(f, REPLICA_0, 1, 4, 1);
    const struct blob all = listed_flushes(ids, 3);
    for (uint32_t shard = SHARD_0; shard <= SHARD_1; shard++) {
        assert_int_equal(bench_count_sent(f, shard, MESSAGE_FOLD), 1);
        struct message fold = bench_sent(f, shard, MESSAGE_FOLD);
        assert_int_equal(fold.fold.flushes.length, all.length);
        assert_memory_equal(fold.fold.flushes.data, all.data, all.length);
    }
    f->turn = 0;
    const struct message folded = {.type = MESSAGE_FOLDED, .folded = {all}};
    bench_feed(f, SHARD_0, folded);
    bench_feed(f, SHARD_1, folded);
    assert_int_equal(bench_count_sent(f, REPLICA_0, MESSAGE_VERDICT), 2);
    assert_int_equal(bench_count_sent(f, REPLICA_1, MESSAGE_VERDICT), 1);
}

/* Each FOLD costs a message to every shard and one from it. */
static void flushes_of_many_replicas_gather_over_turns_before_they_are_folded(void **state) {
    struct fixture *f = *state;
    f->settings.replicas = 128;
    f->data.chunks = 1000;
    bench_begin(f, &f->settings);
    bench_start(f);
    for (uint32_t i = 0; i < 4; i++) {
        bench_flush(f, REPLICA_0 + i, 0, 2 * i, 2);
        assert_int_equal(bench_count_sent(f, SHARD_0, MESSAGE_FOLD), i == 3);
    }
    assert_int_equal(bench_sent(f, SHARD_1, MESSAGE_FOLD).fold.flushes.length, 4 * FLUSH_ID_BYTES);
    bench_flush(f, REPLICA_0, 1, 8, 2);
    assert_int_equal(bench_count_sent(f, SHARD_0, MESSAGE_FOLD), 0);
    coordinator_tick(f->coordinator, f->now_ns, &f->out);
    assert_int_equal(bench_count_sent(f, SHARD_0, MESSAGE_FOLD), 1); /* none waits for long */
    bench_flush(f, REPLICA_0, 2, 10, 2);
    assert_int_equal(bench_count_sent(f, SHARD_0, MESSAGE_FOLD), 0);
    bench_flush(f, REPLICA_0, 3, 12, 1000 - 12); /* nothing else is awaited */
    assert_int_equal(bench_sent(f, SHARD_1, MESSAGE_FOLD).fold.flushes.length, 2 * FLUSH_ID_BYTES);
}

static void the_program_that_uses_the_folds_of_a_turn_comes_behind_them(void **state) {
    struct fixture *f = *state;
    bench_start(f);
    f->turn = 2;
    bench_flush(f, REPLICA_0, 0, 0, 2);
    bench_flush(f, REPLICA_1, 0, 2, CHUNKS - 2);
    assert_int_equal(bench_count_sent(f, SHARD_1, MESSAGE_FOLD), 1);
    assert_true(bench_place(f, SHARD_1, MESSAGE_FOLD) < bench_place(f, SHARD_1, MESSAGE_PROGRAM));
}

static void a_flush_with_a_counted_chunk_is_dropped_whole_and_the_rest_goes_back(void **state) {
    struct fixture *f = *state;
    bench_start(f);
    bench_flush(f, REPLICA_0, 0, 0, 2);
    bench_flush(f, REPLICA_1, 0, 1, 3);
    assert_int_equal(bench_count_sent(f, SHARD_0, MESSAGE_DROP), 1);
    assert_int_equal(bench_count_sent(f, SHARD_0, MESSAGE_FOLD), 0);
    assert_int_equal(bench_sent(f, REPLICA_1, MESSAGE_VERDICT).verdict.accepted, 0);
    assert_int_equal(coordinator_view(f->coordinator).evaluation.counted, 2);
    struct message again = bench_sent(f, REPLICA_0, MESSAGE_PORTION); /* it is idle */
    assert_int_equal(again.portion.first, 2);
    assert_int_equal(again.portion.count, 2);
    assert_int_equal(bench_chunks(f, CHUNK_WAITING), 2);
}

static void a_repeated_flush_gets_the_same_verdict_and_is_not_counted_again(void **state) {
    struct fixture *f = *state;
    bench_start(f);
    bench_flush(f, REPLICA_0, 0, 0, 2);
    bench_folded(f, SHARD_0, REPLICA_0, 0);
    bench_folded(f, SHARD_1, REPLICA_0, 0);
    bench_flush(f, REPLICA_0, 0, 0, 2);
    assert_int_equal(bench_sent(f, REPLICA_0, MESSAGE_VERDICT).verdict.accepted, 1);
    assert_int_equal(bench_count_sent(f, SHARD_0, MESSAGE_FOLD), 0);
    assert_int_equal(coordinator_view(f->coordinator).evaluation.counted, 2);
    bench_flush(f, REPLICA_0, 1, 2, CHUNKS - 2);
    bench_folded(f, SHARD_0, REPLICA_0, 1);
    bench_folded(f, SHARD_1, REPLICA_0, 1);
    bench_answer(f, (double[]){0, 1, 0.5, 0}, 4);
    assert_true(bench_recorded(f, RECORD_STEP)->step.loss == (double)CHUNKS / 100);
}

static void a_flush_kept_by_a_dead_shard_is_dropped(void **state) {
    struct fixture *f = *state;
    bench_start(f);
    uint64_t dead = coordinator_worker(f->coordinator, SHARD_1).incarnation + 1;
    struct chunk_range range = {.first = 0, .count = 2};
    uint64_t incarnations[2] = {coordinator_worker(f->coordinator, SHARD_0).incarnation, dead};
    struct message message = {.type = MESSAGE_FLUSHED};
    message.flushed = (struct message_flushed){
        .flush = bench_flush_id(f, REPLICA_0, 0),
        .portions = {.items = &range, .length = 1},
        .incarnations = {.items = incarnations, .length = 2},
    };
    bench_feed(f, REPLICA_0, message);
    assert_int_equal(bench_sent(f, REPLICA_0, MESSAGE_VERDICT).verdict.accepted, 0);
    assert_int_equal(coordinator_view(f->coordinator).evaluation.counted, 0);
}

static void a_message_of_another_epoch_changes_nothing(void **state) {
    struct fixture *f = *state;
    bench_start(f);
    struct message want = {.type = MESSAGE_WANT, .term = TERM - 1};
    want.want = (struct message_want){.attempt = 1, .evaluation = 1};
    output_clear(&f->out);
    assert_int_equal(coordinator_step(f->coordinator, REPLICA_0, &want, 0, &f->out), 0);
    assert_int_equal(f->out.messages.count, 0);
    assert_int_equal(coordinator_view(f->coordinator).stale, 1);
}

/* Everything counted by replica 0 in one flush. */
static void count_all(struct fixture *f) {
    bench_flush(f, REPLICA_0, 0, 0, CHUNKS);
}

static void the_starting_point_is_recorded_as_step_0(void **state) {
    struct fixture *f = *state;
    bench_finish_first(f, 1, 0.5);
    const struct record *step = bench_recorded(f, RECORD_STEP);
    assert_int_equal(step->step.step, 0);
    assert_true(step->step.loss == (double)CHUNKS / 100);
    assert_string_equal(bench_recorded(f, RECORD_EVALUATION)->evaluation.outcome, "accepted");
    assert_int_equal(bench_sent(f, REPLICA_0, MESSAGE_EVALUATE).evaluate.evaluation, 2);
}

static void a_converged_start_ends_and_the_model_is_read_in_order(void **state) {
    struct fixture *f = *state;
    bench_finish_first(f, 0, 0);
    assert_int_equal(coordinator_view(f->coordinator).reason, REASON_GRADIENT_TOLERANCE);
    bench_answer(f, NULL, 0); /* the program that accepts the trial */
    uint64_t expected = 0;
    static double values[1 << 14];
    for (uint32_t shard = 0; coordinator_phase(f->coordinator) == PHASE_READING; shard++) {
        struct message read = bench_sent(f, shard, MESSAGE_READ);
        assert_int_equal(read.read.first, expected);
        expected += read.read.count;
        struct message slice = {.type = MESSAGE_SLICE};
        slice.slice = (struct message_slice){
            .register_ = REGISTER_X, .first = read.read.first, .count = read.read.count};
        slice.bulk = (struct bulk){.data = values, .length = read.read.count * sizeof(double)};
        assert_int_equal(bench_feed(f, shard, slice), 0);
        assert_int_equal(bench_recorded(f, RECORD_SLICE)->slice.count, read.read.count);
    }
    assert_int_equal(coordinator_phase(f->coordinator), PHASE_READ);
    assert_int_equal(expected, 10001);
}

static void a_start_that_is_not_finite_ends_without_a_model(void **state) {
    struct fixture *f = *state;
    bench_finish_first(f, INFINITY, 0.5); /* the square of the gradient overflows */
    assert_int_equal(coordinator_view(f->coordinator).reason, REASON_NOT_FINITE);
    assert_false(coordinator_view(f->coordinator).started);
    assert_int_equal(coordinator_phase(f->coordinator), PHASE_STOPPED);
}

/* The last three of eight chunks are held out. */
static void begin_with_holdout(struct fixture *f, uint32_t patience) {
    f->data.holdout_chunks = 3;
    f->data.holdout_rows = 32;
    f->data.holdout_weight_sum = 32;
    f->settings.optimizer.patience = patience;
    bench_begin(f, &f->settings);
}

static void the_holdout_is_evaluated_if_it_decides_the_end(void **state) {
    struct fixture *f = *state;
    begin_with_holdout(f, 4);
    bench_finish_first(f, 1, 0.5);
    const struct record *step = bench_recorded(f, RECORD_STEP);
    assert_true(step->step.loss == (double)CHUNKS / 100);
    assert_true(step->step.holdout_loss == CHUNKS / 2.0 / 32);
    assert_true(step->step.holdout_accuracy == CHUNKS / 4.0 / 32);
    assert_int_equal(bench_recorded(f, RECORD_EVALUATION)->evaluation.examples, 100);
}

static void else_the_holdout_is_left_alone(void **state) {
    struct fixture *f = *state;
    begin_with_holdout(f, 0);
    bench_start(f);
    bench_flush(f, REPLICA_0, 0, 0, CHUNKS - 3);
    bench_folded(f, SHARD_0, REPLICA_0, 0);
    bench_folded(f, SHARD_1, REPLICA_0, 0);
    bench_answer(f, (double[]){0, 1, 0.5, 0}, 4);
    assert_true(isnan(bench_recorded(f, RECORD_STEP)->step.holdout_loss));
    assert_true(isnan(bench_recorded(f, RECORD_STEP)->step.holdout_accuracy));
}

static void shards_are_told_whether_to_keep_a_best_point(void **state) {
    struct fixture *f = *state;
    for (uint32_t patience = 0; patience < 2; patience++) {
        begin_with_holdout(f, patience);
        bench_feed(f, SHARD_0, bench_welcome(f, SHARD_0, 1));
        assert_int_equal(bench_sent(f, SHARD_0, MESSAGE_SHARD_SETUP).shard_setup.keeps_best,
                         patience);
    }
}

static void a_stop_ends_at_the_last_accepted_point(void **state) {
    struct fixture *f = *state;
    bench_finish_first(f, 1, 0.5);
    output_clear(&f->out);
    coordinator_stop(f->coordinator, REASON_TIME_LIMIT, 0, &f->out);
    assert_int_equal(coordinator_view(f->coordinator).reason, REASON_TIME_LIMIT);
    assert_int_equal(coordinator_phase(f->coordinator), PHASE_READING);
    /* The evaluation that was running is given up: the next coordinator decides on its flushes. */
    bench_flush(f, REPLICA_0, 1, 0, 2);
    assert_int_equal(bench_count_sent(f, REPLICA_0, MESSAGE_VERDICT), 0);
}

static void a_worker_that_fails_ends_the_run_with_its_status(void **state) {
    struct fixture *f = *state;
    bench_start(f);
    struct message message = {.type = MESSAGE_FAILED};
    message.failed = (struct message_failed){.status = 65, .reason = "chunk 3 is damaged"};
    assert_int_equal(bench_feed(f, REPLICA_1, message), ERROR_DATA);
    assert_non_null(strstr(error_text(), "chunk 3 is damaged"));
}

static void an_exceeded_bound_is_redone_with_one_that_holds(void **state) {
    struct fixture *f = *state;
    f->settings.shape.kind = OBJECTIVE_SQUARED;
    bench_begin(f, &f->settings);
    bench_start(f);
    assert_int_equal(bench_sent(f, REPLICA_0, MESSAGE_EVALUATE).evaluate.bounds.exponent[0], 2);
    f->maxima = maxima_of_one(1000);
    f->exceeded = true;
    count_all(f);
    struct message again = bench_sent(f, REPLICA_0, MESSAGE_EVALUATE);
    assert_int_equal(again.evaluate.evaluation, 2);
    assert_int_equal(again.evaluate.bounds.exponent[0], 10);
    assert_string_equal(bench_recorded(f, RECORD_EVALUATION)->evaluation.outcome, "bound exceeded");
}

static void a_derivative_beyond_every_bound_is_not_redone(void **state) {
    struct fixture *f = *state;
    f->settings.shape.kind = OBJECTIVE_POISSON;
    bench_begin(f, &f->settings);
    bench_start(f);
    bench_sent(f, REPLICA_0, MESSAGE_EVALUATE);
    f->maxima = maxima_of_one(1e300);
    f->exceeded = true;
    count_all(f);
    assert_string_equal(bench_recorded(f, RECORD_EVALUATION)->evaluation.outcome, "not finite");
}

/* Two features, one hidden unit and one output: W1, W2, b1 and b2. */
static void begin_network(struct fixture *f) {
    static const int16_t exponents[] = {40, 40, 58, 58, 58};
    f->settings.shape = (struct objective_shape){.kind = OBJECTIVE_LOGISTIC,
                                                 .features = 2,
                                                 .outputs = 1,
                                                 .intercept = true,
                                                 .network = {.layers = 1, .units = {1}}};
    f->settings.layout = objective_layout(&f->settings.shape);
    f->data.features = 2;
    f->settings.exponents = exponents;
    bench_begin(f, &f->settings);
    bench_start(f);
}

static void each_tensor_of_a_network_is_redone_under_a_bound_of_its_own(void **state) {
    struct fixture *f = *state;
    begin_network(f);
    assert_int_equal(bench_sent(f, REPLICA_0, MESSAGE_EVALUATE).evaluate.bounds.count, 4);
    f->maxima = (struct maxima){4, {1e-3, 2, 1000, 0}};
    f->exceeded = true;
    count_all(f);
    const struct bounds again = bench_sent(f, REPLICA_0, MESSAGE_EVALUATE).evaluate.bounds;
    const struct bounds wanted = {4, {-9, 1, 10, FIXED_DERIVATIVE_MIN}};
    assert_memory_equal(&again, &wanted, sizeof wanted);
}

static void maxima_of_another_number_than_the_bounds_are_not_counted(void **state) {
    struct fixture *f = *state;
    begin_network(f);
    f->maxima = maxima_of_one(1);
    bench_flush(f, REPLICA_0, 0, 0, 2);
    assert_int_equal(bench_sent(f, REPLICA_0, MESSAGE_VERDICT).verdict.accepted, 0);
    f->maxima = (struct maxima){0};
    bench_flush(f, REPLICA_0, 1, 0, 2);
    assert_int_equal(bench_count_sent(f, REPLICA_0, MESSAGE_VERDICT), 0);
    assert_int_equal(bench_count_sent(f, SHARD_0, MESSAGE_FOLD), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, bench_set_up, bench_tear_down)

static void a_worker_that_was_refused_memory_ends_the_run(void **state) {
    struct fixture *f = *state;
    bench_start(f);
    assert_int_equal(
        coordinator_starved(f->coordinator, REPLICA_1, "ended for want", true, 0, &f->out),
        ERROR_UNAVAILABLE);
    assert_non_null(strstr(error_text(), "replica 1 ended for want"));
    error_clear();
}

static void a_worker_that_was_killed_for_want_of_memory_is_replaced_once(void **state) {
    struct fixture *f = *state;
    bench_start(f);
    assert_int_equal(
        coordinator_starved(f->coordinator, REPLICA_1, "ended for want", false, 0, &f->out), 0);
    assert_int_equal(bench_recorded(f, RECORD_START)->start.link, REPLICA_1);
    assert_int_equal(
        coordinator_starved(f->coordinator, REPLICA_1, "ended for want", false, 0, &f->out),
        ERROR_UNAVAILABLE);
    error_clear();
}

static void a_worker_of_a_host_without_memory_is_started_elsewhere(void **state) {
    struct fixture *f = *state;
    f->settings.on_hosts = 2;
    bench_begin(f, &f->settings);
    bench_start(f);
    assert_int_equal(
        coordinator_starved(f->coordinator, REPLICA_1, "ended for want", true, 0, &f->out), 0);
}

SUITE(coordinator) {
    const struct CMUnitTest tests[] = {
        TEST(workers_are_greeted_with_incarnations_of_their_own),
        TEST(ranges_fall_on_blocks_and_cover_everything),
        TEST(a_worker_that_computes_other_bits_is_refused),
        TEST(replicas_hear_of_the_shards_when_all_shards_are_there),
        TEST(replicas_hear_the_secrets_of_shards_on_their_host),
        TEST(the_first_evaluation_begins_when_all_are_ready),
        TEST(a_worker_elsewhere_says_whether_it_sees_the_state_folder),
        TEST(nobody_is_ready_before_it_has_said_welcome),
        TEST(a_replica_that_has_not_come_is_not_waited_for_if_others_start_it),
        TEST(a_replica_of_this_machine_is_waited_for),
        TEST(a_busy_worker_is_greeted_again_under_another_name_and_not_lost),
        TEST(a_run_with_vacant_places_begins_with_the_first_replica_that_joins),
        TEST(a_replica_that_joins_and_computes_other_bits_is_refused_and_the_run_goes_on),
        TEST(a_replica_that_is_let_go_works_on_until_the_evaluation_ends),
        TEST(the_last_replica_that_works_stays_until_another_one_is_ready),
        TEST(who_wants_is_given_the_next_portion_and_then_a_rest),
        TEST(an_accepted_flush_is_folded_by_every_shard_before_its_verdict),
        TEST(flushes_of_one_turn_are_folded_by_one_message),
        TEST(flushes_of_many_replicas_gather_over_turns_before_they_are_folded),
        TEST(the_program_that_uses_the_folds_of_a_turn_comes_behind_them),
        TEST(a_flush_with_a_counted_chunk_is_dropped_whole_and_the_rest_goes_back),
        TEST(a_repeated_flush_gets_the_same_verdict_and_is_not_counted_again),
        TEST(a_flush_kept_by_a_dead_shard_is_dropped),
        TEST(a_message_of_another_epoch_changes_nothing),
        TEST(the_starting_point_is_recorded_as_step_0),
        TEST(a_converged_start_ends_and_the_model_is_read_in_order),
        TEST(a_start_that_is_not_finite_ends_without_a_model),
        TEST(the_holdout_is_evaluated_if_it_decides_the_end),
        TEST(else_the_holdout_is_left_alone),
        TEST(shards_are_told_whether_to_keep_a_best_point),
        TEST(a_stop_ends_at_the_last_accepted_point),
        TEST(a_worker_that_fails_ends_the_run_with_its_status),
        TEST(a_worker_that_was_refused_memory_ends_the_run),
        TEST(a_worker_that_was_killed_for_want_of_memory_is_replaced_once),
        TEST(a_worker_of_a_host_without_memory_is_started_elsewhere),
        TEST(an_exceeded_bound_is_redone_with_one_that_holds),
        TEST(a_derivative_beyond_every_bound_is_not_redone),
        TEST(each_tensor_of_a_network_is_redone_under_a_bound_of_its_own),
        TEST(maxima_of_another_number_than_the_bounds_are_not_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
