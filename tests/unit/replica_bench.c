#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/clock.h"
#include "tests/cluster/decoded.h"
#include "tests/unit/layout_fixture.h"
#include "tests/unit/replica_bench.h"

/* ---- what comes out ---- */

struct message sent(struct bench *bench, uint32_t to, enum message_type type) {
    assert_true(bench->seen < bench->outbox.count);
    const struct envelope *envelope = &bench->outbox.envelopes[bench->seen++];
    assert_string_equal(message_name(envelope->type), message_name(type));
    assert_int_equal(envelope->to, to);
    assert_int_equal(envelope->term, bench->term);
    return decoded(&bench->outbox, envelope);
}

struct action asked(struct bench *bench, enum action_kind kind) {
    struct action action;
    assert_true(replica_next_action(bench->replica, &action));
    assert_int_equal(action.kind, kind);
    return action;
}

void nothing_more(struct bench *bench) {
    struct action action;
    assert_false(replica_next_action(bench->replica, &action));
    if (bench->seen < bench->outbox.count)
        fail_msg("sent as well: %s", message_name(bench->outbox.envelopes[bench->seen].type));
    outbox_clear(&bench->outbox);
    bench->seen = 0;
}

/* ---- what goes in ---- */

void give(struct bench *bench, uint32_t from, struct message message) {
    if (!message.term)
        message.term = bench->term;
    bench->now_ns += 1000;
    replica_step(bench->replica, from, &message, bench->now_ns, &bench->outbox);
}

/* The gradient over every chunk that a test may name. */
static const struct evaluation_part every_gradient = {EVALUATION_GRADIENT, 0, 1000};
const struct part_list gradient_parts = {&every_gradient, 1};

void evaluate(struct bench *bench, uint32_t evaluation) {
    give(bench, COORDINATOR,
         (struct message){
             .type = MESSAGE_EVALUATE,
             .evaluate = {bench->attempt, evaluation, {1, {0}}, gradient_parts, 0, 1, 0, {0}}});
}

void portion(struct bench *bench, uint32_t evaluation, uint32_t first, uint8_t flags) {
    give(bench, COORDINATOR,
         (struct message){.type = MESSAGE_PORTION,
                          .portion = {bench->attempt, evaluation, first, 2, flags}});
}

void rest(struct bench *bench, uint32_t evaluation) {
    give(bench, COORDINATOR,
         (struct message){.type = MESSAGE_REST, .rest = {bench->attempt, evaluation}});
}

void verdict(struct bench *bench, struct flush_id id, bool accepted) {
    give(bench, COORDINATOR, (struct message){.type = MESSAGE_VERDICT, .verdict = {id, accepted}});
}

void staged(struct bench *bench, uint32_t shard, struct flush_id id) {
    give(bench, FIRST_SHARD + shard,
         (struct message){.type = MESSAGE_STAGED, .staged = {id, shard, 100 + shard}});
}

/* Two shards: the first has two blocks, the second one. One has all. */
uint64_t first_of(const struct bench *bench, uint32_t shard) {
    (void)bench;
    return shard * 2 * BLOCK_ELEMENTS;
}
uint64_t count_of(const struct bench *bench, uint32_t shard) {
    return bench->shards == 1 ? PARAMETERS : shard ? BLOCK_ELEMENTS : 2 * BLOCK_ELEMENTS;
}

void parameters(struct bench *bench, uint32_t evaluation, uint32_t shard) {
    uint64_t first = first_of(bench, shard), count = count_of(bench, shard);
    give(bench, FIRST_SHARD + shard,
         (struct message){.type = MESSAGE_PARAMETERS,
                          .parameters = {bench->attempt, evaluation, first, count, FETCH_GIVEN},
                          .bulk = {.data = bench->point + first, .length = count * 8}});
}

/* The workers answer with loss 1 a portion. */
void computed(struct bench *bench, double derivative_max, bool exceeded) {
    struct computed answer = {.maxima = maxima_of_one(derivative_max), .exceeded = exceeded};
    totals_init(&answer.totals, 1);
    exact_add(&answer.totals.sum[0], 1);
    answer.values = PARAMETERS;
    bench->now_ns += 1000;
    replica_computed(bench->replica, &answer, bench->now_ns, &bench->outbox);
}

void end_portion(struct bench *bench, uint32_t row, uint32_t values) {
    struct computed answer = {.rows = {row, row + 10}, .values = values};
    totals_init(&answer.totals, 1);
    replica_computed(bench->replica, &answer, bench->now_ns, &bench->outbox);
}

void gathered(struct bench *bench) {
    replica_gathered(bench->replica, NULL, bench->now_ns, &bench->outbox);
}

double loss_of(struct blob blob) {
    struct totals totals;
    assert_true(totals_decode(&totals, 1, blob.data, blob.length));
    return exact_value(&totals.sum[0]);
}

/* ---- the way to READY, and into an evaluation ---- */

void hello(struct bench *bench, uint64_t term, const char *run) {
    give(bench, COORDINATOR,
         (struct message){
             .type = MESSAGE_HELLO,
             .term = term,
             .hello = {PROTOCOL_VERSION, run, ROLE_REPLICA, 0, bench->incarnation, 30, "", ""}});
}

void shard_at(struct bench *bench, uint32_t shard, uint64_t incarnation) {
    give(bench, COORDINATOR,
         (struct message){.type = MESSAGE_SHARD_AT,
                          .shard_at = {bench->attempt, shard, incarnation, first_of(bench, shard),
                                       count_of(bench, shard), bench->address, ""}});
}

void connect_shard(struct bench *bench, uint32_t shard) {
    struct action action = asked(bench, ACTION_CONNECT);
    assert_int_equal(action.shard, shard);
    assert_string_equal(action.address, bench->address);
    replica_connected(bench->replica, shard, FIRST_SHARD + shard, 0, "", &bench->outbox);
    struct message greet = sent(bench, FIRST_SHARD + shard, MESSAGE_GREET);
    assert_string_equal(greet.greet.run, "run 1");
    assert_int_equal(greet.greet.incarnation, bench->incarnation);
}

void greeted(struct bench *bench, uint32_t shard) {
    give(bench, FIRST_SHARD + shard,
         (struct message){.type = MESSAGE_GREETED, .greeted = {shard, 100 + shard}});
}

struct message_replica_setup replica_setup_of(const struct bench *bench, struct blob layout) {
    return (struct message_replica_setup){.scratch = "",
                                          .machine.device = bench->device,
                                          .attempt = bench->attempt,
                                          .set = "data.set",
                                          .fingerprint = "f00",
                                          .objective = "logistic",
                                          .loss = loss_blob(),
                                          .layout = layout,
                                          .shards = bench->shards,
                                          .flush_ms = FLUSH_MS};
}

void setup_message(struct bench *bench) {
    const struct message_replica_setup setup =
        replica_setup_of(bench, layout_blob(PARAMETERS, 1, 0));
    give(bench, COORDINATOR,
         (struct message){.type = MESSAGE_REPLICA_SETUP, .replica_setup = setup});
}

void set_up(struct bench *bench) {
    setup_message(bench);
    struct action action = asked(bench, ACTION_OPEN_SET);
    assert_string_equal(action.setup.set, "data.set");
    assert_string_equal(action.setup.fingerprint, "f00");
}

void bench_new(struct bench *bench, uint32_t shards) {
    memset(bench, 0, sizeof *bench);
    for (size_t i = 0; i < PARAMETERS; i++)
        bench->point[i] = (double)i;
    bench->shards = shards;
    bench->term = TERM;
    bench->incarnation = INCARNATION;
    bench->attempt = ATTEMPT;
    bench->device = "";
    bench->address = "unix:/run/shard";
    bench->now_ns = NS_PER_S;
    outbox_init(&bench->outbox);
    bench->replica = replica_new(&(struct replica_identity){
        .pid = 1, .threads = 2, .proof = 99, .host = "host", .description = "test"});
    hello(bench, TERM, "run 1");
    struct message welcome = sent(bench, COORDINATOR, MESSAGE_WELCOME);
    assert_int_equal(welcome.welcome.proof, 99);
    assert_int_equal(welcome.welcome.incarnation, bench->incarnation);
    nothing_more(bench);
}

void bench_ready(struct bench *bench, uint32_t shards) {
    bench_ready_at(bench, shards, "unix:/run/shard");
}

void bench_ready_at(struct bench *bench, uint32_t shards, const char *address) {
    bench_new(bench, shards);
    bench->address = address;
    set_up(bench);
    replica_opened(bench->replica, 0, "", bench->now_ns, &bench->outbox);
    for (uint32_t i = 0; i < shards; i++) {
        shard_at(bench, i, 100 + i);
        connect_shard(bench, i);
        nothing_more(bench);
    }
    for (uint32_t i = 0; i < shards; i++)
        greeted(bench, i);
    assert_int_equal(sent(bench, COORDINATOR, MESSAGE_READY).ready.attempt, bench->attempt);
    nothing_more(bench);
}

void fetch(struct bench *bench, uint32_t evaluation) {
    for (uint32_t i = 0; i < bench->shards; i++) {
        struct message message = sent(bench, FIRST_SHARD + i, MESSAGE_FETCH);
        assert_int_equal(message.fetch.evaluation, evaluation);
    }
    nothing_more(bench);
    for (uint32_t i = 0; i < bench->shards; i++)
        parameters(bench, evaluation, i);
}

void begin(struct bench *bench, uint32_t evaluation) {
    evaluate(bench, evaluation);
    fetch(bench, evaluation);
    nothing_more(bench);
}

struct computation started(struct bench *bench, uint32_t first) {
    struct action action = asked(bench, ACTION_COMPUTE);
    assert_int_equal(action.computation.first, first);
    assert_int_equal(action.computation.count, 2);
    return action.computation;
}

struct computation take_up(struct bench *bench, uint32_t evaluation, uint32_t first,
                           uint8_t flags) {
    portion(bench, evaluation, first, flags);
    struct computation computation = started(bench, first);
    if (!(flags & PORTION_LAST))
        sent(bench, COORDINATOR, MESSAGE_WANT);
    return computation;
}

/* The workers' sums become one dense slice a shard. */
struct flush_id dense_flush(struct bench *bench) {
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

struct flush_id flushed(struct bench *bench) {
    asked(bench, ACTION_GATHER);
    return dense_flush(bench);
}

struct message_stage one_portion_computed(struct bench *bench) {
    computed(bench, 0.5, false);
    asked(bench, ACTION_GATHER);
    gathered(bench);
    struct message_stage stage = sent(bench, FIRST_SHARD, MESSAGE_STAGE).stage;
    assert_int_equal(stage.portions.length, 1);
    return stage;
}

/* Computes a portion of its own, whose flush takes a buffer. */
struct flush_id solo(struct bench *bench, uint32_t first) {
    take_up(bench, 1, first, PORTION_SOLO);
    computed(bench, 0.5, false);
    struct flush_id id = flushed(bench);
    nothing_more(bench);
    return id;
}

void bench_free(struct bench *bench) {
    nothing_more(bench);
    replica_free(bench->replica);
    outbox_release(&bench->outbox);
}
