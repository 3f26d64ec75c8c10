/* Members of JSON objects for printing. */
#ifndef DML_COORDINATOR_STATUS_FIGURES_H
#define DML_COORDINATOR_STATUS_FIGURES_H

#include <jansson.h>
#include <stdio.h>

#include "coordinator/machine/coordinator.h"
#include "store/store.h"

/* "-" if there is no such text. */
const char *member_text(const json_t *object, const char *member);

/* 0 if there is no such whole number. */
long long member_count(const json_t *object, const char *member);

/* NaN if there is no such number. */
double member_number(const json_t *object, const char *member);

/* Downpour in answers and on terminals: how far it is, and what its epochs were. */

/* {running, epochs, epoch (that are through), minibatches (of the epoch under way), minibatch (done
 * of it), done (of all epochs), redone, rate (the learning rate), loss, holdout_loss,
 * holdout_accuracy, best_epoch, stopped_early, minibatches_per_second}; null is what there is not,
 * or not yet, and all of it without Downpour. `speed` is NaN if it is not known. */
json_t *epochs_status_json(const struct downpour_view *view, double speed);

/* The same of a run that is not alive and has no result, from its epochs in the store. `settings`
 * are those of its job. */
int epochs_stored_json(struct store *store, int64_t run, const json_t *settings, json_t **downpour);

/* One epoch: {epoch, minibatches, rows, loss, holdout_loss, holdout_accuracy, took_seconds,
 * wall_ms, seconds (since the run began)}. */
json_t *epochs_row_json(const struct store_epoch *epoch, int64_t started_ms);

/* One line, without its end, of what epochs_status_json() gives. Free it. */
char *epochs_line(const json_t *downpour);

#endif
