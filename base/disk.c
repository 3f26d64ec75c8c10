#define _GNU_SOURCE
#include "base/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/clock.h"
#include "base/memory.h"

enum { PORTION_BYTES = 1 << 24 }; /* read between two heartbeats */

/* ---- writing ---- */

static int write_file(void *context, const char *path, const struct disk_piece *pieces,
                      size_t count, const struct disk_taken *taken) {
    (void)context;
    struct new_file file;
    char *folder = path_folder(path);
    int code = folder_make(folder, 0755);
    free(folder);
    if (!code)
        code = new_file_open(&file, path);
    if (code)
        return code;
    for (size_t i = 0; i < count && !code; i++)
        code = new_file_write(&file, pieces[i].data, pieces[i].length);
    if (!code && taken)
        taken->report(taken->context);
    if (!code)
        return new_file_publish(&file);
    new_file_discard(&file);
    return code;
}

static int put_piece(void *context, const char *path, uint64_t offset, const void *data,
                     size_t length) {
    (void)context;
    char *folder = path_folder(path);
    int code = offset ? 0 : folder_make(folder, 0755);
    free(folder);
    if (code)
        return code;
    int descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | (offset ? 0 : O_TRUNC), 0644);
    if (descriptor < 0)
        return error_set_errno(ERROR_CREATE, "cannot create %s", path);
    if (lseek(descriptor, (off_t)offset, SEEK_SET) < 0)
        code = error_set_errno(ERROR_IO, "cannot write %s", path);
    if (!code)
        code = file_write_all(descriptor, data, length, path);
    file_write_back(descriptor); /* so that publish() has less to wait for */
    close(descriptor);
    return code;
}

static int publish_file(void *context, const char *from, const char *to) {
    (void)context;
    struct new_file file = {.descriptor = open(from, O_RDWR | O_CLOEXEC)};
    if (file.descriptor < 0)
        return error_set_errno(ERROR_IO, "cannot open %s", from);
    file.path = memory_copy_string(to);
    file.temporary = memory_copy_string(from);
    return new_file_publish(&file);
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
    struct stat status;
    int descriptor, code = file_open_regular(path, &descriptor, &status);
    (void)context;
    if (code)
        return code;
    struct open_file *open_file = memory_new(1, sizeof *open_file);
    *open_file = (struct open_file){descriptor, memory_copy_string(path)};
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
    int code = guard_check();
    if (code)
        return code;
    return remove(path) ? error_set_errno(ERROR_IO, "cannot remove %s", path) : 0;
}

const struct disk files_disk = {
    .write = write_file,
    .put = put_piece,
    .publish = publish_file,
    .open = open_for_reading,
    .read = read_file,
    .close = close_file,
    .list = list_folder,
    .remove = remove_file,
};
