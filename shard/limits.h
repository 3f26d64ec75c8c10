/* Limits of the elements of a shard's range: the l1 and the bounds of their columns
 * (base/layout.h), with which vectors are minimised by the kernels of numeric/box.h. */
#ifndef DML_SHARD_LIMITS_H
#define DML_SHARD_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/layout.h"
#include "numeric/box.h"
#include "wire/message.h"

struct limits {
    bool used;                  /* false: nothing below is set */
    uint64_t first;             /* of the range, in the whole vector */
    size_t count;               /* elements of the range */
    uint64_t weights;           /* elements of the first tensor, which begins the whole vector */
    uint64_t outputs;           /* weights of a column */
    double *lasso, *low, *high; /* of each element; what is no weight of a column has no l1 and no
                                   bounds; owned */
    size_t set;                 /* elements that have theirs, from the first */
};

/* For the range and the layout that `setup` describes. The limits were zeroed, or set up before. */
void limits_set_up(struct limits *limits, const struct message_shard_setup *setup,
                   const struct layout *layout);
void limits_release(struct limits *limits);

/* Takes the limits of columns first…, which are valid. ERROR_INTERNAL if some before them are
 * missing, or if there are none here. */
int limits_set_columns(struct limits *limits, uint64_t first, const struct column_limit *columns,
                       uint64_t count);

/* Whether all have come. */
bool limits_are_complete(const struct limits *limits);

/* Those of elements first… of the range, under this l1. */
struct box limits_box(const struct limits *limits, size_t first, double l1);

#endif
