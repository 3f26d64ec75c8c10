/* Memory that processes of one host can share: a memfd, mapped. Bulk in a segment is not sent to a
 * peer on a Unix socket: the peer gets the descriptor once, and after that only offsets.
 *
 * The segment belongs to the process that made it, which alone writes into it. wire/bulk.h says how
 * long a reader may rely on what it finds there. */
#ifndef DML_WIRE_SEGMENT_H
#define DML_WIRE_SEGMENT_H

#include <stddef.h>
#include <stdint.h>

struct segment {
    uint32_t id; /* unique in this process */
    int descriptor;
    size_t length;
    void *start; /* page-aligned, zeroed */
};

/* Never fails: if there is no memfd or no memory, the process ends with a message. */
struct segment *segment_new(size_t length);
void segment_free(struct segment *segment); /* a peer that has mapped it keeps its mapping */

#endif
