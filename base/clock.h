/* Clocks, and signs of life of a thread that is at long work. State machines are handed the time:
 * only main(), the I/O shell and the log ask for it. */
#ifndef DML_BASE_CLOCK_H
#define DML_BASE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

/* Nanoseconds since some fixed instant; never jumps. For durations and deadlines. */
int64_t clock_monotonic_ns(void);

/* Milliseconds since 1970 UTC. For records that people read. */
int64_t clock_wall_ms(void);

/* Such a time for people, to the minute and of where they are: "2026-11-20 02:15". */
#define CLOCK_MINUTE 24
void clock_minute(int64_t wall_ms, char text[CLOCK_MINUTE]);

#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S INT64_C(1000000000)

/* ---- signs of life of a thread that is at long work ----
 *
 * The loop of a worker does not turn, and answers nobody, while its thread works at vectors or
 * files. So long work calls heartbeat() between portions of at most some milliseconds each, and the
 * I/O shell has said what is to happen then. It is the work that calls it, and no other thread: a
 * worker that is stopped, or that hangs, gives no sign. */

/* From now on heartbeat() in this thread calls `beat`, which must be fast; NULL: nothing, as before
 * the first call. */
void heartbeat_call(void (*beat)(void *context), void *context);

void heartbeat(void);

/* memset() to 0 and memcpy() of a vector, in portions. */
void heartbeat_clear(void *start, size_t bytes);
void heartbeat_copy(void *to, const void *from, size_t bytes);

#endif
