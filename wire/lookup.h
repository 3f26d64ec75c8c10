/* Resolving a name without blocking the event loop.
 *
 * getaddrinfo() has no time limit and cannot be interrupted; with a dead name server it may take
 * minutes. So it runs in a detached thread that nobody joins: to wait for it would block the loop,
 * or the exit. (pthread_cancel() is no way out: it may leave locks and memory of the C library
 * behind.)
 *
 * The thread and the loop share this struct, each with one reference. Whichever lets go last frees
 * it: the loop when it gives up, or the thread when getaddrinfo() returns at last. The thread knows
 * nothing else of who asked: that may be gone by then. */
#ifndef DML_WIRE_LOOKUP_H
#define DML_WIRE_LOOKUP_H

#include <stdatomic.h>
#include <stdbool.h>

#include "wire/address.h"

struct lookup {
    atomic_int holders;
    int ready; /* an eventfd: readable once `settled` */
    char host[ENDPOINT_HOST_BYTES], port[ENDPOINT_PORT_BYTES];
    int failed; /* of getaddrinfo() */
    struct addrinfo *found;
    atomic_bool settled; /* `failed` and `found` are set; to read it orders their reads after it */
};

/* Begins to resolve a host and a port, both shorter than their buffers above. *lookup must be NULL.
 * ERROR_UNAVAILABLE. */
int lookup_new(const char *host, const char *port, struct lookup **lookup);

/* Lets go of the lookup, settled or not. Harmless on NULL. */
void lookup_drop(struct lookup *lookup);

#endif
