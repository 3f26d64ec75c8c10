/* Counters that never fall. The coordinator's counts fall when it goes back to a durable step; a
 * monitoring system would take that for a restart of the process. */
#ifndef DML_COORDINATOR_STATUS_METRICS_H
#define DML_COORDINATOR_STATUS_METRICS_H

#include <stddef.h>

#include "coordinator/machine/coordinator.h"
#include "coordinator/status/http.h"
#include "coordinator/status/live.h"

/* Counts since this process began. Starts as zeros. */
struct tally {
    uint64_t evaluations, minibatches;
    uint64_t safeguards[SAFEGUARDS];
    struct {
        bool known;
        uint64_t evaluations, minibatches;
        uint64_t safeguards[SAFEGUARDS];
    } last;
};

/* Adds what was counted since the last call. Call it from time to time. */
void tally_note(struct tally *tally, const struct coordinator_view *view);

/* The state of a run for Prometheus, as text in its format 0.0.4. */

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
