/* Making a model live, in steps of which each may be the last before a crash:
 *
 *     the decision is committed → `current` changes by one rename → on_publish → "settled" is
 * committed
 *
 * Whoever works in the state folder next settles what was decided and not settled. So on_publish is
 * run at least once for every change of the live model. The caller holds the lock. */
#ifndef DML_COORDINATOR_PUBLISH_PUBLISH_H
#define DML_COORDINATOR_PUBLISH_PUBLISH_H

#include "coordinator/run/loop.h"
#include "coordinator/status/history.h"

struct publisher {
    struct loop *loop; /* on_publish runs beside it */
    struct store *store;
    const char *state;      /* folder */
    const char *job;        /* name */
    const char *on_publish; /* a command for /bin/sh, or NULL */
};

/* The run whose model STATE/models/current leads to; 0 if there is none, or it is gone. */
int64_t publish_live(const char *state);

/* STATE/models/RUN; free it. */
char *publish_folder(const char *state, int64_t run);

/* The same of the live model, NULL if there is none; free it. */
char *publish_live_folder(const char *state);

/* Commits a decision about the model of a run; `why` is for people. The one before is settled. */
int publish_decide(const struct publisher *publisher, enum decision decision, int64_t run,
                   const char *why);

/* Brings the last decision to its end, if it is not settled. ERROR_UNAVAILABLE if on_publish fails:
 * the model is live all the same, and the decision settled. */
int publish_settle(const struct publisher *publisher);

/* The same for what an earlier command left unsettled: if its on_publish fails, that is logged. */
int publish_settle_earlier(const struct publisher *publisher);

#endif
