/* Flushes: one verdict for each, FOLD or DROP to the shards, and VERDICT to the replica when all
 * shards have folded. doc/PROTOCOL.md shows why this counts each chunk once. */
#include "coordinator/dispatch/commit.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/mutant.h"
#include "coordinator/dispatch/dispatch.h"

/* ---- the decisions of one evaluation ---- */

void decisions_init(struct decisions *verdicts) {
    *verdicts = (struct decisions){0};
}

void decisions_release(struct decisions *verdicts) {
    free(verdicts->items);
    flush_index_release(&verdicts->index);
    decisions_init(verdicts);
}

void decisions_begin(struct decisions *verdicts) {
    flush_index_clear(&verdicts->index);
    verdicts->count = 0;
    verdicts->unfolded = 0;
    verdicts->folds = 0;
    verdicts->fold_hash = 0;
}

struct decision *decisions_find(const struct decisions *verdicts, const struct flush_id *id) {
    uint32_t number;
    return flush_index_find(&verdicts->index, id, &number) ? &verdicts->items[number] : NULL;
}

struct decision *decisions_add(struct decisions *verdicts, const struct flush_id *id,
                               uint32_t replica, bool accepted, uint32_t shards) {
    MEMORY_ROOM(verdicts->items, verdicts->count, verdicts->capacity);
    flush_index_add(&verdicts->index, id, verdicts->count);
    struct decision *verdict = &verdicts->items[verdicts->count++];
    *verdict = (struct decision){.id = *id, .replica = replica, .accepted = accepted};
    if (accepted) {
        verdict->unconfirmed = shards;
        verdicts->unfolded++;
        verdicts->folds++;
        verdicts->fold_hash += flush_id_hash(id);
    }
    return verdict;
}

bool decisions_confirm(struct decisions *verdicts, struct decision *verdict, uint32_t shard) {
    uint64_t bit = UINT64_C(1) << (shard % 64);
    if (!verdict->accepted || verdict->confirmed[shard / 64] & bit)
        return false;
    verdict->confirmed[shard / 64] |= bit;
    if (--verdict->unconfirmed)
        return false;
    verdicts->unfolded--;
    return true;
}

/* ---- in the journal ---- */

/* Entries lie one behind the other in a log, and their runs are read in place. */
#define ENTRY_ALIGNMENT 4

void commit_encode(const struct commit_entry *entry, struct bytes *out) {
    size_t start = out->length;
    bytes_put_u32(out, entry->portions.length);
    bytes_put_u32(out, entry->totals.length);
    bytes_append(out, entry->portions.items, entry->portions.length * sizeof(struct run));
    flush_id_encode(&entry->flush, out);
    bytes_put_u32(out, entry->replica);
    maxima_encode(&entry->maxima, out);
    bytes_put_u8(out, entry->exceeded);
    bytes_append(out, entry->totals.data, entry->totals.length);
    while ((out->length - start) % ENTRY_ALIGNMENT)
        bytes_put_u8(out, 0);
}

bool commit_decode(const void *data, size_t length, struct commit_entry *entry) {
    struct cursor cursor = cursor_over(data, length);
    entry->portions.length = cursor_u32(&cursor);
    entry->totals.length = cursor_u32(&cursor);
    entry->portions.items = cursor_take(&cursor, entry->portions.length * sizeof(struct run));
    entry->flush = flush_id_decode(&cursor);
    entry->replica = cursor_u32(&cursor);
    entry->maxima = maxima_decode(&cursor);
    entry->exceeded = cursor_u8(&cursor);
    entry->totals.data = cursor_take(&cursor, entry->totals.length);
    return !cursor.failed && cursor_left(&cursor) < ENTRY_ALIGNMENT;
}

bool commit_next(struct cursor *log, struct bytes *encoded, struct commit_entry *entry) {
    if (cursor_left(log) == 0)
        return false;
    uint32_t length = cursor_u32(log);
    const void *data = cursor_take(log, length);
    *encoded = (struct bytes){.data = (void *)data, .length = length};
    return data && commit_decode(data, length, entry);
}
