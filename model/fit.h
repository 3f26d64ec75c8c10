/* Statistics of a fit over its training rows: deviance, log-likelihood and what follows from them.
 * Rows are added one by one, in several passes; all sums are exact, so their order changes nothing.
 * Knows no files.
 *
 * Weights are those of R's glm and statsmodels' var_weights: they divide the variance of a row, and
 * `rows` counts those that weigh more than 0, whatever they weigh. */
#ifndef DML_MODEL_FIT_H
#define DML_MODEL_FIT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "objective/objective.h"

/* What does not apply, or is not known, is NaN. */
struct fit_statistics {
    const struct distribution *distribution; /* NULL: only the next four are there */
    uint64_t rows;                           /* that weigh more than 0 */
    double weight;                           /* the sum of their weights */
    double loss;                             /* Σ w·loss */
    double parameters;     /* that were estimated, or with a penalty the effective ones */
    double freedom;        /* rows − parameters */
    double null_freedom;   /* rows − the intercepts */
    double deviance;       /* 2·Σ w·loss */
    double null_deviance;  /* the deviance of the best model with the intercept and offsets alone,
                              or, of a model without an intercept, with offsets alone */
    double pearson;        /* Σ w·(y − μ)²/V(μ) */
    double dispersion;     /* pearson/freedom; 1 where the distribution has none */
    double pearson_ratio;  /* pearson/freedom, whatever the distribution has */
    double deviance_ratio; /* deviance/freedom */
    double log_likelihood; /* as statsmodels' GLM.llf: see struct distribution */
    double aic;            /* −2·log_likelihood + 2·parameters: the dispersion is not counted */
    double bic;            /* −2·log_likelihood + log(rows)·parameters */
};

struct fit; /* opaque */

/* `parameters` is as in the statistics, or NaN. Objective and parameters of the loss must outlive
 * it. */
struct fit *fit_new(const struct objective *objective, const struct loss_parameters *loss,
                    uint32_t outputs, bool intercept, double parameters);
void fit_free(struct fit *fit); /* harmless on NULL */

struct fit_row {
    const double *margins; /* of each output, offset included; not looked at in passes that do not
                              need them */
    double label;          /* as losses take it */
    const double *has; /* instead, where rows have lists of classes: 1 for each of these, else 0 */
    double weight;     /* as it was given: ≥ 0 */
    double offset;     /* what the margins have of it */
};

/* Adds a row to the present pass. A row of weight 0 counts for nothing. */
void fit_add(struct fit *fit, const struct fit_row *row);

/* Ends the pass, after all rows were added. Returns whether another one is needed; it may need no
 * margins: fit_needs_margins(). */
bool fit_next_pass(struct fit *fit);
bool fit_needs_margins(const struct fit *fit);

/* After the last pass. */
void fit_finish(const struct fit *fit, struct fit_statistics *statistics);

/* As the member `fit` of summary.json; NaN is null. A new reference. */
json_t *fit_json(const struct fit_statistics *statistics);

#endif
