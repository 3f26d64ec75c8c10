/* The memories that a library's process shares, as its parent sees them. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "plugin/ask.h"

/* So much before what the library writes is looked at afterwards, and what is behind it up to the
 * end of the memory. No number that is added to the pattern leaves it as it is, but the smallest.
 */
#define GUARD_BYTES 4096
#define GUARD_PATTERN 0xa5

/* Nobody can make it shorter, as a touch of what is missing would end the parent, too. What the
 * library reads can also not be written but by this process, which mapped it before; a system that
 * does not know that seal relies on how the library's process maps it. */
static int seal(int descriptor, enum plugin_shared which) {
    if (which == PLUGIN_INPUT)
        fcntl(descriptor, F_ADD_SEALS, F_SEAL_FUTURE_WRITE);
    return fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
}

static int make(struct plugin_memory *memory, enum plugin_shared which, size_t bytes) {
    memory->descriptor = memfd_create("plug-in's rows", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (memory->descriptor < 0 || ftruncate(memory->descriptor, (off_t)bytes))
        return -1;
    void *start = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory->descriptor, 0);
    if (start == MAP_FAILED)
        return -1;
    memory->start = start;
    memory->bytes = bytes;
    return seal(memory->descriptor, which);
}

void plugin_memory_release(struct plugin_memory *memory) {
    if (memory->descriptor >= 0)
        close(memory->descriptor);
    if (memory->start)
        munmap(memory->start, memory->bytes);
    *memory = (struct plugin_memory){.descriptor = -1};
}

int plugin_room(struct plugin *plugin, enum plugin_shared which, size_t bytes) {
    struct plugin_memory *memory = &plugin->memory[which];
    if (bytes <= memory->bytes)
        return 0;
    bytes = (bytes + bytes / 4 + 65535) / 65536 * 65536;
    plugin_memory_release(memory);
    if (make(memory, which, bytes) == 0)
        return 0;
    return plugin_remember(
        plugin, error_set_errno(ERROR_UNAVAILABLE,
                                "plug-in %s: there are no %zu bytes of memory for its rows and "
                                "parameters",
                                plugin->source.library, bytes));
}

/* What is written ends where the memory does, but for what a line of the cache leaves: so what is
 * written far behind it ends the process. */
int plugin_write_room(struct plugin *plugin, enum plugin_shared which, uint64_t count,
                      uint64_t *at) {
    struct plugin_memory *memory = &plugin->memory[which];
    size_t bytes = count * sizeof(double), lines = (bytes + 63) / 64 * 64;
    int code = plugin_room(plugin, which, lines + GUARD_BYTES);
    if (code)
        return code;
    *at = memory->bytes - lines;
    memset(memory->start + *at - GUARD_BYTES, GUARD_PATTERN, GUARD_BYTES);
    memset(memory->start + *at, 0, bytes);
    memset(memory->start + *at + bytes, GUARD_PATTERN, lines - bytes);
    return 0;
}

/* The first byte that was written; `end` if none was. */
static const char *first_written(const char *start, const char *end) {
    if (start == end ||
        (*start == (char)GUARD_PATTERN && memcmp(start, start + 1, (size_t)(end - start) - 1) == 0))
        return end;
    while (start < end && (unsigned char)*start == GUARD_PATTERN)
        start++;
    return start;
}

int plugin_take(struct plugin *plugin, enum plugin_shared which, const char *function,
                uint64_t count, double *to) {
    const struct plugin_memory *memory = &plugin->memory[which];
    size_t bytes = count * sizeof(double);
    const char *end = memory->start + memory->bytes, *start = end - (bytes + 63) / 64 * 64;
    memcpy(to, start, bytes);
    const char *below = first_written(start - GUARD_BYTES, start);
    const char *above = first_written(start + bytes, end);
    if (below == start && above == end)
        return 0;
    long long element = below < start ? -((start - below + 7) / 8) : (above - start) / 8;
    return plugin_refuse(plugin,
                         "%s writes element %lld of `%s`, which has %llu: it writes where it must "
                         "not",
                         function, element, plugin_shared_name(which, function),
                         (unsigned long long)count);
}
