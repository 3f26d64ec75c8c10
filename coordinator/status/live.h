/* The live state of a run, for `status` and the status server: JSON made from the coordinator. */
#ifndef DML_COORDINATOR_STATUS_LIVE_H
#define DML_COORDINATOR_STATUS_LIVE_H

#include <jansson.h>
#include <stdint.h>

#include "coordinator/coordinator.h"
#include "coordinator/job/job.h"

/* A run as its coordinator's process knows it. Nothing is owned. */
struct live {
    const struct coordinator *coordinator;
    const struct job *job;
    int64_t run, started_ms;
    double seconds, seconds_left; /* of the run; NaN: not known */
    const char *http;             /* where the status server is, or NULL */
};

/* What the run is doing: "running", "setting up", …; a constant. */
const char *live_state(enum coordinator_phase phase);

/* Members: job, run, pid, state, reason (null), step, loss, gradient_max, evaluation {number,
 * chunks, counted, map (coordinator/status/chunks.h), started_seconds_ago}, evaluations, attempt,
 * started_ms, time_ms, seconds, seconds_left, processes [{role, index, pid, host, state, portions,
 * chunks, rate, restarts, threads}], objective, examples, features, parameters, history,
 * backup_copies, safeguards {text: count}, gradient_tolerance, loss_tolerance, holdout_loss,
 * settings {key: value}, http, version; rate in chunks a second, null where nothing is known. A new
 * reference. */
json_t *live_json(const struct live *live);

/* As report_runs(), and the run that goes on is "running", its seconds those spent on it. */
int live_runs(const struct live *live, struct store *store, json_t **runs);

#endif
