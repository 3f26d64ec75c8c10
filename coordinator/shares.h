/* How the chunks of a short evaluation are shared out among replicas at once, so that it ends as
 * early as can be expected. */
#ifndef DML_COORDINATOR_SHARES_H
#define DML_COORDINATOR_SHARES_H

#include <stdint.h>

struct share {
    double chunks_per_ns; /* of the replica; more than 0 */
    uint32_t chunks;      /* found: how many it should be given */
};

/* Shares `chunks` out among `count` > 0 replicas, and returns after how many nanoseconds they end.
 *
 * Each flush costs `flush_ns`, one behind the other: so few chunks go to few replicas, the first of
 * the list. A replica that is so slow that it would end after the others have done all gets none.
 */
double shares_divide(struct share *shares, uint32_t count, uint32_t chunks, double flush_ns);

#endif
