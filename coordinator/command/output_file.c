#include "coordinator/command/output_file.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"

static int write_stream(FILE *stream, const char *path, output_write *write, void *context) {
    int code = write(context, stream);
    if (!code && (fflush(stream) || ferror(stream)))
        code = error_set_errno(ERROR_IO, "cannot write %s", path);
    return code;
}

static int write_beside(const struct new_file *file, output_write *write, void *context) {
    int descriptor = dup(file->descriptor);
    FILE *stream = descriptor < 0 ? NULL : fdopen(descriptor, "w");
    if (!stream) {
        if (descriptor >= 0)
            close(descriptor);
        return error_set_errno(ERROR_CREATE, "cannot create %s", file->path);
    }
    int code = write_stream(stream, file->path, write, context);
    if (fclose(stream) && !code)
        code = error_set_errno(ERROR_IO, "cannot write %s", file->path);
    return code;
}

int output_file_write(const char *path, output_write *write, void *context) {
    struct stat status;
    struct new_file file;
    if (!path || strcmp(path, "-") == 0)
        return write_stream(stdout, "standard output", write, context);
    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode))
        return error_set(ERROR_CREATE, "%s is no regular file; `-o -` is standard output", path);
    int code = new_file_open(&file, path);
    if (code)
        return code;
    code = write_beside(&file, write, context);
    if (code) {
        new_file_discard(&file);
        return code;
    }
    return new_file_publish(&file);
}
