/* Bulk that a receiver keeps beyond the call that brought it.
 *
 * Bytes that were received over the socket become the receiver's. A segment stays the sender's: the
 * receiver only keeps its own read-only mapping of it, so the memory stays there even if the sender
 * closes the connection, frees the segment or dies. But the sender may write into it at any time.
 * The protocol says until when the content stands: a replica writes into a flush's buffer again
 * only after VERDICT, and a shard changes the trial point only in its next program. Whoever still
 * reads then works for a flush or an evaluation that no longer counts. */
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

/* In the call that brings a message: keeps its bulk until kept_bulk_release(). Bulk that came
 * through a peer changes its owner without a copy; other bulk (of tests and the simulator) is
 * copied. At most once for each message. */
void bulk_keep(const struct bulk *bulk, struct kept_bulk *kept);

/* Harmless on a zeroed struct; leaves a zeroed struct. */
void kept_bulk_release(struct kept_bulk *kept);

#endif
