#include "coordinator/coordinator.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "coordinator/parts.h"

struct coordinator *coordinator_new(const struct coordinator_settings *settings) {
    struct coordinator *c = memory_new(1, sizeof *c);
    c->settings = *settings;
    c->attempt = 1;
    c->parameters = objective_parameters(&settings->shape);
    c->workers = memory_new(coordinator_links(c), sizeof *c->workers);
    for (uint32_t i = 0; i < coordinator_links(c); i++) {
        bool shard = i < settings->shards;
        c->workers[i] = (struct worker){.role = shard ? ROLE_SHARD : ROLE_REPLICA,
                                        .index = shard ? i : i - settings->shards,
                                        .incarnation = settings->epoch << 32 | (i + 1)};
    }
    optimizer_init(&c->optimizer, &settings->optimizer);
    round_init(&c->round, settings->shards);
    plan_init(&c->plan, settings->data->chunks, settings->replicas);
    verdicts_init(&c->verdicts);
    bytes_init(&c->program);
    return c;
}

void coordinator_free(struct coordinator *c) {
    if (!c)
        return;
    bytes_release(&c->program);
    verdicts_release(&c->verdicts);
    plan_release(&c->plan);
    round_release(&c->round);
    free(c->workers);
    free(c);
}

void coordinator_range(const struct coordinator *c, uint32_t index, uint64_t *first,
                       uint64_t *count) {
    uint64_t blocks = (c->parameters + BLOCK_ELEMENTS - 1) / BLOCK_ELEMENTS;
    uint64_t start = blocks * index / c->settings.shards * BLOCK_ELEMENTS;
    uint64_t end = blocks * (index + 1) / c->settings.shards * BLOCK_ELEMENTS;
    if (end > c->parameters)
        end = c->parameters;
    *first = start < end ? start : end;
    *count = end - *first;
}

/* ---- handshake and set-up ---- */

void coordinator_opened(struct coordinator *c, uint32_t link, struct output *out) {
    const struct worker *worker = &c->workers[link];
    struct message message = {.type = MESSAGE_HELLO};
    message.hello = (struct message_hello){
        .protocol = PROTOCOL_VERSION,
        .run = c->settings.run,
        .role = (uint8_t)worker->role,
        .index = worker->index,
        .incarnation = worker->incarnation,
        .reconnect_seconds = c->settings.reconnect_seconds,
    };
    send_to(c, link, message, out);
}

/* Base exponents of the features that a shard's range touches, in pieces of bounded size. */
static void send_exponents(const struct coordinator *c, uint32_t link, uint64_t first,
                           uint64_t count, struct output *out) {
    const uint64_t piece = 1 << 20;
    uint32_t outputs = c->settings.shape.outputs;
    uint64_t feature = first / outputs;
    uint64_t end = count ? (first + count - 1) / outputs + 1 : feature;
    while (feature < end) {
        uint64_t features = end - feature < piece ? end - feature : piece;
        struct message message = {.type = MESSAGE_EXPONENTS};
        message.exponents = (struct message_exponents){
            .attempt = c->attempt, .first_feature = feature, .count = features};
        message.bulk = (struct bulk){.data = c->settings.data->exponent + feature,
                                     .length = features * sizeof(int16_t)};
        send_to(c, link, message, out);
        feature += features;
    }
}

static void set_up_shard(const struct coordinator *c, uint32_t link, struct output *out) {
    const struct set_info *data = c->settings.data;
    const struct objective_shape *shape = &c->settings.shape;
    uint64_t first, count;
    coordinator_range(c, link, &first, &count);
    struct message message = {.type = MESSAGE_SHARD_SETUP};
    message.shard_setup = (struct message_shard_setup){
        .attempt = c->attempt,
        .parameters = c->parameters,
        .first = first,
        .count = count,
        .regularized = (uint64_t)shape->features * shape->outputs,
        .outputs = shape->outputs,
        .slots = c->settings.optimizer.memory + 2,
        .history_type = (uint8_t)c->settings.history_type,
        .examples = data->rows,
        .uniform = data->uniform,
        .uniform_exponent = data->uniform_exponent,
        .folder = "",
    };
    send_to(c, link, message, out);
    if (!data->uniform)
        send_exponents(c, link, first, count, out);
}

static void set_up_replica(const struct coordinator *c, uint32_t link, struct output *out) {
    const struct objective_shape *shape = &c->settings.shape;
    struct message message = {.type = MESSAGE_REPLICA_SETUP};
    message.replica_setup = (struct message_replica_setup){
        .attempt = c->attempt,
        .set = c->settings.set_path,
        .fingerprint = c->settings.data->fingerprint,
        .objective = (uint8_t)shape->kind,
        .outputs = shape->outputs,
        .intercept = shape->intercept,
        .parameters = c->parameters,
        .shards = c->settings.shards,
        .threads = c->settings.threads,
        .flush_ms = c->settings.flush_ms,
    };
    send_to(c, link, message, out);
    for (uint32_t i = 0; i < c->settings.shards; i++) {
        uint64_t first, count;
        coordinator_range(c, i, &first, &count);
        message = (struct message){.type = MESSAGE_SHARD_AT};
        message.shard_at = (struct message_shard_at){
            .attempt = c->attempt,
            .index = i,
            .incarnation = c->workers[i].incarnation,
            .first = first,
            .count = count,
            .address = c->settings.shard_addresses[i],
        };
        send_to(c, link, message, out);
    }
}

static void record_worker(uint32_t link, const char *state, struct output *out) {
    struct record *record = output_add(out, RECORD_WORKER);
    record->worker.link = link;
    record->worker.state = state;
}

/* Every worker of a role must compute the same bits, and of the same protocol. */
static int check_worker(struct coordinator *c, const struct worker *worker,
                        const struct message_welcome *welcome) {
    const char *role = role_name(worker->role);
    if (welcome->protocol != PROTOCOL_VERSION)
        return error_set(ERROR_UNAVAILABLE,
                         "%s %u speaks protocol %u, this coordinator %u: "
                         "install the same version everywhere",
                         role, worker->index, welcome->protocol, PROTOCOL_VERSION);
    if (welcome->role != worker->role)
        return error_set(ERROR_UNAVAILABLE,
                         "the worker at the address of %s %u is a %s: check "
                         "shard_addresses and replica_addresses",
                         role, worker->index, role_name(welcome->role));
    uint64_t *proof = &c->proof[worker->role];
    if (*proof == 0)
        *proof = welcome->proof;
    if (*proof != welcome->proof)
        return error_set(ERROR_UNAVAILABLE,
                         "%s %u on %s computes other bits than the others "
                         "(%s): use the same build on the same family of CPUs",
                         role, worker->index, welcome->host, welcome->description);
    return 0;
}

/* Replicas greet the shards, so every shard must know its run before a replica hears of it. */
static void set_up_replicas(struct coordinator *c, struct output *out) {
    for (uint32_t i = 0; i < c->settings.shards; i++)
        if (!c->workers[i].welcomed)
            return;
    for (uint32_t i = c->settings.shards; i < coordinator_links(c); i++) {
        struct worker *replica = &c->workers[i];
        if (replica->welcomed && !replica->introduced)
            set_up_replica(c, i, out);
        replica->introduced = replica->welcomed;
    }
}

static int on_welcome(struct coordinator *c, uint32_t link, const struct message *message,
                      int64_t now_ns, struct output *out) {
    (void)now_ns;
    struct worker *worker = &c->workers[link];
    const struct message_welcome *welcome = &message->welcome;
    if (worker->welcomed || welcome->incarnation != worker->incarnation) {
        c->stale++;
        return 0;
    }
    int code = check_worker(c, worker, welcome);
    if (code) {
        struct message refusal = {.type = MESSAGE_REFUSED};
        refusal.refused.reason = error_text();
        send_to(c, link, refusal, out);
        return code;
    }
    worker->welcomed = true;
    worker->pid = welcome->pid;
    worker->threads = welcome->threads;
    snprintf(worker->host, sizeof worker->host, "%s", welcome->host);
    record_worker(link, "running", out);
    if (worker->role == ROLE_SHARD)
        set_up_shard(c, link, out);
    set_up_replicas(c, out);
    return 0;
}

static int on_ready(struct coordinator *c, uint32_t link, const struct message *message,
                    int64_t now_ns, struct output *out) {
    if (message->ready.attempt != c->attempt || c->phase != PHASE_SETTING_UP) {
        c->stale++;
        return 0;
    }
    c->workers[link].ready = true;
    for (uint32_t i = 0; i < coordinator_links(c); i++)
        if (!c->workers[i].ready)
            return 0;
    c->phase = PHASE_RUNNING;
    steering_start(c, now_ns, out);
    return 0;
}

/* ---- what ends a run ---- */

static int on_refused(struct coordinator *c, uint32_t link, const struct message *message,
                      int64_t now_ns, struct output *out) {
    (void)now_ns;
    (void)out;
    const struct worker *worker = &c->workers[link];
    return error_set(ERROR_UNAVAILABLE, "%s %u refused to work: %s", role_name(worker->role),
                     worker->index, message->refused.reason);
}

static int on_failed(struct coordinator *c, uint32_t link, const struct message *message,
                     int64_t now_ns, struct output *out) {
    (void)now_ns;
    (void)out;
    const struct worker *worker = &c->workers[link];
    uint32_t status = message->failed.status;
    int code = status >= 64 && status <= 78 ? -(int)status : ERROR_INTERNAL;
    return error_set(code, "%s %u (pid %u): %s", role_name(worker->role), worker->index,
                     worker->pid, message->failed.reason);
}

void coordinator_stop(struct coordinator *c, enum reason reason, struct output *out) {
    if (c->phase != PHASE_RUNNING || c->finishing || !c->optimizer.started)
        return;
    evaluating_abandon(c);
    bytes_clear(&c->program);
    optimizer_stop(&c->optimizer, reason, &c->program);
    steering_finish(c, out);
}

void coordinator_dismiss(struct coordinator *c, const char *why, struct output *out) {
    struct message message = {.type = MESSAGE_BYE};
    message.bye.reason = why;
    send_to_shards(c, message, out);
    send_to_replicas(c, message, out);
    c->phase = PHASE_DISMISSED;
}

/* ---- dispatch ---- */

typedef int handler(struct coordinator *c, uint32_t link, const struct message *message,
                    int64_t now_ns, struct output *out);

static handler *handler_of(enum message_type type, enum role role) {
    switch (type) {
    case MESSAGE_WELCOME:
        return on_welcome;
    case MESSAGE_READY:
        return on_ready;
    case MESSAGE_REFUSED:
        return on_refused;
    case MESSAGE_FAILED:
        return on_failed;
    case MESSAGE_RESULT:
        return role == ROLE_SHARD ? on_result : NULL;
    case MESSAGE_FOLDED:
        return role == ROLE_SHARD ? on_folded : NULL;
    case MESSAGE_SLICE:
        return role == ROLE_SHARD ? on_slice : NULL;
    case MESSAGE_WANT:
        return role == ROLE_REPLICA ? on_want : NULL;
    case MESSAGE_FLUSHED:
        return role == ROLE_REPLICA ? on_flushed : NULL;
    default:
        return NULL;
    }
}

int coordinator_step(struct coordinator *c, uint32_t link, const struct message *message,
                     int64_t now_ns, struct output *out) {
    const struct worker *worker = &c->workers[link];
    handler *handle = handler_of(message->type, worker->role);
    if (!handle || message->epoch != c->settings.epoch) {
        c->stale++;
        return 0;
    }
    int code = handle(c, link, message, now_ns, out);
    if (code)
        c->phase = PHASE_FAILED;
    return code;
}
