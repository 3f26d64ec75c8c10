/* `export`: writes a model in the format of another program. */
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
#include "data/set.h"
#include "model/export.h"

/* The format asked for; --json asks for that one. */
static int format_of(const struct options *options, enum export_format *format) {
    const char *name = options->format;
    if (name && options->json && strcmp(name, "json") != 0)
        return error_set(ERROR_USAGE, "`--json` and `--format %s` exclude each other", name);
    if (!name && !options->json)
        return error_set(ERROR_USAGE,
                         "`export` needs an option: --format liblinear, tsv or json, or --top N");
    for (int i = 0; export_format_names[i]; i++)
        if (strcmp(name ? name : "json", export_format_names[i]) == 0) {
            *format = (enum export_format)i;
            return 0;
        }
    struct nearest nearest = {.text = name};
    for (int i = 0; export_format_names[i]; i++)
        nearest_offer(&nearest, export_format_names[i]);
    return error_set(ERROR_USAGE, "there is no format `%s`; allowed: liblinear, tsv or json%s",
                     name, nearest_question(&nearest, ""));
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
    if (options->format || options->json)
        return error_set(ERROR_USAGE, "`--top` is a format for people: leave out `--%s`",
                         options->json ? "json" : "format");
    *top = count;
    return 0;
}

/* ---- standard deviations of the columns ---- */

/* The set that the model was trained on, if the state folder that the model is in still has it. */
static struct set *set_of(const struct model *model) {
    const char *data = json_string_value(json_object_get(model->details, "data_fingerprint"));
    char *folder = data ? realpath(model->folder, NULL) : NULL;
    char *models = folder ? path_folder(folder) : NULL;
    char *state = models ? path_folder(models) : NULL;
    struct set *set = state ? sets_find(state, data) : NULL;
    free(state);
    free(models);
    free(folder);
    return set;
}

/* Fills in those of the features that both have; both are gone through by rising id. */
static void spread(const struct set_info *info, const struct moments *moments,
                   const struct model_layout *layout, double *deviation) {
    uint32_t at = 0;
    for (uint64_t j = 0; j < layout->features; j++) {
        while (at < info->features &&
               info->feature_id[info->original_order[at]] < layout->feature_id[j])
            at++;
        bool both = at < info->features &&
                    info->feature_id[info->original_order[at]] == layout->feature_id[j];
        deviation[j] = both ? sqrt(moments->variance[info->original_order[at]]) : NAN;
    }
}

/* Those of the model's features, over the rows that it was trained on; NULL if these are gone. */
static double *deviations_of(const struct model *model) {
    struct moments moments = {0};
    struct set *set = set_of(model);
    double *deviation = NULL;
    if (set && !moments_find(set, cpus_usable(), &moments)) {
        deviation = memory_new(model->layout.features, sizeof *deviation);
        spread(set_info(set), &moments, &model->layout, deviation);
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
    if (exporting->top)
        export_write_top(exporting->model, exporting->top, exporting->deviation, stream);
    else
        export_write(exporting->model, exporting->format, exporting->deviation, stream);
    return 0;
}

int command_export(const struct options *options) {
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
    if (!code && exporting.format != EXPORT_LIBLINEAR)
        exporting.deviation = deviations_of(model);
    if (!code)
        code = output_file_write(options->output, write_model, &exporting);
    free(exporting.deviation);
    model_close(model);
    return code;
}
