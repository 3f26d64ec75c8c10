/* The starting point of a run that does not start from zero: the parameters of an earlier model, as
 * the run numbers them, in STATE/shards/RUN/start. It is written before the run is recorded. It
 * does not change as long as the run can go on, even if the model is changed or removed. Format:
 * see doc/FORMATS.md. */
#ifndef DML_COORDINATOR_RUN_START_H
#define DML_COORDINATOR_RUN_START_H

#include <stdbool.h>

#include "base/coordinates.h"
#include "data/container.h"
#include "model/model.h"

struct start {
    struct container file;
    const double *parameters; /* (features + intercept)·outputs; mapped */
    uint32_t pairs;           /* of curvature, oldest first */
    const double *vectors;    /* s and y of each, as `parameters`; mapped */
    struct model_kept kept; /* mapped, but the list of names is owned; no features: none are kept */
};

/* Writes FOLDER/start for a run; makes the folder. `run` is the run's uuid. The layout must fit the
 * model. The parameters are entered into the coordinates of the run, by `walk`, unless it is NULL.
 * If `keeps`, the file has the model's features that the run lacks, too. It has `pairs_most`
 * curvature pairs at most. The file is on the disk when this returns. */
int start_write(const char *folder, const char *run, const struct model *model,
                const struct model_layout *layout, struct coordinates_walk *walk, bool keeps,
                uint32_t pairs_most);

/* Opens the file. ERROR_DATA, with what to do, if it is damaged or belongs to another run, model or
 * layout, or if its parameters are in coordinates where the run has none, or the other way round.
 */
int start_open(const char *folder, const char *run, const char *model_sha256,
               const struct model_layout *layout, bool coordinates, struct start *start);

/* Harmless on a zeroed struct, which it leaves. */
void start_close(struct start *start);

#endif
