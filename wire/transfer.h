/* The receiving half of a connection: bytes in, checked messages out. No event loop here. */
#ifndef DML_WIRE_TRANSFER_H
#define DML_WIRE_TRANSFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/bulk.h"
#include "wire/channel.h"
#include "wire/frame.h"
#include "wire/message.h"

#define INLET_BUFFER_BYTES (64u << 10)
#define INLET_STRANGER_BYTES (4u << 10) /* the buffer while it is not known who sends */
#define INLET_DESCRIPTORS 16            /* received, and not yet asked for by a frame */

enum inlet_state {
    INLET_MESSAGE, /* a message is there, until the next call */
    INLET_WAIT,    /* more bytes are needed */
    INLET_CLOSED,  /* the connection has ended between two frames; `why` says how */
    INLET_BAD,     /* a bad frame, counted; `why` says why */
};

enum inlet_part { INLET_HEADER, INLET_BODY, INLET_BULK };

struct inlet {
    struct bulk_holder holder;
    struct channel *channel; /* not owned */
    const char *why;
    char other_version[80]; /* the text of `why` if the other end is of another version; else "" */
    bool stranger;          /* nothing but HELLO, GREET and PING is taken */
    uint64_t received;      /* bytes */

    /* What is being received, in this order; `got` of `needed` bytes at `place`. */
    enum inlet_part part;
    uint8_t *place;
    size_t got, needed;
    uint8_t raw_header[FRAME_HEADER_BYTES];
    struct frame_header header;
    uint8_t *body, *bulk; /* aligned to 64 bytes */
    size_t body_capacity, bulk_capacity;
    uint8_t *packed;                /* what comes for the bulk, or NULL */
    struct bulk current;            /* of the message handed out */
    struct shared_mapping *mapping; /* where `current` lies, or NULL; `known` holds the reference */

    /* What was received beyond `needed`; NULL while the connection is idle. */
    uint8_t *buffer;
    size_t buffer_at, buffer_end, buffer_bytes;
    bool drained; /* the system had no more at the last read */

    int descriptors[INLET_DESCRIPTORS];
    unsigned descriptor_count;
    struct shared_mapping *known[SEGMENT_PLACES];
};

/* The inlet of a stranger (who has not been welcomed yet) uses little memory until inlet_trust().
 */
void inlet_init(struct inlet *inlet, struct channel *channel, bool stranger);
void inlet_trust(struct inlet *inlet);
void inlet_release(struct inlet *inlet);

/* The next message. Its fields and bulk point into the inlet until the next call. */
enum inlet_state inlet_next(struct inlet *inlet, struct message *message);

/* Whether received bytes wait in the buffer or the channel. The socket will not report these again:
 * inlet_next() must then be called without an event. */
bool inlet_pending(const struct inlet *inlet);

/* Whether a part of a frame was received and the rest is missing. */
bool inlet_within_frame(const struct inlet *inlet);

/* The sending half of a connection: writes at once what the system takes, and queues the rest. */

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
 * end can map. Between hosts it is packed, if that makes it shorter. */
void outlet_send(struct outlet *outlet, enum message_type type, uint64_t term, const void *body,
                 size_t body_length, const struct bulk *bulk);

/* Whether something waits until the socket takes more. Then outlet_flush() must be called. */
bool outlet_waits(const struct outlet *outlet);

/* Sends what is queued, as far as the system takes it. */
void outlet_flush(struct outlet *outlet);

#endif
