/* A process that runs out of memory. Apart from what takes memory, since the library does not end
 * the process that it is part of (library/instead.c). */
#include <stdio.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/memory.h"

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
