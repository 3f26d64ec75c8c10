/* Fills chunks with their rows: columns renumbered and sorted, values as the set stores them. */
#ifndef DML_DATA_CHUNK_FILL_H
#define DML_DATA_CHUNK_FILL_H

#include "data/merge.h"

/* Memory of one thread. */
struct chunk_buffer {
    uint8_t *data; /* the chunk as stored; 64-byte aligned; owned */
    size_t capacity;
    struct bytes sorting; /* scratch: the values of some rows */
    struct bytes places;  /* scratch: where each row's next value goes */
};

void chunk_buffer_init(struct chunk_buffer *buffer);
void chunk_buffer_release(struct chunk_buffer *buffer);

/* What rows are made from. */
struct chunk_source {
    const struct split *split;
    const struct columns *columns;
    const struct labels *labels;
    const struct weighing *weighing;
    const struct chunk_plan *plan;
};

/* Fills buffer->data, chunk->bytes of it, with the rows of `part` from chunk->first_row on. */
void chunk_fill(struct chunk_buffer *buffer, const struct chunk_source *source,
                const struct set_chunk *chunk, const struct plan_part *part);

/* Some consecutive chunks of training of a shuffled set, whose rows are all over the packs: they
 * are filled together, as the packs' blocks are walked over in order. */
struct chunk_window {
    uint32_t first, end;
    uint8_t *data; /* where a chunk of offset 0 would be; the window's chunks are zeroed */
};

/* Each of these is done for all blocks of the part, or all chunks of the window, before the next;
 * by many threads at once, if each takes other blocks or chunks. The first two are for sparse rows
 * alone. */

/* Notes how many values the rows of a block have that go to the window. */
void chunk_window_count(const struct chunk_source *source, const struct chunk_window *window,
                        uint32_t block);

/* Makes of that where the rows of a chunk begin. */
void chunk_window_start(const struct chunk_source *source, const struct chunk_window *window,
                        uint32_t number);

/* Puts the rows of a block that go to the window to their places. */
void chunk_window_fill(struct chunk_buffer *buffer, const struct chunk_source *source,
                       const struct chunk_window *window, uint32_t block);

#endif
