/* What "auto" means: how long the history is and how many workers there are. */
#ifndef DML_COORDINATOR_JOB_SIZING_H
#define DML_COORDINATOR_JOB_SIZING_H

#include "coordinator/job/job.h"
#include "data/set.h"

struct sizing {
    uint32_t history; /* curvature pairs */
    uint32_t shards, replicas;
    uint32_t threads; /* per replica; 0: each uses what its machine has */
};

/* The history depends on the data's shape alone, as the model does; numbers of workers on the
 * machine, as the model does not. ERROR_CONFIG if the job's numbers contradict one another. */
int sizing_of(const struct job *job, const struct set_info *data, uint64_t parameters,
              struct sizing *sizing);

#endif
