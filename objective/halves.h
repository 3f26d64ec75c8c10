/* The two halves of a pass over a block.
 *
 * The gradient of a linear model whose rows have one label each is made of two products with the
 * rows: margins q = X·p, and g = Xᵀ·d from their derivatives d. What lies between needs no rows.
 *
 * Vectors of rows travel as sums do. An element is 0 before, and the one chunk that has its row
 * adds the bits of a double to it, modulo 2^64: so what is counted once comes out as it was. The
 * tiles of a row each add an integer. `sum` begins at the first row of the block and has rows×K
 * elements, row-major. */
#ifndef DML_OBJECTIVE_HALVES_H
#define DML_OBJECTIVE_HALVES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rows.h"
#include "objective/block.h"
#include "objective/shape.h"

/* Whether the shape has these; else no function below may be called. */
bool objective_has_products(const struct objective_shape *shape);

/* Whether its models can be computed in strips of columns: linear models by these products, and
 * networks, whose first layer is a linear model with an output for each of its units. */
bool objective_has_strips(const struct objective_shape *shape);

/* The model of one strip of columns, layout_strip(): that of the data of a tile. Its parameters,
 * sums and exponents are those of the whole from its first element, or column, on. That of a
 * network is of its first layer, without biases: its margins are what the first layer adds up. */
struct objective_shape objective_strip(const struct objective_shape *shape, uint32_t columns,
                                       uint32_t number);

/* Adds the bits of the margins that objective_block() finds at `parameters`, a point or a direction
 * of n doubles. `scale` may be NULL, and *result says nothing.
 *
 * Of a tile (rows->size), adds what its columns have of each margin, as numeric/fixed.h says: a
 * function of the tile and the point alone. No element of the point may be beyond 2^P, the bound of
 * `scale`. If a part shows that one is, or is not finite, the product is exceeded, and the maximum
 * is the largest |part|·2^−size of such. With sum == NULL only these are found. */
void objective_product(const struct objective_shape *shape, const struct objective_scale *scale,
                       const struct rows *rows, const double *parameters, int64_t *sum,
                       struct objective_scratch *scratch, struct objective_result *result);

/* Adds to `sum`, n elements, the gradient that follows from `derivatives` by the margins, rows×K
 * and not weighted. With those that objective_block() finds at a point, sums, maxima and `exceeded`
 * are what it finds there, to the bit; there is no loss. With sum == NULL only the maxima. */
void objective_transpose(const struct objective_shape *shape, const struct objective_scale *scale,
                         const struct rows *rows, const double *derivatives, int64_t *sum,
                         struct objective_scratch *scratch, struct objective_result *result);

/* What lies above the strips of a network, layout_upper(): the network without features. */
struct objective_shape objective_upper(const struct objective_shape *shape);

/* Where it is computed: with its parameters, and with the first layer's margins of the rows,
 * without biases: rows×units, row-major. */
struct upper_point {
    const double *parameters, *margins;
};

/* The second half of a pass over a network, of shape objective_upper(): both go through all layers
 * above the first. `scale` has the bounds of the whole network, and the exponents of the upper
 * tensors from the first on. Maxima are those of the chunk's gradient as objective_block() has
 * them, with that of the first tensor only where it is said. The loss is the result's.
 *
 * objective_derivatives() adds the bits of the derivatives of the row's loss by those margins, not
 * weighted, to `sum`, rows×units. The maximum of the first tensor is the largest of them, under
 * which the transpose of the first layer holds its bound.
 *
 * objective_upper_gradient() adds the gradient by the upper parameters to `sum`: where the margins
 * are those of objective_block(), what that adds. With sum == NULL nothing is added.
 *
 * objective_upper_loss() has the loss alone, and the weight of the rows predicted correctly. */
void objective_derivatives(const struct objective_shape *shape, const struct objective_scale *scale,
                           const struct rows *rows, const struct upper_point *point, int64_t *sum,
                           struct objective_scratch *scratch, struct objective_result *result);
void objective_upper_gradient(const struct objective_shape *shape,
                              const struct objective_scale *scale, const struct rows *rows,
                              const struct upper_point *point, int64_t *sum,
                              struct objective_scratch *scratch, struct objective_result *result);
void objective_upper_loss(const struct objective_shape *shape, const struct rows *rows,
                          const struct upper_point *point, struct objective_scratch *scratch,
                          struct objective_result *result);

/* Add the bits of the label of each row, as losses take it, of its weight, or of its size in a
 * tile, to the first of the row's K elements. */
void objective_add_labels(const struct objective_shape *shape, const struct rows *rows,
                          int64_t *sum);
void objective_add_offsets(const struct objective_shape *shape, const struct rows *rows,
                           int64_t *sum);
void objective_add_weights(const struct objective_shape *shape, const struct rows *rows,
                           int64_t *sum);
void objective_add_sizes(const struct objective_shape *shape, const struct rows *rows,
                         int64_t *sum);

#endif
