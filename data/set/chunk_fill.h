/* Fills chunks: columns renumbered and sorted, values as the set stores them. */
#ifndef DML_DATA_SET_CHUNK_FILL_H
#define DML_DATA_SET_CHUNK_FILL_H

#include <stdint.h>

#include "data/set/labels.h"
#include "data/set/plan.h"
#include "data/set/weights.h"

/* Memory of one thread. */
struct chunk_buffer {
    uint8_t *data; /* the chunk as stored; 64-byte aligned; owned */
    size_t capacity;
    struct bytes sorting; /* workspace: the values of some rows */
    struct bytes places;  /* workspace: where each row's next value goes */
    struct bytes tile;    /* workspace: a tile as stored */
    struct bytes made;    /* workspace: what a row has besides its text */
    struct bytes words;   /* workspace: the values of a row with words */
};

void chunk_buffer_init(struct chunk_buffer *buffer);
void chunk_buffer_release(struct chunk_buffer *buffer);

/* What rows are made from. */
struct chunk_source {
    const struct split *split;
    const struct columns *columns;
    const struct labels *labels;
    const struct row_weights *row_weights;
    const struct chunk_plan *plan;
};

/* Fills buffer->data, chunk->bytes of it, with the rows of `part` from chunk->first_row on. */
void chunk_fill(struct chunk_buffer *buffer, const struct chunk_source *source,
                const struct set_chunk *chunk, const struct plan_part *part);

/* How many values the rows of a chunk, which are of `part`, have in each strip of the plan. */
void chunk_count_strips(struct chunk_buffer *buffer, const struct chunk_source *source,
                        const struct set_chunk *chunk, const struct plan_part *part,
                        uint64_t *values);

/* Some consecutive chunks of training of a shuffled set, whose rows are all over the packs: they
 * are filled together, as the packs' blocks are walked over in order. */
struct chunk_window {
    uint32_t first, end;
    uint8_t *data; /* where a chunk of offset 0 would be; the window's chunks are zeroed */
};

/* The stages of filling a window: each is done for all blocks of the part, or all chunks of the
 * window, before the next; by many threads at once, as each takes other blocks or chunks. The first
 * two are for sparse rows alone. */
typedef void chunk_window_stage(struct chunk_buffer *buffer, const struct chunk_source *source,
                                const struct chunk_window *window, uint32_t item);
chunk_window_stage chunk_window_count; /* block: notes how many values each of its rows here has */
chunk_window_stage chunk_window_start; /* chunk: makes of that where its rows begin */
chunk_window_stage chunk_window_fill;  /* block: puts its rows that go here to their places */

#endif
