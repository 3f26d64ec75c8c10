/* The table of a summary: estimates with their errors, tests and intervals, and in words what is to
 * be known about them. Pure: from a model and what summary_read() found beside it. */
#ifndef DML_MODEL_SUMMARY_TABLE_H
#define DML_MODEL_SUMMARY_TABLE_H

#include "model/summary.h"

/* Which standard errors. A dispersion that is estimated is a factor of the first alone. */
enum summary_kind {
    SUMMARY_KIND_MODEL, /* √(dispersion·(H+Λ)⁻¹H(H+Λ)⁻¹): of estimates from sample to sample */
    SUMMARY_KIND_BAYESIAN, /* √(dispersion·(H+Λ)⁻¹): of parameters whose prior is the penalty;
                              without one as the first */
    SUMMARY_KIND_HC0,      /* √((H+Λ)⁻¹M(H+Λ)⁻¹) */
    SUMMARY_KIND_HC1,      /* times √(n/(n − k)), n rows and k parameters */
    SUMMARY_KIND_CLUSTER, /* of clusters, times √(G/(G − 1)·(n − 1)/(n − k)), as statsmodels */
};

#define SUMMARY_LEVEL 0.95 /* where nobody says another */

struct summary_view {
    enum summary_kind errors;
    double level;     /* of the intervals, in (0, 1) */
    const char *only; /* a pattern as of shells, for names; NULL: all rows */
};

/* What `summary --json` prints: doc/FORMATS.md. Rows are in the order of columns, the intercepts
 * first, for one output after the other. A new reference. ERROR_USAGE if these errors were not
 * computed, or if no name fits the pattern. */
int summary_table(const struct model *model, const json_t *summary, const struct summary_view *view,
                  json_t **table);

/* What the row of a parameter is called, which has this number in the order of model/summary.h.
 * Free it. */
char *summary_name(const struct model_layout *layout, uint64_t number);

/* Whether nothing is left of the labels but rounding, from which a dispersion would follow. */
bool summary_is_perfect(const json_t *summary, const struct distribution *distribution);

/* What is to be known about a fit, as texts for people: model/summary_notes.c. `rows` are those of
 * the table. A new reference. */
json_t *summary_notes(const struct model *model, const json_t *summary, const json_t *rows,
                      enum summary_kind errors);

#endif
