/* Training a path of values, and cross-validating each of them: several runs of one job, of which
 * the best is chosen. */
#ifndef DML_COORDINATOR_SWEEP_SWEEP_H
#define DML_COORDINATOR_SWEEP_SWEEP_H

#include "coordinator/run/training.h"
#include "coordinator/status/sweep_plan.h"

struct sweep_shape sweep_shape_of(const struct job *job);

struct sweep_outcome {
    int64_t winner; /* the run whose model is the best; the caller makes it live */
    json_t *result; /* sweep_result(); owned by the caller */
};

/* Trains all members that are not done yet: of the newest sweep of the job if that can go on with
 * this data, else, or if `fresh`, of a new one. The first member starts from the model in the
 * folder `start_from`, or from zero if that is NULL. A sweep that has ended and whose winner was
 * never decided about is not repeated.
 *
 * Errors as of training_conclude(): ERROR_AGAIN after a signal or `cancel`. The sweep goes on with
 * the same call then. */
int sweep_train(struct training *training, const struct dataset *data, const char *start_from,
                bool fresh, struct sweep_outcome *outcome);

/* ---- the data that a sweep was begun with ---- */

/* The fingerprints of the files of the holdout, as struct store_sweep has them; free it. */
char *sweep_evaluated_on(const struct dataset *data);

/* Opens the data of an earlier sweep from the packs of its files, beside the loop: `sources` are as
 * struct store_sweep has them. An error, and no data, if packs are gone, or if they now make other
 * data than that with this fingerprint. */
int sweep_recall(struct session *session, const char *sources, const char *fingerprint,
                 struct dataset *data);

#endif
