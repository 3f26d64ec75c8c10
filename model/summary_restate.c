#include "model/summary_restate.h"

#include <stdlib.h>

#include "base/memory.h"
#include "model/summary.h"

uint32_t summary_column_of(const struct model_layout *layout, uint64_t feature) {
    uint64_t id = layout->feature_id[feature];
    uint32_t column = table_column_of(layout->table, id,
                                      layout->feature_names ? layout->feature_names[feature] : "");
    if (column >= layout->table->columns || id == column + UINT64_C(1))
        return COLUMN_NOWHERE; /* or the number itself */
    const struct table_column *of = &layout->table->column[column];
    return of->kind == COLUMN_CATEGORY || of->edges ? column : COLUMN_NOWHERE;
}

/* Takes what the aliased level of each column has, in a row of the weights, from all of its levels;
 * answers the sum, which goes to the intercepts. A number in bins has no bin where it is missing,
 * and a feature for that: it is a level, too. */
static double restate_levels(const struct model_layout *layout, const uint32_t *column,
                             const bool *aliased, double *weight) {
    uint64_t features = layout->features;
    double *own = memory_new(layout->table->columns, sizeof *own);
    bool *moved = memory_new(layout->table->columns, sizeof *moved);
    double all = 0;
    for (uint64_t j = 0; j < features; j++)
        if (column[j] != COLUMN_NOWHERE && aliased[j] && !moved[column[j]]) {
            own[column[j]] = weight[j];
            moved[column[j]] = true;
        }
    for (uint32_t c = 0; c < layout->table->columns; c++)
        all += own[c];
    for (uint64_t j = 0; j < features; j++)
        if (column[j] != COLUMN_NOWHERE)
            weight[j] -= own[column[j]];
    free(own);
    free(moved);
    return all;
}

/* Whether all parameters of an output are aliased. */
static bool is_reference(const struct model_layout *layout, const bool *aliased, uint32_t k) {
    uint64_t features = layout->features;
    bool all = !layout->intercept || aliased[layout->outputs * features + k];
    for (uint64_t j = 0; j < features && all; j++)
        all = aliased[k * features + j];
    return all;
}

/* With a penalty on the weights one bias alone follows from the others. */
static void restate_biases(const struct model_layout *layout, const bool *aliased,
                           double *estimate) {
    uint64_t count = layout->outputs, first = count * layout->features, k = 0;
    while (layout->intercept && k < count && !aliased[first + k])
        k++;
    double own = layout->intercept && k < count ? estimate[first + k] : 0;
    for (k = 0; k < count && own != 0; k++)
        estimate[first + k] -= own;
}

/* From the parameters of each class those of the reference are taken away. */
static void restate_classes(const struct model_layout *layout, const bool *aliased,
                            double *estimate) {
    uint64_t features = layout->features, count = layout->outputs;
    uint32_t reference = 0;
    while (reference < count && !is_reference(layout, aliased, reference))
        reference++;
    if (reference == count) {
        restate_biases(layout, aliased, estimate);
        return;
    }
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
    if (!layout->table || !layout->intercept)
        return;
    uint32_t *column = memory_new(features, sizeof *column);
    for (uint64_t j = 0; j < features; j++)
        column[j] = summary_column_of(layout, j);
    for (uint32_t k = 0; k < rows; k++) {
        double moved =
            restate_levels(layout, column, aliased + k * features, estimate + k * features);
        for (uint32_t i = layout->shared ? 0 : k; i < (layout->shared ? layout->outputs : k + 1);
             i++)
            estimate[rows * features + i] += moved;
    }
    free(column);
}

void summary_references(const struct model_layout *layout, const uint64_t *nonzero, uint64_t rows,
                        bool *reference) {
    uint32_t columns = layout->table->columns;
    uint64_t *covered = memory_new(columns, sizeof *covered);
    uint64_t *last = memory_new(columns, sizeof *last);
    for (uint64_t j = 0; j < layout->features; j++) {
        uint32_t column = summary_column_of(layout, j);
        if (column == COLUMN_NOWHERE)
            continue;
        covered[column] += nonzero[j];
        last[column] = j;
    }
    for (uint32_t c = 0; c < columns; c++)
        if (covered[c] == rows)
            reference[last[c]] = true;
    free(covered);
    free(last);
}
