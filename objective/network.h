/* Inside objective/ only: a pass over one chunk of a network.
 *
 * Rows go through in batches: forward to the margins, their losses and derivatives (in double), and
 * backward. Sums over rows run on from batch to batch, row by row, so that the bits do not depend
 * on where batches end. Only the sums of the whole chunk are rounded to fixed point, once an
 * element.
 *
 * `real` is double or float, as the network's precision says. Typed kernels take void pointers to
 * it: objective/network_pass.def has them for both. */
#ifndef DML_OBJECTIVE_NETWORK_H
#define DML_OBJECTIVE_NETWORK_H

#include "numeric/matrix.h"
#include "objective/block.h"
#include "objective/parts.h"

struct network_scratch {
    struct layout layout;
    const struct network_kernels *kernels;
    enum activation activation;
    uint32_t layers;                      /* L, with that of the outputs */
    size_t width[NETWORK_LAYERS_MAX + 2]; /* 0: the features; l: what layer l sends on */
    size_t outputs;                       /* K: more than width[L] if these share their weights */
    uint32_t batch_rows;                  /* most rows of a batch */

    /* The parameters at this point: `weight` of layer l at [l − 1]. */
    const void *weight[NETWORK_LAYERS_MAX + 1], *bias[NETWORK_LAYERS_MAX + 1];
    const double *given;    /* of upper layers: what the first adds up, of all rows; else NULL */
    void *rounded;          /* of floats: the parameters; else NULL */
    uint64_t point;         /* as of objective_scratch_at() */
    uint64_t rounded_point; /* that `rounded` is of, */
    uint64_t rounded_from;  /* from which element on */

    /* The values of a batch, row-major. */
    void *input;                         /* values as reals, unless they are already */
    size_t input_values;                 /* that there is room for */
    const void *from;                    /* the dense rows of this batch, or all sparse values */
    void *units[NETWORK_LAYERS_MAX + 1]; /* layer l's at [l − 1]: rows × width, also the margins */
    void *sums[NETWORK_LAYERS_MAX]; /* layer l's sums before the activation, for gelu; or NULL */
    void *error[2];                 /* derivatives by the sums, of two layers in turn */
    double *first_error;            /* of upper layers: those of the first layer; else NULL */

    /* The sums of the chunk. */
    bool dense;
    void *gradient[TENSORS_MAX]; /* of each tensor; of sparse rows [0] has only used columns */
    size_t first_elements;       /* that gradient[0] has room for */

    /* Columns that a sparse chunk has values in, by first appearance, and which of them each value
     * is in. A run may have many more columns than a chunk. */
    uint32_t *column, *place;
    uint32_t *number; /* of each feature: its place in `column`, from 1; 0: not used */
    uint32_t columns;
    size_t values;              /* that `column` and `place` have room for */
    void *used;                 /* of floats: the rows of W1 of these columns */
    size_t used_elements;       /* that it has room for */
    const uint32_t *weight_row; /* the row of weight[0] that each value is multiplied by */

    struct matrix_scratch *matrix;

    /* For a network with Kronecker factors: the chunk's gradient, scaled; else NULL. */
    double *kronecker_gradient;
    struct kronecker_work *kronecker_work;
};

/* What is made once for double and once for float. */
struct network_kernels {
    size_t size; /* of a real */

    void (*convert)(size_t n, const double *from, void *to);
    void (*widen)(size_t n, const void *from, double *to);

    enum value_type type; /* of values that are reals already */

    /* `n` values of the rows, from number `begin` on, as reals. */
    void (*read)(const struct rows *rows, size_t begin, size_t n, void *to);

    /* From the rows to the margins: count × K doubles. */
    void (*forward)(struct network_scratch *scratch, const struct row_batch *batch,
                    double *margins);

    /* After forward() of the same batch: adds its gradient, from the weighted derivatives by its
     * margins. `units` and `input` of rows of weight 0 must have been zeroed. Leaves the
     * derivatives by what the first layer adds up in error[1]; with `given` it adds no gradient of
     * W1. */
    void (*backward)(struct network_scratch *scratch, const struct row_batch *batch,
                     const double *derivatives);
};
extern const struct network_kernels network_double, network_float;

void network_scratch_free(struct network_scratch *scratch);

/* The rows of W1 that the chunk has a gradient of: all, or those of its columns. */
size_t network_first_rows(const struct network_scratch *scratch);

/* With Kronecker factors: makes `kronecker_gradient` of the chunk's gradient, and adds to it and to
 * the loss the share of l2 that its rows have, which weigh `weight`. */
void network_kronecker_gradient(struct network_scratch *scratch,
                                const struct objective_change *change, double weight,
                                struct objective_result *result);

/* The largest elements of the chunk's gradient, as struct objective_result says, and the gradient
 * added to `sum`: network_gradient.c. */
struct maxima network_maxima(const struct network_scratch *scratch,
                             const struct objective_scale *scale);
void network_add(const struct network_scratch *scratch, const struct objective_scale *scale,
                 int64_t *sum);

#endif
