/* The loss of a model that has nothing but an intercept, over the training rows of a set. */
#ifndef DML_COORDINATOR_RUN_NULL_LOSS_H
#define DML_COORDINATOR_RUN_NULL_LOSS_H

#include "data/set/set.h"
#include "objective/shape.h"

/* The mean loss, each row with its weight and its offset, where the intercept is at its start for
 * these labels, whether or not the model has one. It is that of the rows of a few chunks, which are
 * evenly spread, so that it costs nothing beside a pass over the data. Only for losses of targets.
 * ERROR_DATA if a chunk is damaged. */
int null_loss_find(struct set *set, const struct objective_shape *shape, double *loss);

#endif
