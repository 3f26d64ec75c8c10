#define _GNU_SOURCE
#include "replica/joined.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"

void joined_init(struct joined *joined, size_t length, uint32_t parts) {
    *joined = (struct joined){.start = memory_map(length),
                              .length = length,
                              .count = parts,
                              .parts = memory_new(parts, sizeof *joined->parts)};
}

void joined_release(struct joined *joined) {
    for (uint32_t i = 0; i < joined->count; i++)
        kept_bulk_release(&joined->parts[i]);
    free(joined->parts);
    memory_unmap(joined->start, joined->length);
    *joined = (struct joined){0};
}

/* Memory of this process takes the place of what was mapped there. */
static void make_own(struct joined *joined, size_t at, size_t length) {
    if (mmap(joined->start + at, length, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
        memory_exhausted(length, 1);
}

/* Only the last part may end within a page: what follows there is nobody's. A mapping of no length
 * that is moved stays where it is, too, if it is shared. */
static bool map(struct joined *joined, size_t at, const struct kept_bulk *part) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const bool is_of_pages = (uintptr_t)part->data % page == 0 && at % page == 0 &&
                             (part->length % page == 0 || at + part->length == joined->length);
    if (joined->unable || !part->mapping || !is_of_pages)
        return false;
    joined->unable = mremap((void *)(uintptr_t)part->data, 0, part->length,
                            MREMAP_MAYMOVE | MREMAP_FIXED, joined->start + at) == MAP_FAILED;
    if (joined->unable) /* and perhaps there is nothing mapped now */
        make_own(joined, at, part->length);
    return !joined->unable;
}

void joined_put(struct joined *joined, uint32_t number, size_t at, const struct bulk *bulk) {
    struct kept_bulk *part = &joined->parts[number], came;
    assert(number < joined->count && at <= joined->length && bulk->length <= joined->length - at);
    if (!bulk->length)
        return;
    /* A mapping that is kept is the only one at its address. */
    if (part->mapping && part->data == bulk->data && part->length == bulk->length)
        return;
    if (part->mapping)
        make_own(joined, at, part->length);
    kept_bulk_release(part);
    bulk_keep(bulk, &came);
    if (map(joined, at, &came)) {
        *part = came;
        return;
    }
    heartbeat_copy(joined->start + at, came.data, came.length);
    kept_bulk_release(&came);
}
