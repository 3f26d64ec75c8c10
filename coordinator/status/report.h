/* What the store knows, as JSON and as tables. The live coordinator answers with the same. */
#ifndef DML_COORDINATOR_STATUS_REPORT_H
#define DML_COORDINATOR_STATUS_REPORT_H

#include <jansson.h>

#include "store/store.h"

/* The last state of the newest run: job, run, state ("ended", or "interrupted" if its coordinator
 * was lost), what report_add_end() says, step, loss, gradient_max, evaluation {number, chunks,
 * counted, map}, evaluations, started_ms, seconds, version, processes [{role, index, pid, host,
 * state, portions, rate}], settings; and of the result, null before the end: objective, examples,
 * features, parameters, history, backup_copies, safeguards, preconditioner, l1, l2, nonzero,
 * gap_bound, tensors, downpour, and with early stopping holdout_loss and holdout_accuracy of the
 * model. What only a live coordinator knows is null. ERROR_UNAVAILABLE if there is no run. */
int report_status(struct store *store, json_t **status);

/* Puts into a status what a result says of the end: reason, converged, shortfall, the figures
 * `holdout` and `test`, model, model_sha256. Null is what it does not say; `result` may be NULL. */
void report_add_end(json_t *status, const json_t *result);

/* {"runs": [{run, job, state, reason, converged, started_ms, ended_ms, seconds, steps,
 * evaluations, loss, gradient_max, l1, l2, nonzero, downpour, model, model_sha256, publication}]},
 * oldest first. l1, l2, nonzero and downpour are null until the run has ended. `publication` is
 * "live", "pending" (it goes live with the next command), "published" (it was live), "refused" or
 * null. */
int report_runs(struct store *store, json_t **runs);

/* How a run differs from the one before. */

/* The last run of a job that was listed. Zeroed at first; release with changes_release(). */
struct changes {
    char *job, *settings, *data;
};

/* Notes the run, and returns how it differs from the one noted before: {key: {from, to}} for keys
 * that both have, and {"data": {from, to}} with fingerprints if the same files had another content.
 * Null if the run before is of another job, or there is none. A new reference. */
json_t *changes_note(struct changes *changes, const struct store_run *run);
void changes_release(struct changes *changes);

#endif
