/* What becomes of each chunk of the evaluation that runs, for people. */
#ifndef DML_COORDINATOR_STATUS_CHUNKS_H
#define DML_COORDINATOR_STATUS_CHUNKS_H

#include <jansson.h>

#include "coordinator/coordinator.h"

enum chunk_state { CHUNK_WAITING, CHUNK_RUNNING, CHUNK_BACKED_UP, CHUNK_COUNTED };

/* [[count, state, replica], …] over the chunks in order, equal neighbours as one. The replica is
 * who has the chunk (with a backup copy: who had it first), from whom it was counted, or −1. A new
 * reference. */
json_t *chunks_json(const struct coordinator *coordinator);

#endif
