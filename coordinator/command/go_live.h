/* Making a model live that is there already: what `rollback` and `publish` share. */
#ifndef DML_COORDINATOR_COMMAND_GO_LIVE_H
#define DML_COORDINATOR_COMMAND_GO_LIVE_H

#include "coordinator/job/options.h"
#include "coordinator/publish/publish.h"

struct go_live {
    const struct options *options;
    struct loop loop;
    char *state;
    int lock;
    struct store *store;
    char *job, *on_publish;
    int64_t from, to; /* runs: what was live, and what goes live. `to` is 0 until it is known */
    bool completed;   /* what an earlier command began was completed */
    const json_t *derived; /* the result of run `to`, if `publish --set` made it; else NULL */
};

/* Takes the lock of the state folder that the operands name, from `first` on, and opens its store;
 * job name and on_publish are those of the job file, if one is named, else of the newest run. Close
 * it also after an error. */
int go_live_open(const struct options *options, int first, struct go_live *live);
void go_live_close(struct go_live *live);

/* The number of the run that a text names, its number or its tag; of several runs with this tag the
 * newest. `what` is the text with its option, for errors. ERROR_UNAVAILABLE if there is none. */
int go_live_find(struct go_live *live, const char *text, const char *what, int64_t *run);

/* Completes what an earlier command decided and did not complete. If that was this decision, about
 * run `to` or, if that is 0, about any, then nothing more is to be done: `completed`. If on_publish
 * fails then, so does this command, as that one would have: ERROR_UNAVAILABLE. */
int go_live_settle_earlier(struct go_live *live, enum decision decision);

/* ERROR_UNAVAILABLE if there is no model of run `to`, or no longer. */
int go_live_check(const struct go_live *live);

/* Reads the model of run `to` back, decides that it is live and settles that. ERROR_UNAVAILABLE if
 * on_publish fails: the model is live nevertheless. */
int go_live_now(struct go_live *live, enum decision decision, const char *why);

/* Decides that the model of a run is kept and not live, and settles that. */
int go_live_keep(struct go_live *live, int64_t run, const char *why);

/* Prints the outcome; `again` is " again" or "", `what` "rollback" or "publication". */
int go_live_show(const struct go_live *live, const char *again, const char *what);

/* Prints, as JSON, that run `to` is what it was: what is live stays. */
int go_live_show_kept(struct go_live *live);

#endif
