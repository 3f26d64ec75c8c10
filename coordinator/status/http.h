/* The sockets of the status server: a listener, connections and their limits, in the coordinator's
 * loop.
 *
 * The server answers GET and HEAD, and POST to one path. Its cost to the run is bounded, whatever
 * clients do. The number of connections is limited: the one that has been quiet longest is closed
 * for a new one. A connection is served one request at a time, and all connections together 500 a
 * second; other requests wait for their turn. Each request and each answer has a deadline for the
 * whole of it. A process without free descriptors waits before it accepts again. (libevent's own
 * server, evhttp, gives no way to count connections or to end a slow one, and accepts two lengths
 * for one body.)
 *
 * Everything runs in the loop's thread. */
#ifndef DML_COORDINATOR_STATUS_HTTP_H
#define DML_COORDINATOR_STATUS_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "coordinator/status/http_limits.h"
#include "coordinator/status/http_message.h"

struct event_base;
struct http; /* opaque */

struct http_callbacks {
    /* Fills in the answer to a well-formed request. */
    void (*answer)(void *context, const struct request *request, struct http_answer *answer);
    /* Fills in the answer to a POST, whose body is valid during the call, and returns true; or
     * returns false, and http_answer_later() gets the answer with this ticket. Meanwhile no
     * deadline holds for the connection: whoever answers has one. */
    bool (*post)(void *context, const struct request *request, uint64_t ticket,
                 struct http_answer *answer);
    void *context;
};

struct http_counts {
    uint64_t requests;    /* answered, whatever the status */
    uint32_t connections; /* now */
    struct drop_counters dropped;
};

/* Listens on ADDRESS:PORT; port 0 picks a free one. Clients wait until http_serve() was called and
 * the loop runs. Warns once if other machines can reach the address. ERROR_UNAVAILABLE,
 * ERROR_PERMISSION. */
int http_new(const char *address, struct http **http);

/* "http://ADDRESS:PORT/". */
const char *http_url(const struct http *http);

/* Serves from now on, whenever the loop runs. */
int http_serve(struct http *http, struct event_base *base, const struct http_callbacks *callbacks);

/* Sends what a POST waits for and frees its `owned` body. Its connection may be closed by now. */
void http_answer_later(struct http *http, uint64_t ticket, const struct http_answer *answer);

const struct http_counts *http_counts(const struct http *http);

/* Closes everything; `http` may be NULL. Call it before the loop's base is freed. */
void http_free(struct http *http);

#endif
