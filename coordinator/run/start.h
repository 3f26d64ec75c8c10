/* Where a run starts if not from zero: the parameters of an earlier model as the run numbers them,
 * in STATE/shards/RUN/start. It is written before its run is recorded, and stays what it is as long
 * as the run can go on, whatever becomes of the model. Format: see doc/FORMATS.md. */
#ifndef DML_COORDINATOR_RUN_START_H
#define DML_COORDINATOR_RUN_START_H

#include <stdbool.h>

#include "data/container.h"
#include "model/model.h"

struct start {
    struct container file;
    const double *parameters; /* (features + intercept)·outputs; mapped */
    uint32_t pairs;           /* of curvature, oldest first */
    const double *vectors;    /* s and y of each, as `parameters`; mapped */
    struct model_kept kept;   /* mapped, with its list of names owned; no features: nothing */
};

/* Writes FOLDER/start, for the run that its workers know as `run`, whose layout must fit the model;
 * with those of the model's features that the run lacks if `keeps`, and at most `pairs_most` pairs
 * of what is known of the curvature there. Makes the folder. On the disk when it returns. */
int start_write(const char *folder, const char *run, const struct model *model,
                const struct model_layout *layout, bool keeps, uint32_t pairs_most);

/* Opens it: ERROR_DATA, and what to do, unless it is whole and for that run, model and layout. */
int start_open(const char *folder, const char *run, const char *model_sha256,
               const struct model_layout *layout, struct start *start);

/* Harmless on a zeroed struct, which it leaves. */
void start_close(struct start *start);

#endif
