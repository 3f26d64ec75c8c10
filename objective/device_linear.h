/* Inside objective/ only: what the kernels of linear models share. See objective/device_pass.h for
 * what a pass is. */
#ifndef DML_OBJECTIVE_DEVICE_LINEAR_H
#define DML_OBJECTIVE_DEVICE_LINEAR_H

#include <stdint.h>

#include "device/kernel.h"
#include "numeric/sum_element.h"
#include "objective/device_chunk.h"

/* Loops over registers must be unrolled, else they are memory. */
#ifdef __CUDA_ARCH__
#define REGISTERS _Pragma("unroll")
#else
#define REGISTERS
#endif

/* All pointers are to memory of the device. K outputs: as many as a column has weights. */
struct linear_work {
    const struct device_chunk *chunks;
    uint32_t count, blocks_each;
    uint32_t features, outputs;
    uint32_t batch_rows; /* of a batch of objective_block() */
    uint32_t rows_most;  /* of a chunk */

    const double *parameters; /* weights, features × K */
    double *margins;          /* rows × K, to be written */

    const double *derivatives; /* rows × K; times 2^−b and the weights of rows */
    const int16_t *exponent;   /* base exponents of the columns, or NULL: all have `uniform` */
    int32_t uniform;
    int64_t *sum; /* features × K, to be added to */
};

/* The chunk that a block works on, as which of its parts; and the item that a thread begins with,
 * of those that the threads of all parts share, and how many there are from one of its items to the
 * next. */
struct linear_share {
    const struct device_chunk *chunk;
    uint32_t part;
    uint64_t first, step;
};

PORTABLE struct linear_share linear_share_of(const struct place *place,
                                             const struct linear_work *work) {
    struct linear_share share;
    share.chunk = &work->chunks[place->block / work->blocks_each];
    share.part = place->block % work->blocks_each;
    share.first = (uint64_t)share.part * place->threads + place->thread;
    share.step = (uint64_t)work->blocks_each * place->threads;
    return share;
}

/* item / by; devices divide numbers of 32 bits much faster. */
PORTABLE uint64_t linear_quotient(uint64_t item, uint32_t by) {
    return item >> 32 ? item / by : (uint32_t)item / by;
}

/* 2^e of a column. */
PORTABLE double linear_power(const struct linear_work *work, uint64_t column) {
    return fixed_power(work->exponent ? work->exponent[column] : work->uniform);
}

#endif
