#include "coordinator/coordinator.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "coordinator/parts.h"

#define PING_NS INT64_C(1000000000)
#define SILENCE_NS INT64_C(10000000000) /* of a worker, before it counts as lost */
#define PAUSE_NS INT64_C(3000000000)    /* between ticks: then it was this process that slept */

/* The holdout is a part of every evaluation if it decides the end, else of none. */
static uint32_t chunks_to_count(const struct coordinator_settings *settings) {
    const struct set_info *data = settings->data;
    return settings->optimizer.patience ? data->chunks : data->chunks - data->holdout_chunks;
}

struct coordinator *coordinator_new(const struct coordinator_settings *settings) {
    struct coordinator *c = memory_new(1, sizeof *c);
    c->settings = *settings;
    c->settings.saved = NULL;
    c->parameters = objective_parameters(&settings->shape);
    c->workers = memory_new(coordinator_links(c), sizeof *c->workers);
    for (uint32_t i = 0; i < coordinator_links(c); i++) {
        bool shard = i < settings->shards;
        c->workers[i] = (struct worker){.role = shard ? ROLE_SHARD : ROLE_REPLICA,
                                        .index = shard ? i : i - settings->shards,
                                        .incarnation = recovery_incarnation(c)};
    }
    optimizer_init(&c->optimizer, &settings->optimizer);
    round_init(&c->round, settings->shards);
    plan_init(&c->plan, chunks_to_count(settings), settings->replicas);
    verdicts_init(&c->verdicts);
    if (settings->saved)
        durability_take_saved(c, settings->saved);
    return c;
}

void coordinator_free(struct coordinator *c) {
    if (!c)
        return;
    bytes_release(&c->rejoined);
    bytes_release(&c->verdict_log);
    bytes_release(&c->sealing.state);
    bytes_release(&c->durable[1].state);
    bytes_release(&c->durable[0].state);
    bytes_release(&c->program);
    verdicts_release(&c->verdicts);
    plan_release(&c->plan);
    round_release(&c->round);
    for (uint32_t i = 0; i < coordinator_links(c); i++)
        free(c->workers[i].handed);
    free(c->workers);
    free(c);
}

void coordinator_begin(struct coordinator *c, int64_t now_ns, struct output *out) {
    recovery_begin(c, now_ns, out);
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

void coordinator_opened(struct coordinator *c, uint32_t link, int64_t now_ns, struct output *out) {
    struct worker *worker = &c->workers[link];
    worker->connected = true;
    worker->heard_ns = now_ns;
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

/* ---- time ---- */

static void ping_all(struct coordinator *c, int64_t now_ns, struct output *out) {
    if (now_ns - c->pinged_ns < PING_NS)
        return;
    c->pinged_ns = now_ns;
    c->pings++;
    for (uint32_t i = 0; i < coordinator_links(c); i++)
        if (c->workers[i].connected)
            send_to(c, i, (struct message){.type = MESSAGE_PING, .ping = {c->pings}}, out);
}

/* If it was this process that did not run, the others' silence means nothing. */
static void forgive_pause(struct coordinator *c, int64_t now_ns) {
    if (now_ns - c->ticked_ns > PAUSE_NS)
        for (uint32_t i = 0; i < coordinator_links(c); i++)
            c->workers[i].heard_ns = now_ns;
    c->ticked_ns = now_ns;
}

int coordinator_tick(struct coordinator *c, int64_t now_ns, struct output *out) {
    int code = 0;
    forgive_pause(c, now_ns);
    ping_all(c, now_ns, out);
    for (uint32_t i = 0; i < coordinator_links(c) && !code; i++) {
        const struct worker *worker = &c->workers[i];
        if (worker->connected && now_ns - worker->heard_ns > SILENCE_NS)
            code = coordinator_lost(c, i, "it is silent", now_ns, out);
    }
    if (!code && c->phase == PHASE_RUNNING) {
        durability_journal_if_long(c, now_ns, out);
        evaluating_wake_idle(c, now_ns, out);
    }
    return code;
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

/* What was only not to be had, a worker started anew may find. */
static int on_failed(struct coordinator *c, uint32_t link, const struct message *message,
                     int64_t now_ns, struct output *out) {
    const struct worker *worker = &c->workers[link];
    int code = -(int)message->failed.status;
    if (code == ERROR_UNAVAILABLE || code == ERROR_AGAIN)
        return coordinator_lost(c, link, message->failed.reason, now_ns, out);
    return error_set(code, "%s %u (pid %u): %s", role_name(worker->role), worker->index,
                     worker->pid, message->failed.reason);
}

void coordinator_stop(struct coordinator *c, enum reason reason, int64_t now_ns,
                      struct output *out) {
    bool under_way = c->phase == PHASE_RUNNING && c->optimizer.started;
    if (under_way && !c->finishing) {
        evaluating_abandon(c);
        bytes_clear(&c->program);
        optimizer_stop(&c->optimizer, reason, &c->program);
        steering_finish(c, now_ns, out);
    } else if (reason == REASON_CANCELLED && c->phase <= PHASE_RUNNING && !c->finishing) {
        c->optimizer.reason = reason; /* nothing is newer than what is durable */
        c->phase = PHASE_STOPPED;
    }
}

void coordinator_dismiss(struct coordinator *c, const char *why, struct output *out) {
    struct message message = {.type = MESSAGE_BYE};
    message.bye.reason = why;
    send_to_shards(c, message, out);
    send_to_replicas(c, message, out);
    c->phase = PHASE_DISMISSED;
}

/* ---- dispatch ---- */

static int on_pong(struct coordinator *c, uint32_t link, const struct message *message,
                   int64_t now_ns, struct output *out) {
    (void)c, (void)link, (void)message, (void)now_ns, (void)out; /* it was heard: that is all */
    return 0;
}

static handler *handler_of_any(enum message_type type) {
    switch (type) {
    case MESSAGE_PONG:
        return on_pong;
    case MESSAGE_WELCOME:
        return on_welcome;
    case MESSAGE_READY:
        return on_ready;
    case MESSAGE_REFUSED:
        return on_refused;
    case MESSAGE_FAILED:
        return on_failed;
    default:
        return NULL;
    }
}

static handler *handler_of_shard(enum message_type type) {
    switch (type) {
    case MESSAGE_RESULT:
        return on_result;
    case MESSAGE_FOLDED:
        return on_folded;
    case MESSAGE_SLICE:
        return on_slice;
    case MESSAGE_CHECKPOINTED:
        return on_checkpointed;
    case MESSAGE_RESTORED:
        return on_restored;
    case MESSAGE_HOLDING:
        return on_holding;
    default:
        return handler_of_any(type);
    }
}

static handler *handler_of_replica(enum message_type type) {
    switch (type) {
    case MESSAGE_WANT:
        return on_want;
    case MESSAGE_FLUSHED:
        return on_flushed;
    default:
        return handler_of_any(type);
    }
}

/* Whoever speaks in the name of a later epoch works for another coordinator now. */
static int fenced(struct coordinator *c, uint64_t epoch) {
    c->phase = PHASE_FAILED;
    c->fenced = true;
    return error_set(ERROR_AGAIN,
                     "another coordinator, of epoch %llu, took this run over from this one, of "
                     "epoch %llu: nothing to do here",
                     (unsigned long long)epoch, (unsigned long long)c->settings.epoch);
}

int coordinator_step(struct coordinator *c, uint32_t link, const struct message *message,
                     int64_t now_ns, struct output *out) {
    struct worker *worker = &c->workers[link];
    handler *handle = worker->role == ROLE_SHARD ? handler_of_shard(message->type)
                                                 : handler_of_replica(message->type);
    if (message->epoch > c->settings.epoch && c->phase < PHASE_STOPPED)
        return fenced(c, message->epoch);
    if (!handle || message->epoch != c->settings.epoch || !worker->connected ||
        c->phase >= PHASE_STOPPED) {
        c->stale++;
        return 0;
    }
    worker->heard_ns = now_ns;
    int code = handle(c, link, message, now_ns, out);
    if (code)
        c->phase = PHASE_FAILED;
    return code;
}
