/* What a model comes to: judged, and live or refused. */
#ifndef DML_COORDINATOR_PUBLISH_OUTCOME_H
#define DML_COORDINATOR_PUBLISH_OUTCOME_H

#include <jansson.h>

#include "coordinator/job/job.h"
#include "coordinator/publish/publish.h"
#include "coordinator/run/holdout.h"

/* All that is set is owned. */
struct outcome {
    json_t *result; /* of the run; what it comes to is added */
    char *text;     /* the same in a line */
    int code;       /* ERROR_DATA if the model was refused, else what on_publish came to */
};

/* Gives it another code and text, which it takes over. */
void outcome_set(struct outcome *outcome, int code, char *text);
void outcome_release(struct outcome *outcome);

/* Decides whether the model of a run goes live, and settles that. The run's folder and the result
 * are there; `holdout` is NULL if the job has none, `figures` (of the model on it) if they are not
 * known. That a model is refused or on_publish fails is
 * no error of this: the outcome has it. */
int outcome_decide(const struct publisher *publisher, const struct job *job,
                   const struct holdout *holdout, const struct score_figures *figures, int64_t run,
                   struct outcome *outcome);

#endif
