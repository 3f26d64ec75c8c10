/* Which elements of a vector FETCH asks for, where not all are needed: those of the columns whose
 * bits are set, `width` elements each, and all behind the last column that has a bit. Bulk of the
 * message are the bits; PARAMETERS brings these elements one behind the other. */
#ifndef DML_WIRE_WANTED_H
#define DML_WIRE_WANTED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wanted {
    uint64_t column;       /* that bit 0 of `words` stands for; nothing of those before is wanted */
    uint64_t columns;      /* that have a bit; 0: all elements are wanted, the rest is not used */
    uint32_t width;        /* elements of a column: c has [c·width, (c + 1)·width); > 0 */
    const uint64_t *words; /* lowest bit first; bits beyond the last mean nothing */
};

/* Which bits they are: so those of the last FETCH need not come again. */
struct wanted_key {
    uint64_t column, columns, hash;
    uint32_t width;
};

/* Zeros if all elements are wanted. */
struct wanted_key wanted_key_of(const struct wanted *wanted);
bool wanted_key_equal(const struct wanted_key *a, const struct wanted_key *b);

/* Bytes of the bits. */
static inline size_t wanted_bytes(uint64_t columns) {
    return (columns / 64 + (columns % 64 != 0)) * sizeof(uint64_t);
}

/* How many of the elements [first, first + count) are wanted. */
uint64_t wanted_total(const struct wanted *wanted, uint64_t first, uint64_t count);

/* Copies the wanted ones of `from`, which begins at element `first`, to `into`, one behind the
 * other; and back. */
void wanted_gather(const struct wanted *wanted, uint64_t first, uint64_t count, const double *from,
                   double *into);
void wanted_scatter(const struct wanted *wanted, uint64_t first, uint64_t count, const double *from,
                    double *into);

#endif
