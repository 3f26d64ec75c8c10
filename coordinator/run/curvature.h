/* The curvature that a run ended with: its last curvature pairs, in the file `curvature` beside the
 * two files of its model. A run that starts from the model begins with these pairs. Nothing else
 * needs the file. Format: see doc/FORMATS.md. */
#ifndef DML_COORDINATOR_RUN_CURVATURE_H
#define DML_COORDINATOR_RUN_CURVATURE_H

#include "base/layout.h"
#include "data/pack/container.h"
#include "model/model.h"

struct curvature_writer; /* opaque */

/* Makes FOLDER/curvature at its full size; the layout must outlive the writer. `form` says how
 * the vectors are scaled (coordinator/job/scaling.h). */
int curvature_writer_new(const char *folder, const struct model_layout *layout, uint32_t pairs,
                         double bias_scale, uint32_t form, struct curvature_writer **writer);

/* Takes elements first… of a vector as RECORD_SLICE numbers them (coordinator/dispatch/output.h,
 * from 1 on): s, or q with the scale of the biases (optimizer/pairs.h), which the file's y does not
 * have. */
void curvature_writer_slice(struct curvature_writer *writer, uint32_t vector, uint64_t first,
                            uint64_t count, const double *values);

/* Completes the file, for the model with this hash. Frees the writer, also on failure. */
int curvature_writer_publish(struct curvature_writer *writer, const char *model_sha256);

/* Gives the file up and frees the writer; harmless on NULL. */
void curvature_writer_discard(struct curvature_writer *writer);

struct curvature {
    struct container file;
    struct model_layout layout; /* how the run that wrote it numbered its columns */
    const char **class_names;   /* owned */
    uint32_t form;              /* of the vectors' scaling */
    uint32_t pairs;             /* oldest first */
    const float *vectors;       /* s and y of each, as that run's vector; mapped */
};

/* Opens the curvature of a model; it has no pairs if there is no such file. ERROR_DATA if the file
 * is damaged or belongs to another model. */
int curvature_open(const struct model *model, struct curvature *curvature);
void curvature_close(struct curvature *curvature);

/* Writes the `count` newest pairs as vectors of a run with this layout, with 0 for parameters that
 * the earlier run did not have. */
void curvature_spread(const struct curvature *curvature, const struct model_layout *layout,
                      uint32_t count, double *vectors);

#endif
