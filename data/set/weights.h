/* What the rows of a set weigh. */
#ifndef DML_DATA_SET_WEIGHTS_H
#define DML_DATA_SET_WEIGHTS_H

#include <math.h>
#include <stdbool.h>

#include "data/set/labels.h"
#include "data/set/split.h"

/* The weights of rows as the set stores them: that of the row, times that of its class, times
 * 2^exponent. */
struct row_weights {
    bool weighted;    /* some weight is not 1; else the rest is not used */
    double *of_class; /* or NULL: all 1 */
    int exponent;
    double sum, held_sum; /* of stored weights: of training rows, of held-out rows */
};

/* Looks at the rows that are trained on, and at those that are held out. */
int row_weights_find(struct row_weights *row_weights, const struct split *split,
                     const struct labels *labels, const char *const *class_weight);
void row_weights_release(struct row_weights *row_weights);

/* The weight of a row whose label the set stores as `label`. Safe from many threads. */
static inline double row_weight_of(const struct row_weights *row_weights,
                                   const struct pack_rows *rows, uint32_t row, double label) {
    double weight = rows->weight ? rows->weight[row] : 1;
    return ldexp(row_weights->of_class ? weight * row_weights->of_class[(uint32_t)label] : weight,
                 row_weights->exponent);
}

#endif
