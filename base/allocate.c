/* Requests for memory by any library in the process of a program. Where memory runs out,
 * libraries return an error like others, which would be taken for invalid JSON or a damaged
 * database, or they crash. So the functions of the C library are replaced, as it allows, by ones
 * that never return NULL. Programs alone have them: the library must not end the process that it is
 * part of, and sanitizers have functions of their own. */
#include <stdlib.h>

#include "base/memory.h"

#ifdef __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
    __has_feature(memory_sanitizer)
#define SANITIZED
#endif
#endif

#if defined __GLIBC__ && !defined SANITIZED && !defined __SANITIZE_ADDRESS__ &&                    \
    !defined __SANITIZE_THREAD__

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);

void *malloc(size_t size) {
    void *memory = __libc_malloc(size);
    if (!memory)
        memory_exhausted(1, size);
    return memory;
}

void *calloc(size_t count, size_t size) {
    void *memory = __libc_calloc(count, size);
    if (!memory)
        memory_exhausted(count, size);
    return memory;
}

/* For a size of 0, realloc() frees the memory, and NULL is no error. */
void *realloc(void *old, size_t size) {
    void *memory = __libc_realloc(old, size);
    if (!memory && size)
        memory_exhausted(1, size);
    return memory;
}

#endif
