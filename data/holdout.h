/* The holdout by share: which side a row is on follows from the row alone.
 *
 * The hash of a row is one of its label and of its (original id, value) pairs, whatever their
 * order; so the row is on the same side wherever it stands and whatever other rows come, and equal
 * rows are on the same side. It is part of what people rely on: see doc/FORMATS.md. */
#ifndef DML_DATA_HOLDOUT_H
#define DML_DATA_HOLDOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "data/source.h"

/* The hash of row `row` of `rows`. A value of 0 counts as one that is not there. */
uint64_t holdout_hash(const struct source_rows *rows, uint32_t row);

/* Whether a row of that hash is held out where `share`, in (0, 1), of the rows is; none is at a
 * share of 0. */
bool holdout_has(double share, uint64_t hash);

#endif
