/* The scaling of a shard's range (base/layout.h), and what follows from it for its vectors: all of
 * these are scaled, while the sums that replicas send are by weights and biases. */
#ifndef DML_SHARD_SCALING_H
#define DML_SHARD_SCALING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/layout.h"
#include "wire/message.h"

struct scaling {
    bool used;        /* false: vectors are weights and biases, and nothing below is set */
    uint64_t first;   /* of the range, in the whole vector */
    size_t count;     /* elements of the range */
    uint64_t weights; /* elements of the first tensor, which begins the whole vector */
    uint64_t outputs; /* weights of a feature */
    size_t biases;    /* added to them: `outputs` or 0; or some that share one weight */
    double *mean, *scale, *penalty; /* of each element; others than weights: 0, 1 and 1; owned */
    double *root;                   /* √penalty; owned */
    double *centre;                 /* of each element; owned. NULL: all are 0 */
    double *square;                 /* of each weight, as base/layout.h has it; owned. NULL if the
                                       run did not announce it */
    size_t set;                     /* elements that have theirs, from the first */
    int bias_exponent;              /* base exponent of the biases, in sums of a gradient, */
    int block_bias_exponent;        /* and in sums of second derivatives */
    uint32_t bias_tensor;           /* which one of the layout they are */
    int64_t *bias_sum;              /* of the evaluation, over all biases; owned */
    double *bias_gradient; /* [outputs] the gradient by the biases; those that share a weight are
                              added up: scaling_read_biases(); owned */
    uint32_t *centred;     /* the elements whose mean is not 0; owned */
    size_t centred_count, centred_capacity;
};

/* For the range and the layout that `setup` describes. The scaling was zeroed, or set up before. */
void scaling_set_up(struct scaling *scaling, const struct message_shard_setup *setup,
                    const struct layout *layout);
void scaling_release(struct scaling *scaling);

/* Takes the scaling of columns first…, which is valid. ERROR_INTERNAL if some before them are
 * missing, or if there are none here. */
int scaling_set_columns(struct scaling *scaling, uint64_t first,
                        const struct column_scaling *columns, uint64_t count);

/* Sets columns that are not scaled: their squares alone. */
int scaling_set_squares(struct scaling *scaling, uint64_t first, const double *squares,
                        uint64_t count);

/* Whether all have come. */
bool scaling_is_complete(const struct scaling *scaling);

/* The gradient by the biases, from their sums, as GRADIENT computes it. */
void scaling_read_biases(struct scaling *scaling, const struct bounds *bounds, double weight_sum);

/* A gradient by weights becomes that by scaled parameters; elements offset… of the range. */
void scaling_gradient_to_scaled(const struct scaling *scaling, size_t offset, size_t count,
                                double *gradient);

/* Scales the gradient's `count` elements of the range whose numbers are `at`. */
void scaling_picked_to_scaled(const struct scaling *scaling, const uint32_t *at, size_t count,
                              double *gradient);

/* out = √penalty·in, or in/√penalty; `out` may be `in`. Elements offset… of the range. */
void scaling_weigh(const struct scaling *scaling, size_t offset, size_t count, double *out,
                   const double *in, bool inverse);

/* The l2 that acts on the weight itself, as a multiple of l2: penalty·z² = this·w². */
double scaling_weight_penalty(const struct scaling *scaling, size_t element);

/* For a range that is the whole vector: a scaled point becomes weights and biases, a scaled
 * gradient one by weights, and a step of weights a scaled one. In place. */
void scaling_point_from_scaled(const struct scaling *scaling, double *point);
void scaling_gradient_from_scaled(const struct scaling *scaling, double *gradient);
void scaling_step_to_scaled(const struct scaling *scaling, double *step);

#endif
