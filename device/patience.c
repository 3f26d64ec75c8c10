#include "device/patience.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "device/backend.h"

#define BUSY_NS INT64_C(100000)
#define PAUSE_SHARE 32 /* of the time since */
#define PAUSE_NS_MIN INT64_C(10000)
#define PAUSE_NS_MAX INT64_C(1000000)

void patience_begin(struct patience *patience, uint64_t most_ms) {
    patience->since_ns = clock_monotonic_ns();
    patience->most_ns = (int64_t)most_ms * NS_PER_MS;
}

bool patience_lasts(const struct patience *patience) {
    int64_t waited = clock_monotonic_ns() - patience->since_ns;
    if (waited < BUSY_NS)
        return true;
    if (waited >= patience->most_ns)
        return false;
    int64_t pause = waited / PAUSE_SHARE;
    pause = pause < PAUSE_NS_MIN ? PAUSE_NS_MIN : pause > PAUSE_NS_MAX ? PAUSE_NS_MAX : pause;
    nanosleep(&(struct timespec){.tv_nsec = (long)pause}, NULL);
    return true;
}

void patience_over(uint64_t most_ms, char *why) {
    snprintf(why, DEVICE_WHY_BYTES,
             "it hangs: what it was told to do has not ended in %" PRIu64 ".%03" PRIu64 " s",
             most_ms / 1000, most_ms % 1000);
}
