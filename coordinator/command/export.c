/* `export`: writes a model in the format of another program. */
#include <stdio.h>
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
        return error_set(ERROR_USAGE, "`export` needs an option: --format liblinear, tsv or json");
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

struct exporting {
    const struct model *model;
    enum export_format format;
};

static int write_model(void *context, FILE *stream) {
    const struct exporting *exporting = context;
    export_write(exporting->model, exporting->format, stream);
    return 0;
}

int command_export(const struct options *options) {
    enum export_format format = EXPORT_TSV;
    struct model *model;
    int code = format_of(options, &format);
    if (code)
        return code;
    code = model_open(options->operands[0], &model);
    if (code)
        return code;
    code = export_check(model, format);
    if (!code)
        code = output_file_write(options->output, write_model,
                                 &(struct exporting){.model = model, .format = format});
    model_close(model);
    return code;
}
