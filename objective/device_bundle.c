#include "objective/device_bundle.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* An array of more is copied at once: the host would only copy it twice. */
#define ARRAY_BYTES_MAX (UINT64_C(64) << 10)
#define BUNDLE_BYTES_MAX (UINT64_C(1) << 20)

void device_bundle_init(struct device_bundle *bundle, struct device *device,
                        enum device_queue queue) {
    *bundle = (struct device_bundle){.device = device, .queue = queue};
}

void device_bundle_release(struct device_bundle *bundle) {
    free(bundle->bytes);
    *bundle = (struct device_bundle){0};
}

static uint64_t aligned(uint64_t bytes) {
    return (bytes + BUNDLE_ALIGNMENT - 1) / BUNDLE_ALIGNMENT * BUNDLE_ALIGNMENT;
}

int device_bundle_flush(struct device_bundle *bundle) {
    uint64_t length = bundle->length;
    bundle->length = 0;
    return length ? device_put(bundle->device, bundle->queue, bundle->to, bundle->bytes, length)
                  : 0;
}

/* Room for an array behind the others. */
static void make_room(struct device_bundle *bundle, uint64_t bytes) {
    if (bytes <= bundle->capacity)
        return;
    bundle->capacity = 2 * bytes;
    bundle->bytes = memory_resize(bundle->bytes, bundle->capacity, 1);
}

int device_bundle_put(struct device_bundle *bundle, void *to, const void *from, uint64_t bytes) {
    uint64_t at = aligned(bundle->length);
    bool follows = bundle->length && (char *)to == bundle->to + at;
    int code = 0;
    if (!bytes)
        return 0;
    if (!follows || bytes > ARRAY_BYTES_MAX || at + bytes > BUNDLE_BYTES_MAX)
        code = device_bundle_flush(bundle);
    if (code || bytes > ARRAY_BYTES_MAX)
        return code ? code : device_put(bundle->device, bundle->queue, to, from, bytes);
    at = bundle->length ? at : 0;
    if (!at)
        bundle->to = to;
    make_room(bundle, at + bytes);
    memset(bundle->bytes + bundle->length, 0, at - bundle->length);
    memcpy(bundle->bytes + at, from, bytes);
    bundle->length = at + bytes;
    return 0;
}
