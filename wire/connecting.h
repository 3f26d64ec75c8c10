/* Connecting without blocking the event loop: a name is resolved in a thread, and an attempt that
 * nobody answers ends at its deadline. */
#ifndef DML_WIRE_CONNECTING_H
#define DML_WIRE_CONNECTING_H

struct event_base;
struct connecting; /* opaque */

/* The result of an attempt. Code 0: the descriptor is connected and non-blocking, and belongs to
 * the callee. Otherwise ERROR_UNAVAILABLE or ERROR_USAGE; error_text() says why, and the callee
 * clears it. The struct connecting is already freed. */
typedef void connecting_done(void *context, int code, int descriptor);

/* Connects to an address (wire/peer.h). `done` is called from the loop, once and never from within
 * this call, at the latest after `timeout_ms`. */
struct connecting *connecting_new(struct event_base *base, const char *address, int timeout_ms,
                                  connecting_done *done, void *context);

/* Gives the attempt up: `done` is not called. Harmless on NULL. */
void connecting_free(struct connecting *connecting);

#endif
