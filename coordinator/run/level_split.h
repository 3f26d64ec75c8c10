/* How effects are split between levels, what they are within, and the intercept, where no penalty
 * says it. */
#ifndef DML_COORDINATOR_RUN_LEVEL_SPLIT_H
#define DML_COORDINATOR_RUN_LEVEL_SPLIT_H

#include "coordinator/run/training.h"

/* Restates the effects of levels of categories, of numbers in bins and of crosses, and the
 * intercept, so that they are the same whatever the way to the optimum was. The model is a linear
 * one of a table, without a penalty or limits, and all of its slices are in. No training row
 * changes its margin. May read all training rows. ERROR_DATA, ERROR_INTERNAL. */
int training_split_levels(struct training *run);

#endif
