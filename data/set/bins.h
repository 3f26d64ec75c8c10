/* Where the bins of a column of numbers part. Inside data/ only. */
#ifndef DML_DATA_SET_BINS_H
#define DML_DATA_SET_BINS_H

#include <stdint.h>

/* Parts `count` > 0 rising values into at most `bins` ≥ 2 bins of about as many values each. A
 * value that has a bin's share alone gets a bin of its own, wherever the others stand, and the
 * others share the bins that are left: else of amounts that are mostly 0 all others would be one
 * bin. Where there are not enough bins for the numbers on both sides of each such value, the fewest
 * of them share its bin. Each edge is a value, and
 * the first of its bin; so no bin is empty. Writes up to bins − 1 edges, rising, and one number
 * more of how many values each bin has. Returns the number of edges. */
uint32_t bins_part(const double *value, uint64_t count, uint32_t bins, double *edge,
                   uint64_t *in_bin);

#endif
