/* Rows that a model is scored on, the holdout or the test data: packs that stay open, of which a
 * share or every row counts. */
#ifndef DML_COORDINATOR_RUN_HOLDOUT_H
#define DML_COORDINATOR_RUN_HOLDOUT_H

#include "data/set.h"
#include "model/score.h"

struct holdout; /* opaque */

/* Takes the packs over, in order. `share` as score_packs() takes it. */
struct holdout *holdout_new(struct pack *const *packs, uint32_t count, double share);
void holdout_free(struct holdout *holdout); /* harmless on NULL */

/* Before training: whether a model of this layout, trained on this data, could be scored.
 * ERROR_DATA if columns are missing or a header names them otherwise, if no row has a label, or
 * none that training knows. `key` is that of the job file. Reads all rows. Harmless on NULL. */
int holdout_check(const struct holdout *holdout, const struct set_info *data,
                  const struct model_layout *layout, const char *key);

/* The figures of a model on the holdout. Any model: the one that was just trained
 * (model_writer_view()) or one of another day (model_open()). Errors as of score_packs();
 * ERROR_DATA if there is no labelled row. */
int holdout_score(const struct holdout *holdout, const struct model *model,
                  struct score_figures *figures);

#endif
