/* A file of weights: one number a line, for the lines of a data file in their order, as the tools
 * of LIBSVM take them; plain, .gz or .zst. Lines of blanks do not count, here as in the data; a
 * malformed line of the data has its weight, too. */
#ifndef DML_DATA_WEIGHTS_H
#define DML_DATA_WEIGHTS_H

#include <stdbool.h>
#include <stdint.h>

#include "data/batch.h"
#include "data/source.h"

struct weights; /* opaque; used by one thread at a time */

/* Opens the file of weights of `data`. Both paths must outlive it. Errors as of source_read(). */
int weights_open(const char *path, const char *data, struct weights **weights);
void weights_close(struct weights *weights); /* harmless on NULL */

/* Weighs the rows of the next block of the data. ERROR_DATA if there are too few weights, or one is
 * no number from 0 to WEIGHT_MAX. */
int weights_take(struct weights *weights, struct batch *batch);

/* Ends the reading, behind the last row: no weight may be left. Notes hash and stamp. */
int weights_end(struct weights *weights, struct source_report *report);

/* Whether a number is a weight: finite, and neither negative nor beyond WEIGHT_MAX. */
bool weight_is_sound(double weight);

#endif
