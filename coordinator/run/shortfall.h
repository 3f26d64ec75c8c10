/* Why a run has not converged, and what to do about it; the same for a run that could not begin. */
#ifndef DML_COORDINATOR_RUN_SHORTFALL_H
#define DML_COORDINATOR_RUN_SHORTFALL_H

#include <jansson.h>
#include <stdbool.h>

#include "coordinator/coordinator.h"
#include "coordinator/job/job.h"
#include "coordinator/run/training.h"

/* Two columns: those with the largest and the least values. */
struct scales {
    uint32_t largest, least;
    double largest_mean, least_mean; /* of |value| */
};

/* From the moments, if there are any: the root mean square of values that are not 0. Else within a
 * factor of two, and only of dense sets: in a sparse one a rare column has a small sum on any
 * scale. False if the set has no columns with values other than zero, or none is known. */
bool scales_of(const struct set_info *data, const struct moments *moments, struct scales *scales);

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
