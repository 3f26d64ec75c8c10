/* What each column of the data contributes to the margins of a row, against the training means.
 *
 * A column is one of the table, and takes all features that were made of it: a number and its bins,
 * the levels of a category, words, what stands for a missing cell. A cross of columns is a column
 * of its own, and so is each part of a date. Data that is no table has a column for each feature.
 *
 * With m_j the mean of feature j over the training rows, the base of output k is its margin for a
 * row that has all means, and
 *
 *   margin = base + Σ contributions + the row's offset
 *
 * up to rounding. In a linear model a contribution is Σ w_kj·(x_j − m_j) over the column's features
 * (Štrumbelj, Kononenko 2014, Explaining prediction models and individual predictions with feature
 * contributions). In a network it is that of integrated gradients from the means to the row
 * (Sundararajan, Taly, Yan 2017, Axiomatic attribution for deep networks): Σ (x_j − m_j)·∫ ∂margin/
 * ∂x_j dα over the row m + α(x − m). The way is taken in steps, in each of which the slope of a
 * unit is that of its secant, so that contributions add up to the margin whatever the steps. With
 * one hidden layer, whose sums move evenly along the way, they are the integral. With more, the
 * steps leave an error in how a margin is split between columns: steps are doubled until that
 * changes no contribution by more than EXPLAIN_CHANGE of the largest, or there are as many as may
 * be.
 *
 * Inside model/ and library/, and for the command. */
#ifndef DML_MODEL_EXPLAIN_H
#define DML_MODEL_EXPLAIN_H

#include <stddef.h>
#include <stdint.h>

#include "model/model.h"

#define EXPLAIN_STEPS_LEAST 32
#define EXPLAIN_STEPS_MOST 1024
#define EXPLAIN_CHANGE 1e-3

struct explainer; /* opaque */

/* The model must outlive it. ERROR_USAGE says why a model cannot be explained: it has no means, or
 * is that of a plug-in. ERROR_DATA if a mean is not finite. */
int explainer_new(const struct model *model, struct explainer **explainer);
void explainer_free(struct explainer *explainer); /* harmless on NULL */

/* The columns that the model has features of, in the order of the table with crosses last, and what
 * contributions of them are called. */
uint32_t explainer_columns(const struct explainer *explainer);
const char *const *explainer_names(const struct explainer *explainer);

/* The base of each output. */
const double *explainer_base(const struct explainer *explainer);

/* Finds the contributions to the margins of a row, given as `count` terms (model/terms.h):
 * outputs × columns, row-major. */
void explainer_row(struct explainer *explainer, const uint64_t *feature, const double *value,
                   size_t count, double *contributions);

/* Lists the `most` columns of the largest contributions to one output, by falling size: columns of
 * the same size stay in their order. `contribution` has explainer_columns(). */
void explainer_largest(const struct explainer *explainer, const double *contribution, uint32_t most,
                       uint32_t *column);

#endif
