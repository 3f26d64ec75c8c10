/* Jobs that train on minibatches: `start = downpour` or `optimizer = downpour`. */
#ifndef DML_COORDINATOR_JOB_DOWNPOUR_H
#define DML_COORDINATOR_JOB_DOWNPOUR_H

#include "coordinator/job/job.h"

/* Checks what does not go together with them: ERROR_CONFIG. */
int job_check_downpour(const struct job *job);

#endif
