/* Connecting without blocking the event loop: a name is resolved in a thread, the handshake of TLS
 * is made where the address needs it (wire/peer.h), and an attempt that nobody answers ends at its
 * deadline. */
#ifndef DML_WIRE_CONNECTING_H
#define DML_WIRE_CONNECTING_H

struct event_base;
struct channel;
struct connecting; /* opaque */
struct tls;

/* The result of an attempt. Code 0: the channel stands, and belongs to the callee. Otherwise
 * ERROR_UNAVAILABLE, ERROR_USAGE, or ERROR_PERMISSION if there is no key or another one at either
 * end; error_text() says why, and the callee clears it. The struct connecting is already freed. */
typedef void connecting_done(void *context, int code, struct channel *channel);

/* Connects to an address (wire/peer.h). `tls` is the key, or NULL; it must outlive the channel.
 * `done` is called from the loop, once and never from within this call, at the latest after
 * `timeout_ms`. */
struct connecting *connecting_new(struct event_base *base, const char *address,
                                  const struct tls *tls, int timeout_ms, connecting_done *done,
                                  void *context);

/* Gives the attempt up: `done` is not called. Harmless on NULL. */
void connecting_free(struct connecting *connecting);

#endif
