#include "model/margins.h"

#include <assert.h>
#include <stdlib.h>

#include "base/memory.h"
#include "model/family.h"
#include "objective/block.h"

/* Margins and terms of a block: few enough to stay in the cache. */
#define MARGINS_MOST 65536
#define TERMS_MOST 65536

struct margins {
    const struct model *model;
    uint32_t rows, most;
    uint32_t start[MARGINS_ROWS_MAX + 1]; /* of each row's terms */
    struct terms terms;
    uint32_t *feature; /* the features of the terms, numbered as rows have them; or NULL */
    double *values;    /* most × outputs */
    double offset[MARGINS_ROWS_MAX];   /* of each row */
    struct objective_shape shape;      /* of a model that is stored as its vector */
    struct objective_scratch *scratch; /* NULL: the model is linear */
    double losses[MARGINS_ROWS_MAX];
    bool has_losses;
};

struct margins *margins_new(const struct model *model) {
    assert(model->layout.outputs > 0);
    struct margins *margins = memory_new(1, sizeof *margins);
    uint32_t outputs = model->layout.outputs, rows = MARGINS_MOST / outputs;
    margins->model = model;
    margins->most = rows > MARGINS_ROWS_MAX ? MARGINS_ROWS_MAX : rows ? rows : 1;
    margins->values = memory_new((size_t)margins->most * outputs, sizeof *margins->values);
    if (model->vector) {
        margins->shape = model_shape(&model->layout);
        margins->shape.network.precision = PRECISION_DOUBLE; /* whatever it was trained in */
        margins->scratch = objective_scratch_new(&margins->shape);
    }
    return margins;
}

void margins_free(struct margins *margins) {
    if (!margins)
        return;
    terms_release(&margins->terms);
    free(margins->feature);
    free(margins->values);
    objective_scratch_free(margins->scratch);
    free(margins);
}

struct terms *margins_terms(struct margins *margins) {
    return &margins->terms;
}

void margins_end_row(struct margins *margins, double offset) {
    assert(margins->rows < margins->most);
    margins->offset[margins->rows] = offset;
    margins->start[++margins->rows] = (uint32_t)margins->terms.count;
}

bool margins_full(const struct margins *margins) {
    return margins->rows == margins->most || margins->terms.count >= TERMS_MOST;
}

/* The margins of a row of a linear model: adds the terms in their order, the intercept last. */
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
    /* Where outputs share their weights, the margin of the first becomes that of all. */
    for (uint32_t k = model->bias ? model->layout.outputs : 0; k-- > 0;)
        values[k] = values[model->layout.shared ? 0 : k] + model->bias[k];
}

/* Sorts the terms of a row by their features; mostly they are in that order already. */
static void sort_row(struct terms *terms, uint32_t begin, uint32_t end) {
    for (uint32_t i = begin + 1; i < end; i++) {
        uint64_t feature = terms->feature[i];
        uint32_t at = i;
        double value = terms->value[i];
        for (; at > begin && terms->feature[at - 1] > feature; at--) {
            terms->feature[at] = terms->feature[at - 1];
            terms->value[at] = terms->value[at - 1];
        }
        terms->feature[at] = feature;
        terms->value[at] = value;
    }
}

/* The margins of models that are stored as a vector: networks and plug-ins. */
static int compute_by_objective(struct margins *margins, const double *labels) {
    assert(margins->scratch && margins->model->vector);
    for (uint32_t row = 0; row < margins->rows; row++)
        sort_row(&margins->terms, margins->start[row], margins->start[row + 1]);
    margins->feature =
        memory_resize(margins->feature, margins->terms.count, sizeof *margins->feature);
    for (size_t i = 0; i < margins->terms.count; i++)
        margins->feature[i] = (uint32_t)margins->terms.feature[i];
    const struct rows rows = {.count = margins->rows,
                              .features = objective_columns(&margins->shape),
                              .values = margins->terms.count,
                              .type = VALUE_DOUBLE,
                              .start = margins->start,
                              .feature = margins->feature,
                              .value = margins->terms.value,
                              .label = labels};
    margins->has_losses = labels && margins_take_labels(margins);
    int code = objective_margins(&margins->shape, &rows, margins->model->vector, margins->scratch,
                                 margins->values);
    return code || !margins->has_losses
               ? code
               : objective_losses(&margins->shape, &rows, margins->model->vector, margins->scratch,
                                  margins->losses);
}

bool margins_take_labels(const struct margins *margins) {
    return margins->scratch && objective_has_losses(&margins->shape);
}

/* No offset changes nothing, not even the sign of a zero. */
static void add_offsets(struct margins *margins, uint32_t outputs) {
    for (uint32_t row = 0; row < margins->rows; row++)
        for (uint32_t k = 0; margins->offset[row] != 0 && k < outputs; k++)
            margins->values[(size_t)row * outputs + k] += margins->offset[row];
}

int margins_compute(struct margins *margins, const double *labels, const double **values) {
    assert(margins->rows <= margins->most);
    uint32_t outputs = margins->model->layout.outputs;
    int code = margins->scratch && margins->rows ? compute_by_objective(margins, labels) : 0;
    for (uint32_t row = 0; row < margins->rows && margins->model->weight; row++)
        compute_linear(margins, row, margins->values + (size_t)row * outputs);
    if (!code)
        add_offsets(margins, outputs);
    margins->rows = 0;
    margins->terms.count = 0;
    *values = margins->values;
    return code;
}

const uint64_t *margins_row_terms(const struct margins *margins, uint32_t row,
                                  const double **values, size_t *count) {
    const uint32_t first = margins->start[row];
    assert(margins->rows == 0 && row < margins->most); /* no row has been added since */
    *values = margins->terms.value + first;
    *count = margins->start[row + 1] - first;
    return margins->terms.feature + first;
}

const double *margins_losses(const struct margins *margins) {
    return margins->has_losses ? margins->losses : NULL;
}
