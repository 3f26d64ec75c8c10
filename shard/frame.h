/* The coordinates of a shard's range (base/layout.h), and what follows from them for its
 * vectors: all of these are in coordinates, while the sums that replicas send are of weights. */
#ifndef DML_SHARD_FRAME_H
#define DML_SHARD_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/layout.h"
#include "wire/message.h"

struct frame {
    bool used;        /* else the vectors are weights and biases, and nothing below is used */
    uint64_t first;   /* of the range, in the whole vector */
    size_t count;     /* elements of the range */
    uint64_t weights; /* elements of the first tensor, which begins the whole vector */
    uint64_t outputs; /* weights of a feature */
    size_t biases;    /* added to them: `outputs` or 0; or some that share one weight */
    double *mean, *scale, *penalty; /* of each element; others than weights: 0, 1 and 1; owned */
    double *root;                   /* √penalty; owned */
    size_t set;                     /* elements that have theirs, from the first */
    int bias_exponent;              /* base exponent of the biases */
    uint32_t bias_tensor;           /* which one of the layout they are */
    int64_t *bias_sum;              /* of the evaluation, over all biases; owned */
    double *bias_gradient; /* of each of `outputs`, what the sums of its biases come to, all
                              together: frame_read_biases(); owned */
};

/* For the range and the layout that `setup` describes. The frame was zeroed, or set up before. */
void frame_set_up(struct frame *frame, const struct message_shard_setup *setup,
                  const struct layout *layout);
void frame_release(struct frame *frame);

/* Takes the coordinates of columns first…, which are sound. ERROR_INTERNAL if some before them are
 * missing, or if there are none here. */
int frame_take(struct frame *frame, uint64_t first, const struct coordinate *columns,
               uint64_t count);

/* Whether all have come. */
bool frame_is_complete(const struct frame *frame);

/* The gradient by the biases, from their sums, as GRADIENT computes it. */
void frame_read_biases(struct frame *frame, const struct bounds *bounds, double weight_sum);

/* A gradient by weights becomes that by coordinates; elements offset… of the range. */
void frame_turn_gradient(const struct frame *frame, size_t offset, size_t count, double *gradient);

/* out = penalty·in; elements offset… of the range. */
void frame_penalise(const struct frame *frame, size_t offset, size_t count, double *out,
                    const double *in);

/* out = √penalty·in, or in/√penalty; `out` may be `in`. Elements offset… of the range. */
void frame_weigh(const struct frame *frame, size_t offset, size_t count, double *out,
                 const double *in, bool inverse);

/* What l2 is for a weight itself, relative to l2, where penalty·z² is what is regularised. */
double frame_weight_penalty(const struct frame *frame, size_t element);

/* For a range that is the whole vector: a gradient by coordinates becomes one by weights, and a
 * step of weights one of coordinates. In place. */
void frame_to_weights(const struct frame *frame, double *gradient);
void frame_from_weights(const struct frame *frame, double *step);

#endif
