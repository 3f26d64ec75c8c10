#define _GNU_SOURCE
#include "wire/segment.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
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
    return segment;
}

void segment_free(struct segment *segment) {
    if (!segment)
        return;
    munmap(segment->start, segment->length);
    close(segment->descriptor);
    free(segment);
}
