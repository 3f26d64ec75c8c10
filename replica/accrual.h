/* What a replica has computed and not yet flushed. */
#ifndef DML_REPLICA_ACCRUAL_H
#define DML_REPLICA_ACCRUAL_H

#include "replica/work.h"
#include "wire/message.h"

struct accrual {
    struct run *portions;
    uint32_t count, capacity;
    struct exact loss, holdout_loss;
    double derivative_max;
    bool exceeded;    /* in one of the portions: there is no gradient */
    uint64_t values;  /* stored values of the portions */
    int64_t busy_ns;  /* spent computing them */
    int64_t since_ns; /* when the first was started */
};

/* Makes it empty, keeping its memory. Zeroed memory is fine. */
void accrual_clear(struct accrual *accrual);
void accrual_release(struct accrual *accrual);

/* Counts in a portion that was computed from `started_ns` to `now_ns`. */
void accrual_add(struct accrual *accrual, struct run portion, const struct computed *computed,
                 int64_t started_ns, int64_t now_ns);

#endif
