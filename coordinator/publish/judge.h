/* Whether a new model may go live: both models scored on the holdout, and the gate. */
#ifndef DML_COORDINATOR_PUBLISH_JUDGE_H
#define DML_COORDINATOR_PUBLISH_JUDGE_H

#include <jansson.h>
#include <stdbool.h>

#include "coordinator/run/holdout.h"
#include "coordinator/job/job.h"

struct judgement {
    bool holds;         /* the gate, or there is none */
    char *why;          /* for people: which conditions hold, or those that do not */
    json_t *gate;       /* [{condition, new, live, holds}] */
    json_t *new, *live; /* figures on the holdout; NULL: there are none */
};

/* Judges the model in folder `new` against that in folder `live`, NULL if none is live. `holdout`
 * is NULL if the job has none, and then so is its gate. A live model that cannot be read or scored
 * is reported, and fulfils nothing. Release it also after a failure. */
int judge(const struct job *job, const struct holdout *holdout, const char *new, const char *live,
          struct judgement *judgement);
void judgement_release(struct judgement *judgement);

#endif
