/* The summary of a run: what its second derivatives say, and the statistics of its fit. */
#ifndef DML_COORDINATOR_RUN_SUMMARY_H
#define DML_COORDINATOR_RUN_SUMMARY_H

#include "coordinator/run/training.h"

/* ERROR_CONFIG if a name or pattern of `summary_columns` fits no column, or all fit too many. The
 * layout of the model is there. */
int training_check_columns(const struct training *run);

/* Writes summary.json beside the model that the run's writer has, whose slices are all in: with the
 * errors that were read after it, or why there are none. Reads all training rows, twice or more.
 * Uses no store: it may run beside the loop. ERROR_DATA, ERROR_CREATE or ERROR_IO. */
int training_summarise(struct training *run);

#endif
