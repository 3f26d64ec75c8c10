/* `export`: writes a model in the format of another program. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/nearest.h"
#include "coordinator/command/command.h"
#include "coordinator/command/output_file.h"
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

struct exporting {
    const struct model *model;
    enum export_format format;
    size_t top; /* 0: all, in that format */
};

static int write_model(void *context, FILE *stream) {
    const struct exporting *exporting = context;
    if (exporting->top)
        export_write_top(exporting->model, exporting->top, stream);
    else
        export_write(exporting->model, exporting->format, stream);
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
    if (!code)
        code = output_file_write(options->output, write_model, &exporting);
    model_close(model);
    return code;
}
