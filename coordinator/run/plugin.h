/* A run whose objective is a plug-in. Inside coordinator/run/ only. */
#ifndef DML_COORDINATOR_RUN_PLUGIN_H
#define DML_COORDINATOR_RUN_PLUGIN_H

#include "coordinator/run/training.h"

/* Asks the job's library for the tensors of a model of this data, beside the loop, and gives them
 * to the run's shape and layout, which have all else already. The library sees the columns, and the
 * model has them, in the order of the features' ids. Harmless for other jobs. */
int training_add_plugin(struct training *run);

void training_release_plugin(struct training *run);

#endif
