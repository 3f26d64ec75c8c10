/* The messages that a role's state machine wants to send, with their receivers, in order.
 *
 * Adding a message encodes its body at once, so its fields need not outlive the call. Bulk is only
 * referenced. It must not change until the rim has sent the messages, which it does right after
 * each step; bulk in a segment must not change for longer (wire/bulk.h). */
#ifndef DML_WIRE_OUTBOX_H
#define DML_WIRE_OUTBOX_H

#include "wire/message.h"

struct envelope {
    uint32_t to; /* a link number; each role says what its numbers mean */
    enum message_type type;
    uint64_t epoch;
    size_t body_offset; /* in outbox.bodies; a multiple of 8 */
    size_t body_length;
    struct bulk bulk;
};

struct outbox {
    struct envelope *envelopes;
    size_t count, capacity;
    struct bytes bodies;
};

void outbox_init(struct outbox *outbox);
void outbox_release(struct outbox *outbox);
void outbox_clear(struct outbox *outbox);
void outbox_add(struct outbox *outbox, uint32_t to, const struct message *message);
const void *outbox_body(const struct outbox *outbox, const struct envelope *envelope);

#endif
