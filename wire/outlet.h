/* The sending half of a connection: writes at once what the system takes, and queues the rest. */
#ifndef DML_WIRE_OUTLET_H
#define DML_WIRE_OUTLET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/channel.h"
#include "wire/mapping.h"
#include "wire/message.h"

struct outlet_frame; /* what is left of one frame */

struct outlet {
    struct channel *channel; /* not owned */
    struct outlet_frame *first, **end;
    size_t queued;                  /* bytes */
    bool held;                      /* frames are queued until outlet_flush() */
    int error;                      /* errno of the first failure; nothing is sent after it */
    uint32_t known[SEGMENT_PLACES]; /* ids of the segments that the other end has mapped */
};

void outlet_init(struct outlet *outlet, struct channel *channel);
void outlet_release(struct outlet *outlet);

/* Sends or queues a frame. Bulk that must wait is copied, unless it is in a segment that the other
 * end can map. */
void outlet_send(struct outlet *outlet, enum message_type type, uint64_t epoch, const void *body,
                 size_t body_length, const struct bulk *bulk);

/* Whether something waits until the socket takes more: then outlet_flush() is to be called. */
bool outlet_waits(const struct outlet *outlet);

/* Sends what is queued, as far as the system takes it. */
void outlet_flush(struct outlet *outlet);

#endif
