/* Inside objective/ only: the bodies of the kernels between margins and gradients of linear models:
 * what objective/linear.c does between them, to the same bits. */
#ifndef DML_OBJECTIVE_DEVICE_LOSSES_KERNELS_H
#define DML_OBJECTIVE_DEVICE_LOSSES_KERNELS_H

#include <string.h>

#include "device/kernel.h"
#include "objective/device_chunk.h"
#include "objective/loss_row.h"

/* What a pass wants to know between margins and gradient. */
enum pass_task {
    PASS_LOSSES,
    PASS_MARGINS,     /* the biases are added to the margins, and that is all */
    PASS_DERIVATIVES, /* they are there in place of the margins: no losses, but all that is made of
                         derivatives */
};

/* Margins, and what else a launch has of its rows: see struct device_pass. */
struct chunk_losses_arguments {
    const struct device_chunk *chunks;
    uint32_t count, blocks_each;
    uint32_t kind, outputs;
    uint32_t task;      /* enum pass_task */
    uint32_t check;     /* enum prediction_check; CHECK_NONE also if `correct` is not wanted */
    uint32_t weighs;    /* whether derivatives are made ready for a gradient */
    const double *bias; /* NULL: there is no intercept */
    double *margins, *common;
    double *work;        /* rows × K */
    double *listed;      /* of labels that are lists, else NULL: rows × K */
    double *loss;        /* a row each: weight·loss */
    double *right;       /* a row each: its weight if it is predicted correctly, else 0 */
    double bound, power; /* 2^b; 2^−b */
    struct loss_parameters parameters;
    uint64_t *largest; /* a chunk each, 0 before: the bits of the largest |derivative|, of NaN more
                          than of infinity */
};

PORTABLE void add_biases(const struct chunk_losses_arguments *arguments, uint64_t row,
                         double *margins) {
    for (uint32_t k = 0; k < arguments->outputs; k++) {
        if (arguments->common)
            margins[k] = arguments->common[row];
        if (arguments->bias)
            margins[k] += arguments->bias[k];
    }
}

/* The label of a row as its loss takes it. */
PORTABLE const double *row_label(const struct chunk_losses_arguments *arguments,
                                 const struct device_chunk *chunk, uint32_t i) {
    if (!arguments->listed)
        return chunk->label + i;
    double *listed = arguments->listed + (chunk->first_row + i) * arguments->outputs;
    uint32_t list = (uint32_t)chunk->label[i];
    for (uint32_t k = 0; k < arguments->outputs; k++)
        listed[k] = 0;
    for (uint32_t at = chunk->list_start[list]; at < chunk->list_start[list + 1]; at++)
        listed[chunk->list_class[at]] = 1;
    return listed;
}

PORTABLE uint64_t magnitude_bits(double number) {
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits & (UINT64_MAX >> 1);
}

/* The bits of the largest |derivative|: those of NaN are above those of infinity. */
PORTABLE uint64_t largest_bits(uint32_t outputs, const double *derivatives) {
    uint64_t largest = 0;
    for (uint32_t k = 0; k < outputs; k++) {
        uint64_t bits = magnitude_bits(derivatives[k]);
        largest = bits > largest ? bits : largest;
    }
    return largest;
}

/* Makes the derivatives ready for the gradient. Those that are beyond the bound must not be added:
 * a sum could exceed its integer, whose value would then depend on how it is added. */
PORTABLE void weigh_derivatives(const struct chunk_losses_arguments *arguments, uint64_t row,
                                double weight, uint64_t largest, double *derivatives) {
    double sum = 0;
    int exceeds = largest > magnitude_bits(arguments->bound);
    for (uint32_t k = 0; k < arguments->outputs; k++) {
        derivatives[k] = exceeds ? 0 : derivatives[k] * arguments->power * weight;
        sum += derivatives[k];
    }
    if (arguments->common)
        arguments->common[row] = sum;
}

PORTABLE void add_offset(const struct device_chunk *chunk, uint32_t i, uint32_t outputs,
                         double *margins) {
    for (uint32_t k = 0; chunk->offset && k < outputs; k++)
        margins[k] += chunk->offset[i];
}

/* The loss of a row, whose margins become derivatives. */
PORTABLE double chunk_row_loss(const struct chunk_losses_arguments *arguments,
                               const struct device_chunk *chunk, uint32_t i, double weight,
                               double *margins) {
    uint32_t outputs = arguments->outputs;
    uint64_t row = chunk->first_row + i;
    const double *label = row_label(arguments, chunk, i);
    double loss;
    add_biases(arguments, row, margins);
    add_offset(chunk, i, outputs, margins);
    if (arguments->check != CHECK_NONE)
        arguments->right[row] = check_row(arguments->check, outputs, margins, label) ? weight : 0;
    loss_row(arguments->kind, &arguments->parameters, outputs, label, margins, &loss,
             arguments->work + row * outputs);
    return loss;
}

/* The bits of the row's largest |derivative|. A row of weight 0 counts for nothing, whatever its
 * values are. */
PORTABLE uint64_t chunk_losses_row(const struct chunk_losses_arguments *arguments,
                                   const struct device_chunk *chunk, uint32_t i) {
    uint32_t outputs = arguments->outputs;
    uint64_t row = chunk->first_row + i;
    double *margins = arguments->margins + row * outputs;
    double weight = chunk->weight ? chunk->weight[i] : 1;
    double loss = 0;
    if (arguments->task == PASS_MARGINS) {
        add_biases(arguments, row, margins);
        return 0;
    }
    if (arguments->task == PASS_LOSSES)
        loss = chunk_row_loss(arguments, chunk, i, weight, margins);
    for (uint32_t k = 0; k < outputs && weight == 0; k++)
        margins[k] = 0;
    arguments->loss[row] = weight > 0 ? weight * loss : 0;
    uint64_t largest = largest_bits(outputs, margins);
    if (arguments->weighs)
        weigh_derivatives(arguments, row, weight, largest, margins);
    return largest;
}

/* Phases: clear the block's maximum, compute, hand it in. */
PORTABLE void chunk_losses_body(const struct place *place,
                                const struct chunk_losses_arguments *arguments, void *shared,
                                uint32_t phase) {
    uint32_t number = place->block / arguments->blocks_each;
    uint32_t part = place->block % arguments->blocks_each;
    const struct device_chunk *chunk = arguments->chunks + number;
    uint64_t *largest = (uint64_t *)shared;
    if (phase == 0 && place->thread == 0)
        *largest = 0;
    if (phase == 1) {
        uint64_t own = 0;
        for (uint64_t i = (uint64_t)part * place->threads + place->thread; i < chunk->rows;
             i += (uint64_t)arguments->blocks_each * place->threads) {
            uint64_t bits = chunk_losses_row(arguments, chunk, (uint32_t)i);
            own = bits > own ? bits : own;
        }
        device_max_u64(largest, own);
    }
    if (phase == 2 && place->thread == 0)
        device_max_u64(&arguments->largest[number], *largest);
}

/* ---- the results of a chunk ---- */

/* A block a chunk. The sum must be made row after row, by one thread; another one, in another warp,
 * does the same for `correct`. The threads of a third warp bring the rows into `shared`, a tile
 * ahead of them. */
#define FOLD_ROWS 256 /* of a tile */
#define FOLD_LOSS_THREAD 0
#define FOLD_CORRECT_THREAD 32
#define FOLD_FIRST_LOADER 64
#define FOLD_THREADS 96

struct chunk_fold_arguments {
    const struct device_chunk *chunks;
    uint32_t tiles; /* of FOLD_ROWS rows, in the largest chunk */
    uint32_t batch_rows;
    const double *loss;
    const double *right;                /* NULL: not wanted */
    double *chunk_loss, *chunk_correct; /* a chunk each */
};

/* `correct` of the rows of a batch is the sum of those of its pieces. */
struct fold_correct {
    double piece, batch, total;
};

struct fold_tile {
    double loss[FOLD_ROWS];
    double right[FOLD_ROWS];
};

struct fold_shared {
    double loss;
    struct fold_correct correct;
    struct fold_tile tiles[2]; /* tile t is the one of t % 2 */
};

PORTABLE uint32_t fold_tile_rows(const struct device_chunk *chunk, uint32_t tile) {
    uint64_t first = (uint64_t)tile * FOLD_ROWS;
    uint64_t left = first < chunk->rows ? chunk->rows - first : 0;
    return left < FOLD_ROWS ? (uint32_t)left : FOLD_ROWS;
}

PORTABLE void fold_load(const struct place *place, const struct chunk_fold_arguments *arguments,
                        const struct device_chunk *chunk, uint32_t tile, struct fold_tile *loaded) {
    uint64_t from = chunk->first_row + (uint64_t)tile * FOLD_ROWS;
    uint32_t rows = fold_tile_rows(chunk, tile), loaders = place->threads - FOLD_FIRST_LOADER;
    for (uint32_t i = place->thread - FOLD_FIRST_LOADER; i < rows; i += loaders) {
        loaded->loss[i] = arguments->loss[from + i];
        if (arguments->right)
            loaded->right[i] = arguments->right[from + i];
    }
}

PORTABLE double fold_losses(double sum, uint32_t rows, const double *loss) {
    for (uint32_t i = 0; i < rows; i++)
        sum += loss[i];
    return sum;
}

PORTABLE void fold_piece(struct fold_correct *sums) {
    sums->batch += sums->piece;
    sums->piece = 0;
}

PORTABLE void fold_batch(struct fold_correct *sums) {
    fold_piece(sums);
    sums->total += sums->batch;
    sums->batch = 0;
}

/* Rows from number `first` of the chunk on. */
PORTABLE void fold_correct_rows(uint64_t first, uint32_t rows, uint32_t batch_rows,
                                const double *right, struct fold_correct *to) {
    struct fold_correct sums = *to;
    for (uint32_t i = 0; i < rows; i++) {
        uint32_t in_batch = (uint32_t)(first + i) % batch_rows;
        if (in_batch == 0)
            fold_batch(&sums);
        else if (in_batch % CHECK_PIECE == 0)
            fold_piece(&sums);
        sums.piece += right[i];
    }
    *to = sums;
}

/* Adds up the tile before the phase's; what was added so far is the result of a
 * chunk that ends there. */
PORTABLE void fold_add(const struct place *place, const struct chunk_fold_arguments *arguments,
                       const struct device_chunk *chunk, uint32_t phase,
                       struct fold_shared *shared) {
    uint32_t tile = phase - 1, rows = fold_tile_rows(chunk, tile);
    const struct fold_tile *loaded = &shared->tiles[tile % 2];
    if (place->thread == FOLD_LOSS_THREAD) {
        shared->loss = fold_losses(shared->loss, rows, loaded->loss);
        arguments->chunk_loss[place->block] = shared->loss;
    } else if (place->thread == FOLD_CORRECT_THREAD && arguments->right) {
        fold_correct_rows((uint64_t)tile * FOLD_ROWS, rows, arguments->batch_rows, loaded->right,
                          &shared->correct);
        struct fold_correct sums = shared->correct;
        fold_batch(&sums);
        arguments->chunk_correct[place->block] = sums.total;
    }
}

PORTABLE void chunk_fold_body(const struct place *place,
                              const struct chunk_fold_arguments *arguments, void *memory,
                              uint32_t phase) {
    struct fold_shared *shared = (struct fold_shared *)memory;
    const struct device_chunk *chunk = arguments->chunks + place->block;
    if (place->thread >= FOLD_FIRST_LOADER && phase < arguments->tiles)
        fold_load(place, arguments, chunk, phase, &shared->tiles[phase % 2]);
    else if (phase > 0)
        fold_add(place, arguments, chunk, phase, shared);
    else if (place->thread == FOLD_LOSS_THREAD)
        shared->loss = 0;
    else if (place->thread == FOLD_CORRECT_THREAD)
        shared->correct.piece = shared->correct.batch = shared->correct.total = 0;
}

extern const struct kernel kernel_chunk_losses, kernel_chunk_fold;

#endif
