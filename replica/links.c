/* A replica's links to the shards: where they are, who answers there, and what is tried again. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/mutant.h"
#include "replica/state.h"
#include "wire/address.h"

enum { TRIES_MAX = 20 };
#define RETRY_NS (500 * NS_PER_MS)

static void forget_address(struct shard_link *shard) {
    free(shard->address);
    free(shard->local);
    free(shard->local_address);
}

void replica_forget_shards(struct replica *replica) {
    for (uint32_t i = 0; i < replica->shard_count; i++) {
        if (replica->shards[i].link)
            replica_act(replica,
                        &(struct action){.kind = ACTION_CLOSE, .link = replica->shards[i].link});
        forget_address(&replica->shards[i]);
    }
    free(replica->shards);
    free(replica->ranges);
    free(replica->remote);
    replica->shards = NULL;
    replica->ranges = NULL;
    replica->remote = NULL;
    replica->shard_count = 0;
}

/* ---- connecting ---- */

void replica_greet(struct replica *replica, struct shard_link *shard, struct outbox *out) {
    shard->greeted = replica->ready = false;
    replica_send(replica, shard->link,
                 &(struct message){.type = MESSAGE_GREET,
                                   .greet = {.protocol = PROTOCOL_VERSION,
                                             .run = replica->run,
                                             .incarnation = replica->incarnation,
                                             .local = shard->local_address ? shard->local : ""}},
                 out);
}

void replica_connect_shard(struct replica *replica, uint32_t index) {
    struct shard_link *shard = &replica->shards[index];
    assert(index < replica->shard_count && shard->address && !shard->link);
    const char *address = shard->local_address ? shard->local_address : shard->address;
    replica->remote[index] = !address_is_unix(address);
    shard->connecting = true;
    replica_act(replica,
                &(struct action){.kind = ACTION_CONNECT, .shard = index, .address = address});
}

/* What a host of the same name lets nobody reach is asked for as on another host. */
static void give_local_up(struct shard_link *shard) {
    free(shard->local_address);
    shard->local_address = NULL;
}

/* Whether the replica is connected or connecting to this shard already. */
static bool is_there(const struct replica *replica, const struct message_shard_at *message) {
    const struct shard_link *shard = &replica->shards[message->index];
    const struct range *range = &replica->ranges[message->index];
    return (shard->link || shard->connecting) && shard->incarnation == message->incarnation &&
           !strcmp(shard->address, message->address) && !strcmp(shard->local, message->local) &&
           range->first == message->first && range->count == message->count;
}

/* What is known of a shard stays if it is the same incarnation, whose link is down now: its part of
 * the trial point must not be fetched again, over what threads compute with. Another incarnation
 * has begun no evaluation of this attempt. */
static void move_shard(struct replica *replica, const struct message_shard_at *message) {
    struct shard_link *shard = &replica->shards[message->index];
    struct range *range = &replica->ranges[message->index];
    bool same = shard->incarnation == message->incarnation && range->first == message->first &&
                range->count == message->count;
    bool fetched = replica->evaluation.fetch.plan != PLAN_NOTHING && shard->fetched;
    bool met = same && shard->met;
    if (fetched && !same)
        replica_abandon(replica);
    if (shard->link)
        replica_act(replica, &(struct action){.kind = ACTION_CLOSE, .link = shard->link});
    forget_address(shard);
    *shard = (struct shard_link){
        .incarnation = message->incarnation,
        .address = memory_copy_string(message->address),
        .local = memory_copy_string(message->local),
        .local_address = *message->local ? local_address(message->local) : NULL,
        .met = met,
        .fetched = fetched && same,
    };
    *range = (struct range){message->first, message->count};
    replica_connect_shard(replica, message->index);
}

void replica_on_shard_at(struct replica *replica, const struct message_shard_at *message,
                         int64_t now_ns, struct outbox *out) {
    if (message->attempt != replica->attempt || message->index >= replica->shard_count) {
        replica->counters.stale++;
        return;
    }
    uint64_t n = layout_parameters(&replica->setup.layout);
    if (message->first > n || message->count > n - message->first) {
        replica_fail(replica, ERROR_INTERNAL, "the coordinator gave a shard a range beyond the end",
                     out);
        return;
    }
    if (!is_there(replica, message))
        move_shard(replica, message);
    replica->shards[message->index].placed = true;
    replica->ready = false;
    replica_check_ready(replica, now_ns, out);
}

void replica_shard_missing(struct replica *replica, uint32_t index, int error, const char *reason,
                           struct outbox *out) {
    struct shard_link *shard = &replica->shards[index];
    assert(index < replica->shard_count);
    if (!shard->link && !mutant(LOCAL_KEPT))
        give_local_up(shard);
    char *text = memory_format("shard %u at %s: %s", index, shard->address, reason);
    if (shard->met || ++shard->tries < TRIES_MAX) {
        log_debug("%s", text);
        shard->retry_ns = replica->now_ns + RETRY_NS;
    } else {
        replica_fail(replica, error, text, out);
    }
    free(text);
}

void replica_retry_shards(struct replica *replica, struct outbox *out) {
    for (uint32_t i = 0; i < replica->shard_count; i++) {
        struct shard_link *shard = &replica->shards[i];
        if (!shard->retry_ns || replica->now_ns < shard->retry_ns)
            continue;
        shard->retry_ns = 0;
        if (shard->link)
            replica_greet(replica, shard, out);
        else
            replica_connect_shard(replica, i);
    }
}

int64_t replica_retry_ns(const struct replica *replica) {
    int64_t first_ns = INT64_MAX;
    for (uint32_t i = 0; i < replica->shard_count; i++)
        if (replica->shards[i].retry_ns && replica->shards[i].retry_ns < first_ns)
            first_ns = replica->shards[i].retry_ns;
    return first_ns;
}

void replica_connected(struct replica *replica, uint32_t index, uint32_t link, int error,
                       const char *reason, struct outbox *out) {
    struct shard_link *shard = index < replica->shard_count ? &replica->shards[index] : NULL;
    if (!shard || !shard->connecting) { /* a new set-up has come meanwhile */
        if (!error)
            replica_act(replica, &(struct action){.kind = ACTION_CLOSE, .link = link});
        return;
    }
    shard->connecting = false;
    shard->link = error ? 0 : link;
    shard->answered = (struct wanted_key){0};
    if (error && shard->local_address) {
        log_debug("shard %u is not reached within this host: %s", index, reason);
        give_local_up(shard);
        replica_connect_shard(replica, index);
    } else if (error) {
        replica_shard_missing(replica, index, error, reason, out);
    } else {
        replica_greet(replica, shard, out);
    }
}

void replica_on_greeted(struct replica *replica, uint32_t index,
                        const struct message_greeted *message, int64_t now_ns, struct outbox *out) {
    struct shard_link *shard = &replica->shards[index];
    if (message->index != index || message->incarnation != shard->incarnation) {
        replica_shard_missing(replica, index, ERROR_UNAVAILABLE, "another shard answers there",
                              out);
        return;
    }
    bool again = shard->met;
    assert(shard->link && !shard->connecting);
    shard->greeted = shard->met = true;
    shard->tries = 0;
    shard->retry_ns = 0;
    if (again)
        replica_resume_shard(replica, index, out);
    replica_check_ready(replica, now_ns, out);
}
