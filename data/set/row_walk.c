/* Walks over the rows of one side of a set. */
#include "data/set/row_walk.h"

#include <assert.h>

static void enter_block(struct row_walk *walk) {
    const struct merge_block *block = &walk->part->block[walk->block];
    walk->pack = block->pack;
    walk->rows = pack_rows(walk->split->packs[block->pack], block->block);
    walk->row = 0;
}

/* Moves to the next row of the side; stays if the current row is one. After the last row `row` is
 * the end of the last block. */
static void find_row(struct row_walk *walk) {
    for (;;) {
        uint32_t block = walk->part->block[walk->block].block;
        while (walk->row < walk->rows.rows &&
               split_side(walk->split, walk->pack, block, walk->row) != walk->part->side)
            walk->row++;
        if (walk->row < walk->rows.rows || walk->block + 1 == walk->part->blocks)
            return;
        walk->block++;
        enter_block(walk);
    }
}

struct row_walk row_walk_from(const struct split *split, const struct plan_part *part,
                              uint64_t first) {
    uint32_t low = 0, high = part->blocks;
    assert(first < part->rows);
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (part->block[middle].first_row <= first)
            low = middle;
        else
            high = middle;
    }
    struct row_walk walk = {.split = split, .part = part, .block = low};
    enter_block(&walk);
    find_row(&walk);
    for (uint64_t row = part->block[low].first_row; row < first; row++)
        row_walk_next(&walk);
    return walk;
}

void row_walk_next(struct row_walk *walk) {
    walk->row++;
    find_row(walk);
}
