/* How the rows of a set are stored, and where its chunks begin. */
#ifndef DML_DATA_SET_PLAN_H
#define DML_DATA_SET_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/random.h"
#include "data/set/columns.h"
#include "data/set/row_walk.h"
#include "data/set/set_file.h"

/* What rows have in the set's chunks beside label and values. */
struct chunk_extras {
    bool weighted, shifted, clustered;
};

struct chunk_plan {
    struct plan_part trained, held;
    bool dense;
    bool wide; /* columns have 64 bits until they are cut into strips */
    bool shuffled;
    uint32_t block_rows;     /* of a shuffled set: rows of its chunks of training; else 0 */
    uint64_t key;            /* of a shuffled set: of the permutation of training rows */
    uint64_t values;         /* of what is trained on, as stored */
    struct set_chunk *chunk; /* owned; offsets and checksums are not set. Those of `held` last */
    uint32_t chunks, held_chunks;
    uint32_t strip_columns, strips; /* 0: not in tiles */
    struct set_tile *tile; /* owned; by their numbers. tiles_place() sets all but checksums */
};

/* Finds centres first, if the options ask for it. Weights and offsets change neither where chunks
 * begin nor how many there are. ERROR_DATA if a chunk of a shuffled set would have more values than
 * can be numbered, or there would be too many tiles. */
int chunk_plan_make(struct chunk_plan *plan, const struct split *split, struct columns *columns,
                    const struct chunk_extras *extras, const struct set_options *options);
void chunk_plan_release(struct chunk_plan *plan);

/* Where the arrays of a chunk are while it is made: as in the set, except that the columns
 * of a wide set have 64 bits. */
struct set_chunk_layout chunk_plan_layout(const struct chunk_plan *plan,
                                          const struct set_chunk *chunk);

static inline uint32_t chunk_plan_trained(const struct chunk_plan *plan) {
    return plan->chunks - plan->held_chunks;
}

/* Where a shuffled set has training row `row`, as the packs count. */
static inline uint64_t chunk_plan_place(const struct chunk_plan *plan, uint64_t row) {
    return permutation_inverse(row, plan->trained.rows, plan->key);
}

/* How many values a row has as it is stored: of a dense one, a value for each column. */
uint64_t chunk_plan_values(const struct chunk_plan *plan, const struct columns *columns,
                           const struct split *split, uint32_t pack, const struct pack_rows *rows,
                           uint32_t row, struct bytes *workspace);

static inline bool chunk_plan_is_held(const struct chunk_plan *plan, uint32_t chunk) {
    return chunk >= chunk_plan_trained(plan);
}

#endif
