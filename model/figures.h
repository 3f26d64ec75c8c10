/* Computes figures from examples that are added one by one. Inside model/ only. */
#ifndef DML_MODEL_FIGURES_H
#define DML_MODEL_FIGURES_H

#include "model/score.h"

struct figures; /* opaque */

struct figures *figures_new(const struct model_layout *layout);
void figures_free(struct figures *figures); /* harmless on NULL */

/* Counts an example with its margins, one per output of the model. `text` is the label if it is not
 * a number, else NULL, and then `label` is the number, or NaN for an example without a label. */
void figures_add(struct figures *figures, const double *margins, double label, const char *text);

/* Fills all but unseen_features. */
void figures_finish(struct figures *figures, struct score_figures *result);

#endif
