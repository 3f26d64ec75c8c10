/* The inside of the coordinator's shell (cluster.h): its connections, and how its two sources call
 * each other. For cluster_loop.c and cluster_links.c alone.
 *
 * Everything here runs in the thread of the event loop. Sockets, timers, SIGCHLD and the launcher
 * call it one after the other. */
#ifndef DML_COORDINATOR_RUN_CLUSTER_PARTS_H
#define DML_COORDINATOR_RUN_CLUSTER_PARTS_H

#include "coordinator/run/cluster.h"
#include "coordinator/run/copier.h"
#include "coordinator/run/missing_workers.h"
#include "coordinator/run/name_watch.h"
#include "coordinator/run/set_service.h"
#include "wire/address.h"
#include "wire/peer.h"

struct event;

/* The connection to one worker, over all processes that take that worker's place. */
struct worker_link {
    struct cluster *cluster;
    uint32_t number;
    struct peer *peer;     /* NULL while there is no connection */
    struct dial *dial;     /* a connection that is being made, or NULL */
    struct event *starter; /* starts the worker anew and connects */
    char *lost;            /* why the connection ended, if the machine is not told yet; or NULL */
    struct event *teller;  /* tells the machine that the connection ended */
    uint32_t ungreeted;    /* times in a row that it was lost before it had greeted */
    char *address;         /* of a replica that a name listed, owned; or NULL */
    uint32_t missed;       /* answers in a row that do not list it any more */
    bool left;             /* it has left: the connection ends soon */
    bool came;             /* some process in this place has greeted */
};

struct cluster {
    struct event_base *base;
    struct coordinator *coordinator;
    struct cluster_options options;
    struct worker_link *links;
    struct name_watch *names;       /* of replicas; or NULL */
    int64_t nobody_ns;              /* with names: no replica has been expected since */
    struct missing_workers missing; /* workers that someone else starts */
    struct set_service sets;        /* for replicas that do not see the set's file */
    struct event *server;           /* answers one of their questions in a turn of the loop */
    struct output out;
    struct copier *copier; /* NULL: there are no checkpoints */
    struct event *ticker, *limit;
    int64_t guarded_ns;    /* when guard_check() was asked last */
    struct event *drainer; /* carries out what may wait at the end of this turn of the loop */
    enum reason stopping;  /* the reason to stop for, REASON_NONE if none */
    uint64_t kills;        /* memory_kills() when it was asked last */
    bool dismissed;
    int code; /* what the run ends with */
};

/* ---- cluster_loop.c ---- */

/* Ends the loop; the first code is what the run ends with. */
void cluster_end(struct cluster *cluster, int code);

/* Carries out what a step of the machine asked for; `code` is what the step answered. */
void cluster_after_step(struct cluster *cluster, int code);

/* ---- cluster_links.c ---- */

/* Connects to all workers that listen, and starts those that have ended. */
void links_begin(struct cluster *cluster);

/* Nothing is started or connected to any more, and nobody is told what was lost. Connections stay
 * open. */
void links_rest(struct cluster *cluster);
void links_free(struct cluster *cluster);

/* The machine asked for the worker of this record to be started. */
int link_note_start(struct worker_link *link, const struct record *record);

/* The worker serves another run: `why` says which. */
void link_note_busy(struct worker_link *link, const char *why);

/* The worker's state has changed: it may be there now. */
void link_note_worker(struct worker_link *link);

/* A replica is expected at this address, in a place of its own. */
void link_expect(struct cluster *cluster, uint32_t number, const char *address);

/* The replica has left: what is sent to it now is the last. */
void link_note_left(struct worker_link *link);

/* Looks after what only time tells: hosts that are late or back, workers that do not come. */
void links_watch_hosts(struct cluster *cluster);
void links_check_missing(struct cluster *cluster);

/* ---- cluster_names.c ---- */

/* Replicas that names list are expected and let go as the answers come. */
void elastic_begin(struct cluster *cluster);
void elastic_free(struct cluster *cluster);

/* How long the run waits for a replica that a name lists, or for a name that lists any. */
double elastic_wait_seconds(const struct cluster *cluster);

/* Ends the run if no name has listed a replica for that time. */
void elastic_check(struct cluster *cluster);

/* In words, while the run waits for a name that lists anybody; else NULL. Free it. */
char *elastic_wait_for(const struct cluster *cluster);

#endif
