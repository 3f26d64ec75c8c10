/* `export`: writes a model in the format of another program, to standard output or to a file. The
 * file is complete as soon as it is there. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/nearest.h"
#include "base/file.h"
#include "coordinator/command/command.h"
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

static int write_stream(const struct model *model, enum export_format format, FILE *stream,
                        const char *path) {
    export_write(model, format, stream);
    if (fflush(stream) || ferror(stream))
        return error_set_errno(ERROR_IO, "cannot write %s", path);
    return 0;
}

static int write_beside(const struct model *model, enum export_format format,
                        const struct new_file *file) {
    int descriptor = dup(file->descriptor);
    FILE *stream = descriptor < 0 ? NULL : fdopen(descriptor, "w");
    if (!stream) {
        if (descriptor >= 0)
            close(descriptor);
        return error_set_errno(ERROR_CREATE, "cannot create %s", file->path);
    }
    int code = write_stream(model, format, stream, file->path);
    if (fclose(stream) && !code)
        code = error_set_errno(ERROR_IO, "cannot write %s", file->path);
    return code;
}

/* Refuses a device or a pipe: the rename at the end would replace it by a file. */
static int write_file(const struct model *model, enum export_format format, const char *path) {
    struct stat status;
    struct new_file file;
    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode))
        return error_set(ERROR_CREATE, "%s is no regular file; `-o -` is standard output", path);
    int code = new_file_open(&file, path);
    if (code)
        return code;
    code = write_beside(model, format, &file);
    if (code) {
        new_file_discard(&file);
        return code;
    }
    return new_file_publish(&file);
}

int command_export(const struct options *options) {
    enum export_format format = EXPORT_TSV;
    struct model *model;
    const char *path = options->output;
    int code = format_of(options, &format);
    if (code)
        return code;
    code = model_open(options->operands[0], &model);
    if (code)
        return code;
    code = export_check(model, format);
    if (!code && path && strcmp(path, "-") != 0)
        code = write_file(model, format, path);
    else if (!code)
        code = write_stream(model, format, stdout, "standard output");
    model_close(model);
    return code;
}
