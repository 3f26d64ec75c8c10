/* Lists the GPUs that this build can use; fails if there are none, and says why. With --mark it
 * leaves the mark of a checked device, of the first GPU or, with --mark emulated, of the emulated
 * device. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "device/find.h"

static int leave_mark(enum device_kind kind) {
    char *path;
    int code = device_mark_checked(kind, 0, &path);
    if (code)
        fprintf(stderr, "%s\n", error_text());
    else
        printf("%s\n", path);
    free(path);
    return -code;
}

int main(int argc, char **argv) {
    const char *why = "";
    bool mark = argc > 1 && !strcmp(argv[1], "--mark");
    if (mark && argc > 2 && !strcmp(argv[2], "emulated"))
        return leave_mark(DEVICE_EMULATED);
    unsigned count = device_count(DEVICE_CUDA, &why);
    if (!count) {
        fprintf(stderr, "%s\n", why);
        return 1;
    }
    if (mark)
        return leave_mark(DEVICE_CUDA);
    for (unsigned i = 0; i < count; i++) {
        uint64_t bytes;
        const char *name = device_describe(DEVICE_CUDA, i, &bytes);
        printf("%s, %" PRIu64 " MiB\n", name, bytes >> 20);
    }
    return 0;
}
