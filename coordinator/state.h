/* The coordinator's whole state as one versioned, checksummed record: what it journals before it
 * sends a program, and what it commits with a durable step.
 *
 * The version is raised when a field is added, changed or removed. A record of another version is
 * refused, before anything is changed: a run ends with the program that began it. */
#ifndef DML_COORDINATOR_STATE_H
#define DML_COORDINATOR_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

struct coordinator;

#define STATE_VERSION 9

/* Appends the record. */
void state_encode(const struct coordinator *coordinator, struct bytes *out);

/* Takes the record over: everything but the settings, the links and what is running. False if it is
 * damaged, of another version or of a run of another shape; then nothing has changed. */
bool state_decode(struct coordinator *coordinator, const void *data, size_t length);

/* Whether state_decode() would take it. Changes nothing. */
bool state_fits(struct coordinator *coordinator, const void *data, size_t length);

/* ERROR_UNAVAILABLE, with what to do, if the record is whole but of another version. `run` is whose
 * it is. */
int state_check_version(const void *data, size_t length, int64_t run);

#endif
