#include "wire/bulk.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "wire/mapping.h"
#include "wire/peer.h"

static void *copy_aligned(const void *data, size_t length) {
    void *copy = aligned_alloc(64, (length + 63) / 64 * 64);
    if (!copy)
        memory_exhausted(length, 1);
    return memcpy(copy, data, length);
}

void bulk_keep(const struct bulk *bulk, struct kept_bulk *kept) {
    *kept = (struct kept_bulk){0};
    if (bulk->from) {
        peer_keep_bulk(bulk->from, kept);
    } else if (bulk->length) {
        kept->owned = copy_aligned(bulk->data, bulk->length);
        kept->data = kept->owned;
        kept->length = bulk->length;
    }
}

void kept_bulk_release(struct kept_bulk *kept) {
    free(kept->owned);
    shared_mapping_release(kept->mapping);
    *kept = (struct kept_bulk){0};
}
