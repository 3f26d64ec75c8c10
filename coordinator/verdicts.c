#include "coordinator/verdicts.h"

#include <stdlib.h>

#include "base/memory.h"

void verdicts_init(struct verdicts *verdicts) {
    *verdicts = (struct verdicts){0};
}

void verdicts_release(struct verdicts *verdicts) {
    free(verdicts->items);
    flush_index_release(&verdicts->index);
    verdicts_init(verdicts);
}

void verdicts_begin(struct verdicts *verdicts) {
    flush_index_clear(&verdicts->index);
    verdicts->count = 0;
    verdicts->unfolded = 0;
    verdicts->folds = 0;
    verdicts->fold_hash = 0;
}

struct verdict *verdicts_find(const struct verdicts *verdicts, const struct flush_id *id) {
    uint32_t number;
    return flush_index_find(&verdicts->index, id, &number) ? &verdicts->items[number] : NULL;
}

struct verdict *verdicts_add(struct verdicts *verdicts, const struct flush_id *id, uint32_t replica,
                             bool accepted, uint32_t shards) {
    MEMORY_ROOM(verdicts->items, verdicts->count, verdicts->capacity);
    flush_index_add(&verdicts->index, id, verdicts->count);
    struct verdict *verdict = &verdicts->items[verdicts->count++];
    *verdict = (struct verdict){.id = *id, .replica = replica, .accepted = accepted};
    if (accepted) {
        verdict->unconfirmed = shards;
        verdicts->unfolded++;
        verdicts->folds++;
        verdicts->fold_hash += flush_id_hash(id);
    }
    return verdict;
}

bool verdicts_confirm(struct verdicts *verdicts, struct verdict *verdict, uint32_t shard) {
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

void verdict_encode(const struct verdict_entry *entry, struct bytes *out) {
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

bool verdict_decode(const void *data, size_t length, struct verdict_entry *entry) {
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

bool verdict_next(struct cursor *log, struct bytes *encoded, struct verdict_entry *entry) {
    if (cursor_left(log) == 0)
        return false;
    uint32_t length = cursor_u32(log);
    const void *data = cursor_take(log, length);
    *encoded = (struct bytes){.data = (void *)data, .length = length};
    return data && verdict_decode(data, length, entry);
}
