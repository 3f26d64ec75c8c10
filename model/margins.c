#include "model/margins.h"

#include <stdlib.h>

#include "base/memory.h"

/* A block has few enough of them to stay in the cache. */
#define MARGINS_MOST 65536
#define TERMS_MOST 65536

struct margins {
    const struct model *model;
    uint32_t rows, most;
    uint32_t start[MARGINS_ROWS_MAX + 1]; /* of each row's terms */
    struct terms terms;
    double *values; /* most × outputs */
};

struct margins *margins_new(const struct model *model) {
    struct margins *margins = memory_new(1, sizeof *margins);
    uint32_t outputs = model->layout.outputs, rows = MARGINS_MOST / outputs;
    margins->model = model;
    margins->most = rows > MARGINS_ROWS_MAX ? MARGINS_ROWS_MAX : rows ? rows : 1;
    margins->values = memory_new((size_t)margins->most * outputs, sizeof *margins->values);
    return margins;
}

void margins_free(struct margins *margins) {
    if (!margins)
        return;
    terms_release(&margins->terms);
    free(margins->values);
    free(margins);
}

struct terms *margins_terms(struct margins *margins) {
    return &margins->terms;
}

void margins_end_row(struct margins *margins) {
    margins->start[++margins->rows] = (uint32_t)margins->terms.count;
}

bool margins_full(const struct margins *margins) {
    return margins->rows == margins->most || margins->terms.count >= TERMS_MOST;
}

/* Where outputs share their weights, the margin of the first becomes that of all. */
static void add_intercepts(const struct model *model, double *values) {
    for (uint32_t k = model->bias ? model->layout.outputs : 0; k-- > 0;)
        values[k] = values[model->layout.shared ? 0 : k] + model->bias[k];
}

/* Adds the terms in their order, the intercept last. */
static void compute_linear(const struct margins *margins, uint32_t row, double *values) {
    const struct model *model = margins->model;
    uint64_t features = model->layout.features;
    uint32_t weights = model_rows(&model->layout);
    for (uint32_t k = 0; k < weights; k++)
        values[k] = 0;
    for (uint32_t i = margins->start[row]; i < margins->start[row + 1]; i++) {
        const double *weight = model->weight + margins->terms.feature[i];
        for (uint32_t k = 0; k < weights; k++)
            values[k] += weight[k * features] * margins->terms.value[i];
    }
    add_intercepts(model, values);
}

const double *margins_compute(struct margins *margins) {
    for (uint32_t row = 0; row < margins->rows && margins->model->weight; row++)
        compute_linear(margins, row,
                       margins->values + (size_t)row * margins->model->layout.outputs);
    margins->rows = 0;
    margins->terms.count = 0;
    return margins->values;
}
