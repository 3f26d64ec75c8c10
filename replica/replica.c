/* A replica's life, its links, and the dispatch of its messages. */
#include "replica/replica.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/mutant.h"
#include "replica/state.h"

/* ---- actions and messages ---- */

void replica_act(struct replica *replica, const struct action *action) {
    MEMORY_ROOM(replica->actions, replica->action_count, replica->action_capacity);
    replica->actions[replica->action_count++] = *action;
}

bool replica_next_action(struct replica *replica, struct action *action) {
    assert(replica->action_first <= replica->action_count);
    if (replica->action_first == replica->action_count) {
        replica->action_first = replica->action_count = 0;
        return false;
    }
    *action = replica->actions[replica->action_first++];
    return true;
}

void replica_send(struct replica *replica, uint32_t to, struct message *message,
                  struct outbox *out) {
    message->term = replica->term;
    if (to)
        outbox_add(out, to, message);
}

void replica_tell_failure(struct replica *replica, struct outbox *out) {
    replica_send(replica, replica->coordinator,
                 &(struct message){.type = MESSAGE_FAILED,
                                   .failed = {(uint32_t)-replica->error, replica->failure,
                                              replica->device_failed}},
                 out);
}

void replica_fail(struct replica *replica, int error, const char *reason, struct outbox *out) {
    assert(error < 0);
    free(replica->failure);
    replica->error = error;
    replica->failure = memory_copy_string(reason);
    log_error("%s", reason);
    replica_tell_failure(replica, out);
}

void replica_device_failed(struct replica *replica, int error, const char *reason,
                           struct outbox *out) {
    replica->device_failed = true;
    replica_fail(replica, error, reason, out);
}

void replica_computes_on(struct replica *replica, const char *device) {
    snprintf(replica->device, sizeof replica->device, "%s", device);
}

void replica_rows_are_sparse(struct replica *replica, uint64_t chunk_values, uint32_t chunks) {
    replica->scaled.chunk_values = chunk_values;
    uint32_t columns = (uint32_t)replica->setup.layout.tensor[0].rows;
    uint32_t wide = replica->setup.strip_columns;
    if (wide) {
        needs_init(&replica->needs, wide, layout_strips(&replica->setup.layout, wide), chunks);
        return;
    }
    needs_init(&replica->needs, columns, 1, chunks);
    needs_init(&replica->of_few, columns, 1, chunks);
}

void replica_rows_of_chunks(struct replica *replica, const uint64_t *first, uint32_t chunks) {
    free(replica->chunk_row);
    replica->chunk_row = memory_new((size_t)chunks + 1, sizeof *replica->chunk_row);
    memcpy(replica->chunk_row, first, ((size_t)chunks + 1) * sizeof *replica->chunk_row);
    replica->chunk_count = chunks;
}

/* ---- making and freeing ---- */

struct replica *replica_new(const struct replica_identity *identity) {
    struct replica *replica = memory_new(1, sizeof *replica);
    replica->identity = *identity;
    accrual_clear(&replica->evaluation.accrual, 0);
    return replica;
}

void replica_free(struct replica *replica) {
    if (!replica)
        return;
    replica_release_setup(replica);
    accrual_release(&replica->evaluation.accrual);
    free(replica->evaluation.portions);
    free(replica->actions);
    free(replica->run);
    free(replica->failure);
    free(replica);
}

const struct replica_counters *replica_counters(const struct replica *replica) {
    return &replica->counters;
}

/* ---- links ---- */

static int shard_of_link(const struct replica *replica, uint32_t link) {
    for (uint32_t i = 0; i < replica->shard_count; i++)
        if (replica->shards[i].link == link)
            return (int)i;
    return -1;
}

/* Connects to the shard again at once: if only the connection broke, it answers. */
void replica_gone(struct replica *replica, uint32_t link, struct outbox *out) {
    if (link == replica->coordinator) {
        replica->coordinator = 0;
        replica_copy_forget_requests(replica);
    }
    int index = shard_of_link(replica, link);
    if (index < 0)
        return;
    struct shard_link *shard = &replica->shards[index];
    assert(!shard->connecting);
    bool greeted = shard->greeted;
    shard->link = 0;
    shard->greeted = replica->ready = false;
    if (greeted)
        replica_connect_shard(replica, (uint32_t)index);
    else
        replica_shard_missing(replica, (uint32_t)index, ERROR_UNAVAILABLE,
                              "it closes the connection", out);
}

/* ---- dispatch ---- */

static void step_shard(struct replica *replica, uint32_t index, const struct message *message,
                       int64_t now_ns, struct outbox *out) {
    switch (message->type) {
    case MESSAGE_GREETED:
        replica_on_greeted(replica, index, &message->greeted, now_ns, out);
        break;
    case MESSAGE_PARAMETERS:
        replica_on_parameters(replica, index, message, now_ns, out);
        break;
    case MESSAGE_STAGED:
        replica_on_staged(replica, index, &message->staged, out);
        break;
    case MESSAGE_REFUSED:
        replica_shard_missing(replica, index, ERROR_UNAVAILABLE, message->refused.reason, out);
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
        replica_on_setup(replica, &message->replica_setup);
        break;
    case MESSAGE_COORDINATES:
        replica_on_coordinates(replica, message, now_ns, out);
        break;
    case MESSAGE_FACTORS:
        replica_on_factors(replica, message, now_ns, out);
        break;
    case MESSAGE_SHARD_AT:
        replica_on_shard_at(replica, &message->shard_at, now_ns, out);
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
    case MESSAGE_SET_BYTES:
        replica_on_set_bytes(replica, message, now_ns, out);
        break;
    case MESSAGE_VERDICT:
        replica_on_verdict(replica, &message->verdict, now_ns, out);
        break;
    case MESSAGE_REFUSED:
        log_error("the coordinator refuses this replica: %s", message->refused.reason);
        break;
    case MESSAGE_BYE: /* the I/O shell ends the process */
        break;
    default:
        log_warning("the coordinator sent %s, which is not for a replica",
                    message_name(message->type));
    }
}

/* What holds between any two messages. */
static void check_state(const struct replica *replica) {
    const struct evaluation *evaluation = &replica->evaluation;
    assert(!replica->coordinator || replica->run);
    assert(!replica->ready || (replica->opened && replica->shard_count));
    assert(!replica->error || replica->failure);
    assert((replica->activity == ACTIVITY_GATHERING) == (replica->gathering != NULL));
    assert(!replica->abandoned || replica->activity != ACTIVITY_NONE);
    assert(!evaluation->running || evaluation->attempt == replica->attempt);
    assert(evaluation->running || (!evaluation->portion_count && !evaluation->accrual.count));
    assert(evaluation->fetch.plan != PLAN_NOTHING ? evaluation->fetched <= replica->shard_count
                                                  : !evaluation->fetched);
    assert(replica->flushes.free_count <= replica->flushes.made &&
           replica->flushes.made <= FLUSH_BUFFERS_MAX);
}

void replica_step(struct replica *replica, uint32_t from, const struct message *message,
                  int64_t now_ns, struct outbox *out) {
    int shard = shard_of_link(replica, from);
    check_state(replica);
    replica->now_ns = now_ns;
    if (message->type == MESSAGE_HELLO)
        replica_on_hello(replica, from, message, out);
    else if (shard >= 0)
        step_shard(replica, (uint32_t)shard, message, now_ns, out);
    else if (from == replica->coordinator &&
             (message->term == replica->term || mutant(NO_TERM_CHECK)))
        step_coordinator(replica, message, now_ns, out);
    else
        replica->counters.stale++;
    check_state(replica);
}
