/* Reads a model back that was written, before anybody relies on it: what its files say of a few
 * training rows must be what the run was trained with, to the bit. */
#ifndef DML_MODEL_READBACK_H
#define DML_MODEL_READBACK_H

#include "data/set/statistics.h"
#include "model/model.h"

struct readback; /* opaque */

/* Notes the parameters of the features that the rows have, as far as they are few, and the first
 * ones of each other tensor. Layout and sample must outlive it. */
struct readback *readback_new(const struct model_layout *layout, const struct sample *sample);
void readback_free(struct readback *readback); /* harmless on NULL */

/* The run's parameters, as for model_writer_slice(). */
void readback_slice(struct readback *readback, uint64_t first, uint64_t count,
                    const double *values);

/* Opens the model in `folder` as whoever scores with it, and scores the rows. ERROR_DATA if it
 * cannot be read, or does not have this hash. ERROR_INTERNAL if a row's values in their file do not
 * become the features and values that the set has of it, or if a parameter is not the run's. Errors
 * of a plug-in's library. To users the first is an internal error as well: they cannot mend it. */
int readback_check(const struct readback *readback, const char *folder, const char *sha256);

#endif
