/* How a worker of this machine ended: perhaps for lack of memory. */
#ifndef DML_COORDINATOR_RUN_STARVING_H
#define DML_COORDINATOR_RUN_STARVING_H

#include "coordinator/job/sizing.h"
#include "coordinator/run/launch.h"

struct starving {
    struct memory_need need; /* of the run */
    uint64_t kills;          /* memory_kills() when it was asked last */
};

struct starving starving_begin(const struct memory_need *need);

enum ending {
    ENDED,         /* otherwise */
    ENDED_KILLED,  /* the system has killed a process for want of memory since it was asked last */
    ENDED_REFUSED, /* it was refused memory, and said so by its status */
};

/* How the process ended, to complete "replica 2 …" where memory is why, else "replica 2 was lost:
 * …". Free it. */
char *starving_ending(struct starving *starving, const struct launched *launched,
                      enum ending *kind);

#endif
