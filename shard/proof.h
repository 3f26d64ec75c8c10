/* Whether a device computes what the CPU computes. */
#ifndef DML_SHARD_PROOF_H
#define DML_SHARD_PROOF_H

#include "device/device.h"

/* Runs programs of every operation on canned numbers, on the device and on the CPU. 0 if all that
 * they leave and yield is the same; else ERROR_CONFIG, with a text that names the device; and
 * ERROR_UNAVAILABLE if that failed. */
int shard_proof_of_device(struct device *device);

#endif
