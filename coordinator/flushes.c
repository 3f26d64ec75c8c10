#include "coordinator/flushes.h"

#include <stdlib.h>

#include "base/memory.h"

void flushes_init(struct flushes *flushes) {
    *flushes = (struct flushes){0};
}

void flushes_release(struct flushes *flushes) {
    free(flushes->items);
    flushes_init(flushes);
}

void flushes_begin(struct flushes *flushes) {
    flushes->count = 0;
    flushes->unfolded = 0;
    flushes->folds = 0;
    flushes->fold_hash = 0;
}

struct flush *flushes_find(const struct flushes *flushes, const struct flush_id *id) {
    /* From the end: what is asked for is recent as a rule. */
    for (uint32_t i = flushes->count; i-- > 0;)
        if (flush_id_equal(&flushes->items[i].id, id))
            return &flushes->items[i];
    return NULL;
}

struct flush *flushes_add(struct flushes *flushes, const struct flush_id *id, uint32_t replica,
                          bool accepted, uint32_t shards) {
    if (flushes->count == flushes->capacity) {
        flushes->capacity = 2 * flushes->capacity + 16;
        flushes->items = memory_resize(flushes->items, flushes->capacity, sizeof *flushes->items);
    }
    struct flush *flush = &flushes->items[flushes->count++];
    *flush = (struct flush){.id = *id, .replica = replica, .accepted = accepted};
    if (accepted) {
        flush->unconfirmed = shards;
        flushes->unfolded++;
        flushes->folds++;
        flushes->fold_hash += flush_id_hash(id);
    }
    return flush;
}

bool flushes_confirm(struct flushes *flushes, struct flush *flush, uint32_t shard) {
    uint64_t bit = UINT64_C(1) << (shard % 64);
    if (!flush->accepted || flush->confirmed[shard / 64] & bit)
        return false;
    flush->confirmed[shard / 64] |= bit;
    if (--flush->unconfirmed)
        return false;
    flushes->unfolded--;
    return true;
}
