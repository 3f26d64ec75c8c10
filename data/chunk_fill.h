/* Fills a chunk with its rows: columns renumbered and sorted, values as the set stores them. */
#ifndef DML_DATA_CHUNK_FILL_H
#define DML_DATA_CHUNK_FILL_H

#include "data/merge.h"

/* Memory of one thread. */
struct chunk_buffer {
    uint8_t *data; /* the chunk as stored; 64-byte aligned; owned */
    size_t capacity;
    struct bytes sorting; /* scratch: the values of a chunk */
    struct bytes next;    /* scratch: where each row's next value goes */
};

void chunk_buffer_init(struct chunk_buffer *buffer);
void chunk_buffer_release(struct chunk_buffer *buffer);

/* Fills buffer->data, chunk->bytes of it, with rows of `part`. */
void chunk_fill(struct chunk_buffer *buffer, const struct set_chunk *chunk,
                const struct split *split, const struct plan_part *part, bool dense,
                const struct columns *columns, const struct labels *labels,
                const struct weighing *weighing);

#endif
