/* What follows from the data of a run: the shape of its model, what the model's file says of that,
 * and how many workers and curvature pairs it takes. */
#ifndef DML_COORDINATOR_RUN_SHAPE_H
#define DML_COORDINATOR_RUN_SHAPE_H

#include "coordinator/run/training.h"

/* Fills in all of it from the run's job and set, and logs the sizes. ERROR_DATA if the model has
 * more parameters than there may be, or early stopping no rows to judge by; else as of
 * sizing_precondition(), sizing_of() and hosting_find(). */
int shape_up(struct training *run);

#endif
