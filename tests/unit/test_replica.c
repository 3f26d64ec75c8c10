/* The replica's state machine, without a socket, a clock or a thread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "replica/replica.h"

enum { COORDINATOR = 7, FIRST_SHARD = 11, EPOCH = 3, ATTEMPT = 2, INCARNATION = 40 };
enum { PARAMETERS = 3 * BLOCK_ELEMENTS, FLUSH_MS = 1000 };

/* A replica on the bench, with what it has put out and nobody has looked at yet. */
struct bench {
    struct replica *replica;
    struct outbox outbox;
    size_t seen; /* envelopes of the outbox */
    uint32_t shards;
    int64_t now_ns;
    double point[PARAMETERS] __attribute__((aligned(64)));
};

/* ---- what comes out ---- */

static struct message sent(struct bench *bench, uint32_t to, enum message_type type) {
    assert_true(bench->seen < bench->outbox.count);
    const struct envelope *envelope = &bench->outbox.envelopes[bench->seen++];
    assert_string_equal(message_name(envelope->type), message_name(type));
    assert_int_equal(envelope->to, to);
    assert_int_equal(envelope->epoch, EPOCH);
    struct message message;
    const char *why;
    assert_int_equal(message_decode(envelope->type, outbox_body(&bench->outbox, envelope),
                                    envelope->body_length, &message, &why),
                     0);
    message.bulk = envelope->bulk;
    return message;
}

static struct action asked(struct bench *bench, enum action_kind kind) {
    struct action action;
    assert_true(replica_next_action(bench->replica, &action));
    assert_int_equal(action.kind, kind);
    return action;
}

static void nothing_more(struct bench *bench) {
    struct action action;
    assert_false(replica_next_action(bench->replica, &action));
    if (bench->seen < bench->outbox.count)
        fail_msg("sent as well: %s", message_name(bench->outbox.envelopes[bench->seen].type));
    outbox_clear(&bench->outbox);
    bench->seen = 0;
}

/* ---- what goes in ---- */

static void give(struct bench *bench, uint32_t from, struct message message) {
    if (!message.epoch)
        message.epoch = EPOCH;
    bench->now_ns += 1000;
    replica_step(bench->replica, from, &message, bench->now_ns, &bench->outbox);
}

static void evaluate(struct bench *bench, uint32_t evaluation) {
    give(bench, COORDINATOR,
         (struct message){.type = MESSAGE_EVALUATE, .evaluate = {ATTEMPT, evaluation, 0}});
}

static void portion(struct bench *bench, uint32_t evaluation, uint32_t first, uint8_t flags) {
    give(bench, COORDINATOR,
         (struct message){.type = MESSAGE_PORTION,
                          .portion = {ATTEMPT, evaluation, first, 2, flags}});
}

static void rest(struct bench *bench, uint32_t evaluation) {
    give(bench, COORDINATOR, (struct message){.type = MESSAGE_REST, .rest = {ATTEMPT, evaluation}});
}

static void verdict(struct bench *bench, struct flush_id id, bool accepted) {
    give(bench, COORDINATOR, (struct message){.type = MESSAGE_VERDICT, .verdict = {id, accepted}});
}

static void staged(struct bench *bench, uint32_t shard, struct flush_id id) {
    give(bench, FIRST_SHARD + shard,
         (struct message){.type = MESSAGE_STAGED, .staged = {id, shard, 100 + shard}});
}

/* Two shards: the first has two blocks, the second one. One has all. */
static uint64_t first_of(const struct bench *bench, uint32_t shard) {
    (void)bench;
    return shard * 2 * BLOCK_ELEMENTS;
}
static uint64_t count_of(const struct bench *bench, uint32_t shard) {
    return bench->shards == 1 ? PARAMETERS : shard ? BLOCK_ELEMENTS : 2 * BLOCK_ELEMENTS;
}

static void parameters(struct bench *bench, uint32_t evaluation, uint32_t shard) {
    uint64_t first = first_of(bench, shard), count = count_of(bench, shard);
    give(bench, FIRST_SHARD + shard,
         (struct message){.type = MESSAGE_PARAMETERS,
                          .parameters = {ATTEMPT, evaluation, first, count},
                          .bulk = {.data = bench->point + first, .length = count * 8}});
}

/* The workers answer with loss 1 a portion. */
static void computed(struct bench *bench, double derivative_max, bool exceeded) {
    struct computed answer = {.derivative_max = derivative_max, .exceeded = exceeded};
    exact_init(&answer.loss);
    exact_add(&answer.loss, 1);
    answer.values = PARAMETERS;
    bench->now_ns += 1000;
    replica_computed(bench->replica, &answer, bench->now_ns, &bench->outbox);
}

static void gathered(struct bench *bench) {
    replica_gathered(bench->replica, bench->now_ns, &bench->outbox);
}

static double loss_of(struct blob blob) {
    struct exact loss;
    struct cursor cursor = cursor_over(blob.data, blob.length);
    assert_true(exact_decode(&loss, &cursor));
    return exact_value(&loss);
}

/* ---- the way to READY, and into an evaluation ---- */

static void hello(struct bench *bench, uint64_t epoch, const char *run) {
    give(bench, COORDINATOR,
         (struct message){.type = MESSAGE_HELLO,
                          .epoch = epoch,
                          .hello = {PROTOCOL_VERSION, run, ROLE_REPLICA, 0, INCARNATION, 30}});
}

static void shard_at(struct bench *bench, uint32_t shard, uint64_t incarnation) {
    give(bench, COORDINATOR,
         (struct message){.type = MESSAGE_SHARD_AT,
                          .shard_at = {ATTEMPT, shard, incarnation, first_of(bench, shard),
                                       count_of(bench, shard), "unix:/run/shard"}});
}

static void connect_shard(struct bench *bench, uint32_t shard) {
    struct action action = asked(bench, ACTION_CONNECT);
    assert_int_equal(action.shard, shard);
    assert_string_equal(action.address, "unix:/run/shard");
    replica_connected(bench->replica, shard, FIRST_SHARD + shard, 0, "", &bench->outbox);
    struct message greet = sent(bench, FIRST_SHARD + shard, MESSAGE_GREET);
    assert_string_equal(greet.greet.run, "run 1");
    assert_int_equal(greet.greet.incarnation, INCARNATION);
}

static void greeted(struct bench *bench, uint32_t shard) {
    give(bench, FIRST_SHARD + shard,
         (struct message){.type = MESSAGE_GREETED, .greeted = {shard, 100 + shard}});
}

static void set_up(struct bench *bench) {
    give(bench, COORDINATOR,
         (struct message){.type = MESSAGE_REPLICA_SETUP,
                          .replica_setup = {.attempt = ATTEMPT,
                                            .set = "data.set",
                                            .fingerprint = "f00",
                                            .outputs = 1,
                                            .parameters = PARAMETERS,
                                            .shards = bench->shards,
                                            .flush_ms = FLUSH_MS}});
    struct action action = asked(bench, ACTION_OPEN_SET);
    assert_string_equal(action.setup.set, "data.set");
    assert_string_equal(action.setup.fingerprint, "f00");
}

static void bench_new(struct bench *bench, uint32_t shards) {
    memset(bench, 0, sizeof *bench);
    for (size_t i = 0; i < PARAMETERS; i++)
        bench->point[i] = (double)i;
    bench->shards = shards;
    bench->now_ns = NS_PER_S;
    outbox_init(&bench->outbox);
    bench->replica = replica_new(&(struct replica_identity){
        .pid = 1, .threads = 2, .proof = 99, .host = "host", .description = "test"});
    hello(bench, EPOCH, "run 1");
    struct message welcome = sent(bench, COORDINATOR, MESSAGE_WELCOME);
    assert_int_equal(welcome.welcome.proof, 99);
    assert_int_equal(welcome.welcome.incarnation, INCARNATION);
    nothing_more(bench);
}

static void bench_ready(struct bench *bench, uint32_t shards) {
    bench_new(bench, shards);
    set_up(bench);
    replica_opened(bench->replica, 0, "", bench->now_ns, &bench->outbox);
    for (uint32_t i = 0; i < shards; i++) {
        shard_at(bench, i, 100 + i);
        connect_shard(bench, i);
        nothing_more(bench);
    }
    for (uint32_t i = 0; i < shards; i++)
        greeted(bench, i);
    assert_int_equal(sent(bench, COORDINATOR, MESSAGE_READY).ready.attempt, ATTEMPT);
    nothing_more(bench);
}

static void fetch(struct bench *bench, uint32_t evaluation) {
    for (uint32_t i = 0; i < bench->shards; i++) {
        struct message message = sent(bench, FIRST_SHARD + i, MESSAGE_FETCH);
        assert_int_equal(message.fetch.evaluation, evaluation);
    }
    nothing_more(bench);
    for (uint32_t i = 0; i < bench->shards; i++)
        parameters(bench, evaluation, i);
}

static void begin(struct bench *bench, uint32_t evaluation) {
    evaluate(bench, evaluation);
    fetch(bench, evaluation);
    nothing_more(bench);
}

static struct computation started(struct bench *bench, uint32_t first) {
    struct action action = asked(bench, ACTION_COMPUTE);
    assert_int_equal(action.computation.first, first);
    assert_int_equal(action.computation.count, 2);
    return action.computation;
}

/* The workers' sums become one dense slice a shard. */
static struct flush_id dense_flush(struct bench *bench) {
    gathered(bench);
    struct flush_id id = {0};
    for (uint32_t i = 0; i < bench->shards; i++) {
        struct message stage = sent(bench, FIRST_SHARD + i, MESSAGE_STAGE);
        assert_int_equal(stage.stage.encoding, STAGE_DENSE);
        assert_int_equal(stage.stage.entries, count_of(bench, i));
        assert_int_equal(stage.bulk.length, count_of(bench, i) * 8);
        assert_non_null(stage.bulk.segment);
        id = stage.stage.flush;
    }
    return id;
}

static struct flush_id flushed(struct bench *bench) {
    asked(bench, ACTION_GATHER);
    return dense_flush(bench);
}

static void bench_free(struct bench *bench) {
    nothing_more(bench);
    replica_free(bench->replica);
    outbox_release(&bench->outbox);
}

/* ---- handshake and set-up ---- */

static void an_older_coordinator_is_refused(void **state) {
    (void)state;
    struct bench bench;
    bench_new(&bench, 1);
    hello(&bench, EPOCH - 1, "run 1");
    sent(&bench, COORDINATOR, MESSAGE_REFUSED);
    hello(&bench, EPOCH, "run 2");
    sent(&bench, COORDINATOR, MESSAGE_REFUSED);
    give(&bench, COORDINATOR,
         (struct message){.type = MESSAGE_REPLICA_SETUP,
                          .epoch = EPOCH - 1,
                          .replica_setup = {.attempt = ATTEMPT, .shards = 1, .parameters = 1}});
    assert_int_equal(replica_counters(bench.replica)->stale, 1);
    bench_free(&bench);
}

static void a_replica_is_ready_when_the_set_is_open_and_every_shard_has_greeted(void **state) {
    (void)state;
    struct bench bench;
    bench_new(&bench, 2);
    set_up(&bench);
    for (uint32_t i = 0; i < 2; i++) {
        shard_at(&bench, i, 100 + i);
        connect_shard(&bench, i);
        greeted(&bench, i);
        nothing_more(&bench);
    }
    replica_opened(bench.replica, 0, "", bench.now_ns, &bench.outbox);
    sent(&bench, COORDINATOR, MESSAGE_READY);
    bench_free(&bench);
}

static void what_fails_in_the_set_up_is_told_to_the_coordinator(void **state) {
    (void)state;
    struct bench bench;
    bench_new(&bench, 1);
    set_up(&bench);
    replica_opened(bench.replica, ERROR_DATA, "data.set: damaged", bench.now_ns, &bench.outbox);
    struct message failed = sent(&bench, COORDINATOR, MESSAGE_FAILED);
    assert_int_equal(failed.failed.status, 65);
    assert_string_equal(failed.failed.reason, "data.set: damaged");
    bench_free(&bench);

    bench_new(&bench, 1);
    set_up(&bench);
    replica_opened(bench.replica, 0, "", bench.now_ns, &bench.outbox);
    shard_at(&bench, 0, 100);
    asked(&bench, ACTION_CONNECT);
    replica_connected(bench.replica, 0, 0, ERROR_UNAVAILABLE, "nobody listens", &bench.outbox);
    failed = sent(&bench, COORDINATOR, MESSAGE_FAILED);
    assert_int_equal(failed.failed.status, 69);
    assert_string_equal(failed.failed.reason, "shard 0 at unix:/run/shard: nobody listens");
    bench_free(&bench);
}

/* ---- one evaluation ---- */

static void several_shards_parts_meet_in_one_point(void **state) {
    (void)state;
    struct bench bench;
    bench_ready(&bench, 2);
    begin(&bench, 1);
    portion(&bench, 1, 0, 0);
    struct computation computation = started(&bench, 0);
    assert_memory_equal(computation.parameters, bench.point, sizeof bench.point);
    sent(&bench, COORDINATOR, MESSAGE_WANT);
    bench_free(&bench);
}

static void the_next_portion_is_wanted_when_the_last_one_held_starts(void **state) {
    (void)state;
    struct bench bench;
    bench_ready(&bench, 1);
    evaluate(&bench, 1);
    portion(&bench, 1, 0, 0);
    portion(&bench, 1, 2, 0);
    fetch(&bench, 1);
    started(&bench, 0);
    nothing_more(&bench); /* another is held */
    computed(&bench, 0.5, false);
    started(&bench, 2);
    sent(&bench, COORDINATOR, MESSAGE_WANT);
    nothing_more(&bench);
    computed(&bench, 0.5, false);
    nothing_more(&bench); /* asked already */
    portion(&bench, 1, 4, PORTION_LAST);
    started(&bench, 4); /* nothing comes behind it */
    bench_free(&bench);
}

static void the_last_portion_is_flushed_with_what_was_accrued(void **state) {
    (void)state;
    struct bench bench;
    bench_ready(&bench, 2);
    evaluate(&bench, 1);
    portion(&bench, 1, 0, 0);
    portion(&bench, 1, 6, PORTION_LAST);
    fetch(&bench, 1);
    started(&bench, 0);
    computed(&bench, 0.5, false);
    started(&bench, 6);
    computed(&bench, 0.75, false);

    int64_t *sums = asked(&bench, ACTION_GATHER).into;
    for (int64_t i = 0; i < PARAMETERS; i++)
        sums[i] = i - 5;
    gathered(&bench);
    struct flush_id id = {0};
    for (uint32_t i = 0; i < 2; i++) {
        struct message stage = sent(&bench, FIRST_SHARD + i, MESSAGE_STAGE);
        id = stage.stage.flush;
        assert_int_equal(stage.stage.portions.length, 2);
        assert_int_equal(stage.stage.portions.items[1].first, 6);
        assert_true(loss_of(stage.stage.loss) == 2);
        assert_true(stage.stage.derivative_max == 0.75);
        assert_memory_equal(stage.bulk.data, sums + first_of(&bench, i), count_of(&bench, i) * 8);
    }
    assert_true(flush_id_equal(&id, &(struct flush_id){ATTEMPT, 1, INCARNATION, 1}));
    nothing_more(&bench);

    staged(&bench, 1, id);
    staged(&bench, 1, id);
    nothing_more(&bench); /* the other shard has yet to say so */
    staged(&bench, 0, id);
    struct message_flushed report = sent(&bench, COORDINATOR, MESSAGE_FLUSHED).flushed;
    assert_true(flush_id_equal(&id, &report.flush));
    assert_int_equal(report.portions.length, 2);
    assert_true(loss_of(report.loss) == 2);
    assert_int_equal(report.exceeded, 0);
    assert_int_equal(report.incarnations.length, 2);
    assert_int_equal(report.incarnations.items[0], 100);
    assert_int_equal(report.incarnations.items[1], 101);
    assert_true(report.busy_ns > 0);
    bench_free(&bench);
}

static void rest_flushes_once_nothing_is_left_to_compute(void **state) {
    (void)state;
    struct bench bench;
    bench_ready(&bench, 1);
    begin(&bench, 1);
    rest(&bench, 1);
    nothing_more(&bench); /* nothing accrued, nothing to flush */
    portion(&bench, 1, 0, 0);
    started(&bench, 0);
    sent(&bench, COORDINATOR, MESSAGE_WANT);
    rest(&bench, 1);
    nothing_more(&bench); /* still computing */
    computed(&bench, 0.5, false);
    flushed(&bench);
    bench_free(&bench);
}

static void a_solo_portion_is_a_flush_of_its_own(void **state) {
    (void)state;
    struct bench bench;
    bench_ready(&bench, 1);
    evaluate(&bench, 1);
    portion(&bench, 1, 0, 0);
    portion(&bench, 1, 2, PORTION_SOLO);
    portion(&bench, 1, 4, 0);
    fetch(&bench, 1);
    started(&bench, 0);
    computed(&bench, 0.5, false);
    flushed(&bench);
    started(&bench, 2);
    nothing_more(&bench);
    computed(&bench, 0.5, false);
    asked(&bench, ACTION_GATHER);
    gathered(&bench);
    struct message_stage stage = sent(&bench, FIRST_SHARD, MESSAGE_STAGE).stage;
    assert_int_equal(stage.portions.length, 1);
    assert_int_equal(stage.portions.items[0].first, 2);
    started(&bench, 4);
    sent(&bench, COORDINATOR, MESSAGE_WANT);
    bench_free(&bench);
}

static void what_is_accrued_is_flushed_after_flush_ms(void **state) {
    (void)state;
    struct bench bench;
    bench_ready(&bench, 1);
    begin(&bench, 1);
    assert_int_equal(replica_deadline_ns(bench.replica), INT64_MAX);
    portion(&bench, 1, 0, 0);
    int64_t deadline_ns = bench.now_ns + FLUSH_MS * NS_PER_MS;
    started(&bench, 0);
    sent(&bench, COORDINATOR, MESSAGE_WANT);
    computed(&bench, 0.5, false);
    assert_int_equal(replica_deadline_ns(bench.replica), deadline_ns);
    replica_timer(bench.replica, deadline_ns - 1, &bench.outbox);
    nothing_more(&bench);
    replica_timer(bench.replica, deadline_ns, &bench.outbox);
    flushed(&bench);
    assert_int_equal(replica_deadline_ns(bench.replica), INT64_MAX);

    portion(&bench, 1, 2, 0); /* and when the time is up while it computes */
    started(&bench, 2);
    sent(&bench, COORDINATOR, MESSAGE_WANT);
    bench.now_ns += FLUSH_MS * NS_PER_MS;
    portion(&bench, 1, 4, 0);
    nothing_more(&bench);
    computed(&bench, 0.5, false);
    flushed(&bench);
    started(&bench, 4);
    sent(&bench, COORDINATOR, MESSAGE_WANT);
    bench_free(&bench);
}

static void few_values_travel_sparse(void **state) {
    (void)state;
    struct bench bench;
    bench_ready(&bench, 2);
    begin(&bench, 1);
    portion(&bench, 1, 0, PORTION_LAST);
    started(&bench, 0);
    struct computed answer = {.values = 10};
    exact_init(&answer.loss);
    replica_computed(bench.replica, &answer, bench.now_ns, &bench.outbox);
    int64_t *sums = asked(&bench, ACTION_GATHER).into;
    memset(sums, 0, PARAMETERS * sizeof *sums);
    sums[2] = 20;
    sums[8191] = -1;
    sums[8192 + 7] = 70;
    gathered(&bench);
    struct message stage = sent(&bench, FIRST_SHARD, MESSAGE_STAGE);
    assert_int_equal(stage.stage.encoding, STAGE_SPARSE);
    assert_int_equal(stage.stage.entries, 2);
    assert_int_equal(stage.bulk.length, 8 + 16);
    assert_memory_equal(stage.bulk.data, ((uint32_t[]){2, 8191}), 8);
    assert_memory_equal((const char *)stage.bulk.data + 8, ((int64_t[]){20, -1}), 16);
    stage = sent(&bench, FIRST_SHARD + 1, MESSAGE_STAGE);
    assert_int_equal(stage.stage.entries, 1);
    assert_int_equal(stage.bulk.length, 8 + 8);
    assert_int_equal(*(const uint32_t *)stage.bulk.data, 7);
    bench_free(&bench);
}

static void beyond_the_bound_only_losses_are_computed_and_flushed_without_elements(void **state) {
    (void)state;
    struct bench bench;
    bench_ready(&bench, 2);
    evaluate(&bench, 1);
    portion(&bench, 1, 0, 0);
    portion(&bench, 1, 2, PORTION_SOLO);
    portion(&bench, 1, 4, 0);
    fetch(&bench, 1);
    assert_true(started(&bench, 0).gradient);
    computed(&bench, 9, true);
    for (uint32_t i = 0; i < 2; i++) {
        struct message stage = sent(&bench, FIRST_SHARD + i, MESSAGE_STAGE);
        assert_int_equal(stage.stage.encoding, STAGE_NONE);
        assert_int_equal(stage.stage.entries, 0);
        assert_true(stage.stage.derivative_max == 9);
        assert_int_equal(stage.bulk.length, 0);
    }
    assert_false(started(&bench, 2).gradient);
    nothing_more(&bench);
    struct flush_id id = {ATTEMPT, 1, INCARNATION, 1};
    staged(&bench, 0, id);
    staged(&bench, 1, id);
    assert_int_equal(sent(&bench, COORDINATOR, MESSAGE_FLUSHED).flushed.exceeded, 1);

    evaluate(&bench, 2); /* the sums of the first portion are of no use to it */
    portion(&bench, 2, 0, PORTION_LAST);
    asked(&bench, ACTION_STOP);
    computed(&bench, 9, false);
    fetch(&bench, 2);
    struct computation computation = started(&bench, 0);
    assert_true(computation.gradient);
    assert_true(computation.clear);
    bench_free(&bench);
}

/* ---- buffers ---- */

/* Computes a portion of its own, whose flush takes a buffer. */
static struct flush_id solo(struct bench *bench, uint32_t first) {
    portion(bench, 1, first, PORTION_SOLO);
    started(bench, first);
    sent(bench, COORDINATOR, MESSAGE_WANT);
    computed(bench, 0.5, false);
    struct flush_id id = flushed(bench);
    nothing_more(bench);
    return id;
}

static void computing_waits_for_a_verdict_when_every_buffer_is_in_flight(void **state) {
    (void)state;
    struct bench bench;
    bench_ready(&bench, 1);
    begin(&bench, 1);
    struct flush_id id = solo(&bench, 0);
    for (uint32_t i = 1; i < FLUSH_BUFFERS_MAX; i++)
        solo(&bench, 2 * i);
    portion(&bench, 1, 20, PORTION_SOLO);
    portion(&bench, 1, 22, 0);
    started(&bench, 20);
    nothing_more(&bench);
    computed(&bench, 0.5, false);
    nothing_more(&bench);
    assert_int_equal(replica_deadline_ns(bench.replica), INT64_MAX);
    verdict(&bench, id, true);
    flushed(&bench);
    started(&bench, 22);
    sent(&bench, COORDINATOR, MESSAGE_WANT);
    assert_int_equal(replica_counters(bench.replica)->accepted, 1);
    bench_free(&bench);
}

static void abandoned_flushes_keep_their_buffers_until_every_shard_has_begun_anew(void **state) {
    (void)state;
    struct bench bench;
    bench_ready(&bench, 2);
    begin(&bench, 1);
    struct flush_id id = {0};
    const int64_t *buffers[FLUSH_BUFFERS_MAX];
    for (uint32_t i = 0; i < FLUSH_BUFFERS_MAX; i++) {
        portion(&bench, 1, 2 * i, PORTION_SOLO);
        started(&bench, 2 * i);
        sent(&bench, COORDINATOR, MESSAGE_WANT);
        computed(&bench, 0.5, false);
        buffers[i] = asked(&bench, ACTION_GATHER).into;
        id = dense_flush(&bench);
        nothing_more(&bench);
    }
    evaluate(&bench, 2);
    staged(&bench, 0, id); /* of the old evaluation: of no interest */
    sent(&bench, FIRST_SHARD, MESSAGE_FETCH);
    sent(&bench, FIRST_SHARD + 1, MESSAGE_FETCH);
    portion(&bench, 2, 0, PORTION_LAST);
    parameters(&bench, 2, 0);
    nothing_more(&bench);
    parameters(&bench, 2, 1);
    started(&bench, 0);
    computed(&bench, 0.5, false);
    const int64_t *into = asked(&bench, ACTION_GATHER).into;
    bool reused = false;
    for (uint32_t i = 0; i < FLUSH_BUFFERS_MAX; i++)
        reused |= into == buffers[i];
    assert_true(reused);
    dense_flush(&bench);
    bench_free(&bench);
}

/* ---- what is out of date ---- */

static void a_new_evaluation_abandons_the_computation_in_hand(void **state) {
    (void)state;
    struct bench bench;
    bench_ready(&bench, 1);
    begin(&bench, 1);
    portion(&bench, 1, 0, 0);
    started(&bench, 0);
    sent(&bench, COORDINATOR, MESSAGE_WANT);
    nothing_more(&bench);
    evaluate(&bench, 2);
    asked(&bench, ACTION_STOP);
    nothing_more(&bench); /* the workers still read the point */
    portion(&bench, 2, 6, PORTION_LAST);
    nothing_more(&bench);
    computed(&bench, 50, true);
    fetch(&bench, 2);
    assert_true(started(&bench, 6).clear);
    computed(&bench, 0.5, false);
    asked(&bench, ACTION_GATHER);
    gathered(&bench);
    struct message_stage stage = sent(&bench, FIRST_SHARD, MESSAGE_STAGE).stage;
    assert_int_equal(stage.flush.evaluation, 2);
    assert_int_equal(stage.portions.length, 1);
    assert_true(loss_of(stage.loss) == 1);
    assert_true(stage.derivative_max == 0.5);
    bench_free(&bench);
}

static void a_new_evaluation_abandons_a_flush_being_gathered(void **state) {
    (void)state;
    struct bench bench;
    bench_ready(&bench, 1);
    begin(&bench, 1);
    portion(&bench, 1, 0, PORTION_LAST);
    started(&bench, 0);
    computed(&bench, 0.5, false);
    asked(&bench, ACTION_GATHER);
    evaluate(&bench, 2);
    nothing_more(&bench);
    gathered(&bench);
    fetch(&bench, 2);
    portion(&bench, 2, 0, PORTION_LAST);
    assert_false(started(&bench, 0).clear); /* gathering left the sums zero */
    bench_free(&bench);
}

static void messages_of_another_evaluation_or_attempt_are_ignored(void **state) {
    (void)state;
    struct bench bench;
    bench_ready(&bench, 1);
    evaluate(&bench, 5);
    sent(&bench, FIRST_SHARD, MESSAGE_FETCH);
    evaluate(&bench, 4);
    evaluate(&bench, 5);
    portion(&bench, 4, 0, 0);
    rest(&bench, 4);
    parameters(&bench, 4, 0);
    give(&bench, COORDINATOR,
         (struct message){.type = MESSAGE_EVALUATE, .evaluate = {ATTEMPT - 1, 9, 0}});
    verdict(&bench, (struct flush_id){ATTEMPT, 5, INCARNATION, 1}, true);
    nothing_more(&bench);
    assert_int_equal(replica_counters(bench.replica)->stale, 7);
    parameters(&bench, 5, 0);
    nothing_more(&bench);
    bench_free(&bench);
}

static void another_incarnations_acknowledgement_does_not_count(void **state) {
    (void)state;
    struct bench bench;
    bench_ready(&bench, 1);
    begin(&bench, 1);
    struct flush_id id = solo(&bench, 0);
    give(&bench, FIRST_SHARD, (struct message){.type = MESSAGE_STAGED, .staged = {id, 0, 55}});
    nothing_more(&bench);
    staged(&bench, 0, id);
    sent(&bench, COORDINATOR, MESSAGE_FLUSHED);
    bench_free(&bench);
}

/* ---- trouble ---- */

static void a_damaged_chunk_is_told_to_the_coordinator(void **state) {
    (void)state;
    struct bench bench;
    bench_ready(&bench, 1);
    begin(&bench, 1);
    portion(&bench, 1, 0, PORTION_LAST);
    started(&bench, 0);
    struct computed answer = {.error = ERROR_DATA, .reason = "data.set: chunk 1 is damaged"};
    exact_init(&answer.loss);
    replica_computed(bench.replica, &answer, bench.now_ns, &bench.outbox);
    struct message failed = sent(&bench, COORDINATOR, MESSAGE_FAILED);
    assert_int_equal(failed.failed.status, 65);
    assert_string_equal(failed.failed.reason, "data.set: chunk 1 is damaged");
    portion(&bench, 1, 2, PORTION_LAST);
    bench_free(&bench);
}

static void
a_broken_connection_is_made_again_and_what_was_not_acknowledged_sent_again(void **state) {
    (void)state;
    struct bench bench;
    bench_ready(&bench, 2);
    begin(&bench, 1);
    struct flush_id id = solo(&bench, 0);
    staged(&bench, 0, id);
    replica_gone(bench.replica, FIRST_SHARD + 1, &bench.outbox);
    connect_shard(&bench, 1);
    nothing_more(&bench);
    greeted(&bench, 1);
    assert_true(flush_id_equal(&sent(&bench, FIRST_SHARD + 1, MESSAGE_STAGE).stage.flush, &id));
    sent(&bench, COORDINATOR, MESSAGE_READY);
    nothing_more(&bench);
    replica_gone(bench.replica, FIRST_SHARD, &bench.outbox);
    asked(&bench, ACTION_CONNECT);
    replica_connected(bench.replica, 0, 0, ERROR_UNAVAILABLE, "nobody listens", &bench.outbox);
    bench_free(&bench); /* the coordinator will say where the next one is */
}

static void a_shard_elsewhere_takes_the_place_of_the_old_one(void **state) {
    (void)state;
    struct bench bench;
    bench_ready(&bench, 1);
    give(&bench, COORDINATOR,
         (struct message){.type = MESSAGE_SHARD_AT,
                          .shard_at = {ATTEMPT, 0, 200, 0, PARAMETERS, "unix:/run/shard"}});
    assert_int_equal(asked(&bench, ACTION_CLOSE).link, FIRST_SHARD);
    connect_shard(&bench, 0);
    evaluate(&bench, 1);
    nothing_more(&bench);
    give(&bench, FIRST_SHARD, (struct message){.type = MESSAGE_GREETED, .greeted = {0, 200}});
    sent(&bench, COORDINATOR, MESSAGE_READY);
    fetch(&bench, 1);
    bench_free(&bench);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_older_coordinator_is_refused),
        cmocka_unit_test(a_replica_is_ready_when_the_set_is_open_and_every_shard_has_greeted),
        cmocka_unit_test(what_fails_in_the_set_up_is_told_to_the_coordinator),
        cmocka_unit_test(several_shards_parts_meet_in_one_point),
        cmocka_unit_test(the_next_portion_is_wanted_when_the_last_one_held_starts),
        cmocka_unit_test(the_last_portion_is_flushed_with_what_was_accrued),
        cmocka_unit_test(rest_flushes_once_nothing_is_left_to_compute),
        cmocka_unit_test(a_solo_portion_is_a_flush_of_its_own),
        cmocka_unit_test(what_is_accrued_is_flushed_after_flush_ms),
        cmocka_unit_test(few_values_travel_sparse),
        cmocka_unit_test(beyond_the_bound_only_losses_are_computed_and_flushed_without_elements),
        cmocka_unit_test(computing_waits_for_a_verdict_when_every_buffer_is_in_flight),
        cmocka_unit_test(abandoned_flushes_keep_their_buffers_until_every_shard_has_begun_anew),
        cmocka_unit_test(a_new_evaluation_abandons_the_computation_in_hand),
        cmocka_unit_test(a_new_evaluation_abandons_a_flush_being_gathered),
        cmocka_unit_test(messages_of_another_evaluation_or_attempt_are_ignored),
        cmocka_unit_test(another_incarnations_acknowledgement_does_not_count),
        cmocka_unit_test(a_damaged_chunk_is_told_to_the_coordinator),
        cmocka_unit_test(
            a_broken_connection_is_made_again_and_what_was_not_acknowledged_sent_again),
        cmocka_unit_test(a_shard_elsewhere_takes_the_place_of_the_old_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
