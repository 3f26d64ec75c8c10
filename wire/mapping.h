/* Segments of other processes, mapped here for reading, and which of them a connection knows.
 *
 * A connection knows up to SEGMENT_PLACES segments: the one with id i has place i mod
 * SEGMENT_PLACES. A segment that takes another's place comes with its descriptor again, so both
 * ends agree on what is known without a word about it. */
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

/* Maps the whole of a descriptor that is sealed against shrinking; NULL if it is not, or cannot be
 * mapped. The descriptor stays the caller's. One reference is the caller's. */
struct shared_mapping *shared_mapping_new(int descriptor, uint32_t id);

struct shared_mapping *shared_mapping_keep(struct shared_mapping *mapping);
void shared_mapping_release(struct shared_mapping *mapping); /* NULL is fine; from any thread */

#endif
