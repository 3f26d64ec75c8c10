/* How the values of rows lie in the first columns of a set. */
#include <assert.h>

#include "base/error.h"
#include "data/set/statistics.h"

/* Chunks that are looked at: evenly spread, so that files in any order are alike. */
#define CHUNKS_LOOKED_AT 64

static double square(uint64_t count) {
    return (double)count * (double)count;
}

static void add_count(struct prefix_counts *counts, uint32_t prefix, uint64_t values) {
    counts->sum[prefix] += (double)values;
    counts->square[prefix] += square(values);
}

/* The columns of a sparse row rise, and the prefixes fall. */
static void add_sparse(struct prefix_counts *counts, const uint32_t *feature, uint64_t values) {
    uint64_t all = values;
    for (uint32_t i = 0; i < PREFIXES; i++) {
        while (values && feature[values - 1] >= counts->columns[i])
            values--;
        add_count(counts, i, values);
        if (i == 0)
            counts->rest_square += square(all - values);
    }
}

static void add_dense(struct prefix_counts *counts, uint32_t columns) {
    for (uint32_t i = 0; i < PREFIXES; i++)
        add_count(counts, i, counts->columns[i]);
    counts->rest_square += square(columns - counts->columns[0]);
}

static void add_row(struct prefix_counts *counts, const struct rows *rows, uint32_t row) {
    uint64_t first = rows->dense ? 0 : rows->start[row];
    uint64_t values = rows->dense ? rows->features : rows->start[row + 1] - first;
    counts->rows++;
    counts->all_sum += (double)values;
    counts->all_square += square(values);
    if (rows->dense)
        add_dense(counts, rows->features);
    else
        add_sparse(counts, rows->feature + first, values);
}

int prefix_counts_find(struct set *set, uint32_t columns, struct prefix_counts *counts) {
    uint32_t all = set_training_chunks(set_info(set));
    uint32_t looked_at = all < CHUNKS_LOOKED_AT ? all : CHUNKS_LOOKED_AT;
    assert(columns <= set_info(set)->features);
    *counts = (struct prefix_counts){0};
    for (uint32_t i = 0; i < PREFIXES; i++)
        counts->columns[i] = columns >> i;
    for (uint32_t i = 0; i < looked_at; i++) {
        struct rows rows;
        int code = set_chunk(set, (uint32_t)((uint64_t)all * i / looked_at), &rows);
        if (code)
            return code;
        for (uint32_t row = 0; row < rows.count; row++) {
            if (!rows.weight || rows.weight[row] != 0)
                add_row(counts, &rows, row);
        }
    }
    return 0;
}
