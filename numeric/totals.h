/* A few exact sums that belong together: what an evaluation yields beside its integer sums. They
 * are merged, sent and stored as one. */
#ifndef DML_NUMERIC_TOTALS_H
#define DML_NUMERIC_TOTALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "numeric/exact.h"

#define TOTALS_MAX 8

struct totals {
    uint32_t count; /* ≤ TOTALS_MAX */
    struct exact sum[TOTALS_MAX];
};

/* `count` sums of zero. */
void totals_init(struct totals *totals, uint32_t count);

/* Adds sum by sum; both have as many. */
void totals_merge(struct totals *into, const struct totals *from);

/* One behind the other, each in its canonical form. */
void totals_encode(const struct totals *totals, struct bytes *out);

/* Reads exactly `count` sums and nothing after them; false (and zeros) if the bytes are not that.
 */
bool totals_decode(struct totals *totals, uint32_t count, const void *data, size_t length);

#endif
