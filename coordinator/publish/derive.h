/* A model with another threshold, made of the model of a run that has ended: nothing is trained.
 * The model is that of a run of its own, so that both versions stay, a rollback goes from one to
 * the other, and the record says how it came about. A crash leaves the folder of the model without
 * its run, which the next attempt replaces; or both, and the next attempt finds them. */
#ifndef DML_COORDINATOR_PUBLISH_DERIVE_H
#define DML_COORDINATOR_PUBLISH_DERIVE_H

#include <jansson.h>

#include "coordinator/run/loop.h"
#include "model/response.h"
#include "store/store.h"

struct derivation {
    /* The caller's; the caller holds the lock: */
    struct loop *loop;
    struct store *store;
    const char *state;           /* folder */
    int64_t from;                /* a run that has ended with a model, which is there */
    const char *const *settings; /* KEY=VALUE, of job_sets_threshold() */
    uint32_t settings_count;
    /* What was found: */
    int64_t run;                   /* whose model has this threshold; 0: there is none yet */
    json_t *stored;                /* the settings of that run; owned, as are the next two */
    json_t *set;                   /* {key: value} of the keys in `settings` */
    json_t *result;                /* of that run; NULL: there is none yet, or it is `from` */
    struct response_wanted wanted; /* of the model */
};

/* Finds a run that an earlier attempt made, or `from` itself if its model has that threshold.
 * ERROR_USAGE if the settings cannot be those of the run. Release it in any case. */
int derive_find(struct derivation *derivation);

/* Makes the model and its run, unless there is one. The threshold is found, and the figures on the
 * holdout are computed, on the rows that the run has held out, as long as their packs are in the
 * state folder; else figures that depend on the threshold are left out, with a warning. Those on
 * test data are always left out. ERROR_USAGE if the objective has no threshold; ERROR_UNAVAILABLE
 * if rows are needed and gone; errors of reading and writing models. */
int derive_make(struct derivation *derivation);

/* "threshold = cost, cost.false_negative = 5". Free it. */
char *derive_words(const json_t *set);

void derive_release(struct derivation *derivation);

#endif
