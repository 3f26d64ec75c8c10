#include "shard/folder.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/failpoint.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/mutant.h"

/* ---- the epoch ---- */

static const char magic[8] = "DMLEPOC\n";

static uint64_t checksum_of(const struct epoch_file *content) {
    return hash64(content, offsetof(struct epoch_file, checksum));
}

/* 0 if there is no file. */
static int read_epoch(const struct disk *disk, const char *path, uint64_t *epoch) {
    struct epoch_file content;
    void *file;
    uint64_t length;
    *epoch = 0;
    int code = disk->open(disk->context, path, &file, &length);
    if (code == ERROR_UNAVAILABLE) {
        error_clear();
        return 0;
    }
    if (code)
        return code;
    if (length == sizeof content)
        code = disk->read(disk->context, file, 0, &content, sizeof content);
    if (!code && (length != sizeof content || memcmp(content.magic, magic, sizeof magic) ||
                  content.checksum != checksum_of(&content)))
        code = error_set(ERROR_DATA,
                         "%s is damaged: remove it once no coordinator of this run is left", path);
    disk->close(disk->context, file);
    *epoch = code ? 0 : content.epoch;
    return code;
}

static int write_epoch(const struct disk *disk, const char *path, uint64_t epoch) {
    struct epoch_file content = {.epoch = epoch};
    memcpy(content.magic, magic, sizeof magic);
    content.checksum = checksum_of(&content);
    const struct disk_piece piece = {&content, sizeof content};
    if (failpoint_write(FAILPOINT_fence_write))
        return error_set_errno(ERROR_IO, "cannot write %s", path);
    int code = disk->write(disk->context, path, &piece, 1, NULL);
    if (!code)
        failpoint(FAILPOINT_fence_written);
    return code;
}

int folder_fence(const struct disk *disk, const char *folder, uint64_t epoch) {
    char *path = memory_format("%s/epoch", folder);
    uint64_t there;
    int code = read_epoch(disk, path, &there);
    if (!code && there > epoch && !mutant(NO_EPOCH_CHECK))
        code = error_set(ERROR_AGAIN,
                         "a newer coordinator, of epoch %" PRIu64 ", works with %s; this one has "
                         "epoch %" PRIu64 " and must end",
                         there, folder, epoch);
    else if (!code && there < epoch)
        code = write_epoch(disk, path, epoch);
    free(path);
    return code;
}

/* ---- what is not needed ---- */

struct sweep {
    const uint64_t *steps;
    size_t count;
    uint64_t before;
    struct bytes names; /* to remove, each with a 0 behind it */
};

static bool is_kept(const struct sweep *sweep, uint64_t step) {
    for (size_t i = 0; i < sweep->count; i++)
        if (sweep->steps[i] == step)
            return true;
    return false;
}

static bool is_needed(const struct sweep *sweep, const char *name) {
    uint64_t step = 0;
    int end = 0;
    if (!strncmp(name, "epoch.tmp.", 10))
        return false;
    if (sscanf(name, "step-%" SCNu64 "%n", &step, &end) != 1)
        return true;
    if (step >= sweep->before)
        return true;
    return name[end] ? strncmp(name + end, ".tmp.", 5) : is_kept(sweep, step);
}

static void visit(void *visitor, const char *name) {
    struct sweep *sweep = visitor;
    if (!is_needed(sweep, name))
        bytes_append(&sweep->names, name, strlen(name) + 1);
}

int folder_keep(const struct disk *disk, const char *folder, const uint64_t *steps, size_t count,
                uint64_t before) {
    struct sweep sweep = {.steps = steps, .count = count, .before = before};
    bytes_init(&sweep.names);
    int code = disk->list(disk->context, folder, visit, &sweep);
    for (size_t at = 0; !code && at < sweep.names.length;) {
        const char *name = (const char *)sweep.names.data + at;
        char *path = memory_format("%s/%s", folder, name);
        failpoint(FAILPOINT_retain_delete);
        code = disk->remove(disk->context, path);
        at += strlen(name) + 1;
        free(path);
    }
    bytes_release(&sweep.names);
    return code;
}
