/* The flushes of one evaluation and the verdicts on them: one verdict a flush id, the same
 * whenever it is asked for again, and which shards have confirmed the fold. */
#ifndef DML_COORDINATOR_DISPATCH_COMMIT_H
#define DML_COORDINATOR_DISPATCH_COMMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bounds.h"
#include "base/bytes.h"
#include "base/limits.h"
#include "wire/evaluation.h"

struct decision {
    struct flush_id id;
    bool accepted;
    uint32_t replica;                    /* index of the one that sent it */
    uint32_t unconfirmed;                /* shards whose FOLDED is still to come */
    uint64_t confirmed[SHARDS_MAX / 64]; /* bit set of shards */
};

struct decisions {
    struct decision *items;
    uint32_t count, capacity;
    struct flush_index index; /* into `items` */
    uint32_t unfolded;        /* accepted flushes that some shard has not confirmed */
    uint64_t folds;           /* accepted flushes */
    uint64_t fold_hash;       /* sum (mod 2⁶⁴) of their ids' hashes */
};

void decisions_init(struct decisions *verdicts);
void decisions_release(struct decisions *verdicts);

/* Forgets all: a new evaluation. */
void decisions_begin(struct decisions *verdicts);

/* The flush, or NULL if there is no verdict on it. Valid until the next decisions_add(). */
struct decision *decisions_find(const struct decisions *verdicts, const struct flush_id *id);

/* Records the verdict on a flush that has none. */
struct decision *decisions_add(struct decisions *verdicts, const struct flush_id *id,
                               uint32_t replica, bool accepted, uint32_t shards);

/* Shard `shard` has folded it. True if that was the last shard to confirm. */
bool decisions_confirm(struct decisions *verdicts, struct decision *verdict, uint32_t shard);

/* ---- in the journal ---- */

/* A verdict on a flush that was accepted, and what the flush added. As a journal entry, and back:
 * decoded lists point into the entry. */
struct commit_entry {
    struct flush_id flush;
    uint32_t replica;
    uint8_t exceeded;
    struct maxima maxima;
    struct run_list portions;
    struct blob totals; /* of the evaluation that the flush is of */
};
void commit_encode(const struct commit_entry *entry, struct bytes *out);
bool commit_decode(const void *data, size_t length, struct commit_entry *entry);

/* The next of a log, where each entry follows its length (u32), as `encoded`, which owns nothing.
 * False at the end, or if it is damaged. */
bool commit_next(struct cursor *log, struct bytes *encoded, struct commit_entry *entry);

#endif
