/* The Kronecker-factored coordinates of a run that trains a network in them: found from a sample of
 * the set's rows at the start that the network has by its seed, so that a run that goes on finds
 * the same ones again. */
#ifndef DML_COORDINATOR_RUN_MIXTURE_H
#define DML_COORDINATOR_RUN_MIXTURE_H

#include "base/coordinates.h"
#include "data/set.h"
#include "objective/kronecker.h"

/* Zeroed memory is none. */
struct mixture {
    double *factors; /* `count` of them; owned. NULL: there are none */
    uint64_t count;
    double *start; /* where the run starts, in these coordinates; owned */
    struct kronecker *kronecker;
    struct kronecker_work *work;
    double *model; /* the model as it comes in slices, all of it so far; owned, or NULL */
};

/* Finds them. `start` is in the coordinates of the columns; NULL: the one by the seed. ERROR_DATA
 * if a chunk cannot be read. */
int mixture_find(struct mixture *mixture, const struct objective_shape *shape, struct set *set,
                 const struct coordinate *columns, const double *start);
void mixture_release(struct mixture *mixture);

/* Takes the next slice of the model. With the last one: the whole, in the coordinates of the
 * columns, valid until the next call; else NULL. */
const double *mixture_take(struct mixture *mixture, uint64_t parameters, uint64_t first,
                           uint64_t count, const double *values);

#endif
