/* One connection that carries framed messages, on libevent.
 *
 * A frame is a 64-byte header (magic, version, type, epoch, lengths, checksums; its layout is in
 * wire/frame.h), the body, and the bulk. A bad frame drops the peer with a counted reason. Control
 * messages are small; bulk is received straight into its place. */
#ifndef DML_WIRE_PEER_H
#define DML_WIRE_PEER_H

#include <stdbool.h>

#include "wire/bulk.h"
#include "wire/message.h"
#include "wire/outbox.h"

struct event_base;
struct peer; /* opaque */

struct peer_callbacks {
    /* A whole message came. Its fields and bulk are valid in the call. Bulk may be kept longer:
     * peer_keep_bulk() in the call makes it the receiver's. */
    void (*message)(void *context, struct peer *peer, const struct message *message);
    /* The connection is gone, and why ("closed by the other end", "bad checksum"). The peer frees
     * itself after the call. Not called for peer_free(). */
    void (*closed)(void *context, struct peer *peer, const char *reason);
};

/* Takes over a connected non-blocking socket. */
struct peer *peer_new(struct event_base *base, int descriptor,
                      const struct peer_callbacks *callbacks, void *context);

/* The same for somebody who connected to us: until peer_trust() nothing but HELLO, GREET and
 * PING is taken, and little memory used. */
struct peer *peer_new_stranger(struct event_base *base, int descriptor,
                               const struct peer_callbacks *callbacks, void *context);
void peer_trust(struct peer *peer);

/* How long the rest of a frame may take to go on; 30 s unless told. */
void peer_set_patience(struct peer *peer, int patience_ms);

void peer_free(struct peer *peer); /* closes; what is queued is lost. Safe in callbacks */

/* Queues a message, never blocks. */
void peer_send(struct peer *peer, const struct message *message);
void peer_send_envelope(struct peer *peer, const struct outbox *outbox,
                        const struct envelope *envelope);

/* Bytes queued and not yet taken by the system. */
size_t peer_queued(const struct peer *peer);

/* In a message call: the bulk now belongs to the caller until kept_bulk_release(). Shared memory
 * stays where it is; copied bytes change owner. The mapping outlives the peer. */
void peer_keep_bulk(struct peer *peer, struct kept_bulk *kept);

/* ---- addresses: "unix:PATH" or "HOST:PORT"; wire/connecting.h connects to one ---- */

/* Listens. A Unix socket gets mode 0600, a stale one is replaced; one that answers is in use.
 * Ports other than on loopback need `anywhere`. ERROR_UNAVAILABLE, ERROR_PERMISSION or ERROR_USAGE.
 * With port 0 the system picks one. *bound is the address as others use it; free it. */
int address_listen(const char *address, bool anywhere, int *descriptor, char **bound);

/* Whether it is that of a Unix socket, which only its owner can reach. */
bool address_is_unix(const char *address);

#endif
