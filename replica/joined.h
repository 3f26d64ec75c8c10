/* A vector whose parts lie in memory of other processes, seen as one: their pages are mapped here,
 * one part after the other, so nothing of it is copied. What is read is what is there at that
 * moment; wire/bulk.h says until when that stands. A part that cannot be mapped, as it came over a
 * network or begins within a page, is copied. */
#ifndef DML_REPLICA_JOINED_H
#define DML_REPLICA_JOINED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/bulk.h"

struct joined {
    uint8_t *start; /* page-aligned */
    size_t length;  /* bytes */
    uint32_t count;
    struct kept_bulk *parts; /* those that are mapped; owned */
    bool unable;             /* the system maps no memory twice */
};

void joined_init(struct joined *joined, size_t length, uint32_t parts);
void joined_release(struct joined *joined); /* harmless on zeroed memory; leaves zeroed memory */

/* The bulk of a message becomes part `number`, which begins at byte `at`. A part has the same place
 * for good, and parts do not overlap. Nothing is to be done, and nothing is, where the same memory
 * came before. No thread may read the vector meanwhile. */
void joined_put(struct joined *joined, uint32_t number, size_t at, const struct bulk *bulk);

#endif
