/* The I/O shell of the coordinator: binds its state machine to sockets, the clock, signals and
 * worker processes. */
#ifndef DML_COORDINATOR_RUN_CLUSTER_H
#define DML_COORDINATOR_RUN_CLUSTER_H

#include "coordinator/job/sizing.h"
#include "coordinator/machine/coordinator.h"
#include "coordinator/run/launch.h"

struct event_base;
struct cluster; /* opaque */

/* Takes one record; an error ends the run. */
typedef int cluster_record(void *context, const struct coordinator *coordinator,
                           const struct output *output, const struct record *record);

/* Commits what was recorded, before messages are sent that rely on it. */
typedef int cluster_commit(void *context);

/* Called about ten times a second while the run goes on: to commit, to show progress. */
typedef int cluster_tick(void *context, const struct coordinator *coordinator);

struct cluster_options {
    /* By link, shards first; changed when a worker is started anew, and when replicas join, for as
     * many of which as there may be there is room here and in `launched`. */
    const char **addresses;
    struct launched **launched; /* by link; NULL for a worker that someone else started */
    struct launch *launch;
    const struct set *set;   /* for replicas that do not see its file; NULL: all do */
    const struct tls *tls;   /* the key, or NULL if no address needs one */
    double wait_seconds;     /* for workers that someone else starts; 0: they must be there */
    char *const *names;      /* addresses, of which some dns:NAME:PORT list replicas, or NULL */
    struct hosts *hosts;     /* that workers are started on; NULL: on none */
    double seconds_max;      /* of the run; infinity: no limit */
    struct memory_need need; /* of its workers, for messages */
    cluster_record *record;
    cluster_commit *commit;
    cluster_tick *tick;
    void *context;
};

/* Begins to connect to all workers. A worker of our own that is not there is started anew. A worker
 * that someone else starts is waited for (coordinator/run/missing_workers.h). What `options` points
 * to must outlive the cluster. */
struct cluster *cluster_new(struct event_base *base, struct coordinator *coordinator,
                            const struct cluster_options *options);

/* Runs until the model was read, or until the run failed or was cancelled. */
int cluster_run(struct cluster *cluster);

/* Ends the run at its last accepted point. The first call makes the last step durable before that;
 * the second call ends the run at once. */
void cluster_cancel(struct cluster *cluster);

/* For whom the run waits, in words: see missing_text(). */
char *cluster_waits_for(const struct cluster *cluster);

/* Tells the workers to exit, or with `again` to wait for the next run, and turns the loop until
 * these messages were sent (two seconds at most). The state machine is asked nothing after that.
 * Harmless the second time. */
void cluster_dismiss(struct cluster *cluster, const char *why, bool again);

void cluster_free(struct cluster *cluster);

#endif
