/* Rows that a model is scored on: the holdout or the test data. They are packs that stay open;
 * either all rows count, or a part of them. */
#ifndef DML_COORDINATOR_RUN_HOLDOUT_H
#define DML_COORDINATOR_RUN_HOLDOUT_H

#include "data/set.h"
#include "model/score.h"

struct holdout; /* opaque */

/* Takes ownership of the packs. `pick` is that of score_packs(). */
struct holdout *holdout_new(struct pack *const *packs, uint32_t count,
                            const struct holdout_pick *pick);
void holdout_free(struct holdout *holdout); /* harmless on NULL */

/* Checks, before training, that a model of this layout, trained on this data, can be scored.
 * ERROR_DATA if columns are missing or have other names, if no row has a label, or if no label is
 * one that is trained on. `key` is the key of the job file. Reads all rows. Harmless on NULL. */
int holdout_check(const struct holdout *holdout, const struct set_info *data,
                  const struct model_layout *layout, const char *key);

/* The figures of any model on the holdout, to be released if this succeeds: of the one that was
 * just trained (model_writer_view()) or of an earlier one (model_open()). Errors as of
 * score_packs(); ERROR_DATA if no row has a label. */
int holdout_score(const struct holdout *holdout, const struct model *model,
                  struct score_figures *figures);

#endif
