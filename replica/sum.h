/* Integer sums in a replica's memory, and what they hold between portions, flushes and evaluations.
 * The layout is that of the current evaluation; its elements are the first. */
#ifndef DML_REPLICA_SUM_H
#define DML_REPLICA_SUM_H

#include <stdint.h>

enum sum_state {
    SUM_ZERO,
    SUM_HELD, /* part of the sums that are being accrued */
    SUM_VOID, /* of an accrual that nobody wants any more */
};

struct sum {
    int64_t *element; /* `most` of them; owned */
    uint64_t most;
    enum sum_state state;
};

void sum_init(struct sum *sum, uint64_t most);
void sum_release(struct sum *sum); /* harmless on zeroed memory */

/* What it holds is of no use. */
void sum_void(struct sum *sum);

/* Prepares it for more of what is being accrued. */
void sum_hold(struct sum *sum);

/* Writes elements [first, end) of what `count` sums hold together to `into`, and zeroes them.
 * Threads may do this at once for ranges of their own; sums_gathered() comes behind all of them. */
void sums_gather(struct sum *const *sums, unsigned count, uint64_t first, uint64_t end,
                 int64_t *into);
void sums_gathered(struct sum *const *sums, unsigned count);

#endif
