/* Signs of life of a thread that is at long work.
 *
 * The loop of a worker does not turn, and answers nobody, while its thread works at vectors or
 * files. So long work calls heartbeat() between portions of at most some milliseconds each, and the
 * rim has said what is to happen then. It is the work that calls it, and no other thread: a worker
 * that is stopped, or that hangs, gives no sign. */
#ifndef DML_BASE_HEARTBEAT_H
#define DML_BASE_HEARTBEAT_H

#include <stddef.h>

/* From now on heartbeat() in this thread calls `beat`, which must be fast; NULL: nothing, as before
 * the first call. */
void heartbeat_call(void (*beat)(void *context), void *context);

void heartbeat(void);

/* memset() to 0 and memcpy() of a vector, in portions. */
void heartbeat_clear(void *start, size_t bytes);
void heartbeat_copy(void *to, const void *from, size_t bytes);

#endif
