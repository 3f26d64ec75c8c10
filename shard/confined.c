#include "shard/confined.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"

/* ---- where a path leads ---- */

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

/* ---- the disk ---- */

static int confined_write_file(void *context, const char *path, const struct disk_piece *pieces,
                               size_t count, const struct disk_taken *taken) {
    const struct confined *confined = context;
    int code = check_below(confined, path);
    return code ? code
                : confined->below->write(confined->below->context, path, pieces, count, taken);
}

static int confined_put(void *context, const char *path, uint64_t offset, const void *data,
                        size_t length) {
    const struct confined *confined = context;
    int code = check_below(confined, path);
    return code ? code : confined->below->put(confined->below->context, path, offset, data, length);
}

static int confined_publish(void *context, const char *from, const char *to) {
    const struct confined *confined = context;
    int code = check_below(confined, from);
    if (!code)
        code = check_below(confined, to);
    return code ? code : confined->below->publish(confined->below->context, from, to);
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
                                           .put = confined_put,
                                           .publish = confined_publish,
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
