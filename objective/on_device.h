/* Objectives on a device: a shape, chunks of rows, a point and integer sums in its memory, and
 * evaluations of chunks with the results of objective_block(), chunk for chunk and bit for bit.
 *
 * Chunks that have been asked for stay in the device's memory while there is room; others are
 * copied to it each time, beside the computation of those before them. Chunks are computed in
 * groups, as many in one go as there is room for what comes between.
 *
 * Functions return 0, or a code with its text recorded: ERROR_UNAVAILABLE if the device failed or
 * has too little memory, or what `chunk` answered. After a failure only objective_device_free() is
 * of use; results and sums are of no use. All functions are for one thread at a time. */
#ifndef DML_OBJECTIVE_ON_DEVICE_H
#define DML_OBJECTIVE_ON_DEVICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "device/device.h"
#include "objective/device_chunks.h"
#include "objective/block.h"
#include "objective/second.h"
#include "objective/shape.h"

struct objective_device; /* opaque */

/* Computes the data of objective_proof() on the device and on the processor: 0 if all bits are the
 * same, else ERROR_CONFIG with a text that says where they are not; ERROR_UNAVAILABLE if the device
 * failed. For a worker that opens a device, before it uses it. */
int objective_device_prove(struct device *device);

struct objective_device_settings {
    struct objective_shape shape; /* that the device can compute */
    bool curvature;               /* second derivatives will be asked for */
    const int16_t *exponent;      /* as in struct objective_scale; outlives the object */
    int uniform;
    uint32_t block_columns; /* as struct objective_sample has them, as the next */
    bool shared;
    const int16_t *exponents; /* as in struct objective_sample, as is `examples`; outlives it too */
    uint64_t examples;

    uint64_t memory; /* how many bytes of the device all of this may take; 0: what there is */

    /* Gives the rows of a chunk, which stay where they are for as long as the object lives, as do
     * the lists of their labels. Rows of one chunk are the same each time. Called by the thread
     * that computes. */
    int (*chunk)(void *context, uint32_t number, struct rows *rows);
    void *context;
};

/* The device must outlive the object. *out is NULL after an error. */
int objective_device_new(struct device *device, const struct objective_device_settings *settings,
                         struct objective_device **out);
void objective_device_free(struct objective_device *on); /* NULL is fine */

/* The point of all evaluations from now on: n doubles, which are copied. */
int objective_device_point(struct objective_device *on, const double *parameters);

enum objective_device_kind {
    OBJECTIVE_DEVICE_GRADIENT,  /* objective_block() */
    OBJECTIVE_DEVICE_LOSS,      /* objective_block() without scale and sum */
    OBJECTIVE_DEVICE_CURVATURE, /* objective_curvature() */
    OBJECTIVE_DEVICE_PRODUCT,   /* objective_product(); the shape has products, as of the next */
    OBJECTIVE_DEVICE_TRANSPOSE, /* objective_transpose(); the point does not matter */
    OBJECTIVE_DEVICE_NONE,      /* what no device computes; no work is of this */
};

/* Chunks [first, first + count), all for one kind: of an evaluation of several parts there is one
 * of these a part. */
struct objective_device_work {
    enum objective_device_kind kind;
    uint32_t first, count;
    bool sums;                    /* of gradient, curvature, transpose: whether sums are wanted */
    struct bounds bounds;         /* of the evaluation */
    struct row_sampling sampling; /* of curvature */
    int64_t *margins;             /* of products: rows×K of all chunks, as `sum` there */
    const double *derivatives;    /* of transposes: rows×K of all chunks */
    const atomic_bool *stop;      /* asked between groups; NULL: never */
};

/* The result of a chunk. Members of another kind are 0. */
struct objective_device_result {
    struct objective_result result;
    struct objective_hessian hessian;
    uint64_t values; /* stored values of its rows */
    uint32_t rows;
};

/* Computes the chunks at the point and writes `count` results. Once a bound was exceeded the sums
 * are of no use, and must be discarded. *stopped: `stop` was found set, and nothing of this is of
 * use. */
int objective_device_compute(struct objective_device *on, const struct objective_device_work *work,
                             struct objective_device_result *results, bool *stopped);

/* The sums since they were last gathered or discarded, of gradients: n elements; of curvature:
 * n(n + 1)/2; of transposes as of gradients. One kind at a time has sums. Gathering copies `count`
 * elements, which must be all, and then discards them. */
int objective_device_gather(struct objective_device *on, int64_t *into, uint64_t count);
int objective_device_discard(struct objective_device *on);

/* Where the chunks are, for reports. */
struct device_chunks_usage objective_device_usage(const struct objective_device *on);

#endif
