#include "coordinator/verdicts.h"

#include <stdlib.h>

#include "base/memory.h"

void verdicts_init(struct verdicts *verdicts) {
    *verdicts = (struct verdicts){0};
}

void verdicts_release(struct verdicts *verdicts) {
    free(verdicts->items);
    verdicts_init(verdicts);
}

void verdicts_begin(struct verdicts *verdicts) {
    verdicts->count = 0;
    verdicts->unfolded = 0;
    verdicts->folds = 0;
    verdicts->fold_hash = 0;
}

struct flush *verdicts_find(const struct verdicts *verdicts, const struct flush_id *id) {
    /* From the end: what is asked for is recent as a rule. */
    for (uint32_t i = verdicts->count; i-- > 0;)
        if (flush_id_equal(&verdicts->items[i].id, id))
            return &verdicts->items[i];
    return NULL;
}

struct flush *verdicts_add(struct verdicts *verdicts, const struct flush_id *id, uint32_t replica,
                           bool accepted, uint32_t shards) {
    if (verdicts->count == verdicts->capacity) {
        verdicts->capacity = 2 * verdicts->capacity + 16;
        verdicts->items =
            memory_resize(verdicts->items, verdicts->capacity, sizeof *verdicts->items);
    }
    struct flush *flush = &verdicts->items[verdicts->count++];
    *flush = (struct flush){.id = *id, .replica = replica, .accepted = accepted};
    if (accepted) {
        flush->unconfirmed = shards;
        verdicts->unfolded++;
        verdicts->folds++;
        verdicts->fold_hash += flush_id_hash(id);
    }
    return flush;
}

bool verdicts_confirm(struct verdicts *verdicts, struct flush *flush, uint32_t shard) {
    uint64_t bit = UINT64_C(1) << (shard % 64);
    if (!flush->accepted || flush->confirmed[shard / 64] & bit)
        return false;
    flush->confirmed[shard / 64] |= bit;
    if (--flush->unconfirmed)
        return false;
    verdicts->unfolded--;
    return true;
}
