/* The Kronecker factors of a run that trains a network scaled by them: found from a sample of the
 * set's rows at the start that the network has by its seed, so that a run that goes on finds the
 * same ones again. */
#ifndef DML_COORDINATOR_RUN_KRONECKER_SCALING_H
#define DML_COORDINATOR_RUN_KRONECKER_SCALING_H

#include "data/set/set.h"
#include "objective/kronecker.h"

/* Zeroed memory is none. */
struct kronecker_scaling {
    double *factors; /* `count` of them; owned. NULL: there are none */
    uint64_t count;
    double *start; /* where the run starts, scaled by the factors; owned */
    struct kronecker *kronecker;
    struct kronecker_work *work;
    double *model; /* the model as it comes in slices, all of it so far; owned, or NULL */
};

/* Finds them. `start` has scaled columns; NULL: the one by the seed. ERROR_DATA
 * if a chunk cannot be read. */
int kronecker_scaling_find(struct kronecker_scaling *scaling, const struct objective_shape *shape,
                           struct set *set, const struct column_scaling *columns,
                           const double *start);
void kronecker_scaling_release(struct kronecker_scaling *scaling);

/* Takes the next slice of the model. With the last one: the whole, of scaled columns,
 * valid until the next call; else NULL. */
const double *kronecker_scaling_take(struct kronecker_scaling *scaling, uint64_t parameters,
                                     uint64_t first, uint64_t count, const double *values);

#endif
