/* Which elements of a range may be other than zero: of the sums of an evaluation, or of the
 * gradient that was made of them; or the columns of the data that such sums belong to. Over wide
 * sparse columns a minibatch has values in few of them, so a replica's flush (replica/sum.h) and a
 * step of Downpour (shard/sparse_step.h) cost what the minibatch touches, and sums are cleared
 * where they were touched.
 *
 * A bit an element. Zeroed memory is of one who does not look: all elements count as touched. */
#ifndef DML_BASE_TOUCHED_H
#define DML_BASE_TOUCHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct touched {
    uint64_t *words; /* owned; NULL: it does not look */
    size_t count;    /* elements of the range */
    bool some;       /* only those whose bits are set; else all may be */
};

void touched_init(struct touched *touched, size_t count); /* all may be */
void touched_release(struct touched *touched);

void touched_all(struct touched *touched);
void touched_none(struct touched *touched); /* still all, if it does not look */

/* One more. Harmless if all are. */
static inline void touched_add(struct touched *touched, size_t element) {
    if (touched->some)
        touched->words[element / 64] |= UINT64_C(1) << element % 64;
}

static inline bool touched_has(const struct touched *touched, size_t element) {
    return !touched->some || touched->words[element / 64] >> element % 64 & 1;
}

/* Each becomes what the other was. */
void touched_swap(struct touched *a, struct touched *b);

/* Makes `touched` equal to `from`, which has as many elements. */
void touched_copy(struct touched *touched, const struct touched *from);

/* How many bits are set; all elements, if all may be. */
size_t touched_total(const struct touched *touched);

/* The next touched elements from *at on, below `end`: at most `most` ≥ 64 of them, rising. Answers
 * how many, and moves *at past what was looked through; 0 at the end. Only if not all are. */
size_t touched_next(const struct touched *touched, size_t *at, size_t end, uint32_t *elements,
                    size_t most);

/* How many of `count` elements, which rise as touched_next() lists them, come before this one. */
size_t elements_before(const uint32_t *elements, size_t count, uint64_t element);

#endif
