/* A data set of a few patterns of rows, for bench/efficiency.c: each chunk, or tile, is one of
 * them.
 */
#ifndef DML_BENCH_TINY_DATA_H
#define DML_BENCH_TINY_DATA_H

#include "data/set/set.h"
#include "objective/shape.h"

enum { TINY_PATTERNS = 64 };

extern struct tiny {
    struct set_info info;
    struct objective_shape shape;
    uint32_t rows; /* of a chunk */
} tiny;

/* `strips` of `columns` columns each; with one strip the set is not in tiles. */
void tiny_make(uint32_t chunks, uint32_t rows_of_chunk, uint32_t strips, uint32_t columns);

/* What the rows of chunk `chunk` have in a strip. */
struct rows tiny_rows(uint32_t chunk, uint32_t strip);

#endif
