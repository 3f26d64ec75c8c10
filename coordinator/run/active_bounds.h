/* Which weights of the model are at a bound, and what that costs: the multiplier of a weight is how
 * much F would fall for each unit by which its bound moved outward. Collected while the model is
 * read from the shards. */
#ifndef DML_COORDINATOR_RUN_ACTIVE_BOUNDS_H
#define DML_COORDINATOR_RUN_ACTIVE_BOUNDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/layout.h"
#include "data/set/set.h"

/* The most that are listed: those with the largest multipliers. */
#define ACTIVE_BOUNDS_LISTED 1000

/* What they are found by. Columns are those of the set. */
struct active_bounds_settings {
    const struct layout *layout;
    const struct column_limit *limits;
    const struct column_scaling *scaling; /* or NULL */
    double l1;
};

struct active_bound {
    uint64_t element; /* in the whole vector, */
    double point;     /* scaled */
    double multiplier;
};

struct active_bounds {
    struct active_bound *items; /* by rising elements; owned */
    size_t count, capacity;
    size_t next; /* of those whose gradient is still to come */
    bool known;  /* the gradient came: multipliers hold */
};

/* Takes elements first… of the answer; from 0 on it begins anew. */
void active_bounds_take_point(struct active_bounds *active,
                              const struct active_bounds_settings *settings, uint64_t first,
                              uint64_t count, const double *values);

/* Takes elements first… of the gradient there, with l2, in the order of the elements. */
void active_bounds_take_gradient(struct active_bounds *active,
                                 const struct active_bounds_settings *settings, uint64_t first,
                                 uint64_t count, const double *values);

/* {"count", "weights": [{"feature", "output", "at", "bound", "multiplier"}]}. A new reference. */
json_t *active_bounds_json(const struct active_bounds *active,
                           const struct active_bounds_settings *settings,
                           const struct set_info *data);
void active_bounds_release(struct active_bounds *active);

#endif
