/* What follows from the data of a run: the shape of its model, what the model's file says of that,
 * and how many workers and curvature pairs it takes. */
#ifndef DML_COORDINATOR_RUN_SHAPE_H
#define DML_COORDINATOR_RUN_SHAPE_H

#include "coordinator/downpour.h"
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

/* A run whose objective is a plug-in. Inside coordinator/run/ only. */

/* Asks the job's library for the tensors of a model of this data, beside the loop, and gives them
 * to the run's shape and layout, which have all else already. The library sees the columns, and the
 * model has them, in the order of the features' ids. Harmless for other jobs. */
int training_add_plugin(struct training *run);

void training_release_plugin(struct training *run);

/* What the coordinator's machine is to know of Downpour. */

/* Of a run whose start is known. They refer to the job. A run that starts from a model has no
 * Downpour before L-BFGS: its first steps, as long as if nothing was known, would lead away from
 * what the model has learned. Its sums are H0 of L-BFGS where F may not be
 * convex; elsewhere they cost steps (doc/ARCHITECTURE.md). */
struct downpour_settings pour_settings(const struct training *run);

#endif
