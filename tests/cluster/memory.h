/* Memory that simulated processes share in place of wire/bulk.c: what one
 * writes into a segment the others see at once, as with real shared memory, and a segment lives
 * until the last of them lets go. */
#ifndef DML_TESTS_CLUSTER_MEMORY_H
#define DML_TESTS_CLUSTER_MEMORY_H

#include "wire/bulk.h"

/* The real connection keeps the bulk that it received; here a parcel does. */
struct parcel_holder {
    struct bulk_holder holder;
    struct segment *segment; /* that the bulk lies in, or NULL: in the parcel */
};

struct segment *shared_segment_keep(struct segment *segment);
void shared_segment_release(struct segment *segment); /* NULL is fine */

#endif
