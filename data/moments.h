/* Mean and variance of each column over the training rows of a set, each with its weight, zeros
 * that are not stored included. */
#ifndef DML_DATA_MOMENTS_H
#define DML_DATA_MOMENTS_H

#include "data/set.h"

struct moments {
    double *mean; /* [features]; owned, as all of these */
    double
        *variance; /* Σ w(x − mean)²/Σ w; 0 for a column whose values differ by rounding at most */
    uint64_t *nonzero; /* rows whose value is not 0 */
    uint64_t rows;     /* all of them; rows of weight 0 count nowhere */
};

/* Reads the training chunks twice, with so many threads. Sums are taken in an order that follows
 * from the set alone: the same bits with any number of threads, and however the rows were spread
 * over files. ERROR_DATA if a chunk is damaged; sums beyond the range of doubles are infinite or
 * not a number. Release it in any case. */
int moments_find(struct set *set, unsigned threads, struct moments *moments);
void moments_release(struct moments *moments);

/* The root mean square of a column's values that are not 0; 0 if it has none, or it is not known.
 */
double moments_size(const struct moments *moments, uint32_t column);

/* Whether columns look as if they all measured the same, as pixels do: there are many, most
 * are nearly as large as the median, and none is much larger. Rare ones may be smaller. */
bool moments_share_unit(const struct moments *moments, uint32_t columns);

#endif
