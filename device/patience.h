/* Inside device/ only: waiting for a device by asking it again and again, since one that hangs
 * would never wake who waits. */
#ifndef DML_DEVICE_PATIENCE_H
#define DML_DEVICE_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct patience {
    int64_t since_ns, most_ns;
};

void patience_begin(struct patience *patience, uint64_t most_ms);

/* To be called when the device was asked and has not ended. Returns true when it is time to ask
 * again: at once in the first microseconds, as most waits are short, then after a pause that is a
 * small share of the wait so far, so that no core is kept busy. False: it has lasted too long. */
bool patience_lasts(const struct patience *patience);

/* Writes that it was too long, as device/backend.h says of `why`. */
void patience_over(uint64_t most_ms, char *why);

#ifdef __cplusplus
}
#endif

#endif
