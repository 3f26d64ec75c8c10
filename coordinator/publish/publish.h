/* Making a model live, in four steps; a crash may come after any of them:
 *
 *   1. the decision is committed
 *   2. `current` is changed, by one rename
 *   3. on_publish is run
 *   4. "settled" is committed
 *
 * The next command that works in the state folder settles a decision that is not settled. So
 * on_publish is run at least once for every change of the live model. The caller holds the lock. */
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

/* The folder of the live model; NULL if there is none. Free it. */
char *publish_live_folder(const char *state);

/* Commits a decision about the model of a run; `why` is for people. The decision before it must be
 * settled. */
int publish_decide(const struct publisher *publisher, enum decision decision, int64_t run,
                   const char *why);

/* Settles the last decision, if it is not settled. ERROR_UNAVAILABLE if on_publish fails: the model
 * is live and the decision settled nevertheless. */
int publish_settle(const struct publisher *publisher);

/* Settles a decision that an earlier command left unsettled; `settled` is zeroed if there is none,
 * and may be NULL. If on_publish fails, that is only logged: it shall not stop this command. */
int publish_settle_earlier(const struct publisher *publisher, struct history_item *settled);

#endif
