/* The device that a test of device code runs on: the emulated one, with blocks and threads in a
 * random order, or a GPU if DML_TEST_DEVICE is "cuda". */
#ifndef DML_TESTS_DEVICE_FIXTURE_H
#define DML_TESTS_DEVICE_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "device/device.h"

static inline struct device *test_device(void) {
    const char *asked = getenv("DML_TEST_DEVICE");
    bool cuda = asked && strcmp(asked, "cuda") == 0;
    struct device *device;
    if (device_open(cuda ? DEVICE_CUDA : DEVICE_EMULATED, 0, &device)) {
        fprintf(stderr, "%s\n", error_text());
        exit(1);
    }
    device_shuffle(device, 12345);
    return device;
}

/* Whether what only the emulated device shows can be tested. */
static inline bool test_device_is_emulated(const struct device *device) {
    return strcmp(device_name(device), "emulated") == 0;
}

#endif
