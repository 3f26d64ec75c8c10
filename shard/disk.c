#define _GNU_SOURCE
#include "shard/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/clock.h"
#include "base/memory.h"

enum { PORTION_BYTES = 1 << 24 }; /* read between two heartbeats */

/* ---- files: writing ---- */

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

/* ---- files: reading ---- */

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

/* ---- files: folders ---- */

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

/* ---- confined: where a path leads ---- */

static bool climbs(const char *path) {
    for (const char *at = path; (at = strstr(at, "..")); at += 2)
        if ((at == path || at[-1] == '/') && (!at[2] || at[2] == '/'))
            return true;
    return false;
}

/* The longest existing part of a path, links resolved; NULL if it ends in a dangling link: a file
 * created there would be created where the link points. */
static char *resolve_existing(const char *path) {
    char *part = memory_copy_string(path), *real;
    while (!(real = realpath(part, NULL))) {
        struct stat status;
        char *above = path_folder(part);
        bool dangles = lstat(part, &status) == 0 || errno != ENOENT;
        bool at_top = !strcmp(above, part);
        free(part);
        part = above;
        if (dangles || at_top)
            break;
    }
    free(part);
    return real;
}

static int check_below(const struct confined *confined, const char *path) {
    char *real = climbs(path) ? NULL : resolve_existing(path);
    size_t length = strlen(confined->root);
    bool top = !strcmp(confined->root, "/");
    bool below = real && !strncmp(real, confined->root, length) &&
                 (top || real[length] == '/' || !real[length]);
    free(real);
    if (below)
        return 0;
    return error_set(ERROR_PERMISSION,
                     "%s does not lie below %s, which this worker was started with: start it with "
                     "another --folder, or keep the state below that",
                     path, confined->root);
}

/* ---- confined: the disk ---- */

static int confined_write_file(void *context, const char *path, const struct disk_piece *pieces,
                               size_t count, const struct disk_taken *taken) {
    const struct confined *confined = context;
    int code = check_below(confined, path);
    return code ? code
                : confined->below->write(confined->below->context, path, pieces, count, taken);
}

static int confined_open_file(void *context, const char *path, void **file, uint64_t *length) {
    const struct confined *confined = context;
    int code = check_below(confined, path);
    return code ? code : confined->below->open(confined->below->context, path, file, length);
}

static int confined_read_file(void *context, void *file, uint64_t offset, void *into,
                              size_t length) {
    const struct confined *confined = context;
    return confined->below->read(confined->below->context, file, offset, into, length);
}

static void confined_close_file(void *context, void *file) {
    const struct confined *confined = context;
    confined->below->close(confined->below->context, file);
}

static int confined_list_folder(void *context, const char *folder,
                                void (*visit)(void *visitor, const char *name), void *visitor) {
    const struct confined *confined = context;
    int code = check_below(confined, folder);
    return code ? code : confined->below->list(confined->below->context, folder, visit, visitor);
}

static int confined_remove_file(void *context, const char *path) {
    const struct confined *confined = context;
    int code = check_below(confined, path);
    return code ? code : confined->below->remove(confined->below->context, path);
}

int confined_init(struct confined *confined, const struct disk *below, const char *folder) {
    *confined = (struct confined){.below = below,
                                  .disk = {.context = confined,
                                           .write = confined_write_file,
                                           .open = confined_open_file,
                                           .read = confined_read_file,
                                           .close = confined_close_file,
                                           .list = confined_list_folder,
                                           .remove = confined_remove_file}};
    int code = folder_make(folder, 0700);
    if (code)
        return code;
    confined->root = realpath(folder, NULL);
    return confined->root ? 0 : error_set_errno(ERROR_CREATE, "cannot find the folder %s", folder);
}

void confined_release(struct confined *confined) {
    free(confined->root);
    confined->root = NULL;
}
