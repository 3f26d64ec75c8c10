/* What follows from the data of a run: the shape of its model, what the model's file says of that,
 * and how many workers and curvature pairs it takes. */
#ifndef DML_COORDINATOR_RUN_SHAPE_H
#define DML_COORDINATOR_RUN_SHAPE_H

#include "coordinator/run/training.h"

/* Fills in all of it from the run's job and set, and logs the sizes. ERROR_DATA if the model has
 * more parameters than there may be, or early stopping no rows to judge by; else as of
 * sizing_precondition(), sizing_of() and hosting_find(). */
int shape_up(struct training *run);

/* The shape of a model of this data, but for what a plug-in says. Errors of sizing_mixes(). */
int shape_of_data(const struct job *job, const struct set_info *info,
                  struct objective_shape *shape);

/* What memory a run on this data would need if its workers were here; 0 of a plug-in, whose library
 * is not asked. Errors as of shape_up(). */
int need_of_data(const struct job *job, const struct set_info *info, struct memory_need *need);

#endif
