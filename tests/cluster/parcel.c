#define _GNU_SOURCE
#include "tests/cluster/parcel.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tests/cluster/decoded.h"

static uint8_t *copy_of(const void *data, size_t length) {
    void *copy = memory_new(length ? length : 1, 1);
    return length ? memcpy(copy, data, length) : copy;
}

/* 64-byte aligned, as bulk is; NULL if there is none. */
static uint8_t *copy_of_bulk(const void *data, size_t length) {
    void *copy = NULL;
    if (length && posix_memalign(&copy, 64, length))
        abort();
    return length ? memcpy(copy, data, length) : NULL;
}

struct parcel parcel_pack(const struct outbox *outbox, const struct envelope *envelope,
                          bool shared) {
    const struct bulk *bulk = &envelope->bulk;
    struct parcel parcel = {.type = envelope->type,
                            .term = envelope->term,
                            .body = copy_of(outbox_body(outbox, envelope), envelope->body_length),
                            .length = envelope->body_length,
                            .read = {.data = bulk->data, .length = bulk->length}};
    if (shared && bulk->segment)
        parcel.holder.segment = shared_segment_keep(bulk->segment);
    else
        parcel.read.data = parcel.bulk = copy_of_bulk(bulk->data, bulk->length);
    return parcel;
}

struct parcel parcel_copy(const struct parcel *parcel) {
    struct parcel copy = *parcel;
    copy.body = copy_of(parcel->body, parcel->length);
    copy.read.data = copy.bulk = copy_of_bulk(parcel->read.data, parcel->read.length);
    copy.holder.segment = NULL;
    return copy;
}

void parcel_release(struct parcel *parcel) {
    free(parcel->body);
    free(parcel->bulk);
    shared_segment_release(parcel->holder.segment);
}

struct message parcel_message(struct parcel *parcel) {
    struct message message = decoded_body(parcel->type, parcel->term, parcel->body, parcel->length);
    message.bulk = parcel->read;
    message.bulk.from = &parcel->holder.holder;
    return message;
}
