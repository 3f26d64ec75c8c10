/* Losses, and figures gathered example by example. Inside model/ only. */
#ifndef DML_MODEL_FIGURES_H
#define DML_MODEL_FIGURES_H

#include <stdint.h>

#include "model/score.h"

/* Losses of one example, accurate also where they are tiny: not through 1 − probability. */
double figures_loss_binary(double margin, bool positive);
double figures_loss_classes(const double *margins, uint32_t classes, uint32_t label);

/* The class with the largest margin, the first of equals. */
uint32_t figures_best_class(const double *margins, uint32_t classes);

struct figures; /* opaque */

struct figures *figures_new(const struct model_layout *layout);
void figures_free(struct figures *figures); /* harmless on NULL */

/* Counts an example with its margins (as many as the model has outputs). `text` is its label if
 * that is not a number; no text and NaN: it has none. */
void figures_add(struct figures *figures, const double *margins, double label, const char *text);

/* Fills all but unseen_features. */
void figures_finish(struct figures *figures, struct score_figures *result);

#endif
