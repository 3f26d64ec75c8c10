/* What the workers of a job will compute on, as far as that is known before they are there. */
#ifndef DML_COORDINATOR_RUN_DEVICES_H
#define DML_COORDINATOR_RUN_DEVICES_H

#include <stdio.h>

#include "coordinator/job/job.h"

/* Whether the job can have the device that it names: ERROR_CONFIG for work that no device does,
 * ERROR_UNAVAILABLE for a GPU that this machine lacks, if workers are started here. */
int devices_check(const struct job *job);

/* Prints what is where, and why, as lines that begin with "# ". For a job that has passed
 * devices_check(). */
void devices_print(const struct job *job, FILE *out);

#endif
