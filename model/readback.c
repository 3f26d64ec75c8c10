#include "model/readback.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "model/family.h"
#include "model/margins.h"
#include "model/terms.h"

#define BY_FEATURE_MOST (UINT64_C(1) << 20) /* parameters of features that are noted, at most */
#define OTHERS_MOST UINT64_C(4096)          /* of each other tensor */

/* A parameter of the run: an element of a tensor, by row and column in it; of a tensor by feature
 * the row is that of the feature, as the run numbers them. */
struct noted {
    uint32_t tensor;
    uint64_t row, column;
    uint64_t element; /* of the whole vector */
    double value;     /* NaN until it has come */
};

struct readback {
    const struct model_layout *layout;
    const struct sample *sample;
    struct layout vector;
    uint32_t by_feature; /* bit t: rows of tensor t are features */
    uint64_t *feature;   /* that rows have, as the run numbers them; rising */
    size_t features;
    struct noted *noted; /* by rising element */
    size_t count, capacity;
};

/* ---- what is noted of the run ---- */

static int compare_ids(const void *a, const void *b) {
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* The features of the rows, in the run's numbers: those of the set's columns, but a plug-in's are
 * ranks by id. */
static void list_features(struct readback *readback) {
    const struct model_layout *layout = readback->layout;
    const struct sample *sample = readback->sample;
    uint64_t count = sample->count ? sample->stored_start[sample->count] : 0;
    uint64_t *feature = memory_new(count, sizeof *feature);
    size_t differ = 0;
    bool by_rank = model_family(layout)->family->own_tensors;
    for (uint64_t i = 0; i < count; i++)
        feature[i] = by_rank ? rank_from(layout, 0, sample->column_id[i]) : sample->column[i];
    qsort(feature, count, sizeof *feature, compare_ids);
    for (uint64_t i = 0; i < count; i++)
        if (!i || feature[i] != feature[i - 1])
            feature[differ++] = feature[i];
    readback->feature = feature;
    readback->features = differ;
}

struct readback *readback_new(const struct model_layout *layout, const struct sample *sample) {
    struct readback *readback = memory_new(1, sizeof *readback);
    readback->layout = layout;
    readback->sample = sample;
    readback->vector = model_tensors(layout);
    readback->by_feature = model_by_feature(layout);
    list_features(readback);
    for (uint32_t tensor = 0; tensor < readback->vector.count; tensor++) {
        /* Elements rise: tensors lie one after the other, and features rise. */
        const struct layout_tensor *of = &readback->vector.tensor[tensor];
        bool by_feature = readback->by_feature >> tensor & 1;
        uint64_t most =
            (by_feature ? BY_FEATURE_MOST : OTHERS_MOST) / (of->columns ? of->columns : 1);
        uint64_t rows = by_feature ? readback->features : of->rows;
        for (uint64_t i = 0; i < rows && i <= most; i++) {
            /* Notes the parameters of a row of a tensor. */
            const uint64_t row = by_feature ? readback->feature[i] : i;
            assert(row < of->rows);
            for (uint64_t column = 0; column < of->columns; column++) {
                MEMORY_ROOM(readback->noted, readback->count, readback->capacity);
                readback->noted[readback->count++] =
                    (struct noted){.tensor = tensor,
                                   .row = row,
                                   .column = column,
                                   .element = of->first + row * of->columns + column,
                                   .value = NAN};
            }
        }
    }
    return readback;
}

void readback_free(struct readback *readback) {
    if (!readback)
        return;
    free(readback->feature);
    free(readback->noted);
    free(readback);
}

/* The place of the first noted parameter that is not before `element`. */
static size_t find_noted(const struct readback *readback, uint64_t element) {
    size_t low = 0, high = readback->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (readback->noted[middle].element < element)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void readback_slice(struct readback *readback, uint64_t first, uint64_t count,
                    const double *values) {
    assert(first + count <= layout_parameters(&readback->vector));
    for (size_t i = find_noted(readback, first);
         i < readback->count && readback->noted[i].element - first < count; i++)
        readback->noted[i].value = values[readback->noted[i].element - first];
}

/* ---- the parameters of the model ---- */

#define NAME_TEXT 160

/* "feature 7 (age)" */
static const char *name_of(uint64_t id, const char *name, char text[NAME_TEXT]) {
    snprintf(text, NAME_TEXT, "feature %llu%s%.100s%s", (unsigned long long)id,
             name && *name ? " (" : "", name ? name : "", name && *name ? ")" : "");
    return text;
}

/* Finds the element of the model's vector that is a noted parameter of the run; false if the model
 * lacks it. */
static bool find_element(const struct readback *readback, const struct model *model,
                         const struct layout *vector, const struct noted *noted,
                         uint64_t *element) {
    assert(noted->tensor < vector->count);
    const struct layout_tensor *of = &vector->tensor[noted->tensor];
    uint64_t row = noted->row;
    if (readback->by_feature >> noted->tensor & 1) {
        uint64_t id = readback->layout->feature_id[noted->row];
        row = rank_from(&model->layout, 0, id);
        if (row == model->layout.features || model->layout.feature_id[row] != id)
            return false;
    }
    *element = of->first + row * of->columns + noted->column;
    return row < of->rows && noted->column < of->columns;
}

static int refuse_parameter(const struct readback *readback, const struct noted *noted,
                            const char *found) {
    assert(noted->tensor < readback->vector.count);
    const struct model_layout *layout = readback->layout;
    const char *tensor = readback->vector.tensor[noted->tensor].name;
    char name[NAME_TEXT];
    if (!(readback->by_feature >> noted->tensor & 1))
        return error_set(ERROR_INTERNAL, "element %llu, %llu of `%s` is %.17g in the run, %s",
                         (unsigned long long)noted->row, (unsigned long long)noted->column, tensor,
                         noted->value, found);
    name_of(layout->feature_id[noted->row],
            layout->feature_names ? layout->feature_names[noted->row] : NULL, name);
    return error_set(ERROR_INTERNAL, "`%s` of %s is %.17g in the run, %s", tensor, name,
                     noted->value, found);
}

static int compare_parameters(const struct readback *readback, const struct model *model) {
    struct layout vector = model_tensors(&model->layout);
    if (vector.count != readback->vector.count)
        return error_set(ERROR_INTERNAL, "it has %u tensors, and the run had %u", vector.count,
                         readback->vector.count);
    for (size_t i = 0; i < readback->count; i++) {
        const struct noted *noted = &readback->noted[i];
        uint64_t element;
        char found[64];
        if (!find_element(readback, model, &vector, noted, &element))
            return refuse_parameter(readback, noted, "and not in the file");
        double value = model_parameter(model, &vector, element);
        if (value == noted->value)
            continue;
        snprintf(found, sizeof found, "and %.17g in the file", value);
        return refuse_parameter(readback, noted, found);
    }
    return 0;
}

/* ---- the rows ---- */

/* A feature by its original id, and its value in a row. */
struct stored_part {
    uint64_t id;
    double value;
    double centre; /* of a row of the set: what was taken off the value */
};

static int compare_parts(const void *a, const void *b) {
    const struct stored_part *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

/* The name of a feature of either side. */
static const char *name_of_id(const struct model_layout *model, uint64_t id, char text[NAME_TEXT]) {
    uint64_t rank = rank_from(model, 0, id);
    bool known = rank < model->features && model->feature_id[rank] == id && model->feature_names;
    return name_of(id, known ? model->feature_names[rank] : NULL, text);
}

static int compare_row(const struct model_layout *model, uint64_t row,
                       const struct stored_part *set, size_t in_set, const struct stored_part *file,
                       size_t in_file) {
    char name[NAME_TEXT];
    for (size_t i = 0, j = 0; i < in_set || j < in_file;) {
        bool here = i < in_set, there = j < in_file;
        bool same = here && there && set[i].id == file[j].id;
        bool only_set = here && (!there || set[i].id < file[j].id);
        bool of_set = same || only_set;
        double value = of_set ? set[i].value : 0, centre = of_set ? set[i].centre : 0;
        double scored = there && (same || !only_set) ? file[j].value : 0;
        i += of_set;
        j += same || !only_set;
        if (scored - centre == value)
            continue;
        return error_set(ERROR_INTERNAL, "%s of row %llu is %.17g in the run, and scored as %.17g",
                         name_of_id(model, of_set ? set[i - 1].id : file[j - 1].id, name),
                         (unsigned long long)row, value + centre, scored);
    }
    return 0;
}

static int check_sample_row(const struct readback *readback, const struct model *model,
                            uint32_t row, const struct terms *terms) {
    assert(row < readback->sample->count);
    uint64_t first = readback->sample->stored_start[row];
    size_t in_set = readback->sample->stored_start[row + 1] - first, in_file;
    const double *centre = readback->sample->centre;
    struct stored_part *set = memory_new(in_set, sizeof *set);
    for (size_t i = 0; i < in_set; i++)
        set[i] = (struct stored_part){readback->sample->column_id[first + i],
                                      readback->sample->stored[first + i],
                                      centre ? centre[first + i] : 0};
    qsort(set, in_set, sizeof *set, compare_parts);
    struct stored_part *file = memory_new(terms->count, sizeof *file);
    in_file = 0;
    for (size_t i = 0; i < terms->count; i++)
        if (terms->value[i] != 0)
            file[in_file++] = (struct stored_part){model->layout.feature_id[terms->feature[i]],
                                                   terms->value[i], 0};
    qsort(file, in_file, sizeof *file, compare_parts);
    int code = compare_row(&model->layout, readback->sample->row[row], set, in_set, file, in_file);
    free(set);
    free(file);
    return code;
}

/* Each row is compared term by term, which leaves no doubt about roundings; then all are scored. */
static int check_rows(const struct readback *readback, const struct model *model) {
    const struct sample *sample = readback->sample;
    const struct source_rows rows = {.count = sample->count,
                                     .start = sample->start,
                                     .id = sample->id,
                                     .column = sample->source_column,
                                     .value = sample->value};
    struct margins *margins = margins_new(model);
    struct term_mapper mapper;
    struct terms terms = {0};
    const double *values;
    int code = 0;
    term_mapper_init(&mapper, model);
    if (sample->table && model->layout.table)
        code = term_mapper_check_table(&mapper, sample->file, sample->table, false);
    for (uint32_t row = 0; row < sample->count && !code; row++) {
        terms.count = 0;
        term_mapper_row(&mapper, &rows, row, &terms);
        code = check_sample_row(readback, model, row, &terms);
        terms_append(margins_terms(margins), &terms);
        margins_end_row(margins, 0);
        if (!code && margins_full(margins))
            code = margins_compute(margins, NULL, &values);
    }
    if (!code)
        code = margins_compute(margins, NULL, &values);
    terms_release(&terms);
    term_mapper_release(&mapper);
    margins_free(margins);
    return code;
}

int readback_check(const struct readback *readback, const char *folder, const char *sha256) {
    struct model *model = NULL;
    int code = model_open_by(folder, threads_share, &model);
    if (!code && strcmp(model->sha256, sha256))
        code = error_set(ERROR_DATA, "%s has the hash %s, and was written with %s", folder,
                         model->sha256, sha256);
    if (!code)
        code = compare_parameters(readback, model);
    if (!code)
        code = check_rows(readback, model);
    model_close(model);
    return code;
}
