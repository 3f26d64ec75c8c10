/* Whether a new model may go live: both models scored on the holdout, and the gate. */
#ifndef DML_COORDINATOR_PUBLISH_JUDGE_H
#define DML_COORDINATOR_PUBLISH_JUDGE_H

#include <jansson.h>
#include <stdbool.h>

#include "coordinator/run/holdout.h"
#include "coordinator/job/job.h"

/* What is judged. */
struct trial {
    const struct job *job;
    const struct holdout *holdout; /* NULL if the job has none, and then so is its gate */
    const char *new, *live;        /* folders of models; `live` is NULL if none is live */
    const struct score_figures
        *figures; /* of the new one on the holdout if they are known, or NULL */
};

struct judgement {
    bool holds;         /* the gate, or there is none */
    char *why;          /* for people: which conditions hold, or those that do not */
    json_t *gate;       /* [{condition, new, live, holds}] */
    json_t *new, *live; /* figures on the holdout; NULL: there are none */
};

/* Judges the new model against the live one. A live model that cannot be read or scored is
 * reported, and fulfils nothing. Takes long. Release it also after a failure. */
int judge(const struct trial *trial, struct judgement *judgement);
void judgement_release(struct judgement *judgement);

#endif
