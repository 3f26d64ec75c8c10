#define _GNU_SOURCE
#include "wire/bulk.h"

#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

/* Readers refuse a segment that is not sealed against shrinking: without the seal, we could cut the
 * memory off while they read it. Ids are never used twice in a process, or a peer could take a new
 * segment for one that it has mapped. (After 2³² segments they begin again; no process makes so
 * many.) */
struct segment *segment_new(size_t length) {
    static _Atomic uint32_t last;
    struct segment *segment = memory_new(1, sizeof *segment);
    size_t mapped = length ? length : 1;
    segment->length = mapped;
    segment->descriptor = memfd_create("dml segment", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (segment->descriptor < 0 || ftruncate(segment->descriptor, (off_t)mapped) ||
        fcntl(segment->descriptor, F_ADD_SEALS, F_SEAL_SHRINK))
        memory_exhausted(length, 1);
    segment->start = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, segment->descriptor, 0);
    if (segment->start == MAP_FAILED)
        memory_exhausted(length, 1);
    (void)madvise(segment->start, mapped, MADV_HUGEPAGE); /* only where the system allows it */
    do
        segment->id = ++last;
    while (!segment->id); /* 0 means none */
    assert((uintptr_t)segment->start % BULK_ALIGNMENT == 0);
    return segment;
}

void segment_free(struct segment *segment) {
    if (!segment)
        return;
    assert(segment->id);
    munmap(segment->start, segment->length);
    close(segment->descriptor);
    free(segment);
}

struct shared_mapping *shared_mapping_new(int descriptor, uint32_t id) {
    assert(descriptor >= 0 && id);
    struct stat status;
    int seals = fcntl(descriptor, F_GET_SEALS);
    if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(descriptor, &status) || status.st_size <= 0)
        return NULL;
    size_t length = (size_t)status.st_size;
    void *start = mmap(NULL, length, PROT_READ, MAP_SHARED, descriptor, 0);
    if (start == MAP_FAILED)
        return NULL;
    struct shared_mapping *mapping = memory_new(1, sizeof *mapping);
    mapping->start = start;
    mapping->length = length;
    mapping->id = id;
    mapping->references = 1;
    return mapping;
}

struct shared_mapping *shared_mapping_keep(struct shared_mapping *mapping) {
    unsigned before = mapping->references++;
    assert(before);
    return mapping;
}

void shared_mapping_release(struct shared_mapping *mapping) {
    if (!mapping)
        return;
    unsigned before = mapping->references--;
    assert(before);
    if (before > 1)
        return;
    munmap((void *)(uintptr_t)mapping->start, mapping->length);
    free(mapping);
}

void bulk_keep(const struct bulk *bulk, struct kept_bulk *kept) {
    *kept = (struct kept_bulk){0};
    if (bulk->from) {
        bulk->from->keep(bulk->from, kept);
    } else if (bulk->length) {
        kept->owned = memory_new_aligned(bulk->length, 1);
        kept->data = memcpy(kept->owned, bulk->data, bulk->length);
        kept->length = bulk->length;
    }
    assert(kept->length == 0 || !kept->owned != !kept->mapping);
}

void kept_bulk_release(struct kept_bulk *kept) {
    assert(!kept->owned || !kept->mapping);
    free(kept->owned);
    shared_mapping_release(kept->mapping);
    *kept = (struct kept_bulk){0};
}
