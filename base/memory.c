#define _GNU_SOURCE
#include "base/memory.h"

#include <assert.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CACHE_LINE 64

/* Arrays of so many bytes are on huge pages where the system has them: to be given them page by
 * page takes longer than to fill them. */
#define LONG_ARRAY_BYTES (UINT64_C(4) << 20)

static _Thread_local bool forbidden; /* memory_forbid() */

void memory_forbid(void) {
    assert(!forbidden);
    forbidden = true;
}

void memory_allow(void) {
    assert(forbidden);
    forbidden = false;
}

/* A hint: a refusal changes nothing but speed. */
static void ask_for_huge_pages(void *start, size_t bytes) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), before = -(uintptr_t)start % page;
    madvise((char *)start + before, (bytes - before) / page * page, MADV_HUGEPAGE);
}

void *memory_new(size_t count, size_t size) {
    assert(!forbidden);
    void *start = calloc(count ? count : 1, size ? size : 1);
    if (!start)
        memory_exhausted(count, size);
    if (count * size >= LONG_ARRAY_BYTES)
        ask_for_huge_pages(start, count * size);
    return start;
}

void *memory_new_aligned(size_t count, size_t size) {
    size_t bytes;
    assert(!forbidden);
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX - CACHE_LINE)
        memory_exhausted(count, size);
    bytes += CACHE_LINE - bytes % CACHE_LINE;
    void *start = aligned_alloc(CACHE_LINE, bytes);
    if (!start)
        memory_exhausted(count, size);
    if (bytes >= LONG_ARRAY_BYTES)
        ask_for_huge_pages(start, bytes);
    return memset(start, 0, bytes);
}

void *memory_resize(void *old, size_t count, size_t size) {
    size_t bytes;
    assert(!forbidden);
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
    assert(!forbidden);
    void *start =
        mmap(NULL, bytes ? bytes : 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED)
        memory_exhausted(bytes, 1);
    ask_for_huge_pages(start, bytes);
    return start;
}

void memory_give_back(void *start, size_t bytes) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = (uintptr_t)start;
    const uintptr_t begin = (first + page - 1) / page * page, end = (first + bytes) / page * page;
    if (begin < end)
        madvise((char *)start + (begin - first), end - begin, MADV_DONTNEED);
}

void memory_unmap(void *start, size_t bytes) {
    if (start)
        munmap(start, bytes ? bytes : 1);
}
