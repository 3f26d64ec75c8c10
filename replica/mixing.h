/* A replica of a network that is trained in Kronecker-factored coordinates (objective/kronecker.h):
 * the shards' vectors are in these, on top of the coordinates of the columns, and so is the
 * gradient that goes to them. What weights cost is added here, since it is no sum over elements
 * there. */
#ifndef DML_REPLICA_MIXING_H
#define DML_REPLICA_MIXING_H

#include <stdbool.h>

#include "base/coordinates.h"
#include "objective/kronecker.h"
#include "wire/bulk.h"

/* Zeroed memory is one that is not used. */
struct mixing {
    bool used;                      /* the layout says so */
    bool set;                       /* the factors have come for this attempt */
    struct kronecker *kronecker;    /* owned */
    struct kronecker_work *work;    /* owned */
    double *pull;                   /* of change; owned */
    struct objective_change change; /* at the point that mixing_leave() was given last */
};

/* Forgets what was there. */
void mixing_set_up(struct mixing *mixing, const struct layout *layout);
void mixing_release(struct mixing *mixing);

/* Takes the factors. NULL, or what is wrong with them. */
const char *mixing_take(struct mixing *mixing, const struct layout *layout,
                        const struct bulk *factors);

/* The point in the coordinates of the columns, in place, from what the shards hold; and the change
 * of its gradient. */
void mixing_leave(struct mixing *mixing, const struct layout *layout,
                  const struct coordinate *columns, double l2, double *vector);

#endif
