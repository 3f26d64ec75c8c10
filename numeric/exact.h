/* Exact sums of doubles: the same bits whatever the order and grouping of the terms.
 *
 * A small superaccumulator (Neal, "Fast exact summation using small and large superaccumulators",
 * 2015): 32-bit limbs in 64-bit counters, wide enough for every finite double and 2³⁰ terms between
 * carries, which are propagated by themselves. Sums merge by integer addition. A NaN or an infinity
 * among the terms makes the sum NaN or that infinity (both infinities: NaN). */
#ifndef DML_NUMERIC_EXACT_H
#define DML_NUMERIC_EXACT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "numeric/sum_element.h"

struct exact {
    int64_t limb[EXACT_LIMBS]; /* limb i counts units of 2^(32·i − 1074) */
    uint32_t pending;          /* additions since carries were last propagated */
    uint8_t special;           /* bits of enum exact_special */
};

void exact_init(struct exact *sum); /* to zero */
void exact_add(struct exact *sum, double term);
void exact_merge(struct exact *sum, const struct exact *other);

/* The double nearest to the sum, ties to even; overflows to infinity. Never −0. */
double exact_value(const struct exact *sum);

/* The canonical form: equal sums give equal bytes. At most EXACT_ENCODED_MAX bytes, a few dozen as
 * a rule, since only limbs in use are written. */
#define EXACT_ENCODED_MAX (4 + 8 * EXACT_LIMBS)
void exact_encode(const struct exact *sum, struct bytes *out);

/* Reads what exact_encode() wrote; false (a zero sum, and the cursor failed) if the bytes are not
 * of that form.
 */
bool exact_decode(struct exact *sum, struct cursor *in);

/* A few exact sums that belong together: what an evaluation yields beside its integer sums. They
 * are merged, sent and stored as one. */

#define TOTALS_MAX 8

struct totals {
    uint32_t count; /* ≤ TOTALS_MAX */
    struct exact sum[TOTALS_MAX];
};

/* `count` sums of zero. */
void totals_init(struct totals *totals, uint32_t count);

/* Adds sum by sum; both have as many. */
void totals_merge(struct totals *into, const struct totals *from);

/* One after the other, each in its canonical form. */
void totals_encode(const struct totals *totals, struct bytes *out);

/* Reads exactly `count` sums and nothing after them; false (and zeros) if the bytes are not that.
 */
bool totals_decode(struct totals *totals, uint32_t count, const void *data, size_t length);

#endif
