/* From a job to its data: packs of all sources, merged into one set. */
#ifndef DML_COORDINATOR_DATASET_H
#define DML_COORDINATOR_DATASET_H

#include "coordinator/job.h"
#include "data/set.h"

/* The kind of labels that an objective takes. */
enum label_kind dataset_labels(enum objective_kind objective);

/* Processors that this process may use. */
unsigned dataset_threads(void);

/* Makes the state folder if it is missing. ERROR_CREATE, ERROR_PERMISSION. */
int dataset_make_state(const struct job *job);

/* The caller holds the lock of the state folder. Packs what is not packed yet under STATE/packs,
 * merges and opens it; logs what it did. *seconds is how long it took. */
int dataset_open(const struct job *job, struct set **set, double *seconds);

#endif
