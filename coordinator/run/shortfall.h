/* Why a run has not converged, and what to do about it; the same for a run that could not begin. */
#ifndef DML_COORDINATOR_RUN_SHORTFALL_H
#define DML_COORDINATOR_RUN_SHORTFALL_H

#include <jansson.h>
#include <stdbool.h>

#include "coordinator/machine/coordinator.h"
#include "coordinator/job/job.h"
#include "coordinator/run/training.h"

/* Sentences, for people: [what was seen, …, what to do]. */
json_t *shortfall_json(const struct training *run);

/* The result's shortfall as warnings in the log, if it has one. */
void shortfall_log(const json_t *result);

/* `--strict`: ERROR_NOT_CONVERGED if the result says that the run has not. */
int shortfall_strict(const json_t *result, bool strict);

/* Steps of Downpour led to where there is no loss: ERROR_DATA, and why. */
int shortfall_diverged(const struct downpour_view *downpour);

/* The run has no point to start from: ERROR_DATA, and why. */
int shortfall_not_finite(const struct set_info *data, const struct job *job, bool from_model);

#endif
