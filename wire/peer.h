/* One connection that carries framed messages, on libevent.
 *
 * A frame is a 64-byte header (magic, version, type, epoch, lengths, checksums: see wire/frame.h),
 * the body, and the bulk. A peer that sends a bad frame is dropped, and the reason is counted. Bulk
 * is received directly into its place, without a copy. */
#ifndef DML_WIRE_PEER_H
#define DML_WIRE_PEER_H

#include <stdbool.h>

#include "wire/bulk.h"
#include "wire/channel.h"
#include "wire/message.h"
#include "wire/outbox.h"

struct event_base;
struct peer; /* opaque */

struct peer_callbacks {
    /* A whole message was received. Its fields and bulk are valid during the call.
     * peer_keep_bulk(), called in it, keeps the bulk longer. */
    void (*message)(void *context, struct peer *peer, const struct message *message);
    /* The connection is gone, and why ("closed by the other end", "bad checksum"). The peer frees
     * itself after the call. Not called for peer_free(). */
    void (*closed)(void *context, struct peer *peer, const char *reason);
};

/* Takes over a channel. */
struct peer *peer_new(struct event_base *base, struct channel *channel,
                      const struct peer_callbacks *callbacks, void *context);

/* The same for a process that connected to us and is not known yet. Until peer_trust() it may only
 * send HELLO, GREET and PING, and little memory is used for it. */
struct peer *peer_new_stranger(struct event_base *base, struct channel *channel,
                               const struct peer_callbacks *callbacks, void *context);
void peer_trust(struct peer *peer);

/* How long a frame that has begun may stand still before the peer is dropped; 30 s by default. */
void peer_set_patience(struct peer *peer, int patience_ms);

void peer_free(struct peer *peer); /* closes; queued messages are lost. Safe in callbacks */

/* Queues a message, never blocks. */
void peer_send(struct peer *peer, const struct message *message);
void peer_send_envelope(struct peer *peer, const struct outbox *outbox,
                        const struct envelope *envelope);

/* Queues messages from now on; then sends them together. Many small ones take a few calls of the
 * system instead of one each. */
void peer_hold(struct peer *peer);
void peer_let_go(struct peer *peer);

/* Bytes that are queued because the system has not taken them yet. */
size_t peer_queued(const struct peer *peer);

/* In a message call: keeps the bulk until kept_bulk_release(), also beyond the end of the peer.
 * Nothing is copied: see wire/bulk.h for who owns it. */
void peer_keep_bulk(struct peer *peer, struct kept_bulk *kept);

/* ---- addresses: "unix:PATH", "HOST:PORT" or "tls:HOST:PORT"; wire/connecting.h connects ----
 *
 * Plain text stays on this machine: a connection to HOST:PORT is plain if that is loopback, and one
 * of TLS to any other host; tls:HOST:PORT is TLS in any case. */

enum address_use {
    ADDRESS_PLAIN,  /* plain text: loopback and Unix sockets only */
    ADDRESS_TLS,    /* TLS, unless it is a Unix socket */
    ADDRESS_PUBLIC, /* plain text for everyone: the status server */
};

/* Listens. The host "any" stands for all addresses of this machine. The file of a Unix socket gets
 * mode 0600. If there is such a file already, it is replaced unless a process answers there. For
 * port 0 the system chooses a port. *bound is the address as others use it; free it.
 * ERROR_UNAVAILABLE, ERROR_PERMISSION or ERROR_USAGE. */
int address_listen(const char *address, enum address_use use, int *descriptor, char **bound);

/* The next connection, non-blocking; −1 and errno. Only processes of the same user, and those of
 * root, may speak to a worker over a Unix socket: others are closed. */
int address_accept(int listener);

/* Whether it is the address of a Unix socket, which only its owner (and root) can reach. */
bool address_is_unix(const char *address);

/* Whether a connection to it may need TLS, as far as can be told without asking a name server. */
bool address_may_need_tls(const char *address);

#endif
