/* Memory that processes of one host can share: a memfd, mapped. Bulk that lies in a segment is
 * handed over in place to a peer on a Unix socket: the descriptor travels once, then offsets. */
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

/* Never fails: where there is no memfd or no memory the process ends with a message. */
struct segment *segment_new(size_t length);
void segment_free(struct segment *segment); /* peers that mapped it keep their mapping */

#endif
