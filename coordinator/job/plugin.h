/* Jobs with `objective = plugin`: a library of the user's own computes. */
#ifndef DML_COORDINATOR_JOB_PLUGIN_H
#define DML_COORDINATOR_JOB_PLUGIN_H

#include "coordinator/job/job.h"

/* Of a job that has been read: asks the library what it is, in a process of its own, and makes that
 * the job's objective. ERROR_CONFIG or ERROR_PLUGIN names the job file. Harmless for other jobs. */
int job_complete_plugin(struct job *job);

/* Checks what does not go together with a plug-in: ERROR_CONFIG. */
int job_check_plugin(const struct job *job);

/* How the job's library is asked; the texts are the job's. */
struct plugin_source job_plugin_source(const struct job *job);

#endif
