/* What the offsets of a set's rows are like. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "data/set/offsets.h"
#include "numeric/exact.h"
#include "numeric/special.h"

/* Sums over training rows; exact, so that no order of rows matters. */
struct offset_sums {
    struct exact weight, mean, rate;
};

static bool some_offset(const struct split *split, uint32_t p, uint32_t b) {
    struct pack_rows rows = pack_rows(split->packs[p], b);
    for (uint32_t row = 0; rows.offset && row < rows.rows; row++)
        if (rows.offset[row] != 0 && split_side(split, p, b, row) != ROW_LEFT_OUT)
            return true;
    return false;
}

static bool any_offset(const struct split *split) {
    for (uint32_t p = 0; p < split->count; p++)
        for (uint32_t b = 0; split->packs[p]->facts->offset && b < split->packs[p]->facts->blocks;
             b++)
            if (some_offset(split, p, b))
                return true;
    return false;
}

static void find_range(struct row_offsets *offsets, const struct split *split, uint32_t p,
                       uint32_t b) {
    struct pack_rows rows = pack_rows(split->packs[p], b);
    for (uint32_t row = 0; row < rows.rows; row++) {
        if (split_side(split, p, b, row) != ROW_TRAINED)
            continue;
        double offset = row_offset_of(&rows, row);
        offsets->summary.least = fmin(offsets->summary.least, offset);
        offsets->summary.most = fmax(offsets->summary.most, offset);
    }
}

/* e^(offset − most) is at most 1, whatever the offsets are. */
static void add_block(const struct row_offsets *offsets, const struct split *split, uint32_t p,
                      uint32_t b, struct offset_sums *sums) {
    assert(p < split->trained && b < split->packs[p]->facts->blocks);
    struct pack_rows rows = pack_rows(split->packs[p], b);
    double *rate = memory_new(rows.rows, sizeof *rate);
    for (uint32_t row = 0; row < rows.rows; row++)
        rate[row] = row_offset_of(&rows, row) - offsets->summary.most;
    special_exp(rows.rows, rate, rate);
    for (uint32_t row = 0; row < rows.rows; row++) {
        double weight = rows.weight ? rows.weight[row] : 1;
        if (split_side(split, p, b, row) != ROW_TRAINED)
            continue;
        exact_add(&sums->weight, weight);
        exact_add(&sums->mean, weight * row_offset_of(&rows, row));
        exact_add(&sums->rate, weight * rate[row]);
    }
    free(rate);
}

void row_offsets_find(struct row_offsets *offsets, const struct split *split) {
    struct offset_sums sums = {0};
    *offsets = (struct row_offsets){.any = any_offset(split)};
    if (!offsets->any)
        return;
    offsets->summary = (struct offset_summary){.least = INFINITY, .most = -INFINITY};
    for (uint32_t p = 0; p < split->trained; p++)
        for (uint32_t b = 0; b < split->packs[p]->facts->blocks; b++)
            find_range(offsets, split, p, b);
    for (uint32_t p = 0; p < split->trained; p++)
        for (uint32_t b = 0; b < split->packs[p]->facts->blocks; b++)
            add_block(offsets, split, p, b, &sums);
    double weight = exact_value(&sums.weight), rate = exact_value(&sums.rate) / weight, log_rate;
    special_log(1, &log_rate, &rate);
    offsets->summary.mean = exact_value(&sums.mean) / weight;
    offsets->summary.log_mean_exp = offsets->summary.most + log_rate;
}

bool split_has_clusters(const struct split *split) {
    bool all = split->trained > 0;
    for (uint32_t p = 0; p < split->trained; p++)
        for (uint32_t b = 0; b < split->packs[p]->facts->blocks; b++)
            all &= split->packs[p]->block[b].clustered;
    return all;
}
