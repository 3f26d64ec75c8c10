/* Which rows of the packs a set is made of: its sides. They depend on the rows alone, and not on
 * how the rows are spread over packs. */
#ifndef DML_DATA_SET_SPLIT_H
#define DML_DATA_SET_SPLIT_H

#include <stdbool.h>
#include <stdint.h>

#include "data/pack/pack_file.h"
#include "data/set/set.h"

enum row_side {
    ROW_TRAINED,
    ROW_HELD,     /* kept for chunks of the holdout */
    ROW_LEFT_OUT, /* of the set: of another fold, or of weight 0 */
};

/* The packs of a merge (packs of the holdout come last), and the side of each row. */
struct split {
    struct pack **packs; /* the array is owned */
    uint32_t count;
    uint32_t trained;    /* the first packs, without those of the holdout */
    uint8_t **side;      /* for each pack: enum row_side of each row; NULL: all are trained on */
    uint64_t held_out;   /* rows, by their hash */
    uint64_t of_fold;    /* rows that are left out for their fold */
    uint64_t weightless; /* rows that are left out for their weight of 0 */
    /* Whether some row that is not left out has another weight than 1; and some that is trained on.
     */
    bool weighted, trained_weighted;
};

int split_make(struct split *split, struct pack *const *packs, uint32_t count,
               const struct set_options *options);
void split_release(struct split *split);

/* How many rows of a pack are trained on. */
uint64_t split_count_trained(const struct split *split, uint32_t p);

/* The side of row `row` of a block. */
static inline enum row_side split_side(const struct split *split, uint32_t pack, uint32_t block,
                                       uint32_t row) {
    const uint8_t *side = split->side[pack];
    return side ? side[split->packs[pack]->block[block].first_row + row] : ROW_TRAINED;
}

#endif
