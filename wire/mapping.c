#define _GNU_SOURCE
#include "wire/mapping.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/memory.h"

struct shared_mapping *shared_mapping_new(int descriptor, uint32_t id) {
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
    mapping->references++;
    return mapping;
}

void shared_mapping_release(struct shared_mapping *mapping) {
    if (!mapping || --mapping->references)
        return;
    munmap((void *)(uintptr_t)mapping->start, mapping->length);
    free(mapping);
}
