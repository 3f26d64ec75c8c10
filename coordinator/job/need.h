/* How much memory a run needs, about, before it begins. */
#ifndef DML_COORDINATOR_JOB_NEED_H
#define DML_COORDINATOR_JOB_NEED_H

#include "coordinator/job/sizing.h"

/* In bytes, without the data, which is mapped and can be dropped by the system. */
struct memory_need {
    double coordinator, shard, replica; /* of one; what it maps of others' is in it */
    double all;                         /* of all workers and the coordinator, each byte once */
    uint32_t shards, replicas;
};

/* As counted of workers at work: doc/ARCHITECTURE.md has the figures. `block`: with a block
 * preconditioner. */
struct memory_need memory_need_of(const struct job *job, uint64_t parameters,
                                  const struct sizing *sizing, bool block);

/* NULL if a limit here leaves enough for all. Else says what is needed and which limit allows how
 * much. Free it. */
char *memory_need_exceeds(const struct memory_need *need);

/* Why a process of one of the roles ended for lack of memory: "ended for lack of memory: about 1.4
 * GB are needed, 600 MB allowed (ulimit -v)". Free it. */
char *memory_need_unmet(const struct memory_need *need, bool shard);

#endif
