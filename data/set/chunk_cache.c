#define _GNU_SOURCE
#include "data/set/set_file.h"

#include <assert.h>
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

struct chunk_cache {
    char *path;
    int descriptor;
    const uint8_t *data; /* mapped: what is written to the file is seen here */
    size_t bytes;
    atomic_bool full; /* or another failure */
};

/* Removes what other runs left. Whoever has a copy open holds a shared lock on it. A process that
 * opens the file between our lock and its removal works on with a file that has no name. */
static void remove_unused(const char *folder, const char *own) {
    char **names;
    if (folder_names(folder, &names)) {
        error_clear();
        return;
    }
    for (char **name = names; *name; name++) {
        char *path = path_join(folder, *name);
        bool other = !strncmp(*name, BEGINNING, strlen(BEGINNING)) && name_ends(*name, ENDING) &&
                     strcmp(path, own);
        int descriptor = other ? open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC) : -1;
        if (descriptor >= 0) {
            if (!flock(descriptor, LOCK_EX | LOCK_NB) && !unlink(path))
                log_debug("removed %s, which no run uses", path);
            close(descriptor);
        }
        free(path);
    }
    names_free(names);
}

static int map_file(struct chunk_cache *cache) {
    void *start = mmap(NULL, cache->bytes, PROT_READ, MAP_SHARED, cache->descriptor, 0);
    if (start == MAP_FAILED)
        return error_set_errno(ERROR_IO, "cannot map %s", cache->path);
    cache->data = start;
    return 0;
}

/* A folder for temporary files belongs to all: a file that somebody else made could change after
 * its chunks were verified. The file only grows: others may have mapped it. */
static int open_file(struct chunk_cache *cache) {
    struct stat status;
    cache->descriptor =
        open(cache->path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (cache->descriptor < 0)
        return error_set_errno(ERROR_CREATE, "cannot open %s", cache->path);
    if (fstat(cache->descriptor, &status) || flock(cache->descriptor, LOCK_SH | LOCK_NB))
        return error_set_errno(ERROR_IO, "cannot lock %s", cache->path);
    if (!S_ISREG(status.st_mode) || status.st_uid != geteuid() || status.st_mode & 022)
        return error_set(ERROR_PERMISSION, "%s is not a file of this user alone", cache->path);
    if ((uint64_t)status.st_size < cache->bytes &&
        ftruncate(cache->descriptor, (off_t)cache->bytes))
        return error_set_errno(ERROR_IO, "cannot extend %s", cache->path);
    return map_file(cache);
}

static int open_in_memory(struct chunk_cache *cache) {
    cache->descriptor = memfd_create("dml", MFD_CLOEXEC);
    if (cache->descriptor < 0 || ftruncate(cache->descriptor, (off_t)cache->bytes))
        return error_set_errno(ERROR_UNAVAILABLE, "cannot make a file in memory");
    return map_file(cache);
}

int chunk_cache_open(const char *folder, const char *fingerprint, uint64_t bytes,
                     struct chunk_cache **opened) {
    struct chunk_cache *cache = memory_new(1, sizeof *cache);
    cache->path = folder ? memory_format("%s/" BEGINNING "%s" ENDING, folder, fingerprint)
                         : memory_copy_string("memory");
    cache->descriptor = -1;
    cache->bytes = bytes;
    int code = folder ? folder_make(folder, 0700) : open_in_memory(cache);
    if (!code && folder)
        remove_unused(folder, cache->path);
    if (!code && folder)
        code = open_file(cache);
    if (code)
        chunk_cache_close(cache);
    else
        *opened = cache;
    return code;
}

void chunk_cache_close(struct chunk_cache *cache) {
    if (!cache)
        return;
    if (cache->data)
        memory_unmap((void *)(uintptr_t)cache->data, cache->bytes);
    if (cache->descriptor >= 0)
        close(cache->descriptor);
    free(cache->path);
    free(cache);
}

const uint8_t *chunk_cache_at(const struct chunk_cache *cache, uint64_t offset) {
    assert(offset <= cache->bytes);
    return cache->data + offset;
}

/* A lock that is not granted is lost, so the last of several processes removes the file. */
void chunk_cache_remove(struct chunk_cache *cache) {
    if (!flock(cache->descriptor, LOCK_EX | LOCK_NB))
        unlink(cache->path);
}

const char *chunk_cache_path(const struct chunk_cache *cache) {
    return cache->path;
}

int chunk_cache_descriptor(const struct chunk_cache *cache) {
    return cache->descriptor;
}

/* A file system that does not know says that all is data. */
bool chunk_cache_is_hole(const struct chunk_cache *cache, uint64_t offset, size_t length) {
    off_t data = lseek(cache->descriptor, (off_t)offset, SEEK_DATA);
    return data < 0 ? errno == ENXIO : (uint64_t)data >= offset + length;
}

/* Two processes that write the same chunk write the same bytes. */
bool chunk_cache_put(struct chunk_cache *cache, uint64_t offset, const void *data, size_t length) {
    assert(offset <= cache->bytes && length <= cache->bytes - offset);
    const uint8_t *at = data;
    bool failed = atomic_load(&cache->full);
    while (!failed && length) {
        ssize_t put = failpoint_write(FAILPOINT_scratch_write)
                          ? -1
                          : pwrite(cache->descriptor, at, length, (off_t)offset);
        if (put < 0 && errno == EINTR)
            continue;
        failed = put < 0;
        if (failed)
            break;
        at += put;
        offset += (uint64_t)put;
        length -= (size_t)put;
    }
    if (failed && !atomic_exchange(&cache->full, true))
        log_warning("%s: %s: chunks that it lacks come from elsewhere", cache->path,
                    strerror(errno));
    return !failed;
}
