/* The inside of the rim (cluster.h): its connections, and its end. For cluster*.c alone. */
#ifndef DML_COORDINATOR_RUN_CLUSTER_PARTS_H
#define DML_COORDINATOR_RUN_CLUSTER_PARTS_H

#include "coordinator/run/awaiting.h"
#include "coordinator/run/cluster.h"
#include "coordinator/run/starving.h"
#include "wire/connecting.h"
#include "wire/peer.h"

struct event;

/* Everything here runs in the thread of the event loop. Sockets, timers, SIGCHLD and the launcher
 * call it one after the other. */

/* The connection to one worker, over all processes that take that worker's place. */

struct worker_link {
    struct cluster *cluster;
    uint32_t number;
    struct peer *peer;             /* NULL while there is no connection */
    struct connecting *connecting; /* a connection that is being made, or NULL */
    struct event *starter;         /* starts the worker anew and connects */
    char *lost;           /* why the connection ended, if the machine is not told yet; or NULL */
    struct event *teller; /* tells the machine that the connection ended */
};

struct cluster {
    struct event_base *base;
    struct coordinator *coordinator;
    struct cluster_options options;
    struct worker_link *links;
    struct awaiting awaiting; /* workers that someone else starts */
    struct output out;
    struct event *ticker, *limit;
    int64_t guarded_ns;    /* when guard_check() was asked last */
    struct event *drainer; /* carries out what may_wait() at the end of this turn of the loop */
    enum reason stopping;  /* the reason to stop for, REASON_NONE if none */
    struct starving starving;
    bool dismissed;
    int code; /* what the run ends with */
};

/* Sends the messages of the last step. */
void cluster_send(struct cluster *cluster);

#endif
