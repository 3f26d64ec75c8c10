#include "model/summary_restate.h"

#include <stdlib.h>

#include "base/memory.h"

/* The column that a feature is a text or a bin of; COLUMN_NOWHERE if it is none. */
static uint32_t levels_of(const struct model_layout *layout, uint64_t feature) {
    uint64_t id = layout->feature_id[feature];
    uint32_t column = table_column_of(layout->table, id,
                                      layout->feature_names ? layout->feature_names[feature] : "");
    if (column >= layout->table->columns || id == column + UINT64_C(1))
        return COLUMN_NOWHERE; /* or the number itself */
    const struct table_column *of = &layout->table->column[column];
    return of->kind == COLUMN_CATEGORY || of->edges ? column : COLUMN_NOWHERE;
}

/* Moves what the aliased level of each column has, in row k of the weights, to the intercept. A
 * number in bins has no bin where it is missing, and a feature for that: it is a level, too. */
static void restate_levels(const struct model_layout *layout, const uint32_t *column,
                           const bool *aliased, double *weight, double *bias) {
    uint64_t features = layout->features;
    double *own = memory_new(layout->table->columns, sizeof *own);
    bool *moved = memory_new(layout->table->columns, sizeof *moved);
    for (uint64_t j = 0; j < features; j++)
        if (column[j] != COLUMN_NOWHERE && aliased[j] && !moved[column[j]]) {
            own[column[j]] = weight[j];
            moved[column[j]] = true;
        }
    for (uint32_t c = 0; c < layout->table->columns; c++)
        *bias += own[c];
    for (uint64_t j = 0; j < features; j++)
        if (column[j] != COLUMN_NOWHERE)
            weight[j] -= own[column[j]];
    free(own);
    free(moved);
}

/* Whether all parameters of an output are aliased. */
static bool is_reference(const struct model_layout *layout, const bool *aliased, uint32_t k) {
    uint64_t features = layout->features;
    bool all = !layout->intercept || aliased[layout->outputs * features + k];
    for (uint64_t j = 0; j < features && all; j++)
        all = aliased[k * features + j];
    return all;
}

/* From the parameters of each class those of the reference are taken away. */
static void restate_classes(const struct model_layout *layout, const bool *aliased,
                            double *estimate) {
    uint64_t features = layout->features, count = layout->outputs;
    uint32_t reference = 0;
    while (reference < count && !is_reference(layout, aliased, reference))
        reference++;
    if (reference == count)
        return;
    for (uint64_t j = 0; j <= features; j++) {
        bool bias = j == features;
        if (bias && !layout->intercept)
            break;
        double *first = estimate + (bias ? count * features : j);
        uint64_t step = bias ? 1 : features;
        double own = first[reference * step];
        for (uint64_t k = 0; k < count; k++)
            first[k * step] -= own;
    }
}

void summary_restate(const struct model_layout *layout, const bool *aliased, double *estimate) {
    uint32_t rows = model_rows(layout);
    uint64_t features = layout->features;
    const struct distribution *distribution = objective_find(layout->objective)->distribution;
    if (distribution == &distribution_multinomial)
        restate_classes(layout, aliased, estimate);
    if (!layout->table || !layout->intercept || layout->shared)
        return;
    uint32_t *column = memory_new(features, sizeof *column);
    for (uint64_t j = 0; j < features; j++)
        column[j] = levels_of(layout, j);
    for (uint32_t k = 0; k < rows; k++)
        restate_levels(layout, column, aliased + k * features, estimate + k * features,
                       estimate + rows * features + k);
    free(column);
}
