/* The coordinates that a run is trained in, where they are not the weights themselves.
 *
 * Each column j has a mean m_j and a scale s_j. The shards' vectors hold z and c, of which weights
 * and biases are
 *
 *     w_jk = s_j·z_jk        b_k = c_k − Σ_j m_j·w_jk
 *
 * where w_jk is w_j if all outputs share it; then ∂/∂b_k below is the sum of these over k.
 *
 * So the margin of a row is c_k + Σ_j s_j·(x_j − m_j)·z_jk: as if each column had been shifted and
 * scaled, while the data stays as it is, with its zeros. The gradient follows it:
 *
 *     ∂/∂z_jk = s_j·(∂/∂w_jk − m_j·∂/∂b_k)        ∂/∂c_k = ∂/∂b_k
 *
 * l2 regularises Σ penalty_j·z_jk², and l1 Σ √penalty_j·|z_jk|. A model speaks of weights and
 * biases: what comes in is entered into these coordinates, what goes out leaves them. Elements are
 * those of the layout (base/layout.h); a row of its first tensor is a column of the data. Of a
 * network w and b are the first layer, and all other elements are their own coordinates. */
#ifndef DML_BASE_COORDINATES_H
#define DML_BASE_COORDINATES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/layout.h"

/* Of one column. It travels as it lies here, in 24 bytes. */
struct coordinate {
    double mean;    /* finite; 0 if the model has no bias */
    double scale;   /* finite, above 0 */
    double penalty; /* finite, above 0 */
};
_Static_assert(sizeof(struct coordinate) == 24, "no padding");

bool coordinate_is_sound(const struct coordinate *coordinate);

/* Whether a model of this layout can have coordinates. A linear one: "weight" is its first tensor,
 * and there is no other but "bias", with as many columns, or weights that its columns share. Any
 * other: there is layout_input_bias(), with as many columns as the first tensor. */
bool coordinates_suit(const struct layout *layout);

/* A walk over a whole vector: its elements in order, in pieces of any size. The same bits come out
 * however it is cut. Start it zeroed; `columns` has one for each row of the first tensor and
 * outlives it.
 */
struct coordinates_walk {
    const struct layout *layout;
    const struct coordinate *columns;
    double *shift; /* Σ m_j·w_jk so far, in several lanes; owned */
};
void coordinates_begin(struct coordinates_walk *walk, const struct layout *layout,
                       const struct coordinate *columns);
void coordinates_end(struct coordinates_walk *walk); /* harmless on a zeroed walk */

/* Elements first… from weights to coordinates, or back; `out` may be `in`. */
void coordinates_enter(struct coordinates_walk *walk, uint64_t first, uint64_t count,
                       const double *in, double *out);
void coordinates_leave(struct coordinates_walk *walk, uint64_t first, uint64_t count,
                       const double *in, double *out);

#endif
