/* The hosts that the workers of a run are started on: those that the job names, or those of a Slurm
 * allocation. A job that Slurm starts finds them in its environment; how a host is reached over the
 * network only Slurm knows. */
#ifndef DML_COORDINATOR_RUN_HOST_LOOKUP_H
#define DML_COORDINATOR_RUN_HOST_LOOKUP_H

#include <stdint.h>

#include "coordinator/job/job.h"
#include "coordinator/machine/hosts.h"
#include "coordinator/run/loop.h"

struct slurm_host {
    char *name;    /* Slurm's name of the node, for `srun --nodelist` */
    char *address; /* where the node is reached: a name or an IP address */
    uint32_t cpus; /* of the allocation there that a worker can use; 0: Slurm does not say */
};

struct slurm_allocation {
    struct slurm_host *hosts; /* in Slurm's order: the first runs the batch script */
    uint32_t count;           /* 1 to REPLICAS_MAX */
};

/* Asks Slurm for the hosts of the allocation that this process is in. Runs `scontrol` and waits for
 * it, up to half a minute: for a thread beside the loop. ERROR_UNAVAILABLE outside of an
 * allocation, or if there is no telling what it is. Release it after an error too. */
int slurm_allocation_find(struct slurm_allocation *allocation);
void slurm_allocation_release(struct slurm_allocation *allocation);

/* ---- the parts of it ---- */

/* Makes the hosts: `names` has a name a line, as `scontrol show hostnames` prints them. The name of
 * a host is its address at first. ERROR_UNAVAILABLE. */
int slurm_read_names(struct slurm_allocation *allocation, const char *names);

/* SLURM_JOB_CPUS_PER_NODE: "2(x3),1" are three hosts with 2 CPUs and one with 1. ERROR_UNAVAILABLE
 * if it is no such list, or not for this number of hosts. */
int slurm_read_cpus(struct slurm_allocation *allocation, const char *cpus);

/* Takes the address of each host (NodeAddr) from what `scontrol show node --oneliner` prints, a
 * line a node. A host that is not in it keeps the address that it has. */
void slurm_read_addresses(struct slurm_allocation *allocation, const char *nodes);

/* The hosts of a run, between their state machine (coordinator/machine/hosts.h) and the loop. */

/* Finds the hosts that the job names, unless that was done already; none if workers are started
 * here. Turns the loop while Slurm is asked. ERROR_UNAVAILABLE. */
int hosts_look_up(const struct job *job, struct loop *loop, struct hosts *hosts);

/* The worker failed: says in how long it is to be started anew, where hosts_of() says.
 * ERROR_UNAVAILABLE if no host is left; then the log has a line a host that says why. */
int hosts_next_start(struct hosts *hosts, uint32_t worker, const char *why, int64_t *delay_ms);

#endif
