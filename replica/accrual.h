/* What a replica has computed and not yet flushed. */
#ifndef DML_REPLICA_ACCRUAL_H
#define DML_REPLICA_ACCRUAL_H

#include "replica/work.h"
#include "wire/message.h"

struct accrual {
    struct run *portions;
    uint32_t count, capacity;
    struct totals totals;
    struct maxima maxima;
    bool exceeded;    /* a portion exceeded the bound: there are no sums */
    uint64_t values;  /* stored values of the portions */
    int64_t busy_ns;  /* spent computing them */
    int64_t since_ns; /* when the first was started */
};

/* Empties it, for an evaluation with `totals` totals, and keeps its memory. Zeroed memory is fine.
 */
void accrual_clear(struct accrual *accrual, uint32_t totals);
void accrual_release(struct accrual *accrual);

/* Counts in a portion that was computed from `started_ns` to `now_ns`. */
void accrual_add(struct accrual *accrual, struct run portion, const struct computed *computed,
                 int64_t started_ns, int64_t now_ns);

#endif
