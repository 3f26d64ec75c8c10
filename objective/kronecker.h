/* A scaling of networks by Kronecker factors, in which L-BFGS works (Martens and Grosse 2015,
 * Optimizing neural networks with Kronecker-factored approximate curvature).
 *
 * The curvature of a layer's [W; b], whose last row are the biases, is about A ⊗ B: A is the mean
 * of a·aᵀ over rows, a being what goes into the layer and a 1, and B that of δ·δᵀ, δ being the
 * derivatives of the loss by the layer's sums. In parameters Z with
 *
 *     [W; b] = P·Z·Q        P = (A + ρ_a·1)^−½        Q = (B + ρ_b·1)^−½
 *
 * it is about the same in all directions. Both are taken as a few large eigenvalues and one mean
 * value for all others, which is cheap to apply and measured as good as all. ρ_a and ρ_b are √λ
 * times and by the root of tr A/dim A / (tr B/dim B), with λ = KRONECKER_DAMPING.
 *
 * P and Q are symmetric: the gradient by Z is P·G·Q. So one function serves points and gradients.
 * The first layer's W and b are those of scaled columns (base/layout.h). */
#ifndef DML_OBJECTIVE_KRONECKER_H
#define DML_OBJECTIVE_KRONECKER_H

#include "base/layout.h"
#include "numeric/matrix.h"
#include "objective/block.h"
#include "objective/shape.h"

#define KRONECKER_WIDTH_MAX 8192 /* features, and units of a layer */
#define KRONECKER_RANK 16
#define KRONECKER_DAMPING 1e-2

/* Whether a network of this shape may have them: no layer is too wide, and outputs share no
 * weights. */
bool kronecker_suits(const struct objective_shape *shape);

struct kronecker; /* opaque; shared by threads */

/* The factors of a layout as a vector of kronecker_size() doubles: kronecker_find() makes it, and
 * it travels over the wire. kronecker_new() copies it, and returns NULL if it is not valid. */
uint64_t kronecker_size(const struct layout *layout);
struct kronecker *kronecker_new(const struct layout *layout, const double *factors);

/* Whether it was made of these factors: as many, for its layout. */
bool kronecker_is_of(const struct kronecker *kronecker, const double *factors);
void kronecker_free(struct kronecker *kronecker); /* harmless on NULL */

/* Memory of one thread. */
struct kronecker_work;
struct kronecker_work *kronecker_work_new(const struct kronecker *kronecker);
void kronecker_work_free(struct kronecker_work *work); /* harmless on NULL */

/* In place, all parameters: Z becomes [W; b], and a gradient by [W; b] one by Z. */
void kronecker_apply(const struct kronecker *kronecker, struct kronecker_work *work,
                     double *vector);

/* [W; b] becomes Z. */
void kronecker_apply_inverse(const struct kronecker *kronecker, struct kronecker_work *work,
                             double *vector);

/* ---- finding them ---- */

/* Rows that the means are taken over, at most. */
#define KRONECKER_ROWS 2048

struct kronecker_sample;
struct kronecker_sample *kronecker_sample_new(const struct objective_shape *shape,
                                              const struct column_scaling *columns);
void kronecker_sample_free(struct kronecker_sample *sample); /* harmless on NULL */

/* Adds the first `count` rows of a chunk whose weight is not 0; what is beyond KRONECKER_ROWS is
 * left out. */
void kronecker_sample_add(struct kronecker_sample *sample, const struct rows *rows, uint32_t count);

/* The factors at a point of scaled columns: kronecker_size() doubles. The same bits on
 * every processor. free() them. */
double *kronecker_find(struct kronecker_sample *sample, const double *point);

#endif
