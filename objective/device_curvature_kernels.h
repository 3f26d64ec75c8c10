/* Inside objective/ only: bodies of the kernels of second derivatives: what objective/curvature.c
 * and objective/triangle.c do, with the same results.
 *
 * Rows are sampled one by one; those that are sampled are listed chunk by chunk, and written out in
 * a slab: for each its values, all columns of them, and its matrix of second derivatives. Then each
 * element of the triangle adds the terms of all rows of a slab. Terms are rounded to integers, so
 * no order matters. */
#ifndef DML_OBJECTIVE_DEVICE_CURVATURE_KERNELS_H
#define DML_OBJECTIVE_DEVICE_CURVATURE_KERNELS_H

#include <math.h>

#include "device/kernel.h"
#include "numeric/sum_element.h"
#include "objective/device_chunk.h"
#include "objective/loss_row.h"

#define CURVATURE_ROW_THREADS 128
#define CURVATURE_CHUNK_THREADS 32
#define CURVATURE_FILL_THREADS 256

/* A tile of the triangle, and how many rows of the slab are in `shared` at a time. */
#define CURVATURE_TILE 16
#define CURVATURE_DEPTH 16
#define CURVATURE_TILE_THREADS (CURVATURE_TILE * CURVATURE_TILE)

/* What is known of a row once it was sampled or not, as flags. */
#define CURVATURE_COUNTS 1 /* its weight is not 0 */
#define CURVATURE_BEYOND 2 /* a second derivative is beyond the bound */
#define CURVATURE_DRAWN 4

/* The model: its columns and outputs as struct hessian_workspace has them. */
struct curvature_model {
    uint32_t kind;
    uint32_t features;
    uint32_t outputs;   /* K */
    uint32_t intercept; /* 0 or 1 */
    uint32_t dense;
    uint32_t block_columns; /* features of the block */
    uint32_t shares; /* the outputs share their weights: each sampled row counts once an output */
    uint32_t columns;
    uint32_t weights;     /* of a column: K, or 1 if outputs share them or the matrix */
    double second_shared; /* if they share that: the second derivative of each row; else 0 */
    struct loss_parameters loss;
    const double *power; /* 2^(e − 31) of all features and the intercept */
};

/* ---- sampling ---- */

struct curvature_draw_arguments {
    const struct device_chunk *chunks;
    uint32_t blocks_each;
    struct curvature_model model;
    double share; /* examples·2^−31 */
    double bound; /* of second derivatives */
    double rate, floor;
    uint64_t sample_seed;
    const double *derivatives; /* rows × K, not weighted */
    const double *work;        /* rows × K, as losses leave it */
    double *diagonal;          /* rows × K: of the second derivatives */
    double *traced;            /* a row: weight·trace */
    double *weighted;          /* a row: trace·leverage */
    double *factor;            /* a row: weight/chance */
    uint32_t *flags;           /* a row: CURVATURE_… */
    uint32_t *touched;         /* a row: parameters that it has a term of; only if it is sampled */
};

PORTABLE double curvature_sparse_size(const struct device_chunk *chunk, uint32_t row,
                                      const double *power) {
    uint32_t i = chunk->start[row], end = chunk->start[row + 1];
    double sum[4] = {0, 0, 0, 0};
    for (; i + 4 <= end; i += 4)
        for (uint32_t k = 0; k < 4; k++)
            sum[k] += fabs(device_value_at(chunk->type, chunk->value, i + k)) *
                      power[chunk->feature[i + k]];
    for (; i < end; i++)
        sum[0] += fabs(device_value_at(chunk->type, chunk->value, i)) * power[chunk->feature[i]];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

PORTABLE double curvature_dense_size(const struct device_chunk *chunk, uint32_t features,
                                     uint32_t row, const double *power) {
    uint64_t begin = (uint64_t)row * features;
    uint32_t j = 0;
    double lane[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    for (; j + 8 <= features; j += 8)
        for (uint32_t k = 0; k < 8; k++)
            lane[k] +=
                fabs(power[j + k] * device_value_at(chunk->type, chunk->value, begin + j + k));
    for (uint32_t k = 0; k < 4; k++)
        lane[k] += lane[k + 4];
    double sum = (lane[0] + lane[2]) + (lane[1] + lane[3]);
    for (; j < features; j++)
        sum += fabs(device_value_at(chunk->type, chunk->value, begin + j)) * power[j];
    return sum;
}

PORTABLE double curvature_leverage(const struct curvature_draw_arguments *arguments,
                                   const struct device_chunk *chunk, uint32_t row, double weight) {
    const struct curvature_model *model = &arguments->model;
    double size = model->dense ? curvature_dense_size(chunk, model->features, row, model->power)
                               : curvature_sparse_size(chunk, row, model->power);
    double intercept = model->intercept ? model->power[model->features] : 0;
    return arguments->share * weight * (size + intercept);
}

/* How many columns of the block hold something but 0 in a row. */
PORTABLE uint32_t curvature_columns(const struct curvature_model *model,
                                    const struct device_chunk *chunk, uint32_t row) {
    uint32_t count = model->intercept;
    uint64_t i = model->dense ? (uint64_t)row * model->features : chunk->start[row];
    uint64_t end = model->dense ? i + model->features : chunk->start[row + 1];
    for (uint32_t j = 0; i < end; i++, j++) {
        uint32_t column = model->dense ? j : chunk->feature[i];
        if (column >= model->block_columns)
            break;
        count += device_value_at(chunk->type, chunk->value, i) * model->power[column] != 0;
    }
    return count;
}

PORTABLE void curvature_draw_row(const struct curvature_draw_arguments *arguments,
                                 const struct device_chunk *chunk, uint32_t row) {
    const struct curvature_model *model = &arguments->model;
    uint64_t at = chunk->first_row + row, wide = at * model->outputs;
    double weight = chunk->weight ? chunk->weight[row] : 1, trace = 0;
    double *diagonal = arguments->diagonal + wide;
    uint32_t flags = weight == 0 ? 0 : CURVATURE_COUNTS;
    if (!(model->second_shared > 0))
        loss_second(model->kind, &model->loss, model->outputs, chunk->label + row,
                    arguments->derivatives + wide, arguments->work + wide, diagonal);
    for (uint32_t k = 0; model->second_shared > 0 && k < model->outputs; k++)
        diagonal[k] = model->second_shared;
    for (uint32_t k = 0; k < model->outputs; k++) {
        trace += diagonal[k];
        if (!(diagonal[k] <= arguments->bound))
            flags |= CURVATURE_BEYOND;
    }
    double weighted = trace * curvature_leverage(arguments, chunk, row, weight);
    double chance = arguments->floor + arguments->rate * weighted;
    chance = chance > 1 ? 1 : chance;
    if (sample_hash(arguments->sample_seed, chunk->number, row) < chance)
        flags |= CURVATURE_DRAWN;
    flags = flags & CURVATURE_COUNTS ? flags : 0;
    arguments->traced[at] = weight * trace;
    arguments->weighted[at] = weighted;
    arguments->factor[at] = weight / chance;
    arguments->flags[at] = flags;
    arguments->touched[at] =
        flags & CURVATURE_DRAWN ? curvature_columns(model, chunk, row) * model->weights : 0;
}

PORTABLE void curvature_draw_body(const struct place *place,
                                  const struct curvature_draw_arguments *arguments, void *shared,
                                  uint32_t phase) {
    const struct device_chunk *chunk = &arguments->chunks[place->block / arguments->blocks_each];
    uint32_t part = place->block % arguments->blocks_each;
    (void)shared, (void)phase;
    for (uint32_t row = part * place->threads + place->thread; row < chunk->rows;
         row += arguments->blocks_each * place->threads)
        curvature_draw_row(arguments, chunk, row);
}

/* ---- what a chunk adds up to ---- */

struct curvature_sum {
    double trace_leverage, trace;
    uint64_t sampled, terms;
    uint32_t exceeded;
    uint32_t unused;
};

struct curvature_total_arguments {
    const struct device_chunk *chunks;
    struct curvature_model model;
    const double *traced, *weighted;
    const uint32_t *flags, *touched;
    uint32_t *sampled; /* at a chunk's first row: the rows of it that are sampled, rising */
    struct curvature_sum *sums; /* one a chunk */
};

/* Row by row, in their order: one thread. */
PORTABLE void curvature_total_body(const struct place *place,
                                   const struct curvature_total_arguments *arguments, void *shared,
                                   uint32_t phase) {
    const struct device_chunk *chunk = &arguments->chunks[place->block];
    const struct curvature_model *model = &arguments->model;
    struct curvature_sum sum = {0, 0, 0, 0, 0, 0};
    (void)shared, (void)phase;
    if (place->thread)
        return;
    for (uint32_t row = 0; row < chunk->rows; row++) {
        uint64_t at = chunk->first_row + row, touched = arguments->touched[at];
        uint32_t flags = arguments->flags[at];
        if (!(flags & CURVATURE_COUNTS))
            continue;
        sum.trace += arguments->traced[at];
        sum.trace_leverage += arguments->weighted[at];
        sum.exceeded |= (flags & CURVATURE_BEYOND) != 0;
        if (!(flags & CURVATURE_DRAWN))
            continue;
        arguments->sampled[chunk->first_row + sum.sampled++] = row;
        sum.terms += touched * (touched + 1) / 2 * (model->shares ? model->outputs : 1);
    }
    sum.exceeded |= !(sum.trace_leverage - sum.trace_leverage == 0); /* not a finite number */
    arguments->sums[place->block] = sum;
}

/* ---- a slab ---- */

/* Drawn rows [first, first + rows) of a group of chunks, of which chunk c has the numbers
 * before[c] to before[c + 1] − 1. An entry of the slab is a sampled row, or one for each output of
 * it if these share their weights. Entries lie side by side in what has one row a column. */
struct curvature_fill_arguments {
    const struct device_chunk *chunks;
    uint32_t count;
    struct curvature_model model;
    const uint64_t *before; /* count + 1 */
    const uint32_t *sampled;
    uint64_t first;
    uint32_t rows;
    uint32_t stride; /* entries that a slab has room for */
    double inverse;  /* 2^−b */
    const double *derivatives, *diagonal, *factor;
    double *left;    /* columns × stride: x·2^(e − 31) */
    double *seconds; /* stride × weights × weights: second derivatives times the entry's factor */
};

struct curvature_entry {
    const struct device_chunk *chunk;
    uint32_t row;
    uint64_t at; /* of the row in buffers */
};

PORTABLE void curvature_find(const struct curvature_fill_arguments *arguments, uint64_t number,
                             struct curvature_entry *entry) {
    uint32_t low = 0, high = arguments->count - 1; /* the last chunk with before[c] <= number */
    while (low < high) {
        uint32_t middle = (low + high + 1) / 2;
        if (arguments->before[middle] <= number)
            low = middle;
        else
            high = middle - 1;
    }
    entry->chunk = &arguments->chunks[low];
    entry->row = arguments->sampled[entry->chunk->first_row + (number - arguments->before[low])];
    entry->at = entry->chunk->first_row + entry->row;
}

/* The values of one entry, which its other columns' zeros were written before. */
PORTABLE void curvature_fill_left(const struct curvature_fill_arguments *arguments,
                                  const struct curvature_entry *entry, uint32_t output,
                                  double *left) {
    const struct curvature_model *model = &arguments->model;
    const struct device_chunk *chunk = entry->chunk;
    uint64_t i = model->dense ? (uint64_t)entry->row * model->features : chunk->start[entry->row];
    uint64_t end = model->dense ? i + model->features : chunk->start[entry->row + 1];
    for (uint32_t j = 0; i < end; i++, j++) {
        uint32_t column = model->dense ? j : chunk->feature[i];
        if (column >= model->block_columns)
            break;
        left[(uint64_t)column * arguments->stride] =
            device_value_at(chunk->type, chunk->value, i) * model->power[column];
    }
    if (model->intercept) {
        uint32_t column = model->block_columns + (model->shares ? output : 0);
        left[(uint64_t)column * arguments->stride] = model->power[model->features];
    }
}

/* Its second derivatives by the margins, times its factor. */
PORTABLE void curvature_fill_seconds(const struct curvature_fill_arguments *arguments,
                                     const struct curvature_entry *entry, uint32_t output,
                                     double *seconds) {
    const struct curvature_model *model = &arguments->model;
    uint64_t wide = entry->at * model->outputs;
    double factor = arguments->inverse * arguments->factor[entry->at];
    if (model->weights == 1) {
        seconds[0] = arguments->diagonal[wide + output] * factor;
        return;
    }
    for (uint32_t k = 0; k < model->weights; k++) {
        double *row = seconds + (uint64_t)k * model->weights;
        loss_second_row(model->kind, model->outputs, entry->chunk->label[entry->row],
                        arguments->derivatives + wide, k, row);
        for (uint32_t other = 0; other < model->weights; other++)
            row[other] *= factor;
    }
}

/* Entries that the last rows of a slab do not fill up to a multiple of CURVATURE_DEPTH are zeros:
 * blocks cover the stride. */
PORTABLE void curvature_fill_body(const struct place *place,
                                  const struct curvature_fill_arguments *arguments, void *shared,
                                  uint32_t phase) {
    const struct curvature_model *model = &arguments->model;
    uint32_t outputs = model->shares ? model->outputs : 1;
    uint32_t number = place->block * place->threads + place->thread;
    (void)shared, (void)phase;
    if (number >= arguments->stride)
        return;
    for (uint32_t column = 0; column < model->columns; column++)
        arguments->left[(uint64_t)column * arguments->stride + number] = 0;
    double *seconds = arguments->seconds + (uint64_t)number * model->weights * model->weights;
    for (uint32_t k = 0; k < model->weights * model->weights; k++)
        seconds[k] = 0;
    if (number >= arguments->rows * outputs)
        return;
    struct curvature_entry entry;
    curvature_find(arguments, arguments->first + number / outputs, &entry);
    curvature_fill_left(arguments, &entry, number % outputs, arguments->left + number);
    curvature_fill_seconds(arguments, &entry, number % outputs, seconds);
}

/* ---- the triangle ---- */

/* Adds the terms of the slab: element (r, c), r ≥ c, of column j = r / weights and output k = r %
 * weights, and l and k' of c, adds rint(left_j·(second_kk'·left_l)) of each entry. A block has a
 * tile of elements, whose `left` it keeps in `shared`: a phase loads, the next adds. */
struct curvature_triangle_arguments {
    uint32_t columns, weights;
    uint32_t entries, stride; /* entries: rounded up to a multiple of CURVATURE_DEPTH */
    const double *left, *seconds;
    int64_t *triangle;
};

struct curvature_tile {
    int64_t sum[CURVATURE_TILE][CURVATURE_TILE];
    double down[CURVATURE_TILE][CURVATURE_DEPTH + 1], across[CURVATURE_TILE][CURVATURE_DEPTH + 1];
};

/* Which tile of the lower half a block has: block = row·(row + 1)/2 + column. */
PORTABLE void curvature_tile_of(uint32_t block, uint32_t *row, uint32_t *column) {
    uint32_t r = (uint32_t)((sqrt(8.0 * block + 1) - 1) / 2);
    while ((uint64_t)r * (r + 1) / 2 > block)
        r--;
    while ((uint64_t)(r + 1) * (r + 2) / 2 <= block)
        r++;
    *row = r;
    *column = block - (uint32_t)((uint64_t)r * (r + 1) / 2);
}

PORTABLE double curvature_left_at(const struct curvature_triangle_arguments *arguments,
                                  uint32_t parameter, uint32_t entry) {
    uint32_t column = parameter / arguments->weights;
    return column < arguments->columns
               ? arguments->left[(uint64_t)column * arguments->stride + entry]
               : 0;
}

PORTABLE void curvature_triangle_body(const struct place *place,
                                      const struct curvature_triangle_arguments *arguments,
                                      void *shared, uint32_t phase) {
    struct curvature_tile *tile = (struct curvature_tile *)shared;
    uint32_t y = place->thread / CURVATURE_TILE, x = place->thread % CURVATURE_TILE;
    uint32_t tile_row, tile_column;
    curvature_tile_of(place->block, &tile_row, &tile_column);
    uint32_t r = tile_row * CURVATURE_TILE + y, c = tile_column * CURVATURE_TILE + x;
    uint32_t n = arguments->columns * arguments->weights;
    uint32_t entry = phase / 2 * CURVATURE_DEPTH;
    if (phase % 2 == 0) {
        if (phase == 0)
            tile->sum[y][x] = 0;
        tile->down[y][x] = curvature_left_at(arguments, r, entry + x);
        tile->across[y][x] =
            curvature_left_at(arguments, tile_column * CURVATURE_TILE + y, entry + x);
        return;
    }
    if (r >= n || c > r)
        return;
    uint64_t pair =
        (uint64_t)(r % arguments->weights) * arguments->weights + c % arguments->weights;
    uint64_t pairs = (uint64_t)arguments->weights * arguments->weights;
    const double *second = arguments->seconds + entry * pairs + pair;
    int64_t sum = tile->sum[y][x];
    for (uint32_t i = 0; i < CURVATURE_DEPTH; i++)
        sum += fixed_round(tile->down[y][i] * (second[i * pairs] * tile->across[x][i]));
    tile->sum[y][x] = sum;
    if (entry + CURVATURE_DEPTH >= arguments->entries)
        arguments->triangle[(uint64_t)r * (r + 1) / 2 + c] += sum;
}

extern const struct kernel kernel_curvature_draw, kernel_curvature_total, kernel_curvature_fill,
    kernel_curvature_triangle;

#endif
