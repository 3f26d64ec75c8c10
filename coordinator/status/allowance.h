/* Limits how often something is done: a number a second, and some more at once after a pause. */
#ifndef DML_COORDINATOR_STATUS_ALLOWANCE_H
#define DML_COORDINATOR_STATUS_ALLOWANCE_H

#include <stdbool.h>
#include <stdint.h>

struct allowance {
    double per_second, at_once_most;
    double left; /* how often it could be done at the time `counted_ns` */
    int64_t counted_ns;
};

/* Takes one if any is left; false if none is. */
bool allowance_take(struct allowance *allowance, int64_t now_ns);

#endif
