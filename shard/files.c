#define _GNU_SOURCE
#include "shard/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/heartbeat.h"
#include "base/memory.h"

enum { PORTION_BYTES = 1 << 24 }; /* read between two heartbeats */

/* ---- writing ---- */

static int make_folder_of(const char *path) {
    char *folder = path_folder(path);
    int code = folder_make(folder, 0755);
    free(folder);
    return code;
}

static int write_file(void *context, const char *path, const struct disk_piece *pieces,
                      size_t count, const struct disk_taken *taken) {
    (void)context;
    struct new_file file;
    int code = make_folder_of(path);
    if (!code)
        code = new_file_open(&file, path);
    if (code)
        return code;
    for (size_t i = 0; i < count && !code; i++)
        code = new_file_write(&file, pieces[i].data, pieces[i].length);
    if (!code && taken)
        taken->tell(taken->context);
    if (!code)
        return new_file_publish(&file);
    new_file_discard(&file);
    return code;
}

/* ---- reading ---- */

struct open_file {
    int descriptor;
    char *path;
};

static void close_file(void *context, void *file) {
    (void)context;
    struct open_file *open_file = file;
    close(open_file->descriptor);
    free(open_file->path);
    free(open_file);
}

static int open_for_reading(void *context, const char *path, void **file, uint64_t *length) {
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return error_set_errno(errno == ENOENT ? ERROR_UNAVAILABLE : ERROR_IO, "cannot open %s",
                               path);
    struct open_file *open_file = memory_new(1, sizeof *open_file);
    *open_file = (struct open_file){descriptor, memory_copy_string(path)};
    struct stat status;
    if (fstat(descriptor, &status)) {
        int code = error_set_errno(ERROR_IO, "cannot look at %s", path);
        close_file(context, open_file);
        return code;
    }
    *file = open_file;
    *length = (uint64_t)status.st_size;
    return 0;
}

static int read_file(void *context, void *file, uint64_t offset, void *into, size_t length) {
    (void)context;
    const struct open_file *open_file = file;
    char *at = into;
    while (length) {
        size_t portion = length < PORTION_BYTES ? length : PORTION_BYTES;
        ssize_t got = pread(open_file->descriptor, at, portion, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return error_set_errno(ERROR_IO, "cannot read %s", open_file->path);
        if (got == 0)
            return error_set(ERROR_IO, "%s became shorter while it was read", open_file->path);
        at += got;
        offset += (uint64_t)got;
        length -= (size_t)got;
        heartbeat();
    }
    return 0;
}

/* ---- folders ---- */

static int list_folder(void *context, const char *folder,
                       void (*visit)(void *visitor, const char *name), void *visitor) {
    (void)context;
    char **names;
    int code = folder_names(folder, &names);
    if (code)
        return code;
    for (char **name = names; *name; name++)
        visit(visitor, *name);
    names_free(names);
    return 0;
}

static int remove_file(void *context, const char *path) {
    (void)context;
    return unlink(path) ? error_set_errno(ERROR_IO, "cannot remove %s", path) : 0;
}

const struct disk files_disk = {
    .write = write_file,
    .open = open_for_reading,
    .read = read_file,
    .close = close_file,
    .list = list_folder,
    .remove = remove_file,
};
