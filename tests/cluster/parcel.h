/* A message under way between two state machines. Body and bulk lie in memory of their exact sizes,
 * so that a sanitizer sees who reads beyond them. */
#ifndef DML_TESTS_CLUSTER_PARCEL_H
#define DML_TESTS_CLUSTER_PARCEL_H

#include "tests/cluster/memory.h"
#include "wire/message.h"

struct parcel {
    enum message_type type;
    uint64_t term;
    uint8_t *body, *bulk; /* owned; bulk may lie in `holder.segment` instead */
    size_t length;        /* of the body */
    struct bulk read;     /* the bulk, for the receiver */
    struct parcel_holder holder;
};

/* Takes a copy of what is to be sent; of bulk in a segment only a reference, if that is `shared`.
 */
struct parcel parcel_pack(const struct outbox *outbox, const struct envelope *envelope,
                          bool shared);
struct parcel parcel_copy(const struct parcel *parcel);
void parcel_release(struct parcel *parcel);

/* As the receiver reads it; valid while the parcel lives and stays in its place. */
struct message parcel_message(struct parcel *parcel);

#endif
