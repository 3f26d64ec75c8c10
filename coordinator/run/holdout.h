/* The rows that judge a model: packs that stay open, of which a share or every row is held out. */
#ifndef DML_COORDINATOR_RUN_HOLDOUT_H
#define DML_COORDINATOR_RUN_HOLDOUT_H

#include "data/set.h"
#include "model/score.h"

struct holdout; /* opaque */

/* Takes the packs over, in order. `share` as score_packs() takes it. */
struct holdout *holdout_new(struct pack *const *packs, uint32_t count, double share);
void holdout_free(struct holdout *holdout); /* harmless on NULL */

/* Before training: ERROR_DATA if a header names columns otherwise than that of the data does. */
int holdout_check(const struct holdout *holdout, const struct set_info *data);

/* The figures of a model on the holdout. Any model: the one that was just trained
 * (model_writer_view()) or one of another day (model_open()). Errors as of score_packs();
 * ERROR_DATA if there is no labelled row. */
int holdout_score(const struct holdout *holdout, const struct model *model,
                  struct score_figures *figures);

#endif
