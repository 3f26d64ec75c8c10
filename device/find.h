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
    int number; /* of the GPU; −1: the worker's index modulo the number of GPUs there are */
};

/* Reads a choice; "" and NULL are "auto". False if it is none: *choice is as it was then. */
bool device_choice_read(const char *text, struct device_choice *choice);

/* What device_choice_read() takes, for messages. */
#define DEVICE_CHOICES "`auto`, `cpu`, `cuda`, `cuda:NUMBER` or `emulated`"

/* What a choice of a device comes to on this machine. Nothing is opened. */

struct device_found {
    bool any; /* else it is the CPU, and the rest is 0 */
    enum device_kind kind;
    unsigned number;
};

/* What a worker of this index is to compute on. `cuda` without a number shares out the GPUs by the
 * index. `auto` is a GPU where there is one; whether the work is worth it is the caller's to judge.
 * ERROR_UNAVAILABLE if it is not there, with a text that says what to do. */
int device_find(const struct device_choice *choice, uint32_t index, struct device_found *found);

/* The device that `auto` takes for a worker of this index, if the work is worth it: one that was
 * checked (device/find.h). NULL: *found is it. Else why it is the CPU; found->any: though there is
 * a device. Free it. */
char *device_find_auto(uint32_t index, struct device_found *found);

/* Prints a line a GPU, "cuda:0 NVIDIA H200, 139 GiB", with why `auto` does not take it, or one that
 * says why there is none. */
void device_list(FILE *out);

/* Takes the device that a worker is to compute on: what was asked for, what is there, and whether
 * it can be used come together here. */

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
 * place of a GPU, however small the work; it needs a mark as a GPU does (device/find.h). */
int device_choose(const struct device_wish *wish, struct device **device);

/* The mark of a checked device. `auto` takes a GPU only where it was checked: `make check-cuda`
 * leaves a mark on the machine when all of it has passed there. Who asks for a device by its name
 * needs none.
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
