/* Counters that never fall. The coordinator's counts fall when it goes back to a durable step; a
 * monitoring system would take that for a restart of the process. */
#ifndef DML_COORDINATOR_STATUS_TALLY_H
#define DML_COORDINATOR_STATUS_TALLY_H

#include "coordinator/coordinator.h"

/* Counts since this process began. Starts as zeros. */
struct tally {
    uint64_t evaluations, minibatches;
    uint64_t safeguards[SAFEGUARDS];
    struct {
        bool known;
        uint64_t evaluations, minibatches;
        uint64_t safeguards[SAFEGUARDS];
    } last;
};

/* Adds what was counted since the last call. Call it from time to time. */
void tally_note(struct tally *tally, const struct coordinator_view *view);

#endif
