/* The data that a sweep was begun with. */
#ifndef DML_COORDINATOR_SWEEP_RECALL_H
#define DML_COORDINATOR_SWEEP_RECALL_H

#include "coordinator/run/training.h"

/* The fingerprints of the files of the holdout, as struct store_sweep has them; free it. */
char *sweep_judged_by(const struct dataset *data);

/* The files of the data, as struct store_sweep has them; free it. */
char *sweep_sources(const struct dataset *data);

/* Opens the data of an earlier sweep from the packs of its files, beside the loop: `sources` are as
 * of sweep_sources(). An error, and no data, if packs are gone, or if they now make other data than
 * that with this fingerprint. */
int sweep_recall(struct training *training, const char *sources, const char *fingerprint,
                 struct dataset *data);

#endif
