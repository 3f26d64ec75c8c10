/* The offsets of the rows of a set, and whether rows have clusters. */
#ifndef DML_DATA_SET_OFFSETS_H
#define DML_DATA_SET_OFFSETS_H

#include <stdbool.h>

#include "data/set/set_file.h"
#include "data/set/split.h"

/* Those of all rows of the set: the offset of a row, with the logarithm of its exposure. */
struct row_offsets {
    bool any; /* some offset is not 0; else the rest is not used */
    struct offset_summary summary;
};

/* Looks at the rows that are trained on, and at those that are held out. */
void row_offsets_find(struct row_offsets *offsets, const struct split *split);

/* Whether rows that are trained on have clusters: all have, or none. */
bool split_has_clusters(const struct split *split);

static inline double row_offset_of(const struct pack_rows *rows, uint32_t row) {
    return rows->offset ? rows->offset[row] : 0;
}

#endif
