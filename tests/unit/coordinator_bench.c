#include "tests/unit/coordinator_bench.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "coordinator/driver.h"

static const char *const addresses[] = {"unix:/a", "unix:/b"};

int bench_set_up(void **state) {
    struct fixture *f = calloc(1, sizeof *f);
    f->data = (struct set_info){.rows = 100,
                                .weight_sum = 100,
                                .values = 1000,
                                .features = 10000,
                                .chunks = CHUNKS,
                                .uniform = true,
                                .uniform_exponent = 40,
                                .fingerprint = "f",
                                .label_max_abs = 3};
    f->settings = (struct coordinator_settings){
        .optimizer = {.memory = 5, .bias_scale = 1, .steps_max = 100},
        .shape = {.kind = OBJECTIVE_LOGISTIC, .features = 10000, .outputs = 1, .intercept = true},
        .layout = layout_linear(10000, 1, true),
        .data = &f->data,
        .set_path = "/set",
        .run = "run",
        .term = TERM,
        .shards = 2,
        .replicas = 2,
        .portion_chunks = 2,
        .backup_copies = true,
        .shard_addresses = addresses,
        .shards_folder = "",
        .restarts_max = 3,
    };
    f->maxima = maxima_of_one(0.5);
    f->busy_ns = 1000;
    output_init(&f->out);
    bench_begin(f, &f->settings);
    error_clear();
    *state = f;
    return 0;
}

void bench_begin(struct fixture *f, const struct coordinator_settings *settings) {
    coordinator_free(f->coordinator);
    f->coordinator = coordinator_new(settings);
    output_clear(&f->out);
    coordinator_begin(f->coordinator, 0, &f->out);
    for (uint32_t link = 0; link < coordinator_links(f->coordinator); link++)
        coordinator_opened(f->coordinator, link, 0, &f->out);
}

int bench_tear_down(void **state) {
    struct fixture *f = *state;
    coordinator_free(f->coordinator);
    output_release(&f->out);
    free(f);
    return 0;
}

int bench_feed(struct fixture *f, uint32_t link, struct message message) {
    if (!f->taken++)
        output_clear(&f->out);
    message.term = coordinator_settings(f->coordinator)->term;
    int code = coordinator_step(f->coordinator, link, &message, f->now_ns, &f->out);
    if (f->taken >= f->turn) {
        coordinator_end_turn(f->coordinator, &f->out);
        f->taken = 0;
    }
    return code;
}

size_t bench_place(const struct fixture *f, uint32_t link, enum message_type type) {
    for (size_t i = 0; i < f->out.messages.count; i++)
        if (f->out.messages.envelopes[i].to == link && f->out.messages.envelopes[i].type == type)
            return i;
    fail_msg("no %s was sent to link %u", message_name(type), link);
    abort();
}

struct message bench_sent(const struct fixture *f, uint32_t link, enum message_type type) {
    return decoded(&f->out.messages, &f->out.messages.envelopes[bench_place(f, link, type)]);
}

size_t bench_count_sent(const struct fixture *f, uint32_t link, enum message_type type) {
    size_t count = 0;
    for (size_t i = 0; i < f->out.messages.count; i++)
        count +=
            f->out.messages.envelopes[i].to == link && f->out.messages.envelopes[i].type == type;
    return count;
}

uint32_t bench_chunks(const struct fixture *f, enum chunk_state state) {
    struct chunk_view chunks[CHUNKS];
    uint32_t count = coordinator_view(f->coordinator).evaluation.chunks, found = 0;
    assert_true(count <= CHUNKS);
    coordinator_chunks(f->coordinator, chunks);
    for (uint32_t i = 0; i < count; i++)
        found += chunks[i].state == state;
    return found;
}

struct message bench_welcome(const struct fixture *f, uint32_t link, uint64_t proof) {
    struct worker_view worker = coordinator_worker(f->coordinator, link);
    struct message message = {.type = MESSAGE_WELCOME};
    message.welcome = (struct message_welcome){.protocol = PROTOCOL_VERSION,
                                               .role = (uint8_t)worker.role,
                                               .incarnation = worker.incarnation,
                                               .since = worker.incarnation >> 32,
                                               .pid = 100 + link,
                                               .host = "here",
                                               .description = "test",
                                               .proof = proof,
                                               .shares = true};
    return message;
}

void bench_welcome_all(struct fixture *f) {
    for (uint32_t link = 0; link < coordinator_links(f->coordinator); link++)
        assert_int_equal(bench_feed(f, link, bench_welcome(f, link, 42)), 0);
}

void bench_ready(struct fixture *f, uint32_t link) {
    struct message message = {.type = MESSAGE_READY};
    message.ready = (struct message_ready){coordinator_view(f->coordinator).attempt, "cpu"};
    assert_int_equal(bench_feed(f, link, message), 0);
}

void bench_ready_all(struct fixture *f) {
    for (uint32_t link = 0; link < coordinator_links(f->coordinator); link++)
        bench_ready(f, link);
}

/* Up to the first evaluation; its messages are in the output. */
void bench_start(struct fixture *f) {
    bench_welcome_all(f);
    bench_ready_all(f);
    assert_int_equal(coordinator_phase(f->coordinator), PHASE_RUNNING);
}

struct flush_id bench_flush_id(const struct fixture *f, uint32_t replica, uint32_t sequence) {
    return (struct flush_id){.attempt = coordinator_view(f->coordinator).attempt,
                             .evaluation = coordinator_view(f->coordinator).evaluation.number,
                             .incarnation = coordinator_worker(f->coordinator, replica).incarnation,
                             .sequence = sequence};
}

/* A FLUSHED of `chunks` chunks from `first` on, with a loss of `chunks` and, if the holdout is
 * looked at, half of that there, and a quarter correct. */
int bench_flush(struct fixture *f, uint32_t replica, uint32_t sequence, uint32_t first,
                uint32_t chunks) {
    struct chunk_range range = {.first = first, .count = chunks};
    uint64_t incarnations[2] = {coordinator_worker(f->coordinator, SHARD_0).incarnation,
                                coordinator_worker(f->coordinator, SHARD_1).incarnation};
    struct totals totals;
    struct bytes encoded;
    totals_init(&totals, f->settings.optimizer.patience ? 3 : 1);
    exact_add(&totals.sum[0], chunks);
    if (totals.count > 1) {
        exact_add(&totals.sum[1], chunks / 2.0);
        exact_add(&totals.sum[2], chunks / 4.0);
    }
    bytes_init(&encoded);
    totals_encode(&totals, &encoded);
    struct message message = {.type = MESSAGE_FLUSHED};
    message.flushed = (struct message_flushed){
        .flush = bench_flush_id(f, replica, sequence),
        .portions = {.items = &range, .length = 1},
        .totals = {.data = encoded.data, .length = (uint32_t)encoded.length},
        .maxima = f->maxima,
        .exceeded = f->exceeded,
        .incarnations = {.items = incarnations, .length = 2},
        .busy_ns = f->busy_ns,
    };
    int code = bench_feed(f, replica, message);
    bytes_release(&encoded);
    return code;
}

void bench_folded(struct fixture *f, uint32_t shard, uint32_t replica, uint32_t sequence) {
    struct message message = {.type = MESSAGE_FOLDED};
    const struct flush_id id = bench_flush_id(f, replica, sequence);
    message.folded.flushes = listed_flushes(&id, 1);
    assert_int_equal(bench_feed(f, shard, message), 0);
}

/* Both shards answer the program that is out with the same scalars, halves of sums. */
void bench_answer(struct fixture *f, const double *scalars, uint32_t count) {
    struct bytes encoded;
    bytes_init(&encoded);
    for (uint32_t i = 0; i < count; i++) {
        struct exact part;
        exact_init(&part);
        exact_add(&part, scalars[i] / 2);
        if (f->coordinator->driver->round.is_max[i])
            bytes_put_f64(&encoded, scalars[i]);
        else
            exact_encode(&part, &encoded);
    }
    struct message message = {.type = MESSAGE_RESULT};
    message.result = (struct message_result){
        .attempt = coordinator_view(f->coordinator).attempt,
        .number = f->coordinator->driver->round.number,
        .scalars = {.data = encoded.data, .length = (uint32_t)encoded.length},
    };
    assert_int_equal(bench_feed(f, SHARD_0, message), 0);
    assert_int_equal(bench_feed(f, SHARD_1, message), 0);
    bytes_release(&encoded);
}

/* Through the first evaluation and its measurement, with this gradient. */
void bench_finish_first(struct fixture *f, double gradient_square, double gradient_max) {
    bench_start(f);
    bench_flush(f, REPLICA_0, 0, 0, CHUNKS);
    bench_folded(f, SHARD_0, REPLICA_0, 0);
    bench_folded(f, SHARD_1, REPLICA_0, 0);
    bench_answer(f, (double[]){0, gradient_square, gradient_max, 0}, 4);
}

const struct record *bench_recorded(const struct fixture *f, enum record_kind kind) {
    for (uint32_t i = 0; i < f->out.record_count; i++)
        if (f->out.records[i].kind == kind)
            return &f->out.records[i];
    fail_msg("no such record");
    abort();
}

size_t bench_count_recorded(const struct fixture *f, enum record_kind kind) {
    size_t count = 0;
    for (uint32_t i = 0; i < f->out.record_count; i++)
        count += f->out.records[i].kind == kind;
    return count;
}

int bench_lose(struct fixture *f, uint32_t link) {
    output_clear(&f->out);
    return coordinator_lost(f->coordinator, link, "test", 0, &f->out);
}

void bench_return(struct fixture *f, uint32_t link) {
    coordinator_opened(f->coordinator, link, 0, &f->out);
    bench_feed(f, link, bench_welcome(f, link, 42));
}

void bench_checkpointed(struct fixture *f, uint32_t shard, uint64_t digest) {
    struct message message = {.type = MESSAGE_CHECKPOINTED};
    message.checkpointed =
        (struct message_checkpointed){.attempt = coordinator_view(f->coordinator).attempt,
                                      .step = f->coordinator->recovery.pending.step,
                                      .digest = digest};
    assert_int_equal(bench_feed(f, shard, message), 0);
}

/* A coordinator with a folder for checkpoints, every step durable, after its first evaluation. */
void bench_start_durable(struct fixture *f) {
    f->settings.shards_folder = "/shards";
    bench_begin(f, &f->settings);
    bench_finish_first(f, 1, 0.5);
    bench_checkpointed(f, SHARD_0, 11);
    bench_checkpointed(f, SHARD_1, 22);
}

/* ---- inside ---- */

void bench_pace(struct fixture *f, uint32_t replica, double chunks_per_ns) {
    workload_of(&f->coordinator->dispatch, replica)->chunks_per_ns = chunks_per_ns;
    f->coordinator->dispatch.rates.known = false;
}

void bench_pass_over(struct fixture *f, uint32_t replica, uint32_t evaluations) {
    workload_of(&f->coordinator->dispatch, replica)->passed_over = evaluations;
}

void bench_delivery(struct fixture *f, double ns) {
    f->coordinator->dispatch.delivery_ns = ns;
}

void bench_move_away(struct fixture *f, uint32_t replica) {
    strcpy(f->coordinator->roster.members[replica].host, "elsewhere");
}

void bench_rest(struct fixture *f, uint32_t replica) {
    workload_of(&f->coordinator->dispatch, replica)->idle = true;
}

void bench_back_up(struct fixture *f, uint32_t replica) {
    workload_of(&f->coordinator->dispatch, replica)->dispatched[0].backed_up = true;
}

void bench_hand_out_all(struct fixture *f) {
    struct chunk_range range;
    while (plan_take(&f->coordinator->dispatch.plan, 0, CHUNKS, &range))
        continue;
}

void bench_add_durable(struct fixture *f, uint64_t step) {
    struct recovery *recovery = &f->coordinator->recovery;
    const struct bytes *state = &recovery->durable[0].state;
    recovery->durable_count = 2;
    recovery->durable[1].step = step;
    bytes_append(&recovery->durable[1].state, state->data, state->length);
}

const struct lbfgs *bench_optimizer(const struct fixture *f) {
    return &f->coordinator->driver->optimizer.lbfgs;
}
