/* A shard: owns one range of every vector, runs the coordinator's programs on it, and takes in
 * what replicas add to the gradient.
 *
 * A state machine: it opens no socket, reads no clock and no file. It is handed one message at a
 * time and appends its answers to an outbox. Links are numbers that the rim gives to connections;
 * who is at the other end the shard learns from HELLO and GREET. */
#ifndef DML_SHARD_SHARD_H
#define DML_SHARD_SHARD_H

#include <stdint.h>

#include "wire/message.h"
#include "wire/outbox.h"

struct shard; /* opaque */

/* What the process says about itself in WELCOME. Texts are not copied. */
struct shard_self {
    uint32_t pid;
    const char *host;
    const char *description; /* numeric_description() */
    uint64_t proof;          /* numeric_proof_vectors() */
};

/* Messages that were not acted on, by reason. */
struct shard_counters {
    uint64_t old_epoch;      /* of an older coordinator */
    uint64_t stale;          /* of another attempt or evaluation */
    uint64_t stranger;       /* from a link that may not say this */
    uint64_t stages_refused; /* malformed slices */
};

struct shard *shard_new(const struct shard_self *self);
void shard_free(struct shard *shard);

/* Takes one message from link `from`. Bulk in `out` points into the shard's registers and must be
 * sent before the next call. */
void shard_step(struct shard *shard, uint32_t from, const struct message *message, int64_t now_ns,
                struct outbox *out);

/* The link is gone. What it staged stays: a verdict may still accept it. */
void shard_peer_gone(struct shard *shard, uint32_t link);

const struct shard_counters *shard_counters(const struct shard *shard);

#endif
