/* The coordinator's whole state as one versioned, checksummed record: what it journals before it
 * sends a program, and what it commits with a durable step.
 *
 * The version is raised when a field is added, changed or removed; a record of another version is
 * refused, and the run then starts from a durable step of its own version or anew. */
#ifndef DML_COORDINATOR_STATE_H
#define DML_COORDINATOR_STATE_H

#include <stdbool.h>

#include "base/bytes.h"

struct coordinator;

#define STATE_VERSION 9

/* Appends the record. */
void state_encode(const struct coordinator *coordinator, struct bytes *out);

/* Takes the record over: everything but the settings, the links and what is running. False if it is
 * damaged, of another version or of a run of another shape; then nothing has changed. */
bool state_decode(struct coordinator *coordinator, const void *data, size_t length);

#endif
