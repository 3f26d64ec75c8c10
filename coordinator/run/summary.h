/* The summary of a run: what its second derivatives say, and the statistics of its fit. */
#ifndef DML_COORDINATOR_RUN_SUMMARY_H
#define DML_COORDINATOR_RUN_SUMMARY_H

#include "coordinator/run/training.h"
#include "model/summary.h"

/* Writes summary.json beside the model that the run's writer has, whose slices are all in. Reads
 * all training rows, twice or more. `covariance` and `why` as for summary_json(). Uses no store: it
 * may run beside the loop. ERROR_DATA, ERROR_CREATE or ERROR_IO. */
int training_summarise(struct training *run, const struct summary_covariance *covariance,
                       const char *why);

#endif
