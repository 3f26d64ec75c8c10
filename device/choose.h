/* Takes the device that a worker is to compute on: what was asked for, what is there, and whether
 * it can be used come together here. */
#ifndef DML_DEVICE_CHOOSE_H
#define DML_DEVICE_CHOOSE_H

#include <stdbool.h>
#include <stdint.h>

#include "device/device.h"

struct device_wish {
    const char *asked;  /* by the set-up, as base/device_choice.h reads it */
    const char *own;    /* in place of that, by the worker's command line; NULL: nothing */
    uint32_t index;     /* of the worker on its host: shares out the devices there */
    const char *cannot; /* why no device does this work (a constant), or NULL */
    bool pays;          /* whether the work is large enough for a GPU; for `auto` alone */

    /* Whether a device that was opened gives the processor's bits. 0, or an error. */
    int (*prove)(struct device *device);
    /* Prepares the work on the device; NULL: there is nothing to prepare. 0, or an error. */
    int (*use)(void *context, struct device *device);
    void *context;
};

/* Whether the processor would do as well. */
bool device_wish_is_free(const struct device_wish *wish);

/* Opens the device and prepares the work on it. *device is what an earlier call has left there, or
 * NULL: it stays open if it is the one, and is closed else, so that nothing may need it any more.
 * Answers 0 with *device, or with NULL if the work is for the processor. The log says which it is.
 * If the choice is free, a device that does not do is worth a warning; else it is an error, with
 * *device NULL: ERROR_CONFIG if it would be one again, and what the device, `prove` or `use` said
 * otherwise; ERROR_UNAVAILABLE says that the device failed.
 *
 * For tests, DML_AUTO_DEVICE=emulated in the environment makes `auto` take the emulated device in
 * place of a GPU, however small the work. */
int device_choose(const struct device_wish *wish, struct device **device);

#endif
