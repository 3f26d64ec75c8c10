/* The flushes of one evaluation and the verdicts on them: one verdict a flush id, the same
 * whenever it is asked for again, and which shards have confirmed the fold. */
#ifndef DML_COORDINATOR_FLUSHES_H
#define DML_COORDINATOR_FLUSHES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/limits.h"
#include "wire/message.h"

struct flush {
    struct flush_id id;
    bool accepted;
    uint32_t replica;                    /* index of the one that sent it */
    uint32_t unconfirmed;                /* shards whose FOLDED is still to come */
    uint64_t confirmed[SHARDS_MAX / 64]; /* bit set of shards */
};

struct flushes {
    struct flush *items;
    uint32_t count, capacity;
    uint32_t unfolded;  /* accepted flushes that some shard has not confirmed */
    uint64_t folds;     /* accepted flushes */
    uint64_t fold_hash; /* sum (mod 2⁶⁴) of their ids' hashes */
};

void flushes_init(struct flushes *flushes);
void flushes_release(struct flushes *flushes);

/* Forgets all: a new evaluation. */
void flushes_begin(struct flushes *flushes);

/* The flush, or NULL if there is no verdict on it. Valid until the next flushes_add(). */
struct flush *flushes_find(const struct flushes *flushes, const struct flush_id *id);

/* Records the verdict on a flush that has none. */
struct flush *flushes_add(struct flushes *flushes, const struct flush_id *id, uint32_t replica,
                          bool accepted, uint32_t shards);

/* Shard `shard` has folded it. True if that was the last shard to confirm. */
bool flushes_confirm(struct flushes *flushes, struct flush *flush, uint32_t shard);

#endif
