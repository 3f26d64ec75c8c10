#include "tests/cluster/memory.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "wire/bulk.h"

/* A reference to the segment is a reference to its mapping, which is what kept bulk names. */
struct shared_segment {
    struct segment segment;
    struct shared_mapping mapping;
};

struct segment *segment_new(size_t length) {
    static uint32_t last;
    struct shared_segment *shared = memory_new(1, sizeof *shared);
    shared->segment = (struct segment){
        .id = ++last, .descriptor = -1, .length = length, .start = memory_new_aligned(length, 1)};
    shared->mapping.start = shared->segment.start;
    shared->mapping.length = length;
    shared->mapping.references = 1;
    return &shared->segment;
}

struct segment *shared_segment_keep(struct segment *segment) {
    if (segment)
        ((struct shared_segment *)segment)->mapping.references++;
    return segment;
}

void shared_segment_release(struct segment *segment) {
    struct shared_segment *shared = (struct shared_segment *)segment;
    if (!shared || --shared->mapping.references)
        return;
    free(shared->segment.start);
    free(shared);
}

void segment_free(struct segment *segment) {
    shared_segment_release(segment);
}

void bulk_keep(const struct bulk *bulk, struct kept_bulk *kept) {
    *kept = (struct kept_bulk){.data = bulk->data, .length = bulk->length};
    const struct parcel_holder *from = (const struct parcel_holder *)bulk->from;
    if (from && from->segment) {
        struct segment *segment = shared_segment_keep(from->segment);
        kept->mapping = &((struct shared_segment *)segment)->mapping;
    } else if (bulk->length) {
        kept->owned = memory_new_aligned(bulk->length, 1);
        kept->data = memcpy(kept->owned, bulk->data, bulk->length);
    }
}

void kept_bulk_release(struct kept_bulk *kept) {
    free(kept->owned);
    if (kept->mapping) {
        char *mapping = (char *)kept->mapping;
        void *shared = mapping - offsetof(struct shared_segment, mapping);
        shared_segment_release(shared);
    }
    *kept = (struct kept_bulk){0};
}
