/* The flushes of one evaluation and the verdicts on them: one verdict a flush id, the same
 * whenever it is asked for again, and which shards have confirmed the fold. */
#ifndef DML_COORDINATOR_DISPATCH_COMMIT_H
#define DML_COORDINATOR_DISPATCH_COMMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bounds.h"
#include "base/bytes.h"
#include "base/limits.h"
#include "wire/flush_index.h"

struct verdict {
    struct flush_id id;
    bool accepted;
    uint32_t replica;                    /* index of the one that sent it */
    uint32_t unconfirmed;                /* shards whose FOLDED is still to come */
    uint64_t confirmed[SHARDS_MAX / 64]; /* bit set of shards */
};

struct verdicts {
    struct verdict *items;
    uint32_t count, capacity;
    struct flush_index index; /* into `items` */
    uint32_t unfolded;        /* accepted flushes that some shard has not confirmed */
    uint64_t folds;           /* accepted flushes */
    uint64_t fold_hash;       /* sum (mod 2⁶⁴) of their ids' hashes */
};

void verdicts_init(struct verdicts *verdicts);
void verdicts_release(struct verdicts *verdicts);

/* Forgets all: a new evaluation. */
void verdicts_begin(struct verdicts *verdicts);

/* The flush, or NULL if there is no verdict on it. Valid until the next verdicts_add(). */
struct verdict *verdicts_find(const struct verdicts *verdicts, const struct flush_id *id);

/* Records the verdict on a flush that has none. */
struct verdict *verdicts_add(struct verdicts *verdicts, const struct flush_id *id, uint32_t replica,
                             bool accepted, uint32_t shards);

/* Shard `shard` has folded it. True if that was the last shard to confirm. */
bool verdicts_confirm(struct verdicts *verdicts, struct verdict *verdict, uint32_t shard);

/* ---- in the journal ---- */

/* A verdict on a flush that was accepted, and what the flush added. As a journal entry, and back:
 * decoded lists point into the entry. */
struct verdict_entry {
    struct flush_id flush;
    uint32_t replica;
    uint8_t exceeded;
    struct maxima maxima;
    struct run_list portions;
    struct blob totals; /* of the evaluation that the flush is of */
};
void verdict_encode(const struct verdict_entry *entry, struct bytes *out);
bool verdict_decode(const void *data, size_t length, struct verdict_entry *entry);

/* The next of a log, where each entry follows its length (u32), as `encoded`, which owns nothing.
 * False at the end, or if it is damaged. */
bool verdict_next(struct cursor *log, struct bytes *encoded, struct verdict_entry *entry);

#endif
