/* The inside of the coordinator's state machine, for its parts alone: who works (membership.h),
 * what outlives a process (recovery.h), and what is computed (steering.h). */
#ifndef DML_COORDINATOR_MACHINE_H
#define DML_COORDINATOR_MACHINE_H

#include "coordinator/coordinator.h"
#include "coordinator/membership.h"
#include "coordinator/recovery.h"
#include "coordinator/steering.h"

struct coordinator {
    struct coordinator_settings settings;
    enum coordinator_phase phase;
    uint64_t parameters;
    struct membership membership;
    struct recovery recovery;
    struct steering *steering;
    bool fenced;
    uint64_t stale; /* messages ignored */
    int64_t ticked_ns;
};

#endif
