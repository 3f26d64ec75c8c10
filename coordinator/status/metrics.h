/* The state of a run for Prometheus, as text in its format 0.0.4. */
#ifndef DML_COORDINATOR_STATUS_METRICS_H
#define DML_COORDINATOR_STATUS_METRICS_H

#include <stddef.h>

#include "coordinator/status/http.h"
#include "coordinator/status/live.h"

#define METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* The metrics of dml-status(7): those of the table of figures, and those of the processes, the
 * hosts and the status server. The number of label values is bounded: they are roles, workers,
 * safeguards and reasons. Free it. */
char *metrics_text(const struct live *live, const struct http_counts *http, size_t *length);

#endif
