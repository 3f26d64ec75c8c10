/* Connecting without blocking the event loop: names are resolved in a thread of their own, and a
 * connection that is not answered ends at its deadline. */
#ifndef DML_WIRE_CONNECTING_H
#define DML_WIRE_CONNECTING_H

struct event_base;
struct connecting; /* opaque */

/* Code 0: the descriptor is connected and non-blocking, and is the callee's. Otherwise
 * ERROR_UNAVAILABLE or ERROR_USAGE, and error_text() says why: the callee clears it. The struct
 * connecting is gone by then. */
typedef void connecting_done(void *context, int code, int descriptor);

/* Connects to an address (wire/peer.h). `done` is called from the loop, once and never from within
 * this call, at the latest after `timeout_ms`. */
struct connecting *connecting_new(struct event_base *base, const char *address, int timeout_ms,
                                  connecting_done *done, void *context);

/* Gives it up: `done` is not called. Harmless on NULL. */
void connecting_free(struct connecting *connecting);

#endif
