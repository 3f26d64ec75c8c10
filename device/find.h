/* What a choice of a device comes to on this machine. Nothing is opened. */
#ifndef DML_DEVICE_FIND_H
#define DML_DEVICE_FIND_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/device_choice.h"
#include "device/device.h"

struct device_found {
    bool any; /* else it is the CPU, and the rest is 0 */
    enum device_kind kind;
    unsigned number;
};

/* What a worker of this index is to compute on. `cuda` without a number shares out the GPUs by the
 * index. `auto` is a GPU where there is one; whether the work is worth it is the caller's to judge.
 * ERROR_UNAVAILABLE if it is not there, with a text that says what to do. */
int device_find(const struct device_choice *choice, uint32_t index, struct device_found *found);

/* Prints a line a GPU, "cuda:0 NVIDIA H200, 139 GiB", or one that says why there is none. */
void device_list(FILE *out);

#endif
