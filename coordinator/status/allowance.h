/* A bound on how often something is done: so many a second, and a few more at once after a pause.
 */
#ifndef DML_COORDINATOR_STATUS_ALLOWANCE_H
#define DML_COORDINATOR_STATUS_ALLOWANCE_H

#include <stdbool.h>
#include <stdint.h>

struct allowance {
    double per_second, at_once_most;
    double left; /* how often it may be done at `counted_ns` */
    int64_t counted_ns;
};

/* Takes one of what is left; false if that is none. */
bool allowance_take(struct allowance *allowance, int64_t now_ns);

#endif
