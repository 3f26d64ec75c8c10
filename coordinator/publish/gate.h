/* Whether a new model may go live: both models scored on the holdout, and the gate. */
#ifndef DML_COORDINATOR_PUBLISH_GATE_H
#define DML_COORDINATOR_PUBLISH_GATE_H

#include <jansson.h>
#include <stdbool.h>

#include "coordinator/job/job.h"
#include "coordinator/publish/publish.h"
#include "coordinator/run/dataset.h"

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

/* What becomes of a new model: it is judged, and then goes live or is refused. */

/* Its members are owned. */
struct outcome {
    json_t *result; /* of the run, with the outcome added */
    char *text;     /* the outcome in a line */
    int code; /* ERROR_DATA if the model was refused; ERROR_UNAVAILABLE if on_publish failed */
};

/* Sets another code and text; takes ownership of `text`. */
void outcome_set(struct outcome *outcome, int code, char *text);
void outcome_release(struct outcome *outcome);

/* Decides whether the model of a run goes live, and settles that decision. The model is in its
 * folder and outcome->result is set. `holdout` is NULL if the job has none; `figures` are those of
 * the model on the holdout, NULL if they are not known. Returns 0 also if the model is refused or
 * on_publish fails: the outcome's code says so. */
int outcome_decide(const struct publisher *publisher, const struct job *job,
                   const struct holdout *holdout, const struct score_figures *figures, int64_t run,
                   struct outcome *outcome);

#endif
