/* What a command that trains holds from its first moment to its last: the lock on the state folder,
 * the store, the loop, the servers that answer from them, and the workers. A command may train
 * several times in one session (coordinator/run/training.h). */
#ifndef DML_COORDINATOR_RUN_SESSION_H
#define DML_COORDINATOR_RUN_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "coordinator/job/job.h"
#include "coordinator/job/options.h"
#include "coordinator/run/dataset.h"
#include "coordinator/machine/hosts.h"
#include "coordinator/run/invocation.h"
#include "coordinator/run/launch.h"
#include "coordinator/run/loop.h"
#include "coordinator/status/control.h"
#include "coordinator/status/http.h"
#include "store/store.h"
#include "wire/channel.h"

struct training;

struct session {
    const struct options *options;
    const char *command; /* "run" or "retrain": recorded with a new run */
    struct job *job;
    struct training *training;       /* the one that the servers show, and that a signal stops */
    json_t *(*sweep)(void *context); /* makes what the status shows of the sweep under way; NULL */
    void *sweep_context;
    struct loop loop;
    int lock; /* descriptor, or −1 */
    struct store *store;
    struct invocation invocation;
    struct control *control;
    struct http *http;                   /* the status server, or NULL */
    struct row_explainer *row_explainer; /* for it, or NULL */
    int64_t watched_ns;                  /* when a page last asked for the status; 0: never */
    bool told;                           /* and it was told that the run has ended */
    struct launch launch;
    struct hosts hosts; /* none: workers are started here */
    struct tls *tls;    /* STATE/key; NULL while nobody needs it */
    bool rests;         /* the workers served a member of a sweep, and wait for the next one */
};

/* A store_may_upgrade: refuses while a run is unfinished that only an older program can end. */
int session_may_upgrade(struct store *preview);

/* Takes the lock of the state folder, opens the store, records that the command begins (its end is
 * for the caller to record: invocation_end()), and answers over the control socket and the
 * status server from now on. ERROR_AGAIN if someone else has the lock, ERROR_UNAVAILABLE the
 * server's address; and what devices_check() answers. */
int session_open(struct session *session);

/* Opens the job's data, beside the loop. As dataset_open(), in the order of the columns of a model
 * that the run starts from or is compared with; NULL: there is none. */
int session_read(struct session *session, const char *model, struct dataset *data);

/* Releases all of it, and the job. No training is left. */
void session_close(struct session *session);

/* Ends the workers of its trainings: waits up to `grace_ms` until those exit that were told to, and
 * turns the loop meanwhile. Forgets what is known of hosts. */
void workers_release(struct session *session, int grace_ms);

/* What a command answers while it runs: over the control socket and by the status server. */

/* Takes the control socket and, if the job has one, the status server's address; answers from now
 * on, whenever the loop turns. ERROR_UNAVAILABLE. */
int status_begin(struct session *session);

/* Tells a page that watches how the run ended: waits until it has asked once more, 4 s at most.
 * If none has asked of late it does not wait. The result is complete, and nothing is left to do. */
void status_last(struct session *session);

/* Ends what status_begin() began. Harmless if that was not called. */
void status_end(struct session *session);

#endif
