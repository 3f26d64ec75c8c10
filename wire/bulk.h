/* Bulk that a receiver keeps beyond the call that brought it. */
#ifndef DML_WIRE_BULK_H
#define DML_WIRE_BULK_H

#include <stddef.h>

#include "wire/message.h"

struct shared_mapping; /* opaque: memory of another process, mapped here */

struct kept_bulk {
    const void *data;               /* 64-byte aligned */
    size_t length;                  /* bytes */
    void *owned;                    /* to free, or NULL */
    struct shared_mapping *mapping; /* counted reference, or NULL */
};

/* Keeps the bulk of a message that is being handed over, until kept_bulk_release(): what came
 * through a peer changes owner without a copy, other bulk is copied. Once a message. */
void bulk_keep(const struct bulk *bulk, struct kept_bulk *kept);

/* Lets go; harmless on a zeroed struct, which it leaves. */
void kept_bulk_release(struct kept_bulk *kept);

#endif
