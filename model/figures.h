/* Figures gathered example by example. Inside model/ only. */
#ifndef DML_MODEL_FIGURES_H
#define DML_MODEL_FIGURES_H

#include "model/score.h"

struct figures; /* opaque */

struct figures *figures_new(const struct model_layout *layout);
void figures_free(struct figures *figures); /* harmless on NULL */

/* Counts an example with its margins (as many as the model has outputs). `text` is its label if
 * that is not a number; no text and NaN: it has none. */
void figures_add(struct figures *figures, const double *margins, double label, const char *text);

/* Fills all but unseen_features. */
void figures_finish(struct figures *figures, struct score_figures *result);

#endif
