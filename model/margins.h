/* The margins of a model for blocks of rows. The margins of a row do not depend on the rows beside
 * it. Inside model/ and library/ only. */
#ifndef DML_MODEL_MARGINS_H
#define DML_MODEL_MARGINS_H

#include <stdbool.h>
#include <stdint.h>

#include "model/model.h"
#include "model/terms.h"

/* Rows of one block, at most. */
#define MARGINS_ROWS_MAX 256

struct margins; /* opaque */

/* If a model has no parameters, all margins are 0. The model must outlive them. */
struct margins *margins_new(const struct model *model);
void margins_free(struct margins *margins); /* harmless on NULL */

/* A row is added by its terms, in any order, and then ended with its offset. A block that is full
 * takes no more. */
struct terms *margins_terms(struct margins *margins);
void margins_end_row(struct margins *margins, double offset);
bool margins_full(const struct margins *margins);

/* Whether losses of their own come with the margins, and the labels are asked for. */
bool margins_take_labels(const struct margins *margins);

/* Computes the block: rows × outputs, row-major; the block is then empty again. Valid until the
 * next call. Of a plug-in it can fail, and `labels` are those of the rows, or NULL: then losses are
 * not wanted. */
int margins_compute(struct margins *margins, const double *labels, const double **values);

/* The terms of a row of the block that was computed last, valid as its margins are: features, and
 * as many values. */
const uint64_t *margins_row_terms(const struct margins *margins, uint32_t row,
                                  const double **values, size_t *count);

/* The loss of each row of the block that was computed last, if a plug-in was given their labels;
 * else NULL: losses follow from the margins. */
const double *margins_losses(const struct margins *margins);

#endif
