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
#ifndef DML_WIRE_MAPPING_H
#define DML_WIRE_MAPPING_H

#include <stddef.h>
#include <stdint.h>

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

#endif
