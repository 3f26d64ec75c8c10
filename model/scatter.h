/* Puts numbers to far places of a long array, in any order.
 *
 * The array may be a mapped file that is longer than the memory there is. Number by number each
 * would bring a page from the disk and take another one's place. So numbers wait by the part of the
 * array that they are for, and those of a part are put there together: a page is then touched for
 * many of them. */
#ifndef DML_MODEL_SCATTER_H
#define DML_MODEL_SCATTER_H

#include <stdint.h>

struct scatter; /* opaque */

/* `waiting` numbers at most, above 0, wait for each of up to SCATTER_PARTS parts: 16 bytes each. */
#define SCATTER_PARTS 64
struct scatter *scatter_new(double *into, uint64_t count, uint32_t waiting);
void scatter_free(struct scatter *scatter); /* harmless on NULL; forgets what waits */

/* into[at] = value: at once, or when `waiting` wait there, or by the next scatter_settle(). Of two
 * values for one place the later one stays. */
void scatter_put(struct scatter *scatter, uint64_t at, double value);
void scatter_settle(struct scatter *scatter);

#endif
