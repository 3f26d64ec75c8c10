/* The state of each chunk of the running evaluation. */
#ifndef DML_COORDINATOR_STATUS_CHUNKS_H
#define DML_COORDINATOR_STATUS_CHUNKS_H

#include <jansson.h>

#include "coordinator/coordinator.h"

/* [[count, state, replica], …] over the chunks in order; chunks side by side with the same state
 * and replica, as in struct chunk_view, are one entry. A new reference. */
json_t *chunks_json(const struct coordinator *coordinator);

#endif
