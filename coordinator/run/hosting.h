/* The hosts of a run, between their state machine (coordinator/machine/hosts.h) and the loop. */
#ifndef DML_COORDINATOR_RUN_HOSTING_H
#define DML_COORDINATOR_RUN_HOSTING_H

#include "coordinator/machine/hosts.h"
#include "coordinator/job/job.h"
#include "coordinator/run/loop.h"

/* Finds the hosts that the job names, unless that was done already; none if workers are started
 * here. Turns the loop while Slurm is asked. ERROR_UNAVAILABLE. */
int hosting_find(const struct job *job, struct loop *loop, struct hosts *hosts);

/* The worker failed: says in how long it is to be started anew, where hosts_of() says.
 * ERROR_UNAVAILABLE if no host is left; then the log has a line a host that says why. */
int hosting_next(struct hosts *hosts, uint32_t worker, const char *why, int64_t *delay_ms);

#endif
