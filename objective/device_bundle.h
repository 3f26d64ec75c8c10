/* Inside objective/ only: many small arrays that lie one behind the other in the memory of a device
 * come there as one copy. Each copy costs a GPU as much as some ten kilobytes of it do. */
#ifndef DML_OBJECTIVE_DEVICE_BUNDLE_H
#define DML_OBJECTIVE_DEVICE_BUNDLE_H

#include <stdint.h>

#include "device/device.h"

/* What arrays are aligned to. */
#define BUNDLE_ALIGNMENT 256

struct device_bundle {
    struct device *device;
    enum device_queue queue;
    char *to; /* where it begins */
    unsigned char *bytes;
    uint64_t length, capacity;
};

void device_bundle_init(struct device_bundle *bundle, struct device *device,
                        enum device_queue queue);
void device_bundle_release(struct device_bundle *bundle); /* forgets what was not flushed */

/* Will have put an array to `to`, which is aligned, once it is flushed. `from` may change as soon
 * as it returns. If the next one begins at the next such address, the two are one copy, and what
 * lies between them is overwritten: flush before putting to other memory of the device, which may
 * begin there. 0, or ERROR_UNAVAILABLE. */
int device_bundle_put(struct device_bundle *bundle, void *to, const void *from, uint64_t bytes);
int device_bundle_flush(struct device_bundle *bundle);

#endif
