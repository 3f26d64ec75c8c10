#include "model/crosses.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* The part of a cross that a row has of a column is a feature; 0: none. */
struct cross_mapper {
    const struct model_layout *layout;
    uint32_t columns;
    bool *crossed;    /* of each column of the table */
    uint64_t *part;   /* of each column, in the row being read */
    uint64_t *rank;   /* room for one of each cross */
    uint64_t *missed; /* what it is at first: the feature of a missing cell */
    uint64_t **bin;   /* of each column with bins: their features; else NULL */

    /* Ids are hashes: of those that begin with bits b the first has rank start[b]. */
    uint32_t *start;
    unsigned shift;
};

static bool find_rank(const struct cross_mapper *mapper, uint64_t id, uint64_t *rank) {
    const uint64_t *ids = mapper->layout->feature_id;
    uint64_t end = mapper->start[(id >> mapper->shift) + 1];
    for (*rank = mapper->start[id >> mapper->shift]; *rank < end; ++*rank)
        if (ids[*rank] >= id)
            return ids[*rank] == id;
    return false;
}

static void use_column(struct cross_mapper *mapper, uint32_t column) {
    assert(column < mapper->columns);
    const struct table *table = mapper->layout->table;
    uint32_t edges = table->column[column].edges;
    if (mapper->crossed[column])
        return;
    mapper->crossed[column] = true;
    if (!edges)
        return;
    mapper->bin[column] = memory_new(edges + (size_t)1, sizeof(uint64_t));
    for (uint32_t bin = 0; bin <= edges; bin++)
        mapper->bin[column][bin] = table_bin_feature(column, bin);
}

struct cross_mapper *cross_mapper_new(const struct model *model) {
    const struct table *table = model->layout.table;
    if (!table || !table->crosses)
        return NULL;
    struct cross_mapper *mapper = memory_new(1, sizeof *mapper);
    mapper->layout = &model->layout;
    mapper->columns = table->columns;
    mapper->crossed = memory_new(table->columns, sizeof *mapper->crossed);
    mapper->part = memory_new(table->columns, sizeof *mapper->part);
    mapper->missed = memory_new(table->columns, sizeof *mapper->missed);
    mapper->bin = memory_new(table->columns, sizeof *mapper->bin);
    for (uint32_t k = 0; k < table->crosses; k++)
        for (uint32_t i = 0; i < table->cross[k].columns; i++)
            use_column(mapper, table->cross[k].column[i]);
    mapper->rank = memory_new(table->crosses, sizeof *mapper->rank);
    /* About one id for each beginning. */
    const uint64_t *id = mapper->layout->feature_id, features = mapper->layout->features;
    unsigned bits = 1;
    while (bits < 31 && (UINT64_C(1) << bits) < features)
        bits++;
    mapper->shift = 64 - bits;
    uint64_t beginnings = UINT64_C(1) << bits, rank = 0;
    mapper->start = memory_new(beginnings + 1, sizeof *mapper->start);
    for (uint64_t b = 0; b <= beginnings; b++) {
        while (rank < features && id[rank] >> mapper->shift < b)
            rank++;
        mapper->start[b] = (uint32_t)rank;
    }
    return mapper;
}

void cross_mapper_free(struct cross_mapper *mapper) {
    if (!mapper)
        return;
    for (uint32_t i = 0; i < mapper->columns; i++)
        free(mapper->bin[i]);
    free(mapper->bin);
    free(mapper->missed);
    free(mapper->rank);
    free(mapper->part);
    free(mapper->crossed);
    free(mapper->start);
    free(mapper);
}

void cross_mapper_miss(struct cross_mapper *mapper, uint32_t column) {
    assert(column < mapper->columns);
    mapper->missed[column] = table_feature(column, ROLE_MISSING, NULL, 0);
}

void cross_mapper_forget_missed(struct cross_mapper *mapper) {
    memset(mapper->missed, 0, mapper->columns * sizeof *mapper->missed);
}

void cross_mapper_begin(struct cross_mapper *mapper) {
    memcpy(mapper->part, mapper->missed, mapper->columns * sizeof *mapper->part);
}

void cross_mapper_see(struct cross_mapper *mapper, uint32_t column, uint64_t id) {
    if (column < mapper->columns && !mapper->missed[column])
        mapper->part[column] = id;
}

void cross_mapper_see_number(struct cross_mapper *mapper, uint32_t column, double value) {
    const uint64_t *bin = column < mapper->columns ? mapper->bin[column] : NULL;
    if (bin)
        cross_mapper_see(mapper, column,
                         bin[table_bin(&mapper->layout->table->column[column], value)]);
}

const uint64_t *cross_mapper_end(struct cross_mapper *mapper, uint32_t *count) {
    const struct table *table = mapper->layout->table;
    *count = 0;
    for (uint32_t k = 0; k < table->crosses; k++) {
        const struct table_cross *cross = &table->cross[k];
        uint64_t part[CROSS_COLUMNS_MAX];
        uint32_t known = 0;
        while (known < cross->columns && (part[known] = mapper->part[cross->column[known]]) != 0)
            known++;
        *count += known == cross->columns &&
                  find_rank(mapper, table_cross_feature(part, known), &mapper->rank[*count]);
    }
    return mapper->rank;
}
