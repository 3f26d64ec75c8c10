/* A replica's handshake and set-up, and the dispatch of its messages. */
#include "replica/replica.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "replica/state.h"

/* ---- what it wants done ---- */

void replica_act(struct replica *replica, const struct action *action) {
    if (replica->action_count == replica->action_capacity) {
        replica->action_capacity = replica->action_capacity * 2 + 8;
        replica->actions =
            memory_resize(replica->actions, replica->action_capacity, sizeof *replica->actions);
    }
    replica->actions[replica->action_count++] = *action;
}

bool replica_next_action(struct replica *replica, struct action *action) {
    if (replica->action_first == replica->action_count) {
        replica->action_first = replica->action_count = 0;
        return false;
    }
    *action = replica->actions[replica->action_first++];
    return true;
}

void replica_send(struct replica *replica, uint32_t to, struct message *message,
                  struct outbox *out) {
    message->epoch = replica->epoch;
    if (to)
        outbox_add(out, to, message);
}

void replica_fail(struct replica *replica, int error, const char *reason, struct outbox *out) {
    replica->failed = true;
    log_error("%s", reason);
    replica_send(replica, replica->coordinator,
                 &(struct message){.type = MESSAGE_FAILED, .failed = {(uint32_t)-error, reason}},
                 out);
}

/* ---- its life ---- */

struct replica *replica_new(const struct replica_identity *identity) {
    struct replica *replica = memory_new(1, sizeof *replica);
    replica->identity = *identity;
    accrual_clear(&replica->evaluation.accrual);
    return replica;
}

static void forget_shards(struct replica *replica) {
    for (uint32_t i = 0; i < replica->shard_count; i++) {
        if (replica->shards[i].link)
            replica_act(replica,
                        &(struct action){.kind = ACTION_CLOSE, .link = replica->shards[i].link});
        free(replica->shards[i].address);
    }
    free(replica->shards);
    free(replica->ranges);
    replica->shards = NULL;
    replica->ranges = NULL;
    replica->shard_count = 0;
}

/* What the last set-up left behind. The workers must have let go of it. */
static void release_work(struct replica *replica) {
    flush_pool_release(&replica->flushes);
    kept_bulk_release(&replica->kept);
    memory_unmap(replica->own_parameters, replica->own_parameters_bytes);
    replica->own_parameters = NULL;
    replica->parameters = NULL;
    replica->gathering = NULL;
    replica->activity = ACTIVITY_NONE;
    replica->abandoned = false;
    replica->sums_dirty = false;
}

static void release_setup(struct replica *replica) {
    free((char *)replica->setup.set);
    free((char *)replica->setup.fingerprint);
    replica->setup = (struct replica_setup){0};
}

void replica_free(struct replica *replica) {
    if (!replica)
        return;
    forget_shards(replica);
    release_work(replica);
    release_setup(replica);
    accrual_release(&replica->evaluation.accrual);
    free(replica->evaluation.portions);
    free(replica->actions);
    free(replica->run);
    free(replica);
}

const struct replica_counters *replica_counters(const struct replica *replica) {
    return &replica->counters;
}

/* ---- handshake ---- */

/* Why a HELLO cannot be accepted; NULL if it can. */
static const char *objection(const struct replica *replica, uint64_t epoch,
                             const struct message_hello *hello) {
    if (hello->protocol != PROTOCOL_VERSION)
        return "this replica speaks another version of the protocol; use one build everywhere";
    if (hello->role != ROLE_REPLICA)
        return "this is a replica; the coordinator was told otherwise";
    if (epoch < replica->epoch)
        return "this replica works for a later coordinator of the run";
    if (replica->run && strcmp(replica->run, hello->run))
        return "this replica works for another run";
    return NULL;
}

static void step_hello(struct replica *replica, uint32_t from, const struct message *message,
                       struct outbox *out) {
    const struct message_hello *hello = &message->hello;
    const struct replica_identity *identity = &replica->identity;
    const char *why_not = objection(replica, message->epoch, hello);
    if (why_not) {
        replica_send(replica, from,
                     &(struct message){.type = MESSAGE_REFUSED, .refused = {why_not}}, out);
        return;
    }
    if (!replica->run)
        replica->run = memory_copy_string(hello->run);
    replica->epoch = message->epoch;
    replica->coordinator = from;
    replica->incarnation = hello->incarnation;
    replica_send(replica, from,
                 &(struct message){.type = MESSAGE_WELCOME,
                                   .welcome = {.protocol = PROTOCOL_VERSION,
                                               .role = ROLE_REPLICA,
                                               .incarnation = hello->incarnation,
                                               .pid = identity->pid,
                                               .host = identity->host,
                                               .threads = identity->threads,
                                               .proof = identity->proof,
                                               .description = identity->description}},
                 out);
}

/* ---- set-up ---- */

static void check_ready(struct replica *replica, int64_t now_ns, struct outbox *out) {
    bool ready = replica->opened;
    for (uint32_t i = 0; i < replica->shard_count; i++)
        ready &= replica->shards[i].greeted;
    bool became = ready && !replica->ready;
    replica->ready = ready;
    if (!became)
        return;
    replica_send(replica, replica->coordinator,
                 &(struct message){.type = MESSAGE_READY, .ready = {replica->attempt}}, out);
    replica_advance(replica, now_ns, out);
}

static void step_setup(struct replica *replica, const struct message_replica_setup *message,
                       struct outbox *out) {
    if (message->attempt < replica->attempt) {
        replica->counters.stale++;
        return;
    }
    if (!message->shards || message->shards > SHARDS_MAX || !message->parameters) {
        replica_fail(replica, ERROR_INTERNAL, "the coordinator set up no shards or no parameters",
                     out);
        return;
    }
    replica_abandon(replica);
    forget_shards(replica);
    release_setup(replica);
    replica->attempt = message->attempt;
    replica->opened = replica->ready = replica->failed = false;
    replica->flush_ns = (int64_t)message->flush_ms * NS_PER_MS;
    replica->shard_count = message->shards;
    replica->shards = memory_new(message->shards, sizeof *replica->shards);
    replica->ranges = memory_new(message->shards, sizeof *replica->ranges);
    replica->setup = (struct replica_setup){
        .set = memory_copy_string(message->set),
        .fingerprint = memory_copy_string(message->fingerprint),
        .objective = message->objective,
        .outputs = message->outputs,
        .intercept = message->intercept,
        .parameters = message->parameters,
        .threads = message->threads,
    };
    replica_act(replica, &(struct action){.kind = ACTION_OPEN_SET, .setup = replica->setup});
}

void replica_opened(struct replica *replica, int error, const char *reason, int64_t now_ns,
                    struct outbox *out) {
    release_work(replica);
    if (error) {
        replica_fail(replica, error, reason, out);
        return;
    }
    flush_pool_init(&replica->flushes, replica->shard_count, replica->setup.parameters);
    replica->opened = true;
    check_ready(replica, now_ns, out);
}

static void step_shard_at(struct replica *replica, const struct message_shard_at *message,
                          struct outbox *out) {
    if (message->attempt != replica->attempt || message->index >= replica->shard_count) {
        replica->counters.stale++;
        return;
    }
    uint64_t n = replica->setup.parameters;
    if (message->first > n || message->count > n - message->first) {
        replica_fail(replica, ERROR_INTERNAL, "the coordinator gave a shard a range beyond the end",
                     out);
        return;
    }
    struct shard_link *shard = &replica->shards[message->index];
    if (shard->link)
        replica_act(replica, &(struct action){.kind = ACTION_CLOSE, .link = shard->link});
    free(shard->address);
    *shard = (struct shard_link){
        .incarnation = message->incarnation,
        .address = memory_copy_string(message->address),
    };
    replica->ready = false;
    replica->ranges[message->index] = (struct range){message->first, message->count};
    replica_act(replica, &(struct action){.kind = ACTION_CONNECT,
                                          .shard = message->index,
                                          .address = shard->address});
}

/* A shard that has once been met may be gone for good: the coordinator sees to that, and says
 * where the next one is. One that cannot be met at all is an error of the set-up. */
static void shard_missing(struct replica *replica, uint32_t index, int error, const char *reason,
                          struct outbox *out) {
    char *text = memory_format("shard %u at %s: %s", index, replica->shards[index].address, reason);
    if (replica->shards[index].met)
        log_debug("%s", text);
    else
        replica_fail(replica, error, text, out);
    free(text);
}

void replica_connected(struct replica *replica, uint32_t index, uint32_t link, int error,
                       const char *reason, struct outbox *out) {
    replica->shards[index].link = error ? 0 : link;
    if (error) {
        shard_missing(replica, index, error, reason, out);
        return;
    }
    replica_send(replica, link,
                 &(struct message){.type = MESSAGE_GREET,
                                   .greet = {PROTOCOL_VERSION, replica->run, replica->incarnation}},
                 out);
}

static void step_greeted(struct replica *replica, uint32_t index,
                         const struct message_greeted *message, int64_t now_ns,
                         struct outbox *out) {
    struct shard_link *shard = &replica->shards[index];
    if (message->index != index || message->incarnation != shard->incarnation) {
        shard_missing(replica, index, ERROR_UNAVAILABLE, "another shard answers there", out);
        return;
    }
    bool again = shard->met;
    shard->greeted = shard->met = true;
    if (again)
        replica_resume_shard(replica, index, out);
    check_ready(replica, now_ns, out);
}

/* ---- links ---- */

static int shard_of_link(const struct replica *replica, uint32_t link) {
    for (uint32_t i = 0; i < replica->shard_count; i++)
        if (replica->shards[i].link == link)
            return (int)i;
    return -1;
}

/* A shard that hung up is asked once more: if only the connection broke, it answers. */
void replica_gone(struct replica *replica, uint32_t link, struct outbox *out) {
    if (link == replica->coordinator)
        replica->coordinator = 0;
    int index = shard_of_link(replica, link);
    if (index < 0)
        return;
    struct shard_link *shard = &replica->shards[index];
    bool greeted = shard->greeted;
    shard->link = 0;
    shard->greeted = replica->ready = false;
    if (greeted)
        replica_act(replica, &(struct action){.kind = ACTION_CONNECT,
                                              .shard = (uint32_t)index,
                                              .address = shard->address});
    else
        shard_missing(replica, (uint32_t)index, ERROR_UNAVAILABLE, "it closes the connection", out);
}

/* ---- dispatch ---- */

static void step_shard(struct replica *replica, uint32_t index, const struct message *message,
                       int64_t now_ns, struct outbox *out) {
    switch (message->type) {
    case MESSAGE_GREETED:
        step_greeted(replica, index, &message->greeted, now_ns, out);
        break;
    case MESSAGE_PARAMETERS:
        replica_on_parameters(replica, index, message, now_ns, out);
        break;
    case MESSAGE_STAGED:
        replica_on_staged(replica, index, &message->staged, out);
        break;
    case MESSAGE_REFUSED:
        shard_missing(replica, index, ERROR_UNAVAILABLE, message->refused.reason, out);
        break;
    default:
        log_warning("shard %u sent %s, which is not for a replica", index,
                    message_name(message->type));
    }
}

static void step_coordinator(struct replica *replica, const struct message *message, int64_t now_ns,
                             struct outbox *out) {
    switch (message->type) {
    case MESSAGE_REPLICA_SETUP:
        step_setup(replica, &message->replica_setup, out);
        break;
    case MESSAGE_SHARD_AT:
        step_shard_at(replica, &message->shard_at, out);
        break;
    case MESSAGE_EVALUATE:
        replica_on_evaluate(replica, &message->evaluate, now_ns, out);
        break;
    case MESSAGE_PORTION:
        replica_on_portion(replica, &message->portion, now_ns, out);
        break;
    case MESSAGE_REST:
        replica_on_rest(replica, &message->rest, now_ns, out);
        break;
    case MESSAGE_VERDICT:
        replica_on_verdict(replica, &message->verdict, now_ns, out);
        break;
    case MESSAGE_REFUSED:
        log_error("the coordinator refuses this replica: %s", message->refused.reason);
        break;
    case MESSAGE_BYE: /* the rim's affair */
        break;
    default:
        log_warning("the coordinator sent %s, which is not for a replica",
                    message_name(message->type));
    }
}

void replica_step(struct replica *replica, uint32_t from, const struct message *message,
                  int64_t now_ns, struct outbox *out) {
    int shard = shard_of_link(replica, from);
    if (message->type == MESSAGE_HELLO)
        step_hello(replica, from, message, out);
    else if (shard >= 0)
        step_shard(replica, (uint32_t)shard, message, now_ns, out);
    else if (from == replica->coordinator && message->epoch == replica->epoch)
        step_coordinator(replica, message, now_ns, out);
    else
        replica->counters.stale++;
}
