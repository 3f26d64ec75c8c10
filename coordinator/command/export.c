/* `export`: writes a model in the format of another program. */
#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/resources.h"
#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "coordinator/command/command.h"
#include "coordinator/command/print.h"
#include "coordinator/run/sets.h"
#include "data/set/statistics.h"
#include "model/export.h"
#include "model/importance.h"

/* The format asked for; --json asks for that one. */
static int format_of(const struct options *options, enum export_format *format) {
    const char *name = options->onnx ? "onnx" : options->format;
    if (options->onnx && options->format && strcmp(options->format, name) != 0)
        return error_set(ERROR_USAGE, "`--onnx` and `--format %s` exclude each other",
                         options->format);
    if (name && options->json && strcmp(name, "json") != 0)
        return error_set(ERROR_USAGE, "`--json` and `--format %s` exclude each other", name);
    if (!name && !options->json)
        return error_set(
            ERROR_USAGE,
            "`export` needs an option: --format liblinear, tsv, json or onnx, --top N, or "
            "--importance");
    for (int i = 0; export_format_names[i]; i++)
        if (strcmp(name ? name : "json", export_format_names[i]) == 0) {
            *format = (enum export_format)i;
            return 0;
        }
    struct nearest nearest = {.text = name};
    for (int i = 0; export_format_names[i]; i++)
        nearest_offer(&nearest, export_format_names[i]);
    return error_set(ERROR_USAGE,
                     "there is no format `%s`; allowed: liblinear, tsv, json or onnx%s", name,
                     nearest_suggestion(&nearest, ""));
}

#define TOP_MAX 1000000

/* The number of --top; 0 without it. */
static int top_of(const struct options *options, size_t *top) {
    *top = 0;
    if (!options->top)
        return 0;
    char *end;
    unsigned long count = strtoul(options->top, &end, 10);
    if (!isdigit((unsigned char)*options->top) || *end || count < 1 || count > TOP_MAX)
        return error_set(ERROR_USAGE, "`--top %s`: allowed is a whole number from 1 to %d",
                         options->top, TOP_MAX);
    if (options->format || options->json || options->onnx)
        return error_set(ERROR_USAGE, "`--top` is a format for people: leave out `--%s`",
                         options->json   ? "json"
                         : options->onnx ? "onnx"
                                         : "format");
    *top = count;
    return 0;
}

/* ---- standard deviations of the columns ---- */

/* The standard deviations of the model's features over the rows that it was trained on; NULL if
 * these are gone. The features of the model and of the set are gone through by rising id. */
static double *deviations_of(const struct model *model) {
    struct moments moments = {0};
    struct set *set = sets_find_of_model(model);
    const struct set_info *info = set ? set_info(set) : NULL;
    double *deviation = NULL;
    uint64_t at = 0;
    if (set && !moments_find(set, cpus_usable(), &moments))
        deviation = memory_new(model->layout.features, sizeof *deviation);
    for (uint64_t j = 0; deviation && j < model->layout.features; j++) {
        const struct column_order *order = &info->original_order;
        const uint64_t id = model->layout.feature_id[j];
        while (at < info->features && info->feature_id[column_order_at(order, at)] < id)
            at++;
        uint64_t column = at < info->features ? column_order_at(order, at) : 0;
        bool both = at < info->features && info->feature_id[column] == id;
        deviation[j] = both ? sqrt(moments.variance[column]) : NAN;
    }
    error_clear(); /* of a damaged set */
    moments_release(&moments);
    set_close(set);
    return deviation;
}

/* ---- the command ---- */

struct exporting {
    const struct model *model;
    enum export_format format;
    size_t top; /* 0: all, in that format */
    double *deviation;
};

static int write_model(void *context, FILE *stream) {
    const struct exporting *exporting = context;
    assert(exporting->model);
    if (exporting->top)
        export_write_top(exporting->model, exporting->top, exporting->deviation, stream);
    else
        return export_write(exporting->model, exporting->format, exporting->deviation, stream);
    return 0;
}

/* ---- what columns bring ---- */

struct importance_output {
    struct importance importance;
    bool json;
};

static int write_importance(void *context, FILE *stream) {
    const struct importance_output *output = context;
    if (!output->json) {
        importance_print(&output->importance, stream);
        return 0;
    }
    json_t *all = importance_json(&output->importance, SIZE_MAX);
    json_dumpf(all, stream, JSON_COMPACT);
    putc('\n', stream);
    json_decref(all);
    return 0;
}

static int find_importance(const struct model *model, struct importance *importance) {
    struct set *set = sets_find_of_model(model);
    int code = export_check(model, EXPORT_TSV);
    if (!code && !set)
        code = sets_check_access(model);
    if (!code && !set)
        code = error_set(ERROR_UNAVAILABLE,
                         "%s: the training rows of the model are no longer in the packs of its "
                         "state folder; `export --top N` does not need them",
                         model->folder);
    if (!code)
        code = importance_find(set, model, importance);
    set_close(set);
    assert(code || set);
    if (!code && !importance->count)
        code = error_set(
            ERROR_DATA,
            "%s: there are too many weights for `--importance`; `export --top N` lists the largest",
            model->folder);
    return code;
}

static int export_importance(const struct options *options) {
    struct importance_output output = {.json = options->json};
    struct model *model = NULL;
    const char *other = options->top      ? "top"
                        : options->format ? "format"
                        : options->onnx   ? "onnx"
                                          : NULL;
    int code =
        other ? error_set(ERROR_USAGE, "`--importance` and `--%s` exclude each other", other) : 0;
    if (!code)
        code = model_open(options->operands[0], &model);
    if (!code)
        code = find_importance(model, &output.importance);
    if (!code)
        code = output_file_write(options->output, write_importance, &output);
    importance_release(&output.importance);
    model_close(model);
    return code;
}

int command_export(const struct options *options) {
    if (options->importance)
        return export_importance(options);
    struct exporting exporting = {.format = EXPORT_TSV};
    struct model *model;
    int code = top_of(options, &exporting.top);
    if (!code && !exporting.top)
        code = format_of(options, &exporting.format);
    if (!code)
        code = model_open(options->operands[0], &model);
    if (code)
        return code;
    exporting.model = model;
    code = export_check(model, exporting.format);
    if (!code && exporting.format != EXPORT_LIBLINEAR && exporting.format != EXPORT_ONNX)
        exporting.deviation = deviations_of(model);
    if (!code)
        code = output_file_write(options->output, write_model, &exporting);
    free(exporting.deviation);
    model_close(model);
    return code;
}
