/* Inside objective/ only: a pass over some chunks that lie on a device, as the functions see it
 * that launch its kernels. All is put into the compute queue, in order:
 *
 *   margins       without biases: device_linear_margins()
 *   losses        biases, losses, derivatives, maxima and results of each chunk: on_device.c
 *   gradients     added to the sums, if they are wanted: device_linear_gradient()
 *
 * Each number is what objective_block() makes of the chunk, in its order of additions; only
 * integers are added in any order. */
#ifndef DML_OBJECTIVE_DEVICE_PASS_H
#define DML_OBJECTIVE_DEVICE_PASS_H

#include <stdbool.h>
#include <stdint.h>

#include "device/device.h"
#include "objective/device_chunk.h"
#include "objective/objective.h"

/* All pointers but `device` and `shape` are to memory of the device. K is the number of outputs. */
struct device_pass {
    struct device *device;
    const struct objective_shape *shape;
    bool dense;          /* all chunks, or none */
    uint32_t batch_rows; /* of a batch: see objective_batch_rows() */

    const struct device_chunk *chunks;
    uint32_t count;
    uint32_t rows_most;    /* of a chunk */
    uint64_t rows, values; /* of all of them */
    uint64_t values_most;  /* of a chunk */
    uint32_t by_column;    /* chunks whose values are there column by column, too */

    const double *parameters; /* n */
    const int16_t *exponent;  /* as in struct objective_scale, as is `uniform` */
    int uniform;

    /* rows × K. First the margins; then the derivatives, times 2^−b and weight. Those of a row are
     * 0 if one is beyond the bound, so that what becomes of sums that are of no use is never too
     * much for their integers. */
    double *margins;

    /* One a row, of outputs that share their weights, else NULL: the margin without bias; then the
     * sum of the derivatives. */
    double *common;

    int64_t *sum; /* n; NULL: no gradient is wanted */
};

/* The rows of a batch of objective_block(): the order of additions of losses that are weighed, of
 * biases, and of dense gradients depends on them. A function of the shape alone. */
uint32_t objective_batch_rows(const struct objective_shape *shape, bool dense);

/* Write the margins of the weights, without the biases: `common` if outputs share their weights,
 * then as if there were one output; else `margins`. */
int device_linear_margins(const struct device_pass *pass);

/* Adds the gradient to `sum`: of biases, from `margins`; of weights, from `common` if there is one,
 * then as of one output, else from `margins`. */
int device_linear_gradient(const struct device_pass *pass);

#endif
