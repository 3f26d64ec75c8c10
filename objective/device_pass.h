/* Inside objective/ only: a pass over some chunks that lie on a device, as the functions see it
 * that launch its kernels. All is put into the compute queue, in order:
 *
 *   margins       by the family
 *   losses        losses, derivatives, and the sum and maximum of each chunk: device_losses()
 *   gradient      by the family: added to the sums, if they are wanted
 *
 * A product is the margins alone, and a transpose begins with derivatives in their place.
 *
 * Each number is what objective_block() makes of the chunk, in its order of additions; only
 * integers are added in any order. */
#ifndef DML_OBJECTIVE_DEVICE_PASS_H
#define DML_OBJECTIVE_DEVICE_PASS_H

#include <stdbool.h>
#include <stdint.h>

#include "device/device.h"
#include "objective/second.h"
#include "objective/device_chunk.h"
#include "objective/device_losses_kernels.h"
#include "objective/family.h"

/* All pointers but `device` and `shape` are to memory of the device. K is the number of outputs. */
struct device_pass {
    struct device *device;
    const struct objective_shape *shape;
    const struct device_family *family;
    bool dense;          /* all chunks, or none */
    uint32_t batch_rows; /* of a batch: see struct family_compute */

    const struct device_chunk *chunks;
    uint32_t count;
    uint32_t rows_most;    /* of a chunk */
    uint64_t rows, values; /* of all of them */
    uint64_t values_most;  /* of a chunk */
    uint64_t columns;      /* of networks, that sparse chunks have values in: of all chunks */
    uint32_t columns_most; /* of one */
    uint32_t by_column;    /* chunks whose values are there column by column, too */

    const double *parameters; /* n */
    const int16_t *exponent;  /* as in struct objective_scale, as is `uniform` */
    int uniform;
    double bound; /* of a linear model: what is beyond it is added to no sum. infinity: none is */

    /* rows × K. First the margins; then the derivatives; of a gradient that is wanted of a linear
     * model times 2^−b and weight. There those of a row are 0 if one is beyond the bound, so that
     * what becomes of sums that are of no use is never too much for their integers. */
    double *margins;

    /* One a row, of linear outputs that share their weights, else NULL: the margin without bias;
     * then the sum of the derivatives. */
    double *common;

    double *work;   /* rows × K, what losses leave there */
    double *listed; /* rows × K, of labels that are lists, else NULL */
    double *loss;   /* one a row, each times its weight */
    double *right;  /* one a row: its weight if it is predicted correctly, else 0 */

    /* One a chunk. */
    double *chunk_loss;
    double *chunk_correct;
    uint64_t *chunk_largest; /* the bits of the largest |derivative| */

    int64_t *sum; /* n; NULL: no gradient is wanted, but `correct` is */
    enum pass_task task;
};

/* How many blocks work on each chunk, if a block has so many threads, and a thread is to have one
 * of `items`, those of the largest chunk. */
uint32_t device_pass_blocks(uint64_t items, uint32_t threads);

/* Launches the losses: from the margins to all members below them in struct device_pass, or what
 * the task asks for of that. */
int device_losses(const struct device_pass *pass);

/* ---- families ---- */

/* Bytes of the device that a family takes: from the beginning on; and of a pass for each row, each
 * chunk, and each column that a sparse chunk has values in. */
struct device_costs {
    uint64_t fixed, row, dense_chunk, sparse_chunk, column;
};

/* What a family computes on a device, to the bits of its struct family_compute. `own` is what
 * open() has made. Functions return what those of device/device.h do, and put their work into the
 * compute queue; where one is NULL there is nothing to do. */
struct device_family {
    const struct family *family;
    bool lists_columns; /* chunks list the columns that they have values in */
    bool arranges; /* sparse rows that stay may be arranged: only its gradients read them then */
    bool
        adds_biases; /* margins are without biases, which device_losses() adds; it weighs the
                        derivatives by bound and rows, too. Else these are 0 for rows of weight 0 */

    /* The device must outlive what it makes. *own is NULL after an error. */
    int (*open)(struct device *device, const struct objective_shape *shape, void **own);
    void (*close)(void *own); /* NULL is fine */
    struct device_costs (*costs)(const struct objective_shape *shape);

    /* The parameters of all passes from now on: n doubles on the device, which stay there. */
    int (*point)(void *own, const double *parameters);

    /* The margins, in the unit of the labels: `common` if outputs share their weights, then as if
     * there were one output; else `margins`. */
    int (*margins)(void *own, const struct device_pass *pass);

    /* After device_losses(): the gradient of each chunk, rounded, to the sums if they are wanted.
     */
    int (*gradient)(void *own, const struct device_pass *pass, const struct bounds *bounds);

    /* Waits for the maxima of the `count` chunks of the last gradient. NULL: there is one, which
     * device_losses() finds. */
    int (*maxima)(void *own, uint32_t count, struct maxima *maxima);
};
extern const struct device_family device_family_linear, device_family_network;

/* Inside objective/ only: second derivatives on a device, with the results of
 * objective_curvature(), chunk for chunk. */

struct device_curvature; /* what a shape's curvature takes on a device; opaque */

/* `exponent` and `examples` are as in struct objective_sample; `slab` is how many bytes the rows
 * may take that are added in one go. The device outlives it. *out is NULL after an error. */
int device_curvature_new(struct device *device, const struct objective_shape *shape,
                         uint32_t block_columns, bool shared, const int16_t *exponent,
                         uint64_t examples, uint64_t slab, struct device_curvature **out);
void device_curvature_free(struct device_curvature *curvature); /* NULL is fine */

/* After device_losses() of the pass, which wants no gradient. Writes a result for each chunk, and
 * adds the terms of the rows that are sampled to `triangle`, in the device's memory; NULL: only the
 * results are wanted. `exponent` is b. Returns when all is done. */
int device_curvature_add(struct device_curvature *curvature, const struct device_pass *pass,
                         const struct row_sampling *sampling, int exponent, int64_t *triangle,
                         struct objective_hessian *hessian);

#endif
