#include "base/step_files.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/failpoint.h"
#include "base/memory.h"

char *step_path(const char *folder, uint64_t step) {
    return memory_format("%s/step-%" PRIu64, folder, step);
}

/* ---- removing ---- */

struct cleanup {
    const uint64_t *steps;
    size_t count;
    uint64_t before;
    struct bytes names; /* to remove, each with a 0 behind it */
};

static bool is_needed(const struct cleanup *cleanup, const char *name) {
    uint64_t step = 0;
    int end = 0;
    if (!strncmp(name, "epoch.tmp.", 10))
        return false;
    if (sscanf(name, "step-%" SCNu64 "%n", &step, &end) != 1)
        return true;
    if (step >= cleanup->before)
        return true;
    if (name[end])
        return strncmp(name + end, ".tmp.", 5);
    for (size_t i = 0; i < cleanup->count; i++)
        if (cleanup->steps[i] == step)
            return true;
    return false;
}

static void note_file(void *visitor, const char *name) {
    struct cleanup *cleanup = visitor;
    if (!is_needed(cleanup, name))
        bytes_append(&cleanup->names, name, strlen(name) + 1);
}

int step_files_keep(const struct disk *disk, const char *folder, const uint64_t *steps,
                    size_t count, uint64_t before) {
    struct cleanup cleanup = {.steps = steps, .count = count, .before = before};
    bytes_init(&cleanup.names);
    int code = disk->list(disk->context, folder, note_file, &cleanup);
    for (size_t at = 0; !code && at < cleanup.names.length;) {
        const char *name = (const char *)cleanup.names.data + at;
        char *path = memory_format("%s/%s", folder, name);
        failpoint(FAILPOINT_retain_delete);
        code = disk->remove(disk->context, path);
        at += strlen(name) + 1;
        free(path);
    }
    bytes_release(&cleanup.names);
    return code;
}

/* ---- pieces ---- */

int step_file_read(const struct disk *disk, const char *folder, uint64_t bytes,
                   struct file_piece *piece) {
    char *path = step_path(folder, piece->step);
    void *file;
    int code = disk->open(disk->context, path, &file, &piece->file_length);
    free(path);
    if (code)
        return code == ERROR_UNAVAILABLE ? ERROR_DATA : code;
    uint64_t left = piece->offset < piece->file_length ? piece->file_length - piece->offset : 0;
    piece->length = (size_t)(left < bytes ? left : bytes);
    piece->data = memory_new(piece->length, 1);
    code = disk->read(disk->context, file, piece->offset, piece->data, piece->length);
    disk->close(disk->context, file);
    if (!code)
        return 0;
    free(piece->data);
    piece->data = NULL;
    piece->length = 0;
    return code;
}

int step_file_put(const struct disk *disk, const char *folder, uint64_t number,
                  const struct file_piece *piece) {
    char *path = step_path(folder, piece->step);
    char *beside = memory_format("%s.tmp.%" PRIu64, path, number);
    int code = disk->put(disk->context, beside, piece->offset, piece->data, piece->length);
    if (!code && piece->offset + piece->length == piece->file_length)
        code = disk->publish(disk->context, beside, path);
    free(beside);
    free(path);
    return code;
}
