/* The mark of a checked device. `auto` takes a GPU only where it was checked: `make check-cuda`
 * leaves a mark on the machine when all of it has passed there. Who asks for a device by its name
 * needs none.
 *
 * The mark is the file device-check-HOST in /var/lib/dml, if root ran the check, else in
 * $XDG_STATE_HOME/dml, by default ~/.local/state/dml; or, if DML_DEVICE_MARK is set in the
 * environment, that file alone. It counts for GPUs of the name, with the driver and by the device
 * code that were checked. Format: see doc/FORMATS.md. */
#ifndef DML_DEVICE_MARK_H
#define DML_DEVICE_MARK_H

#include "device/device.h"

/* Why `auto` does not take this device, which has no mark that counts, and what to do. NULL: it has
 * one. Free it. */
char *device_unchecked(enum device_kind kind, unsigned number);

/* Leaves the mark of this device. *path: the file; free it. ERROR_CREATE, ERROR_IO;
 * ERROR_UNAVAILABLE if no folder for it is known. */
int device_mark_checked(enum device_kind kind, unsigned number, char **path);

#endif
