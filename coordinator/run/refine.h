/* The end of a run some of whose columns nearly follow from others. */
#ifndef DML_COORDINATOR_RUN_REFINE_H
#define DML_COORDINATOR_RUN_REFINE_H

#include "coordinator/run/training.h"

/* Puts the optimum of model/collinear.h in place of the run's last point, if columns of it need
 * that, and the model is linear, small enough and at the end that the job wants: run->answer,
 * run->gap and the writer's parameters; run->collinear is then there for errors of estimates. All
 * slices of the model are in, run->answer and run->gap are those of the last point. ERROR_DATA,
 * ERROR_INTERNAL. */
int training_refine(struct training *run);

/* Before errors of estimates are shown. After a penalty those of columns that follow from others,
 * or nearly, are differences of numbers so large that shards lose them (shard/covariance_make.c):
 * if they did, and the model is small enough, run->collinear is there, at the run's own parameters.
 * ERROR_DATA. */
int refine_prepare_errors(struct training *run);

/* Says in the log and in the result which columns were left out, as they follow from others but for
 * rounding. */
void refine_report(const struct training *run);

#endif
