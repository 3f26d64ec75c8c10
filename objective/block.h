/* Loss and gradient of a model over one block of examples, and the margins of its rows. */
#ifndef DML_OBJECTIVE_BLOCK_H
#define DML_OBJECTIVE_BLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bounds.h"
#include "base/layout.h"
#include "base/rows.h"
#include "objective/shape.h"

/* How the gradient of a network is scaled whose `kronecker` is set, and l2 for it: shards cannot
 * add l2, as no single shard knows a weight. */
struct kronecker;
struct objective_change {
    const struct kronecker *kronecker;
    const struct column_scaling *columns; /* [features] */
    const double *pull;                   /* [n]: l2·penalty·weight, of biases 0 */
    double penalty;                       /* l2/2·Σ penalty·weight² */
};

/* How one evaluation converts the gradient to fixed point. */
struct objective_scale {
    const struct objective_change *change; /* of such a network; NULL: the gradient is by the
                                              parameters themselves. A chunk adds pull and penalty
                                              times the weight of its rows */
    const int16_t *exponent; /* base exponents as the layout numbers them: one per feature, then
                                that of the bias; NULL: `uniform` for all */
    int uniform;
    struct bounds bounds; /* of a linear model one, 2^b: |derivative| ≤ 2^b, not weighted; of a
                             network one a tensor: see the maxima */
};

struct objective_result {
    double loss; /* Σ weight·loss over the block; not finite if the point is too far out */

    /* For a linear model one maximum: the largest |derivative| over the block, not weighted. Of a
     * network one a tensor: the largest |g|·2^(e − s) over its elements g of the block's gradient,
     * e being the base exponent of each, and s that of the last bias. +infinity if a value is NaN;
     * all if the loss is not finite. */
    struct maxima maxima;

    bool exceeded;  /* a maximum is beyond its bound: `sum` may hold a part of this block, and must
                       be discarded */
    double correct; /* weight of the rows that are predicted correctly; 0 if there is a `sum` */
};

/* Scratch memory of one thread. */
struct objective_scratch; /* opaque */
struct objective_scratch *objective_scratch_new(const struct objective_shape *shape);

/* Promises that all calls until the next one of this have the same parameters, those of the point
 * of this number: what is prepared from them for one block serves the others. 0, as at first: each
 * call may have other parameters. */
void objective_scratch_at(struct objective_scratch *scratch, uint64_t point);

/* A point of a linear model in the scaling of a run (base/layout.h): a weight is an element times
 * the scale of its column. */
struct scaled_point {
    const struct column_scaling *columns; /* [features]; NULL: points are weights and biases */
    const double *bias;                   /* [outputs]: not those of the point */
};

/* Says that the parameters of all calls from now on are of this kind, whose rows are sparse. What
 * comes out is the same to the bit as for the weights and biases. */
void objective_scratch_scaled(struct objective_scratch *scratch, struct scaled_point scaled);

void objective_scratch_free(struct objective_scratch *scratch);

/* What a thread is about to compute: what its memory is sized by. */
struct objective_sample;
struct objective_need {
    struct rows_most rows;
    const struct objective_sample *sample; /* of second derivatives; NULL: there are none */
    const struct objective_change *change; /* as in struct objective_scale */
    bool gradient;                         /* derivatives are wanted, too */
};

/* Makes all memory that computations of this kind use, and starts the process of a plug-in. After
 * it they ask for none. A computation that nothing was prepared for begins with this. Fails only
 * for a plug-in. */
int objective_prepare(const struct objective_shape *shape, const struct objective_need *need,
                      struct objective_scratch *scratch);

/* Loss and gradient of one block at `parameters` (n doubles). The gradient is added to `sum`
 * (n int64_t, 64-byte aligned). Once a bound is exceeded, only the loss and the maxima are
 * computed; with sum == NULL, these and `correct`; with scale == NULL as well, no maxima. Fails
 * only for a plug-in. */
int objective_block(const struct objective_shape *shape, const struct objective_scale *scale,
                    const struct rows *rows, const double *parameters, int64_t *sum,
                    struct objective_scratch *scratch, struct objective_result *result);

/* The margins of all rows, rows×K, row-major, as objective_block() finds them. Labels and weights
 * are not looked at. */
int objective_margins(const struct objective_shape *shape, const struct rows *rows,
                      const double *parameters, struct objective_scratch *scratch, double *margins);

/* The loss of each row, as if it weighed 1, where it does not follow from the margins. */
bool objective_has_losses(const struct objective_shape *shape);
int objective_losses(const struct objective_shape *shape, const struct rows *rows,
                     const double *parameters, struct objective_scratch *scratch, double *losses);

/* A hash of the gradients and curvature of every kind, and of networks, over a fixed data set. All
 * replicas of a run must have the same. */
uint64_t objective_proof(void);

/* A proof of the losses and their derivatives alone, for processes that have margins of rows and no
 * data: of all kinds with one label a row. */
uint64_t objective_proof_losses(void);

#endif
