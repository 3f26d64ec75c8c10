/* Memory that processes of one host can share: a memfd, mapped. Bulk in a segment is not sent to a
 * peer on a Unix socket: the peer gets the descriptor once, and after that only offsets.
 *
 * The segment belongs to the process that made it, which alone writes into it. How long a reader
 * may rely on what it finds there is said at struct kept_bulk, below. */
#ifndef DML_WIRE_BULK_H
#define DML_WIRE_BULK_H

#include <stddef.h>
#include <stdint.h>

#include "wire/message.h"

/* What a receiver may rely on, so a sender must provide it. */
#define BULK_ALIGNMENT 64

struct segment {
    uint32_t id; /* unique in this process */
    int descriptor;
    size_t length;
    void *start; /* page-aligned, zeroed */
};

/* Never fails: if there is no memfd or no memory, the process ends with a message. */
struct segment *segment_new(size_t length);
void segment_free(struct segment *segment); /* a peer that has mapped it keeps its mapping */

/* Segments of other processes, mapped here for reading, and which of them a connection knows.
 *
 * A connection knows up to SEGMENT_PLACES segments; the segment with id i has place i mod
 * SEGMENT_PLACES. Both ends keep the same table by the same rule: a frame whose segment is not in
 * its place brings the descriptor along, and the segment takes that place. So no message about the
 * table is needed.
 *
 * A mapping is counted: the connection holds one reference while the segment has its place, and
 * each kept bulk holds another. The last release unmaps it. Bulk may be released in another thread
 * than the loop's, therefore the count is atomic. */

#define SEGMENT_PLACES 256

struct shared_mapping {
    const uint8_t *start;
    size_t length;
    uint32_t id; /* of the segment, in its own process */
    _Atomic unsigned references;
};

/* Maps the whole memory behind a descriptor. NULL if it is not sealed against shrinking: the sender
 * could cut it off while we read, and we would die of SIGBUS. NULL also if it cannot be mapped. The
 * descriptor stays the caller's; the caller gets one reference. */
struct shared_mapping *shared_mapping_new(int descriptor, uint32_t id);

struct shared_mapping *shared_mapping_keep(struct shared_mapping *mapping);
void shared_mapping_release(struct shared_mapping *mapping); /* from any thread; NULL is harmless */

/* Bulk that a receiver keeps beyond the call that brought it.
 *
 * Bytes that were received over the socket become the receiver's. A segment stays the sender's: the
 * receiver only keeps its own read-only mapping of it, so the memory stays there even if the sender
 * closes the connection, frees the segment or dies. But the sender may write into it at any time.
 * The protocol says until when the content stands: a replica writes into a flush's buffer again
 * only after VERDICT, and a shard changes the trial point only in its next program. Whoever still
 * reads then works for a flush or an evaluation that no longer counts. */

struct shared_mapping; /* opaque: memory of another process, mapped here */

struct kept_bulk {
    const void *data;               /* 64-byte aligned */
    size_t length;                  /* bytes */
    void *owned;                    /* to free, or NULL */
    struct shared_mapping *mapping; /* counted reference, or NULL */
};

/* In the call that brings a message: keeps its bulk until kept_bulk_release(). Bulk that came
 * through a peer changes its owner without a copy; other bulk (of tests and the simulator) is
 * copied. At most once for each message. Where peers are: wire/peer.c. */
void bulk_keep(const struct bulk *bulk, struct kept_bulk *kept);

/* Harmless on a zeroed struct; leaves a zeroed struct. */
void kept_bulk_release(struct kept_bulk *kept);

#endif
