/* Lists the GPUs that this build can use; fails if there are none, and says why. */
#include <inttypes.h>
#include <stdio.h>

#include "device/device.h"

int main(void) {
    const char *why = "";
    unsigned count = device_count(DEVICE_CUDA, &why);
    for (unsigned i = 0; i < count; i++) {
        uint64_t bytes;
        const char *name = device_describe(DEVICE_CUDA, i, &bytes);
        printf("%s, %" PRIu64 " MiB\n", name, bytes >> 20);
    }
    if (!count)
        fprintf(stderr, "%s\n", why);
    return count ? 0 : 1;
}
