/* One connection that carries framed messages, on libevent.
 *
 * A frame is a 64-byte header (magic, version, type, term, lengths, checksums: see wire/frame.h),
 * the body, and the bulk. A peer that sends a bad frame is dropped, and the reason is counted. Bulk
 * is received directly into its place, without a copy. */
#ifndef DML_WIRE_PEER_H
#define DML_WIRE_PEER_H

#include <stdbool.h>

#include "base/failpoint.h"
#include "wire/bulk.h"
#include "wire/channel.h"
#include "wire/message.h"

struct event_base;
struct peer; /* opaque */

struct peer_callbacks {
    /* A whole message was received. Its fields and bulk are valid during the call.
     * bulk_keep(), called in it, keeps the bulk longer. */
    void (*message)(void *context, struct peer *peer, const struct message *message);
    /* The connection is gone, and why ("closed by the other end", "bad checksum"). The peer frees
     * itself after the call. Not called for peer_free(). */
    void (*closed)(void *context, struct peer *peer, const char *reason);
};

/* Takes over a channel. */
struct peer *peer_new(struct event_base *base, struct channel *channel,
                      const struct peer_callbacks *callbacks, void *context);

/* A peer for a process that connected to us and is not known yet. Until peer_trust() it may only
 * send HELLO, GREET and PING, and little memory is used for it. */
struct peer *peer_new_stranger(struct event_base *base, struct channel *channel,
                               const struct peer_callbacks *callbacks, void *context);
void peer_trust(struct peer *peer);

/* How long the rest of an incomplete frame may take to go on before the peer is dropped; 30 s by
 * default. */
void peer_set_patience(struct peer *peer, int patience_ms);

void peer_free(struct peer *peer); /* closes; queued messages are lost. Safe in callbacks */

/* Queues a message, never blocks. */
void peer_send(struct peer *peer, const struct message *message);
void peer_send_envelope(struct peer *peer, const struct outbox *outbox,
                        const struct envelope *envelope);

/* Queues messages from now on; then sends them together. Many small ones take a few calls of the
 * system instead of one each. Holding twice is holding once. */
void peer_hold(struct peer *peer);
void peer_let_go(struct peer *peer);

/* Bytes that are queued because the system has not taken them yet. */
size_t peer_queued(const struct peer *peer);

/* Two failpoints a message, such as send_STAGE and receive_STAGE: the peers visit them. */

enum {
    MESSAGE_FAILPOINTS_BEGIN = FAILPOINTS - 1,
#define MESSAGE(NAME, name, number, limit, bulk, text, fields)                                     \
    FAILPOINT_send_##NAME, FAILPOINT_receive_##NAME,
#include "wire/messages.def"
    MESSAGE_FAILPOINTS_END,
    MESSAGE_FAILPOINTS = MESSAGE_FAILPOINTS_END - FAILPOINTS,
};

/* For failpoint_setup(). */
extern const struct failpoint_row message_failpoints[MESSAGE_FAILPOINTS];

/* Visited before a message is sent, and after one was received, before the role gets it. */
void failpoint_send(enum message_type type);
void failpoint_receive(enum message_type type);

#endif
