/* Computes figures from examples that are added one by one. All sums are exact: the same figures
 * in whatever order the examples come. Inside model/ only. */
#ifndef DML_MODEL_FIGURES_H
#define DML_MODEL_FIGURES_H

#include "model/score.h"

struct figures; /* opaque */

struct ranking;

enum figures_kind {
    FIGURES_ALL,
    FIGURES_MARGINS, /* counts, and the margins for figures_take_ranking() */
    FIGURES_LABELS,  /* only counts of examples and labels; takes no memory for scores */
};

struct figures *figures_new(const struct model_layout *layout, enum figures_kind kind);
void figures_free(struct figures *figures); /* harmless on NULL */

/* Counts an example with its margins, one per output of the model. `text` is the label if it is not
 * a number, or a code; else NULL, and then `label` is the number, or NaN for an example without a
 * label.
 * `weight` is at least 0 and finite. */
void figures_add(struct figures *figures, const double *margins, double label, const char *text,
                 double weight);

/* The label of an example as losses take it; NaN if it has none, or one that training never saw. */
double figures_label(const struct figures *figures, double label, const char *text);

/* The loss of the example that is added next, if it does not follow from its margins. */
void figures_give_loss(struct figures *figures, double loss);

/* The ranking by margins, of FIGURES_MARGINS: the caller's. */
struct ranking *figures_take_ranking(struct figures *figures);

/* Fills all but unseen_features. Release the result with score_figures_release(). */
void figures_finish(struct figures *figures, struct score_figures *result);

#endif
