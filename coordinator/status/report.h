/* What a state folder tells of its runs, as JSON: the live coordinator, or the store without one.
 * The figures are those of status/figures.def. */
#ifndef DML_COORDINATOR_STATUS_REPORT_H
#define DML_COORDINATOR_STATUS_REPORT_H

#include "coordinator/status/live.h"

/* The status of a live run; without a coordinator, what is about a training is null or missing. */
json_t *report_live_status(const struct live *live);

/* The last state of the newest run in the store; of a sweep that has ended, of the run that was
 * chosen. `state` is "ended", or "interrupted" if its coordinator was lost; what only a live
 * coordinator knows is null or missing; `invocation` is the last command, or null.
 * ERROR_UNAVAILABLE if there is no run: the message says what the last command came to. */
int report_status(struct store *store, json_t **status);

/* {"runs": […], "sweeps": […], "decisions": {live_since_ms, refusals, refusals_since_ms, refusal,
 * refused}, "invocations": invocations_read(), "failures": invocations_failures()}, oldest first.
 * What a run's result says is null until the run has ended. `publication` is "live", "pending" (it
 * goes live with the next command), "published" (it was live), "refused", "kept" (another one
 * stayed live) or null. `why` is the reason of a refusal or a failure, or null. `changed` is how
 * the run differs from the one before, or from that whose model it has: {key: {from, to}} for keys
 * that both have, and {"data": {from, to}} with fingerprints if the same files had another content;
 * null if the run before is of another job, or there is none. */
int report_runs(struct store *store, json_t **runs);

/* The one of these runs whose model is live; NULL if there is none, or `runs` is. Borrowed. */
const json_t *report_live_model(const json_t *runs);

/* As report_runs(), but the run that a coordinator works on is "running", and its seconds are those
 * spent on it until now; and the command that asks its own store is at work. */
int report_live_runs(const struct live *live, struct store *store, json_t **runs);

#endif
