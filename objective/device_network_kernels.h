/* Inside objective/ only: kernels that compute networks on a device, to the bits of
 * objective/network.c. The host's side is objective/device_pass.h.
 *
 * A launch works on a group of chunks; block b is part b % blocks_each of chunk b / blocks_each.
 * Rows of a group are numbered through: matrices of units have a row for each.
 *
 * A sum has the order of the processor: one accumulator, fused multiply-adds, k ascending; over the
 * rows of a chunk from its first to its last. Many sums at once make it fast: a block computes a
 * tile of them, and brings a strip of both factors at a time into its shared memory.
 *
 * Reals are double, or float if the group is `narrow`: bodies that depend on it are made for both
 * by objective/device_network_pass.def. */
#ifndef DML_OBJECTIVE_DEVICE_NETWORK_KERNELS_H
#define DML_OBJECTIVE_DEVICE_NETWORK_KERNELS_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "device/kernel.h"
#include "numeric/sum_element.h"
#include "numeric/scalar.h"
#include "objective/device_chunk.h"

#define NETWORK_TENSORS_MAX 32

/* What enum activation is called here. */
#define NETWORK_TANH 0
#define NETWORK_RELU 1
#define NETWORK_GELU 2

struct network_group {
    const struct device_chunk *chunks;
    uint32_t count, blocks_each;
    int narrow;
};

/* How the gradient is rounded, and what was found in it. */
struct network_scale {
    const int16_t *exponent; /* NULL: `uniform` for all */
    int uniform;
    uint32_t tensors;
    uint64_t *maxima; /* of each chunk, `tensors`: the bits of doubles */
};

struct network_convert_arguments {
    const double *from;
    float *to;
    uint64_t count;
};

/* From what layer l sends on to the sums of layer l + 1: to its units, or to the margins. */
struct network_layer_arguments {
    struct network_group group;
    const void *from; /* units; NULL: the chunks' values */
    uint32_t in, out;
    const void *weight, *bias;
    uint32_t activation; /* NETWORK_TANH… */
    void *sums;          /* before the activation; NULL: not wanted */
    void *units;         /* NULL: margins */
    uint32_t outputs; /* margins of a row; all have the same weights if `out` is another number */
    double unit;
    double *margins;
};

struct network_sparse_layer_arguments {
    struct network_layer_arguments layer;
};

/* Derivatives by the margins, to those by the outputs, weighted, in place; and as reals. */
struct network_last_error_arguments {
    struct network_group group;
    double *derivatives;
    double unit;
    uint32_t outputs, out;
    void *error;
};

/* From the error of layer l + 1 to that of layer l. */
struct network_error_arguments {
    struct network_group group;
    const void *above, *weight;
    uint32_t in, out; /* widths of layer l and of layer l + 1 */
    uint32_t activation;
    const void *units; /* of gelu, the sums */
    void *error;
};

/* The gradient of a tensor, of each chunk: that of chunk c from gradient + c·stride on. */
struct network_gradient_arguments {
    struct network_group group;
    struct network_scale scale;
    const void *from;  /* units; NULL: the chunks' values */
    const void *error; /* NULL: `derivatives`, of biases */
    const double *derivatives;
    uint32_t in, out;   /* of biases `in` is not used */
    uint32_t rows_most; /* of a chunk */
    void *gradient;
    uint64_t stride;
    uint32_t tensor;
    uint64_t first_exponent;
    uint32_t by_row; /* an exponent a row, else one */
};

struct network_sparse_gradient_arguments {
    struct network_gradient_arguments gradient;
};

struct network_bias_arguments {
    struct network_gradient_arguments gradient;
};

/* Whether a chunk's gradient is within its bounds: see struct objective_result. */
struct network_check_arguments {
    struct network_group group;
    struct network_scale scale;
    uint64_t share;     /* number of the exponent that maxima are relative to */
    const double *loss; /* of each chunk */
    double bound[NETWORK_TENSORS_MAX];
    uint32_t *holds; /* of each chunk: whether its gradient may be added */
};

/* What rounding asks of a tensor. */
struct network_tensor {
    uint64_t end;   /* the first element after it */
    uint64_t first; /* element */
    uint64_t first_exponent, columns;
    uint32_t by_row;
    double inverse; /* 2^−bound */
};

/* Elements from `first` on, of all chunks: that of element e at gradient + chunk·stride + e −
 * first. */
struct network_add_arguments {
    struct network_group group;
    struct network_scale scale;
    struct network_tensor tensors[NETWORK_TENSORS_MAX];
    const uint32_t *holds;
    const void *gradient;
    uint64_t stride, first, end;
    int64_t *sum;
};

/* Rows of W1 that sparse chunks have values in. */
struct network_add_first_arguments {
    struct network_group group;
    struct network_scale scale;
    struct network_tensor tensor;
    const uint32_t *holds;
    const void *gradient;
    int64_t *sum;
};

/* ---- what does not depend on the type of reals ---- */

PORTABLE const struct device_chunk *network_chunk_of(const struct network_group *group,
                                                     const struct place *place) {
    return &group->chunks[place->block / group->blocks_each];
}

/* A thread takes every network_stride()-th item of a chunk, from network_first() on. */
PORTABLE uint64_t network_first(const struct network_group *group, const struct place *place) {
    return (uint64_t)(place->block % group->blocks_each) * place->threads + place->thread;
}

PORTABLE uint64_t network_stride(const struct network_group *group, const struct place *place) {
    return (uint64_t)group->blocks_each * place->threads;
}

PORTABLE int network_weighs_nothing(const double *weight, uint64_t row) {
    return weight != NULL && weight[row] == 0;
}

PORTABLE double network_power_of(const struct network_scale *scale, uint64_t exponent) {
    return fixed_power(scale->exponent ? scale->exponent[exponent] : scale->uniform);
}

PORTABLE double network_larger(double largest, double value) {
    value = fabs(value);
    if (isnan(value))
        value = INFINITY;
    return value > largest ? value : largest;
}

/* Doubles from 0 on are in the order of their bits. */
PORTABLE void network_note(const struct network_scale *scale, uint32_t chunk, uint32_t tensor,
                           double largest) {
    uint64_t *seen = &scale->maxima[(uint64_t)chunk * scale->tensors + tensor], bits;
    memcpy(&bits, &largest, sizeof bits);
    if (bits > device_read_u64(seen))
        device_max_u64(seen, bits);
}

/* ---- tiles of a product ---- */

#define NETWORK_TILE 64     /* rows and columns of a tile */
#define NETWORK_STRIP 16    /* products of a sum in one go */
#define NETWORK_THREADS 256 /* of a block */
#define NETWORK_SPREAD 16   /* a thread's sums are so many rows and columns apart */
#define NETWORK_EACH (NETWORK_TILE / NETWORK_SPREAD)
#define NETWORK_TILE_REALS (2 * NETWORK_STRIP * NETWORK_TILE + NETWORK_TILE * NETWORK_TILE)

/* A factor of a product. */
struct network_factor {
    const void *value;
    uint32_t type; /* DEVICE_VALUE_… */
    int along;     /* whether its rows are those, or its columns, of the product */
    uint64_t columns;
    const double *weight; /* rows of weight 0 count as 0; NULL: all as they are */
};

/* rows × columns of sums, each of `depth` products. */
struct network_product {
    struct network_factor left, right;
    uint64_t rows, columns, depth;
};

/* The part of a product that a block computes in a phase. */
struct network_part {
    uint64_t row, column;   /* where its tile begins */
    uint32_t rows, columns; /* of it that there are */
    uint64_t from;          /* the first product of each sum now */
    uint32_t depth;
    int multiplies;  /* or brings the strips */
    int first, last; /* phase of that kind */
};

PORTABLE uint32_t network_strips(uint64_t depth) {
    return depth ? (uint32_t)((depth + NETWORK_STRIP - 1) / NETWORK_STRIP) : 1;
}

PORTABLE uint64_t network_tiles(uint64_t rows, uint64_t columns) {
    return (rows + NETWORK_TILE - 1) / NETWORK_TILE * ((columns + NETWORK_TILE - 1) / NETWORK_TILE);
}

PORTABLE uint32_t network_least(uint64_t left, uint32_t most) {
    return left < most ? (uint32_t)left : most;
}

/* False if the block has nothing to do. */
PORTABLE int network_part_of(const struct network_product *product, uint32_t tile, uint32_t phase,
                             struct network_part *part) {
    const uint32_t across = (uint32_t)((product->columns + NETWORK_TILE - 1) / NETWORK_TILE);
    const uint32_t strip = phase / 2, strips = network_strips(product->depth);
    if (strip >= strips || tile >= network_tiles(product->rows, product->columns))
        return 0;
    part->row = (uint64_t)(tile / across) * NETWORK_TILE;
    part->column = (uint64_t)(tile % across) * NETWORK_TILE;
    part->rows = network_least(product->rows - part->row, NETWORK_TILE);
    part->columns = network_least(product->columns - part->column, NETWORK_TILE);
    part->from = (uint64_t)strip * NETWORK_STRIP;
    part->depth = network_least(product->depth - part->from, NETWORK_STRIP);
    part->multiplies = phase % 2;
    part->first = strip == 0;
    part->last = strip == strips - 1;
    return 1;
}

/* Where a strip has product k of row or column i: such that neighbours in either are in different
 * banks of memory, and those that a thread has of one k are a fixed way apart. */
PORTABLE uint32_t network_at(uint32_t k, uint32_t i) {
    return k * NETWORK_TILE + (i ^ k);
}

#define NETWORK_AHEAD 16 /* terms of a sum over rows that are fetched at once */

/* ---- both types ---- */

#define REAL double
#define TYPED(name) name##_double
#define ACTIVATION(name) activation_##name##_one
#define REAL_TYPE DEVICE_VALUE_DOUBLE
#define FUSED fma
#include "objective/device_network_pass.def"
#undef REAL
#undef TYPED
#undef ACTIVATION
#undef REAL_TYPE
#undef FUSED

#define REAL float
#define TYPED(name) name##_float
#define ACTIVATION(name) activation_##name##_float_one
#define REAL_TYPE DEVICE_VALUE_FLOAT
#define FUSED fmaf
#include "objective/device_network_pass.def"
#undef REAL
#undef TYPED
#undef ACTIVATION
#undef REAL_TYPE
#undef FUSED

#define NETWORK_BODY(name, group)                                                                  \
    PORTABLE void name##_body(const struct place *place, const struct name##_arguments *arguments, \
                              void *shared, uint32_t phase) {                                      \
        if (arguments->group.narrow)                                                               \
            name##_float(place, arguments, shared, phase);                                         \
        else                                                                                       \
            name##_double(place, arguments, shared, phase);                                        \
    }
NETWORK_BODY(network_layer, group)
NETWORK_BODY(network_sparse_layer, layer.group)
NETWORK_BODY(network_last_error, group)
NETWORK_BODY(network_error, group)
NETWORK_BODY(network_gradient, group)
NETWORK_BODY(network_sparse_gradient, gradient.group)
NETWORK_BODY(network_bias, gradient.group)
NETWORK_BODY(network_add, group)
NETWORK_BODY(network_add_first, group)
#undef NETWORK_BODY

/* ---- bodies of no type ---- */

PORTABLE void network_convert_body(const struct place *place,
                                   const struct network_convert_arguments *arguments, void *shared,
                                   uint32_t phase) {
    const uint64_t stride = (uint64_t)place->blocks * place->threads;
    (void)shared;
    (void)phase;
    for (uint64_t i = (uint64_t)place->block * place->threads + place->thread; i < arguments->count;
         i += stride)
        arguments->to[i] = (float)arguments->from[i];
}

/* A thread a chunk. Maxima become those of the result. */
PORTABLE void network_check_body(const struct place *place,
                                 const struct network_check_arguments *arguments, void *shared,
                                 uint32_t phase) {
    const struct network_scale *scale = &arguments->scale;
    const uint32_t c = place->block * place->threads + place->thread;
    (void)shared;
    (void)phase;
    if (c >= arguments->group.count)
        return;
    const double share = network_power_of(scale, arguments->share);
    const int weighs = arguments->group.chunks[c].weighs != 0;
    int holds = weighs;
    for (uint32_t t = 0; t < scale->tensors; t++) {
        double most;
        uint64_t *seen = &scale->maxima[(uint64_t)c * scale->tensors + t];
        memcpy(&most, seen, sizeof most);
        most = !weighs ? 0 : isfinite(arguments->loss[c]) ? most / share : INFINITY;
        memcpy(seen, &most, sizeof most);
        holds = holds && !(most > arguments->bound[t]);
    }
    arguments->holds[c] = (uint32_t)holds;
}

extern const struct kernel kernel_network_convert, kernel_network_layer,
    kernel_network_sparse_layer, kernel_network_last_error, kernel_network_error,
    kernel_network_gradient, kernel_network_sparse_gradient, kernel_network_bias,
    kernel_network_check, kernel_network_add, kernel_network_add_first;

#endif
