/* What each column of the data brings to the score of a linear model, over the rows that it was
 * trained on.
 *
 * A row's contribution of a column is the sum of weight times value over all features that were
 * made of the column: of a table the number and its bins, the texts of a category, words, what
 * stands for a missing cell; a cross of columns is a column here. Data that is no table has a
 * column for each feature. With u_k a contribution to the margin of output k, η_k the sum of u_k
 * over all columns, and variances and covariances over the rows with their weights:
 *
 *   deviation = √ Σ_k var(u_k)        share = Σ_k cov(u_k, η_k) / Σ_k var(η_k)
 *
 * So the shares add up to 1. One is below 0 where a column works against the others. A number that
 * is added to all margins of softmax changes no probability, so there each weight is taken less the
 * mean of its feature's weights over the classes. */
#ifndef DML_MODEL_IMPORTANCE_H
#define DML_MODEL_IMPORTANCE_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "data/set/set.h"
#include "model/model.h"

struct importance_column {
    char *name; /* owned */
    double deviation, share;
    uint64_t features; /* that the set has of it */
};

/* Zeroed memory knows nothing. */
struct importance {
    uint64_t rows, training_rows; /* looked at, and all; without those of weight 0 */
    double *deviation; /* of each of the model's features, over these rows; NaN of one that the set
                          has not. Owned */
    uint32_t count;    /* 0: the model has too many weights for it */
    struct importance_column *column; /* by falling deviation; owned */
};

/* Reads chunks of the training set twice, evenly spread ones if all of them would take long: what
 * they are follows from the set and the model alone, and so do the bits. Leaves it zeroed for a
 * model that is not linear, and for a set in tiles. ERROR_DATA if a chunk is damaged. Release it in
 * any case. */
int importance_find(struct set *set, const struct model *model, struct importance *importance);
void importance_release(struct importance *importance);

/* {rows, training_rows, columns: [{column, deviation, share, features}], more}: at most so many
 * columns, and how many more there are. A new reference. */
json_t *importance_json(const struct importance *importance, size_t most);

/* A table for people. The caller finds errors of writing with ferror(). */
void importance_print(const struct importance *importance, FILE *out);

#endif
