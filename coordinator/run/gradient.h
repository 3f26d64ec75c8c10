/* `check --gradient`: whether a plug-in's gradient is that of its loss, on rows of the job's data.
 */
#ifndef DML_COORDINATOR_RUN_GRADIENT_H
#define DML_COORDINATOR_RUN_GRADIENT_H

#include <jansson.h>

#include "coordinator/job/job.h"

/* Packs the data as a run does, and compares. What was found is an object, a new reference; the
 * texts of `found` are for people. ERROR_USAGE if the job has no plug-in, ERROR_AGAIN if a run has
 * the state folder, ERROR_PLUGIN if the gradient is wrong. */
int gradient_check(const struct job *job, json_t **found);

#endif
