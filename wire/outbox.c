#include "wire/outbox.h"

#include <stdlib.h>

#include "base/memory.h"

void outbox_init(struct outbox *outbox) {
    *outbox = (struct outbox){0};
    bytes_init(&outbox->bodies);
}

void outbox_release(struct outbox *outbox) {
    free(outbox->envelopes);
    bytes_release(&outbox->bodies);
    outbox_init(outbox);
}

void outbox_clear(struct outbox *outbox) {
    outbox->count = 0;
    bytes_clear(&outbox->bodies);
}

void outbox_add(struct outbox *outbox, uint32_t to, const struct message *message) {
    MEMORY_ROOM(outbox->envelopes, outbox->count, outbox->capacity);
    while (outbox->bodies.length % 8)
        bytes_put_u8(&outbox->bodies, 0);
    struct envelope *envelope = &outbox->envelopes[outbox->count++];
    *envelope = (struct envelope){.to = to,
                                  .type = message->type,
                                  .epoch = message->epoch,
                                  .body_offset = outbox->bodies.length,
                                  .bulk = message->bulk};
    message_encode(message, &outbox->bodies);
    envelope->body_length = outbox->bodies.length - envelope->body_offset;
}

const void *outbox_body(const struct outbox *outbox, const struct envelope *envelope) {
    return outbox->bodies.data + envelope->body_offset;
}
