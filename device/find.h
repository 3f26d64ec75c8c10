/* Which device a worker is to compute on, as users write it: "auto", "cpu", "cuda", "cuda:N" or
 * "emulated". */
#ifndef DML_DEVICE_FIND_H
#define DML_DEVICE_FIND_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "device/device.h"

enum device_choice_kind {
    CHOICE_AUTO,     /* a GPU that was checked if the work is large enough to pay, else the CPU */
    CHOICE_CPU,      /* the CPU */
    CHOICE_CUDA,     /* a GPU, or an error */
    CHOICE_EMULATED, /* what a GPU would do, in this machine's memory: slow, for tests */
};

#define DEVICE_NUMBER_MAX 1023

struct device_choice {
    enum device_choice_kind kind;
    int number; /* of the GPU; −1: the worker's index modulo the number of GPUs there */
};

/* Reads a choice; "" and NULL are "auto". False if the text is no choice: then *choice is as it
 * was. */
bool device_choice_read(const char *text, struct device_choice *choice);

/* What device_choice_read() takes, for messages. */
#define DEVICE_CHOICES "`auto`, `cpu`, `cuda`, `cuda:NUMBER` or `emulated`"

/* ---- finding: what a choice means on this machine; nothing is opened ---- */

struct device_found {
    bool any; /* else it is the CPU, and the rest is 0 */
    enum device_kind kind;
    unsigned number;
};

/* What the worker of this index computes on. `cuda` without a number shares out the GPUs by the
 * index. `auto` is a GPU where there is one; whether the work is worth it is for the caller to
 * decide. ERROR_UNAVAILABLE if the device is not there, with a text that says what to do. */
int device_find(const struct device_choice *choice, uint32_t index, struct device_found *found);

/* The device that `auto` takes for the worker of this index, if the work is worth it: one that was
 * checked (see the mark below). Returns NULL if *found is such a device; else why it is the CPU,
 * and found->any says whether there is a device at all. Free it. */
char *device_find_auto(uint32_t index, struct device_found *found);

/* Prints a line for each GPU, "cuda:0 NVIDIA H200, 139 GiB", with why `auto` does not take it; or
 * one line that says why there is none. */
void device_list(FILE *out);

/* ---- choosing: what was asked for, what is there, and whether it can be used ---- */

struct device_wish {
    const char *asked;  /* by the set-up, as device/find.h reads it */
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

/* Whether the choice is `auto`, so that the processor will do. */
bool device_wish_is_free(const struct device_wish *wish);

/* Opens the device and prepares the work on it. *device is what an earlier call has left there, or
 * NULL. It stays open if it is the device chosen now; else it is closed, so nothing may use it any
 * more. Returns 0 with *device, or with NULL if the work is for the processor. The log says which.
 *
 * A device that cannot be used is worth a warning where the choice is `auto`, and an error
 * otherwise; *device is then NULL. ERROR_CONFIG if the next try would fail in the same way; else
 * what the device, `prove` or `use` said; ERROR_UNAVAILABLE says that the device failed.
 *
 * For tests, DML_AUTO_DEVICE=emulated in the environment makes `auto` take the emulated device in
 * place of a GPU, however small the work; it needs a mark as a GPU does. */
int device_choose(const struct device_wish *wish, struct device **device);

/* ---- the mark of a checked device ----
 *
 * `auto` takes a GPU only where it was checked: `make check-cuda` leaves a mark on the machine when
 * all of its checks have passed there. A device that is asked for by name needs no mark.
 *
 * The mark is the file device-check-HOST in /var/lib/dml, if root ran the check, else in
 * $XDG_STATE_HOME/dml, by default ~/.local/state/dml; or, if DML_DEVICE_MARK is set in the
 * environment, that file alone. It counts for GPUs of the name, with the driver and by the device
 * code that were checked. Format: see doc/FORMATS.md. */

/* Why `auto` does not take this device, which has no mark that counts, and what to do. NULL: it has
 * one. Free it. */
char *device_unchecked(enum device_kind kind, unsigned number);

/* Leaves the mark of this device. *path: the file; free it. ERROR_CREATE, ERROR_IO;
 * ERROR_UNAVAILABLE if no folder for it is known. */
int device_mark_checked(enum device_kind kind, unsigned number, char **path);

#endif
