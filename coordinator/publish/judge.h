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
    const struct holdout *holdout;       /* NULL if the job has none; it has no gate either then */
    const char *new, *live;              /* folders of models; `live` is NULL if none is live */
    const struct score_figures *figures; /* of `new` on the holdout; NULL if they are not known */
};

struct judgement {
    bool holds;         /* all conditions of the gate hold, or there is no gate */
    char *why;          /* for people: the conditions that do not hold; if all hold, all of them */
    json_t *gate;       /* [{condition, new, live, holds}] */
    json_t *new, *live; /* figures on the holdout; NULL: there are none */
};

/* Judges the new model against the live one. If the live model cannot be read or scored, that is
 * logged, and no condition that compares with it holds. Takes long. Release the judgement also
 * after a failure. */
int judge(const struct trial *trial, struct judgement *judgement);
void judgement_release(struct judgement *judgement);

#endif
