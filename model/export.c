/* A table for spreadsheets and scripts, and JSON. */
#include "model/export.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

const char *const export_format_names[] = {"liblinear", "tsv", "json", NULL};

/* What stands in all formats is what a feature adds to the margins, and in a network no feature
 * adds the same to all rows. */
int export_check(const struct model *model, enum export_format format) {
    if (model->network)
        return error_set(ERROR_DATA,
                         "%s: a %s has no weights that say by themselves what a feature adds, "
                         "so it cannot be exported: use `dml-coordinator predict`, or read its "
                         "model.safetensors as dml-tasks(7) shows under \"In Python\"",
                         model->folder, model->layout.plugin ? "plug-in" : "network");
    return format == EXPORT_LIBLINEAR ? export_liblinear_check(model) : 0;
}

/* The name of a feature, or NULL if it has none. */
static const char *name_of(const struct model_layout *layout, uint64_t feature) {
    const char *name = layout->feature_names ? layout->feature_names[feature] : "";
    return *name ? name : NULL;
}

/* ---- tsv ---- */

/* Writes a text so that it stays within its field: tab, newline, carriage return and backslash
 * become escapes as in C. */
static void put_field(const char *text, FILE *file) {
    static const char special[] = "\t\n\r\\", letters[] = "tnr\\";
    for (; *text; text++) {
        const char *found = strchr(special, *text);
        if (found)
            putc('\\', file);
        putc(found ? letters[found - special] : *text, file);
    }
}

/* Nothing where it is not known. */
static void put_deviation(double deviation, FILE *file) {
    if (isfinite(deviation))
        fprintf(file, "%.17g", deviation);
}

static void put_rows(const struct model *model, const char *name, const double *weights,
                     uint64_t stride, double deviation, FILE *file) {
    const struct model_layout *layout = &model->layout;
    for (uint32_t k = 0; k < model_rows(layout); k++) {
        put_field(name, file);
        if (model_rows(layout) > 1) {
            putc('\t', file);
            put_field(layout->class_names[k], file);
        }
        fprintf(file, "\t%.17g\t", weights[k * stride]);
        put_deviation(deviation, file);
        putc('\n', file);
    }
}

/* That of a class is of being in it or in a higher one. */
static void put_ordered_intercepts(const struct model *model, FILE *file) {
    const struct model_layout *layout = &model->layout;
    for (uint32_t k = 0; k < layout->outputs; k++) {
        fputs("(intercept >= ", file);
        put_field(layout->class_names[k + 1], file);
        fprintf(file, ")\t%.17g\t\n", model->bias[k]);
    }
}

static void write_tsv(const struct model *model, const double *deviation, FILE *file) {
    const struct model_layout *layout = &model->layout;
    fputs(model_rows(layout) > 1 ? "feature\tclass\tweight\tdeviation\n"
                                 : "feature\tweight\tdeviation\n",
          file);
    for (uint64_t j = 0; j < layout->features; j++) {
        char id[24];
        const char *name = name_of(layout, j);
        snprintf(id, sizeof id, "%llu", (unsigned long long)layout->feature_id[j]);
        put_rows(model, name ? name : id, model->weight + j, layout->features,
                 deviation ? deviation[j] : NAN, file);
    }
    if (layout->shared)
        put_ordered_intercepts(model, file);
    else if (model->bias)
        put_rows(model, "(intercept)", model->bias, 1, NAN, file);
}

/* ---- JSON: written piece by piece, since a model may have many millions of weights ---- */

static void put_json(json_t *value, FILE *file) {
    json_dumpf(value, file, JSON_ENCODE_ANY | JSON_COMPACT);
    json_decref(value);
}

static void put_numbers(const double *values, uint32_t count, uint64_t stride, FILE *file) {
    for (uint32_t k = 0; k < count; k++)
        fprintf(file, "%c%.17g", k ? ',' : '[', values[k * stride]);
    putc(']', file);
}

static void put_head(const struct model *model, FILE *file) {
    const struct model_layout *layout = &model->layout;
    const json_t *details = model->details;
    json_t *classes = json_object_get(details, "classes");
    fputs("{\"format_version\":1,\"objective\":", file);
    put_json(json_string(layout->objective), file);
    if (classes) {
        fputs(",\"classes\":", file);
        put_json(json_incref(classes), file);
    }
    fputs(",\"model_sha256\":", file);
    json_t *hash = json_object_get(details, "model_sha256");
    put_json(hash ? json_incref(hash) : json_null(), file);
    if (model->bias) {
        fputs(",\n\"intercepts\":", file);
        put_numbers(model->bias, layout->outputs, 1, file);
    }
}

static void write_json(const struct model *model, const double *deviation, FILE *file) {
    const struct model_layout *layout = &model->layout;
    put_head(model, file);
    fputs(",\n\"features\":[", file);
    for (uint64_t j = 0; j < layout->features; j++) {
        const char *name = name_of(layout, j);
        fprintf(file, "%s\n{\"id\":%llu,", j ? "," : "", (unsigned long long)layout->feature_id[j]);
        if (name) {
            fputs("\"name\":", file);
            put_json(json_string(name), file);
            putc(',', file);
        }
        fputs("\"weights\":", file);
        put_numbers(model->weight + j, model_rows(layout), layout->features, file);
        if (deviation && isfinite(deviation[j]))
            fprintf(file, ",\"deviation\":%.17g", deviation[j]);
        putc('}', file);
    }
    fputs("]}\n", file);
}

void export_write(const struct model *model, enum export_format format, const double *deviation,
                  FILE *file) {
    switch (format) {
    case EXPORT_LIBLINEAR:
        export_liblinear_write(model, file);
        break;
    case EXPORT_TSV:
        write_tsv(model, deviation, file);
        break;
    case EXPORT_JSON:
        write_json(model, deviation, file);
        break;
    }
}
