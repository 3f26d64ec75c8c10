#include "wire/flush_index.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define CAPACITY_LEAST 64u

void flush_index_release(struct flush_index *index) {
    free(index->slots);
    *index = (struct flush_index){0};
}

void flush_index_clear(struct flush_index *index) {
    if (index->count)
        memset(index->slots, 0, index->capacity * sizeof *index->slots);
    index->count = 0;
}

/* The slot that the flush is in, or would be. At least half of the slots are empty. */
static struct flush_slot *slot_of(const struct flush_index *index, const struct flush_id *id) {
    uint32_t mask = index->capacity - 1;
    uint32_t at = (uint32_t)flush_id_hash(id) & mask;
    while (index->slots[at].number && !flush_id_equal(&index->slots[at].id, id))
        at = (at + 1) & mask;
    return &index->slots[at];
}

static void grow(struct flush_index *index) {
    struct flush_index old = *index;
    index->capacity = old.capacity ? 2 * old.capacity : CAPACITY_LEAST;
    index->slots = memory_new(index->capacity, sizeof *index->slots);
    for (uint32_t i = 0; i < old.capacity; i++)
        if (old.slots[i].number)
            *slot_of(index, &old.slots[i].id) = old.slots[i];
    free(old.slots);
}

void flush_index_add(struct flush_index *index, const struct flush_id *id, uint32_t number) {
    if (2 * (index->count + 1) > index->capacity)
        grow(index);
    *slot_of(index, id) = (struct flush_slot){.id = *id, .number = number + 1};
    index->count++;
}

bool flush_index_find(const struct flush_index *index, const struct flush_id *id,
                      uint32_t *number) {
    if (!index->count)
        return false;
    const struct flush_slot *slot = slot_of(index, id);
    if (slot->number && number)
        *number = slot->number - 1;
    return slot->number != 0;
}
