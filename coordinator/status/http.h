/* The status server's rim: a listener, connections and their limits, in the coordinator's loop.
 *
 * It answers GET and HEAD, and costs the run nothing that a stranger could raise. Connections are
 * counted, and the one that has been quiet longest makes room for the next. A connection is served
 * one request at a time, and all together 500 a second; the others wait for their turn. Every
 * request and every answer has one deadline, however slowly bytes trickle. A process without
 * descriptors waits before it accepts again. (libevent's own server, evhttp, lets nobody count its
 * connections or end a slow one, and takes two lengths for one body.)
 *
 * Everything runs in the loop's thread. */
#ifndef DML_COORDINATOR_STATUS_HTTP_H
#define DML_COORDINATOR_STATUS_HTTP_H

#include <stddef.h>
#include <stdint.h>

#include "coordinator/status/refusals.h"
#include "coordinator/status/request.h"
#include "coordinator/status/response.h"

struct event_base;
struct http; /* opaque */

struct http_callbacks {
    /* Fills in the answer to a request that was well formed. */
    void (*answer)(void *context, const struct request *request, struct http_answer *answer);
    void *context;
};

struct http_counts {
    uint64_t requests;    /* answered, whatever the status */
    uint32_t connections; /* now */
    struct refusals refused;
};

/* Listens on ADDRESS:PORT; port 0 picks one. Whoever connects waits until http_serve() and the loop
 * run. An address that others can reach is warned of once. ERROR_UNAVAILABLE, ERROR_PERMISSION. */
int http_new(const char *address, struct http **http);

/* "http://ADDRESS:PORT/". */
const char *http_url(const struct http *http);

/* Serves from now on, whenever the loop runs. */
int http_serve(struct http *http, struct event_base *base, const struct http_callbacks *callbacks);

const struct http_counts *http_counts(const struct http *http);

/* Closes everything; `http` may be NULL. Before the loop's base is freed. */
void http_free(struct http *http);

#endif
