/* The holdout by share: whether a row is held out follows from the row alone.
 *
 * The hash covers the label and the (original id, value) pairs, in any order. So a row is on the
 * same side wherever it stands and whatever other rows there are, and equal rows are on the same
 * side. The hash must never change: see doc/FORMATS.md. */
#ifndef DML_DATA_HOLDOUT_H
#define DML_DATA_HOLDOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "data/source.h"

/* The hash of row `row` of `rows`. Values of 0 are ignored, as if they were not stored. */
uint64_t holdout_hash(const struct source_rows *rows, uint32_t row);

/* Whether a row with this hash is held out at a `share` in (0, 1); at a share of 0 no row is. */
bool holdout_has(double share, uint64_t hash);

#endif
