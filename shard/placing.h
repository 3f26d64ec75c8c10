/* Finds and opens what a shard computes on, the CPU or a device, and proves that a device computes
 * the bits of the CPU. */
#ifndef DML_SHARD_PLACING_H
#define DML_SHARD_PLACING_H

#include "device/device.h"
#include "shard/shard.h"

/* With `auto` a range of fewer elements stays on the CPU. A round costs a device some launches and
 * copies, tens of microseconds each, in which the CPU reads a few MB of history. Chosen by that,
 * not measured on hardware. */
#define DEVICE_ELEMENTS_MIN (UINT64_C(1) << 20)

struct shard_placing {
    const char *own;       /* the choice of this process, instead of the run's; or NULL */
    struct device *device; /* the one opened last, proved to give the CPU's bits; or NULL */
};

/* For shard_self.place: `context` is a struct shard_placing. A device that was lost is opened anew.
 * Errors are those of device_choose(). */
int shard_placing_find(void *context, const struct message_shard_setup *setup,
                       struct shard_place *place);

void shard_placing_release(struct shard_placing *placing); /* no shard may be on it any more */

/* Runs every operation on canned numbers, on the device and on the CPU. 0 if all registers and
 * scalars are the same afterwards; else ERROR_CONFIG, with a text that names the device, or
 * ERROR_UNAVAILABLE if the device failed. */
int shard_proof_of_device(struct device *device);

#endif
