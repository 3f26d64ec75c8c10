/* Clocks. State machines are handed the time; only mains, rims and the log ask for it. */
#ifndef DML_BASE_CLOCK_H
#define DML_BASE_CLOCK_H

#include <stdint.h>

/* Nanoseconds since some fixed instant; never jumps. For durations and deadlines. */
int64_t clock_monotonic_ns(void);

/* Milliseconds since 1970 UTC. For records that people read. */
int64_t clock_wall_ms(void);

#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S INT64_C(1000000000)

#endif
