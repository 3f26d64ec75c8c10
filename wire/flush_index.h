/* Finds a flush by its id among those that the caller numbers: a hash table with open addresses.
 * With a thousand replicas an evaluation has thousands of flushes, and each is asked for a few
 * times. */
#ifndef DML_WIRE_FLUSH_INDEX_H
#define DML_WIRE_FLUSH_INDEX_H

#include "wire/message.h"

struct flush_slot {
    struct flush_id id;
    uint32_t number; /* + 1; 0: the slot is empty */
};

/* All 0 is an empty index. */
struct flush_index {
    struct flush_slot *slots;
    uint32_t capacity; /* a power of 2, or 0 */
    uint32_t count;
};

void flush_index_release(struct flush_index *index);
void flush_index_clear(struct flush_index *index);

/* Adds a flush that is not in it. */
void flush_index_add(struct flush_index *index, const struct flush_id *id, uint32_t number);

/* False if it is not in it. *number may be NULL. */
bool flush_index_find(const struct flush_index *index, const struct flush_id *id, uint32_t *number);

#endif
