/* The coordinator's whole state as one versioned, checksummed record: what it journals before it
 * sends a program, and what it commits with a durable step.
 *
 * The version is raised when a field is added, changed or removed; a record of another version is
 * refused, and the run then starts from a durable step of its own version or anew. */
#ifndef DML_COORDINATOR_STATE_H
#define DML_COORDINATOR_STATE_H

#include <stdbool.h>

#include "coordinator/coordinator.h"

#define STATE_VERSION 3

/* Appends the record. */
void state_encode(const struct coordinator *coordinator, struct bytes *out);

/* Takes the record over: everything but the settings, the links and what is running. False if it is
 * damaged, of another version or of a run of another shape; then nothing has changed. */
bool state_decode(struct coordinator *coordinator, const void *data, size_t length);

/* A verdict as a journal entry, and back. Decoded lists point into the entry. */
struct verdict_entry {
    struct flush_id flush;
    uint32_t replica;
    uint8_t exceeded;
    double derivative_max;
    struct run_list portions;
    struct blob loss, holdout_loss;
};
void verdict_encode(const struct verdict_entry *entry, struct bytes *out);
bool verdict_decode(const void *data, size_t length, struct verdict_entry *entry);

#endif
