/* The rows of one side of a set, in the order of the packs, and walks over them. */
#ifndef DML_DATA_SET_ROW_WALK_H
#define DML_DATA_SET_ROW_WALK_H

#include <stdint.h>

#include "data/set/split.h"

/* A block of a pack that has rows of a side, and the number of its first one within the side. */
struct merge_block {
    uint64_t first_row;
    uint32_t pack, block;
};

/* The rows of one side. */
struct plan_part {
    enum row_side side;
    enum value_type type; /* the narrowest that holds all values exactly */
    uint64_t rows;
    uint64_t values;           /* in the text, of features that are columns */
    struct merge_block *block; /* owned */
    uint32_t blocks;
};

/* Walks over the rows of a side. */
struct row_walk {
    const struct split *split;
    const struct plan_part *part;
    uint32_t block; /* of the part */
    uint32_t pack;
    struct pack_rows rows;
    uint32_t row; /* within `rows` */
};

/* Stands at row `first` of the part. */
struct row_walk row_walk_from(const struct split *split, const struct plan_part *part,
                              uint64_t first);
void row_walk_next(struct row_walk *walk);

/* The number of the first row after block `block` of the part. */
static inline uint64_t plan_part_end(const struct plan_part *part, uint32_t block) {
    return block + 1 < part->blocks ? part->block[block + 1].first_row : part->rows;
}

#endif
