/* The weights in which two linear models of the same columns differ most. */
#ifndef DML_MODEL_COMPARE_H
#define DML_MODEL_COMPARE_H

#include <jansson.h>
#include <stddef.h>

#include "model/model.h"

/* NULL if the weights of both models can be compared one by one; else what stands in the way, as in
 * "they have different columns". */
const char *compare_obstacle(const struct model *a, const struct model *b);

/* {weights, differ, by, largest: [{feature, class, weights: [a, b], deviation}]}: how many weights
 * each model has, how many of them differ, and at most `most` of those that differ most, the
 * largest difference first. With `deviation`, the standard deviation of each feature or NaN where
 * it is not known, differences count times that, so that columns of all units can be compared: `by`
 * is then "deviation", else "weight". `class` is null where a feature has one weight. Intercepts
 * are counted and shown as the feature "(intercept)", and come after all others where deviations
 * are known. The models must have no obstacle. A new reference. */
json_t *compare_weights(const struct model *a, const struct model *b, const double *deviation,
                        size_t most);

#endif
