/* The rim of the coordinator: binds its state machine to sockets, the clock and signals. */
#ifndef DML_COORDINATOR_CLUSTER_H
#define DML_COORDINATOR_CLUSTER_H

#include "coordinator/coordinator.h"
#include "coordinator/launch.h"

struct event_base;
struct cluster; /* opaque */

/* Takes the records of each step, in order; an error ends the run. */
typedef int cluster_record(void *context, const struct coordinator *coordinator,
                           const struct record *record);

/* Called about ten times a second while the run goes on: to commit, to show progress. */
typedef int cluster_tick(void *context, const struct coordinator *coordinator);

struct cluster_options {
    const char *const *addresses; /* by link: shards first; as the coordinator reaches them */
    struct launch *launch;        /* workers started here, or NULL */
    double seconds_max;           /* of the run; infinity: no limit */
    cluster_record *record;
    cluster_tick *tick;
    void *context;
};

/* Connects to all workers. Neither argument is owned. */
int cluster_new(struct event_base *base, struct coordinator *coordinator,
                const struct cluster_options *options, struct cluster **cluster);

/* Runs until the model was read, or the run failed or was cancelled. SIGINT and SIGTERM cancel. */
int cluster_run(struct cluster *cluster);

/* Ends the run at its last accepted point, as SIGTERM does. */
void cluster_cancel(struct cluster *cluster);

/* Tells the workers to exit and waits until they were told. */
void cluster_dismiss(struct cluster *cluster, const char *why);

void cluster_free(struct cluster *cluster);

#endif
