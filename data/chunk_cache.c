#define _GNU_SOURCE
#include "data/set_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/failpoint.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"

#define BEGINNING "dml-"
#define ENDING ".scratch"

struct scratch {
    char *path;
    int descriptor;
    const uint8_t *data; /* mapped: what is written to the file is seen here */
    size_t bytes;
    atomic_bool full; /* or another failure */
};

/* ---- what other runs left ---- */

/* Whoever has a copy open holds a shared lock on it. A process that opens the file between our
 * lock and its removal works on with a file that has no name. */
static void remove_unused(const char *path) {
    int descriptor = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (descriptor < 0)
        return;
    if (!flock(descriptor, LOCK_EX | LOCK_NB) && !unlink(path))
        log_debug("removed %s, which no run uses", path);
    close(descriptor);
}

static void sweep(const char *folder, const char *own) {
    char **names;
    if (folder_names(folder, &names)) {
        error_clear();
        return;
    }
    for (char **name = names; *name; name++) {
        char *path = path_join(folder, *name);
        if (!strncmp(*name, BEGINNING, strlen(BEGINNING)) && name_ends(*name, ENDING) &&
            strcmp(path, own))
            remove_unused(path);
        free(path);
    }
    names_free(names);
}

/* ---- its life ---- */

/* A folder for temporary files belongs to all: a file that somebody else made could change after
 * its chunks were verified. The file only grows: others may have mapped it. */
static int prepare_file(struct scratch *scratch) {
    struct stat status;
    scratch->descriptor =
        open(scratch->path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (scratch->descriptor < 0)
        return error_set_errno(ERROR_CREATE, "cannot open %s", scratch->path);
    if (fstat(scratch->descriptor, &status) || flock(scratch->descriptor, LOCK_SH | LOCK_NB))
        return error_set_errno(ERROR_IO, "cannot lock %s", scratch->path);
    if (!S_ISREG(status.st_mode) || status.st_uid != geteuid() || status.st_mode & 022)
        return error_set(ERROR_PERMISSION, "%s is not a file of this user alone", scratch->path);
    if ((uint64_t)status.st_size < scratch->bytes &&
        ftruncate(scratch->descriptor, (off_t)scratch->bytes))
        return error_set_errno(ERROR_IO, "cannot extend %s", scratch->path);
    return 0;
}

static int map_file(struct scratch *scratch) {
    void *start = mmap(NULL, scratch->bytes, PROT_READ, MAP_SHARED, scratch->descriptor, 0);
    if (start == MAP_FAILED)
        return error_set_errno(ERROR_IO, "cannot map %s", scratch->path);
    scratch->data = start;
    return 0;
}

int scratch_open(const char *folder, const char *fingerprint, uint64_t bytes,
                 struct scratch **opened) {
    struct scratch *scratch = memory_new(1, sizeof *scratch);
    scratch->path = memory_format("%s/" BEGINNING "%s" ENDING, folder, fingerprint);
    scratch->descriptor = -1;
    scratch->bytes = bytes;
    int code = folder_make(folder, 0700);
    if (!code)
        sweep(folder, scratch->path);
    if (!code)
        code = prepare_file(scratch);
    if (!code)
        code = map_file(scratch);
    if (code)
        scratch_close(scratch);
    else
        *opened = scratch;
    return code;
}

void scratch_close(struct scratch *scratch) {
    if (!scratch)
        return;
    if (scratch->data)
        memory_unmap((void *)(uintptr_t)scratch->data, scratch->bytes);
    if (scratch->descriptor >= 0)
        close(scratch->descriptor);
    free(scratch->path);
    free(scratch);
}

const uint8_t *scratch_at(const struct scratch *scratch, uint64_t offset) {
    return scratch->data + offset;
}

/* Two processes that write the same chunk write the same bytes. */
void scratch_put(struct scratch *scratch, uint64_t offset, const void *data, size_t length) {
    const uint8_t *at = data;
    bool failed = atomic_load(&scratch->full);
    while (!failed && length) {
        ssize_t put = failpoint_write(FAILPOINT_scratch_write)
                          ? -1
                          : pwrite(scratch->descriptor, at, length, (off_t)offset);
        if (put < 0 && errno == EINTR)
            continue;
        failed = put < 0;
        if (failed)
            break;
        at += put;
        offset += (uint64_t)put;
        length -= (size_t)put;
    }
    if (failed && !atomic_exchange(&scratch->full, true))
        log_warning("%s: %s: chunks that it lacks are read from the set", scratch->path,
                    strerror(errno));
}
