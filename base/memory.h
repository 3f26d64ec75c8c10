/* Memory. Running out of it ends the process with a message: no state is lost by that, since any
 * process may die at any instant, and no caller has an untested branch for it. */
#ifndef DML_BASE_MEMORY_H
#define DML_BASE_MEMORY_H

#include <stddef.h>

/* `count` zeroed elements of `size` bytes; never NULL, also for none. Release with free(). */
void *memory_new(size_t count, size_t size);

/* Resizes to `count` elements of `size` bytes, as realloc() does; what is new is not zeroed. */
void *memory_resize(void *old, size_t count, size_t size);

/* A copy of a string. Release with free(). */
char *memory_copy_string(const char *string);

/* A formatted string. Release with free(). */
char *memory_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* `bytes` zeroed bytes for long vectors: mapped privately, page-aligned, on huge pages where the
 * system has them. Release with memory_unmap() and the same size. */
void *memory_map(size_t bytes);
void memory_unmap(void *start, size_t bytes);

#endif
