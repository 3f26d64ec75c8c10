#define _GNU_SOURCE
#include "base/memory.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sysexits.h>
#include <unistd.h>

#define CACHE_LINE 64

static int status = EX_UNAVAILABLE;

void memory_is_of_worker(void) {
    status = MEMORY_STATUS;
}

/* At once: what exit() calls may want memory, too, and other threads still use what it releases. */
_Noreturn void memory_exhausted(size_t count, size_t size) {
    fprintf(stderr, "dml: out of memory: %zu elements of %zu bytes could not be had\n", count,
            size);
    _exit(status);
}

void *memory_new(size_t count, size_t size) {
    void *start = calloc(count ? count : 1, size ? size : 1);
    if (!start)
        memory_exhausted(count, size);
    return start;
}

void *memory_new_aligned(size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX - CACHE_LINE)
        memory_exhausted(count, size);
    bytes += CACHE_LINE - bytes % CACHE_LINE;
    void *start = aligned_alloc(CACHE_LINE, bytes);
    if (!start)
        memory_exhausted(count, size);
    return memset(start, 0, bytes);
}

void *memory_resize(void *old, size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        memory_exhausted(count, size);
    void *start = realloc(old, bytes ? bytes : 1);
    if (!start)
        memory_exhausted(count, size);
    return start;
}

char *memory_copy_string(const char *string) {
    char *copy = strdup(string);
    if (!copy)
        memory_exhausted(strlen(string) + 1, 1);
    return copy;
}

char *memory_format(const char *format, ...) {
    char *string;
    va_list arguments;
    va_start(arguments, format);
    int length = vasprintf(&string, format, arguments);
    va_end(arguments);
    if (length < 0)
        memory_exhausted(1, 1);
    return string;
}

void *memory_map(size_t bytes) {
    void *start =
        mmap(NULL, bytes ? bytes : 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED)
        memory_exhausted(bytes, 1);
    madvise(start, bytes, MADV_HUGEPAGE); /* a hint: a refusal changes nothing but speed */
    return start;
}

void memory_unmap(void *start, size_t bytes) {
    if (start)
        munmap(start, bytes ? bytes : 1);
}
