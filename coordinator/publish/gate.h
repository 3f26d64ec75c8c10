/* What becomes of a new model: it goes live; or it is kept, and another one stays live; or it and
 * the live one are scored on the holdout, and the conditions of the job's gate decide. */
#ifndef DML_COORDINATOR_PUBLISH_GATE_H
#define DML_COORDINATOR_PUBLISH_GATE_H

#include <jansson.h>

#include "coordinator/job/job.h"
#include "coordinator/publish/publish.h"
#include "coordinator/run/dataset.h"

/* Why a model is kept that would go live as nothing else is: it has learnt nothing. */
#define GATE_NO_STEP "its time was over before the first step"

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
 * folder and outcome->result is set. `holdout` is NULL if the job has none; it has no gate either
 * then. `figures` are those of the model on the holdout, NULL if they are not known: after a crash
 * they are computed again. If the live model cannot be read or scored, that is logged, and no
 * condition that compares with it holds. Returns 0 also if the model is refused or on_publish
 * fails: the outcome's code says so. */
int gate_decide(const struct publisher *publisher, const struct job *job,
                const struct holdout *holdout, const struct score_figures *figures, int64_t run,
                struct outcome *outcome);

/* Settles a decision about the model of a run; `why` is for people. Where the model is kept or
 * refused, the live one stays, and the outcome says how to make this one live, or where it is.
 * Returns as gate_decide() does. */
int gate_settle(const struct publisher *publisher, enum decision decision, int64_t run,
                const char *why, struct outcome *outcome);

/* The outcome of a decision that an earlier command had made about the run. */
void gate_recall(const struct publisher *publisher, enum decision decision, int64_t run,
                 struct outcome *outcome);

#endif
