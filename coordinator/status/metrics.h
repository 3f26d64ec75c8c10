/* The state of a run for Prometheus, as text in its format 0.0.4. */
#ifndef DML_COORDINATOR_STATUS_METRICS_H
#define DML_COORDINATOR_STATUS_METRICS_H

#include <stddef.h>

#include "coordinator/status/http.h"
#include "coordinator/status/live.h"
#include "coordinator/status/tally.h"

#define METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* What the metrics are made from. */
struct metrics {
    const struct live *live;
    const struct tally *tally;
    int64_t durable_ms; /* wall clock of the last durable step; 0: none yet */
    const struct http_counts *http;
};

/* The metrics of dml-status(7). The number of label values is bounded: they are roles, workers,
 * safeguards and reasons. Free it. */
char *metrics_text(const struct metrics *metrics, size_t *length);

#endif
