/* What a seed stands for: a job, a cluster, and its faults. */
#ifndef DML_TESTS_SIM_SCHEDULE_H
#define DML_TESTS_SIM_SCHEDULE_H

#include "tests/sim/cluster.h"

/* Seeds that follow one another share a job, whose expected outcome is found once. */
#define SEEDS_A_JOB 16

/* The cluster of a seed. */
struct cluster_shape schedule_shape(uint64_t seed);

/* Plans faults over a run that takes about `usual_ns` without them; they end by the
 * time that is answered. */
int64_t schedule_faults(struct cluster *cluster, int64_t usual_ns);

#endif
