#include "model/preparation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"

struct missing {
    uint64_t id;   /* of the feature that says so */
    uint64_t rank; /* of the number among the model's features; NO_FEATURE: training had none */
    double mean;
};
#define NO_FEATURE UINT64_MAX

/* The rank of a feature in the model, or NO_FEATURE. */
static uint64_t rank_of(const struct model_layout *layout, uint64_t id) {
    uint64_t rank = rank_from(layout, 0, id);
    return rank < layout->features && layout->feature_id[rank] == id ? rank : NO_FEATURE;
}

static uint32_t columns_of(const struct model *model) {
    return model->layout.table ? model->layout.table->columns : 0;
}

/* Of a role that has no text. */
static uint64_t feature_of(const struct model *model, uint32_t column, enum feature_role role) {
    return table_feature(model->layout.table->ids, column, role, NULL, 0);
}

static int compare_missing(const void *a, const void *b) {
    const struct missing *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

static struct missing missing_of(const struct model *model, uint32_t column) {
    double mean = model->layout.table->column[column].mean;
    uint64_t rank = rank_of(&model->layout, feature_of(model, column, ROLE_NUMBER));
    return (struct missing){.id = feature_of(model, column, ROLE_MISSING),
                            .rank = isnan(mean) ? NO_FEATURE : rank,
                            .mean = mean};
}

/* Lists what may be missing in a row. */
static void list_missing(struct preparation *preparation) {
    const struct model *model = preparation->model;
    preparation->missing = memory_new(columns_of(model), sizeof *preparation->missing);
    for (uint32_t i = 0; i < columns_of(model); i++)
        if (model->layout.table->column[i].kind == COLUMN_NUMBER)
            preparation->missing[preparation->missing_count++] = missing_of(model, i);
    qsort(preparation->missing, preparation->missing_count, sizeof *preparation->missing,
          compare_missing);
}

/* Lists the features of the bins. */
static void list_bins(struct preparation *preparation) {
    const struct model *model = preparation->model;
    preparation->bins = memory_new(columns_of(model), sizeof *preparation->bins);
    for (uint32_t i = 0; i < columns_of(model); i++) {
        const struct table *table = model->layout.table;
        const struct table_column *column = &table->column[i];
        if (!column->edges)
            continue;
        preparation->bins[i] = memory_new(column->edges + (size_t)1, sizeof(uint64_t));
        for (uint32_t bin = 0; bin <= column->edges; bin++)
            preparation->bins[i][bin] =
                rank_of(&model->layout, table_bin_feature(table->ids, i, bin));
    }
}

void preparation_begin(struct preparation *preparation, const struct model *model) {
    *preparation = (struct preparation){.model = model};
    preparation->told = memory_new(columns_of(model), sizeof *preparation->told);
    list_missing(preparation);
    list_bins(preparation);
}

void preparation_end(struct preparation *preparation) {
    for (uint32_t i = 0; i < columns_of(preparation->model); i++)
        free(preparation->bins[i]);
    free(preparation->bins);
    free(preparation->missing);
    free(preparation->told);
    terms_release(&preparation->absent);
}

/* ---- terms ---- */

static void add_term(uint64_t rank, double value, struct terms *terms) {
    if (rank != NO_FEATURE)
        terms_add(terms, rank, value);
}

bool preparation_add_mean(const struct preparation *preparation, uint64_t id, struct terms *terms) {
    struct missing key = {.id = id};
    const struct missing *missing = bsearch(&key, preparation->missing, preparation->missing_count,
                                            sizeof key, compare_missing);
    if (missing)
        add_term(missing->rank, missing->mean, terms);
    return missing;
}

void preparation_add_bin(const struct preparation *preparation, uint64_t id, double value,
                         struct terms *terms) {
    const struct model *model = preparation->model;
    if (!id || id > columns_of(model) || !preparation->bins[id - 1])
        return;
    uint32_t bin = table_bin(&model->layout.table->column[id - 1], value);
    add_term(preparation->bins[id - 1][bin], 1, terms);
}

static int compare_ids(const void *a, const void *b) {
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

bool preparation_add_rare(const struct preparation *preparation, uint64_t id, struct terms *terms) {
    const struct model *model = preparation->model;
    for (uint32_t i = 0; i < columns_of(model); i++) {
        const struct table_column *column = &model->layout.table->column[i];
        if (!column->rares || !bsearch(&id, column->rare, column->rares, sizeof id, compare_ids))
            continue;
        uint64_t rare = feature_of(model, i, ROLE_RARE);
        add_term(rank_of(&model->layout, rare), 1, terms);
        return true;
    }
    return false;
}

/* ---- columns that the data lacks ---- */

/* Adds what a missing cell of the column adds to each row. */
static void note_absent(struct preparation *preparation, uint32_t column) {
    const struct model *model = preparation->model;
    uint64_t id = feature_of(model, column, ROLE_MISSING);
    preparation_add_mean(preparation, id, &preparation->absent);
    add_term(rank_of(&model->layout, id), 1, &preparation->absent);
}

int preparation_find_absent(struct preparation *preparation, const char *path,
                            const struct table *table, bool warns) {
    const struct table *own = preparation->model->layout.table;
    char name[COLUMN_TEXT];
    preparation->absent.count = 0;
    for (uint32_t i = 0; i < own->columns; i++) {
        const struct table_column *column = &own->column[i];
        const struct table_column *here = i < table->columns ? &table->column[i] : NULL;
        bool same_name =
            column->name && (!here || (here->name && !strcmp(column->name, here->name)));
        if (!table_uses(column) ||
            (here && here->kind == column->kind && (!column->name || !here->name || same_name)))
            continue;
        table_describe(own, i, name);
        if (!same_name)
            return error_set(ERROR_DATA,
                             "%s: %s is not what it was in the data that the model was trained on",
                             path, name);
        if (warns && !preparation->told[i])
            log_warning("%s: %s is not there as it was in the data that the model was trained on: "
                        "it counts as missing",
                        path, name);
        preparation->told[i] = true;
        note_absent(preparation, i);
    }
    return 0;
}

int preparation_check(struct preparation *preparation, const char *path,
                      const struct table *table) {
    return preparation_find_absent(preparation, path, table, true);
}
