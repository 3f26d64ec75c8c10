/* Sparse rows of which weights are listed, where a column has one weight and a row one margin. One
 * pass over their values finds all that second derivatives by the list need.
 *
 * Few values count: those in listed columns, and those whose weight is not 0, as the others add
 * nothing to a margin. With l1 these are mostly the same. A byte a column tells them, of
 * which more stay in the first cache than of the point. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "objective/parts.h"

/* Where more columns are listed, most values count, and only those of sampled rows are wanted. */
#define COLUMNS_A_LISTED 4

bool listed_values_fit(const struct objective_shape *shape, const struct objective_sample *sample,
                       bool dense, const struct objective_scratch *scratch) {
    return sample->list && shape->outputs == 1 && !dense && !scratch->scaled.columns &&
           sample->list->count < shape->features / COLUMNS_A_LISTED;
}

/* A batch has no more values than its chunk, and an intercept a row. */
void listed_values_prepare(const struct rows_most *rows, uint32_t features,
                           struct listed_values *found) {
    const size_t most = (size_t)rows->values + rows->count;
    if (!found->counts)
        found->counts = memory_new(features, sizeof *found->counts);
    if (most <= found->capacity)
        return;
    free(found->at);
    free(found->column);
    free(found->value);
    found->at = memory_new(most, sizeof *found->at);
    found->column = memory_new(most, sizeof *found->column);
    found->value = memory_new(most, sizeof *found->value);
    found->capacity = most;
}

void listed_values_free(struct listed_values *found) {
    free(found->counts);
    free(found->at);
    free(found->column);
    free(found->value);
}

/* ---- which columns count ---- */

void listed_values_begin(struct hessian_workspace *workspace, uint32_t features,
                         const double *parameters, uint64_t point) {
    struct listed_values *found = &workspace->listed;
    const struct weight_list *list = &workspace->list;
    uint8_t *counts = found->counts;
    assert(counts);
    if (point && found->point == point)
        return;
    for (uint32_t j = 0; j < features; j++)
        counts[j] = parameters[j] != 0;
    for (uint32_t i = 0; i < list->count; i++)
        counts[list->column[i]] = 1;
    found->point = point;
}

/* ---- the values of a batch ---- */

/* Where the values of a row are that count. Most do not: without a branch none is mistaken. */
static size_t find_values(const uint8_t *counts, const uint32_t *feature, size_t count,
                          uint32_t *at) {
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        at[found] = (uint32_t)i;
        found += counts[feature[i]];
    }
    return found;
}

/* The margin of a row, with the bits of sparse_margins(), and its values in listed columns. */
LANES_INLINE double take_row(enum value_type type, const struct rows *rows, size_t row,
                             struct hessian_workspace *workspace, const double *parameters,
                             size_t *end, double *size) {
    struct listed_values *found = &workspace->listed;
    size_t begin = rows->start[row], count = rows->start[row + 1] - begin;
    const uint32_t *feature = rows->feature + begin;
    size_t noted = find_values(found->counts, feature, count, found->at), next = *end;
    double margin[4] = {0};
    for (size_t i = 0; i < noted; i++) {
        uint32_t at = found->at[i], column = feature[at], place = workspace->place[column];
        double value = value_at(type, rows->value, begin + at);
        margin[at % 4] += value * parameters[column];
        double scaled = value * workspace->power[column];
        found->column[next] = place - 1;
        found->value[next] = scaled;
        *size += place ? fabs(scaled) : 0;
        next += place && scaled != 0;
    }
    *end = next;
    return (margin[0] + margin[1]) + (margin[2] + margin[3]);
}

LANES_INLINE void take_rows(enum value_type type, const struct row_batch *batch,
                            struct hessian_workspace *workspace, const double *parameters,
                            const double *bias, double intercept, double *margins) {
    struct listed_values *found = &workspace->listed;
    size_t end = 0;
    for (size_t i = 0; i < batch->count; i++) {
        double size = 0;
        found->begin[i] = end;
        margins[i] =
            take_row(type, batch->rows, batch->first + i, workspace, parameters, &end, &size);
        workspace->leverage[i] = size;
        if (!bias)
            continue;
        margins[i] += *bias;
        found->column[end] = workspace->list.count;
        found->value[end++] = intercept;
    }
    found->begin[batch->count] = end;
}

void listed_values_take(const struct objective_shape *shape, const struct row_batch *batch,
                        const double *parameters, struct objective_scratch *scratch) {
    struct hessian_workspace *workspace = scratch->workspace;
    const double *bias = shape->intercept ? parameters + scratch->bias.first : NULL;
    double intercept = workspace->power[shape->features];
    assert(workspace->listed.counts && workspace->columns == workspace->list.count + !!bias);
    const uint32_t *start = batch->rows->start + batch->first;
    assert((size_t)(start[batch->count] - start[0]) + batch->count <= workspace->listed.capacity);

#define TAKE(type) take_rows(type, batch, workspace, parameters, bias, intercept, scratch->margins)
    switch (batch->rows->type) {
    case VALUE_ONES:
        TAKE(VALUE_ONES);
        break;
    case VALUE_BYTE:
        TAKE(VALUE_BYTE);
        break;
    case VALUE_FLOAT:
        TAKE(VALUE_FLOAT);
        break;
    case VALUE_DOUBLE:
        TAKE(VALUE_DOUBLE);
        break;
    }
#undef TAKE
}
