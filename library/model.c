/* Models: opening them, and what they are. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "library/calls.h"
#include "library/opened.h"
#include "model/response.h"

#ifndef PACKAGE_VERSION
#include "config.h"
#endif

const char *dml_version(void) {
    return PACKAGE_VERSION;
}

/* ---- columns ---- */

/* Whether rows have the column, and what it is to them. */
static bool find_kind(const struct table_column *column, enum dml_kind *kind) {
    switch (column->kind) {
    case COLUMN_NUMBER:
        *kind = DML_NUMBER;
        return !column->is_part;
    case COLUMN_CATEGORY:
        *kind = DML_CATEGORY;
        return !column->is_part;
    case COLUMN_WORDS:
        *kind = DML_TEXT;
        return true;
    case COLUMN_DATE:
        *kind = DML_DATE;
        return true;
    case COLUMN_OFFSET:
        *kind = DML_OFFSET;
        return true;
    case COLUMN_EXPOSURE:
        *kind = DML_EXPOSURE;
        return true;
    case COLUMN_LABEL:
    case COLUMN_SKIPPED:
    case COLUMN_WEIGHT:
    case COLUMN_CLUSTER:
        break;
    }
    return false;
}

/* ---- opening ---- */

static int open_model(const char *path, struct dml_model **result) {
    struct model *model;
    int code = model_open(path, &model);
    if (code)
        return code;
    struct dml_model *opened = memory_new(1, sizeof *opened);
    opened->holders = memory_new(1, sizeof *opened->holders);
    atomic_init(opened->holders, 1);
    opened->model = model;
    opened->objective = objective_find(model->layout.objective);
    const struct table *table = opened->model->layout.table;
    uint32_t columns = table ? table->columns : 0;
    opened->column = memory_new(columns, sizeof *opened->column);
    for (uint32_t i = 0; i < columns; i++) {
        struct opened_column *next = &opened->column[opened->columns];
        next->number = i;
        opened->columns += find_kind(&table->column[i], &next->kind);
    }
    opened->description = description_text(opened);
    *result = opened;
    return 0;
}

int dml_model_open(const char *path, struct dml_model **model) {
    *model = NULL;
    CALL(open_model(path, model));
}

const struct dml_model *opened_hold(const struct dml_model *model) {
    size_t before = atomic_fetch_add(model->holders, 1);
    assert(before > 0);
    return model;
}

void opened_let_go(const struct dml_model *model) {
    if (!model || atomic_fetch_sub(model->holders, 1) > 1)
        return;
    assert(atomic_load(model->holders) == 0);
    model_close(model->model);
    free(model->holders);
    free(model->column);
    free(model->description);
    free((void *)model);
}

void dml_model_close(struct dml_model *model) {
    opened_let_go(model);
}

/* ---- what it is ---- */

const char *dml_model_description(const struct dml_model *model) {
    return model->description;
}

int dml_model_format_version(const struct dml_model *model) {
    return (int)json_integer_value(json_object_get(model->model->details, "format_version"));
}

const char *dml_model_objective(const struct dml_model *model) {
    return model->model->layout.objective;
}

const char *dml_model_sha256(const struct dml_model *model) {
    return model->model->sha256;
}

size_t dml_model_margins(const struct dml_model *model) {
    return model->model->layout.outputs;
}

size_t dml_model_values(const struct dml_model *model) {
    return objective_predictions(model->objective, model->model->layout.outputs);
}

size_t dml_model_probabilities(const struct dml_model *model) {
    return model->objective->predict ? model->model->layout.classes : 0;
}

size_t dml_model_labels(const struct dml_model *model) {
    const struct model_layout *layout = &model->model->layout;
    return layout->separator ? layout->classes : layout->classes > 0;
}

size_t dml_model_classes(const struct dml_model *model) {
    return model->model->layout.classes;
}

const char *dml_model_class(const struct dml_model *model, size_t number) {
    const struct model_layout *layout = &model->model->layout;
    return number < layout->classes ? layout->class_names[number] : NULL;
}

double dml_model_threshold(const struct dml_model *model, size_t number) {
    const struct model_layout *layout = &model->model->layout;
    return number < layout->outputs ? response_threshold(model->objective, layout, (uint32_t)number)
                                    : (double)NAN;
}

size_t dml_model_columns(const struct dml_model *model) {
    return model->columns;
}

const char *dml_model_column_name(const struct dml_model *model, size_t number) {
    const struct table *table = model->model->layout.table;
    return number < model->columns ? table->column[model->column[number].number].name : NULL;
}

enum dml_kind dml_model_column_kind(const struct dml_model *model, size_t number) {
    return number < model->columns ? model->column[number].kind : DML_NUMBER;
}

size_t dml_model_features(const struct dml_model *model) {
    return model->model->layout.features;
}

const uint64_t *dml_model_feature_ids(const struct dml_model *model) {
    return model->model->layout.feature_id;
}
