/* The starting point of a run that does not start from zero: the parameters of an earlier model, as
 * the run numbers them, in STATE/shards/RUN/start. It is written before the run is recorded. It
 * does not change as long as the run can go on, even if the model is changed or removed. Format:
 * see doc/FORMATS.md. */
#ifndef DML_COORDINATOR_RUN_START_H
#define DML_COORDINATOR_RUN_START_H

#include <stdbool.h>

#include "base/layout.h"
#include "data/pack/container.h"
#include "model/model.h"

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

#endif
