/* Memory. A process that runs out of memory ends with a message. That loses no state, since any
 * process may die at any instant; and callers need no untested branch for it. Its status is
 * MEMORY_STATUS of a worker, by which the coordinator knows why it ended; else that of
 * ERROR_UNAVAILABLE. */
#ifndef DML_BASE_MEMORY_H
#define DML_BASE_MEMORY_H

#include <stddef.h>

#define MEMORY_STATUS 71

/* This process is a worker. */
void memory_is_of_worker(void);

/* Ends the process: so much could not be had. */
_Noreturn void memory_exhausted(size_t count, size_t size);

/* `count` zeroed elements of `size` bytes; never NULL, also for none. Release with free(). */
void *memory_new(size_t count, size_t size);

/* memory_new(), aligned to the lines of the cache: on vectors that cross lines, loops that compute
 * much lose a fifth of their speed. */
void *memory_new_aligned(size_t count, size_t size);

/* Resizes to `count` elements of `size` bytes, as realloc() does; new elements are not zeroed. */
void *memory_resize(void *old, size_t count, size_t size);

/* Makes room for one more element after `count` in an array of `capacity`, which is doubled if it
 * is full. */
#define MEMORY_ROOM(items, count, capacity)                                                        \
    do {                                                                                           \
        if ((count) == (capacity)) {                                                               \
            (capacity) = 2 * (capacity) + 8;                                                       \
            (items) = memory_resize((items), (capacity), sizeof *(items));                         \
        }                                                                                          \
    } while (0)

/* Between these calls the thread must not ask for memory: an assertion holds that it calls none of
 * the functions above, nor memory_map(). For loops whose memory is made before they begin. */
void memory_forbid(void);
void memory_allow(void);

/* A copy of a string. Release with free(). */
char *memory_copy_string(const char *string);

/* A formatted string. Release with free(). */
char *memory_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* `bytes` zeroed bytes for long vectors: mapped privately, page-aligned, on huge pages where the
 * system has them. Release with memory_unmap() and the same size. */
void *memory_map(size_t bytes);
void memory_unmap(void *start, size_t bytes);

/* Gives back a part of such memory that is zero: it stays zero, and takes no room until it is
 * written again. */
void memory_give_back(void *start, size_t bytes);

#endif
