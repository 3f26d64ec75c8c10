/* The starting point of a run that does not start from zero: the parameters of an earlier model, as
 * the run numbers them, in STATE/shards/RUN/start. It is written before the run is recorded. It
 * does not change as long as the run can go on, even if the model is changed or removed. Format:
 * see doc/FORMATS.md. */
#ifndef DML_COORDINATOR_RUN_START_H
#define DML_COORDINATOR_RUN_START_H

#include <stdbool.h>

#include "base/layout.h"
#include "data/container.h"
#include "data/set.h"
#include "model/model.h"
#include "objective/kronecker.h"

struct start {
    struct container file;
    const double *parameters; /* as the layout has them; mapped */
    uint32_t pairs;           /* of curvature, oldest first */
    const double *vectors;    /* s and y of each, as `parameters`; mapped */
    struct model_kept kept; /* mapped, but the list of names is owned; no features: none are kept */
};

/* What a starting point takes from a model, and how. */
struct start_options {
    bool keeps;                /* the model's features that the run lacks, too */
    uint32_t pairs_most;       /* curvature pairs, if their scaling has the run's form */
    uint32_t form;             /* of the run's scaling (coordinator/job/scaling.h) */
    double unit;               /* of a network's outputs; else 1 */
    struct scaling_walk *walk; /* to that scaling, begun; NULL: there is none */
};

/* Writes FOLDER/start for a run; makes the folder. `run` is the run's uuid. The layout must fit the
 * model. The file is on the disk when this returns. */
int start_write(const char *folder, const char *run, const struct model *model,
                const struct model_layout *layout, const struct start_options *options);

/* Opens the file. ERROR_DATA, with what to do, if it is damaged or belongs to another run, model or
 * layout, or if its parameters are scaled by another form; ERROR_UNAVAILABLE if it is of
 * another version. */
int start_open(const char *folder, const char *run, const char *model_sha256,
               const struct model_layout *layout, uint32_t form, struct start *start);

/* Harmless on a zeroed struct, which it leaves. */
void start_close(struct start *start);

/* The curvature that a run ended with: its last curvature pairs, in the file `curvature` beside the
 * two files of its model. A run that starts from the model begins with these pairs. Nothing else
 * needs the file. Format: see doc/FORMATS.md. */

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

/* The Kronecker factors of a run that trains a network scaled by them: found from a sample of the
 * set's rows at the start that the network has by its seed, so that a run that goes on finds the
 * same ones again. */

/* Zeroed memory is none. */
struct kronecker_scaling {
    double *factors; /* `count` of them; owned. NULL: there are none */
    uint64_t count;
    double *start; /* where the run starts, scaled by the factors; owned */
    struct kronecker *kronecker;
    struct kronecker_work *work;
    double *model; /* the model as it comes in slices, all of it so far; owned, or NULL */
};

/* Finds them. `start` has scaled columns; NULL: the one by the seed. ERROR_DATA
 * if a chunk cannot be read. */
int kronecker_scaling_find(struct kronecker_scaling *scaling, const struct objective_shape *shape,
                           struct set *set, const struct column_scaling *columns,
                           const double *start);
void kronecker_scaling_release(struct kronecker_scaling *scaling);

/* Takes the next slice of the model. With the last one: the whole, of scaled columns,
 * valid until the next call; else NULL. */
const double *kronecker_scaling_take(struct kronecker_scaling *scaling, uint64_t parameters,
                                     uint64_t first, uint64_t count, const double *values);

#endif
