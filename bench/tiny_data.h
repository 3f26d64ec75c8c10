/* A data set of a few rows, for bench/efficiency.c: each chunk is one of them. */
#ifndef DML_BENCH_TINY_DATA_H
#define DML_BENCH_TINY_DATA_H

#include "data/set.h"
#include "objective/objective.h"

enum { TINY_FEATURES = 16, TINY_PATTERNS = 64 };

extern struct tiny {
    struct set_info info;
    struct objective_shape shape;
    struct rows row[TINY_PATTERNS];
} tiny;

void tiny_make(uint32_t chunks);

#endif
