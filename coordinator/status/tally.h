/* Counts that only rise. Those of the coordinator fall when it goes back to a durable step, which a
 * reader of counters would take for a new beginning. */
#ifndef DML_COORDINATOR_STATUS_TALLY_H
#define DML_COORDINATOR_STATUS_TALLY_H

#include "coordinator/coordinator.h"

/* Since this process began. Zeros are a good start. */
struct tally {
    uint64_t evaluations;
    uint64_t safeguards[SAFEGUARDS];
    struct {
        bool known;
        uint64_t evaluations;
        uint64_t safeguards[SAFEGUARDS];
    } last;
};

/* Adds what has risen since it was called last; from time to time. */
void tally_note(struct tally *tally, const struct coordinator_view *view);

#endif
