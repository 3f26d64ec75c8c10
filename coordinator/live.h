/* The live state of a run, for `status`: JSON made from the coordinator. */
#ifndef DML_COORDINATOR_LIVE_H
#define DML_COORDINATOR_LIVE_H

#include <jansson.h>
#include <stdint.h>

#include "coordinator/coordinator.h"

/* Members: job, run, pid, state ("packing", "setting up", "running", "reading the model"), step,
 * loss, gradient_max, evaluation {number, chunks, counted}, evaluations, started_ms, seconds,
 * processes [{role, index, pid, host, state, portions, rate}]; rate in chunks a second. A new
 * reference. */
json_t *live_json(const struct coordinator *coordinator, const char *job, int64_t run,
                  int64_t started_ms, double seconds);

#endif
