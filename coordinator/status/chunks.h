/* What becomes of each chunk of the evaluation that runs, for people. */
#ifndef DML_COORDINATOR_STATUS_CHUNKS_H
#define DML_COORDINATOR_STATUS_CHUNKS_H

#include <jansson.h>

#include "coordinator/coordinator.h"

/* [[count, state, replica], …] over the chunks in order, equal neighbours as one; as in
 * struct chunk_view. A new reference. */
json_t *chunks_json(const struct coordinator *coordinator);

#endif
