/* Inside objective/ only: the kernels of linear models: arranging and sparse rows are in
 * objective/device_sparse.h; here are margins and gradients over dense rows, on a device: the bits
 * of objective/dense.c and numeric/product.c. */
#ifndef DML_OBJECTIVE_DEVICE_LINEAR_KERNELS_H
#define DML_OBJECTIVE_DEVICE_LINEAR_KERNELS_H

#include "objective/device_sparse.h"

/* ---- margins of K = 1 ---- */

/* A row is summed in 16 parts, columns 16·t + p in part p, by as many threads. Each thread does so
 * for a few rows at once, whose values it waits for together. */
#define DENSE_PARTS 16
#define DENSE_LANES 8
#define DENSE_TOGETHER 4
#define DENSE_MARGIN_THREADS 256
#define DENSE_MARGIN_ROWS (DENSE_MARGIN_THREADS / DENSE_PARTS * DENSE_TOGETHER)
#define DENSE_MARGIN_SHARED (DENSE_MARGIN_ROWS * DENSE_PARTS * 8)

struct dense_margin_arguments {
    struct linear_work work;
};

/* sum[r] += value[r·apart]·x for each row r of `count`. */
PORTABLE void dense_add_column(uint32_t type, uint32_t count, const void *value, uint64_t at,
                               uint64_t apart, double x, double *sum) {
    double v[DENSE_TOGETHER];
    REGISTERS for (uint32_t r = 0; r < DENSE_TOGETHER; r++) v[r] =
        r < count ? device_value_at(type, value, at + r * apart) : 0;
    REGISTERS for (uint32_t r = 0; r < DENSE_TOGETHER; r++) if (r < count) sum[r] += v[r] * x;
}

/* Part `p` of rows that are `apart` from each other, n columns each. Columns after the last whole
 * lanes are read with those before them, which then count as 0, as the processor does it. */
PORTABLE void dense_part(uint32_t type, uint32_t count, const void *value, uint64_t first,
                         uint64_t apart, uint64_t n, uint32_t p, const double *x, double *sum) {
    const uint64_t whole = n - n % DENSE_LANES;
    uint64_t j = 0;
    for (; j + DENSE_PARTS <= n; j += DENSE_PARTS)
        dense_add_column(type, count, value, first + j + p, apart, x[j + p], sum);
    if (j < whole) {
        if (p < DENSE_LANES)
            dense_add_column(type, count, value, first + j + p, apart, x[j + p], sum);
        j += DENSE_LANES;
    }
    if (j < n && n >= DENSE_LANES && p >= DENSE_LANES) {
        const uint64_t at = n - DENSE_LANES + (p - DENSE_LANES);
        dense_add_column(type, count, value, first + at, apart, x[at] * (at >= whole ? 1 : 0), sum);
    }
}

PORTABLE void dense_part_typed(const struct device_chunk *chunk, uint32_t count, uint64_t first,
                               uint64_t apart, uint64_t n, uint32_t p, const double *x,
                               double *sum) {
    if (chunk->type == DEVICE_VALUE_ONES)
        dense_part(DEVICE_VALUE_ONES, count, chunk->value, first, apart, n, p, x, sum);
    else if (chunk->type == DEVICE_VALUE_BYTE)
        dense_part(DEVICE_VALUE_BYTE, count, chunk->value, first, apart, n, p, x, sum);
    else if (chunk->type == DEVICE_VALUE_FLOAT)
        dense_part(DEVICE_VALUE_FLOAT, count, chunk->value, first, apart, n, p, x, sum);
    else
        dense_part(DEVICE_VALUE_DOUBLE, count, chunk->value, first, apart, n, p, x, sum);
}

/* The margin of a row from its parts. A row of few columns has none, and is added up here. */
PORTABLE double dense_margin_end(const struct device_chunk *chunk, uint64_t row, uint64_t n,
                                 const double *x, const double *part) {
    double v[4];
    REGISTERS for (uint32_t q = 0; q < 4; q++) v[q] =
        (part[q] + part[q + 8]) + (part[q + 4] + part[q + 12]);
    double dot = (v[0] + v[2]) + (v[1] + v[3]);
    for (uint64_t j = 0; n < DENSE_LANES && j < n; j++)
        dot += device_value_at(chunk->type, chunk->value, row * n + j) * x[j];
    return dot;
}

/* Two phases for each DENSE_MARGIN_ROWS rows of a block: their parts, and their margins. Row g +
 * r·(rows / DENSE_TOGETHER) of them is the r-th of the threads of group g. */
PORTABLE uint32_t dense_margin_phase_count(const struct linear_work *work) {
    const uint64_t rows = (uint64_t)DENSE_MARGIN_ROWS * work->blocks_each;
    return (uint32_t)(2 * ((work->rows_most + rows - 1) / rows));
}

PORTABLE void dense_margin_body(const struct place *place,
                                const struct dense_margin_arguments *arguments, void *shared,
                                uint32_t phase) {
    const struct linear_work *work = &arguments->work;
    const struct linear_share share = linear_share_of(place, work);
    const struct device_chunk *chunk = share.chunk;
    const uint32_t groups = DENSE_MARGIN_ROWS / DENSE_TOGETHER, t = place->thread;
    const uint64_t n = work->features;
    const uint64_t tile =
        ((uint64_t)(phase / 2) * work->blocks_each + share.part) * DENSE_MARGIN_ROWS;
    double *parts = (double *)shared;
    if (tile >= chunk->rows)
        return;
    if (phase % 2 == 0) {
        const uint64_t row = tile + t / DENSE_PARTS;
        double sum[DENSE_TOGETHER] = {0, 0, 0, 0};
        if (row >= chunk->rows)
            return;
        const uint64_t below = (chunk->rows - row + groups - 1) / groups;
        dense_part_typed(chunk, below < DENSE_TOGETHER ? (uint32_t)below : DENSE_TOGETHER, row * n,
                         groups * n, n, t % DENSE_PARTS, work->parameters, sum);
        REGISTERS for (uint32_t r = 0; r < DENSE_TOGETHER; r++)
            parts[r * DENSE_MARGIN_THREADS + t] = sum[r];
    } else if (t < DENSE_MARGIN_ROWS && tile + t < chunk->rows) {
        work->margins[chunk->first_row + tile + t] =
            dense_margin_end(chunk, tile + t, n, work->parameters, parts + t * DENSE_PARTS);
    }
}

/* ---- margins of any K ---- */

/* A block computes tiles of rows × outputs, a few columns of the rows at a time: it reads them into
 * `shared`, and then each thread adds them to the margins of two rows and up to DENSE_GROUP outputs
 * each. Those wait in `shared`, too. The threads of a warp have the same outputs, and neighbouring
 * rows; `across` warps share the outputs, and the others have further rows. */
#define DENSE_GROUP 8
#define DENSE_WARP 32
#define DENSE_MARGINS_THREADS 128
#define DENSE_MARGINS_WARPS (DENSE_MARGINS_THREADS / DENSE_WARP)
#define DENSE_TILE_ROWS_LEAST (2 * DENSE_WARP)
#define DENSE_TILE_VALUES 2048 /* rows · columns of them that are read at once */
#define DENSE_TILE_DOUBLES (DENSE_TILE_VALUES + DENSE_TILE_VALUES / 8)
#define DENSE_MARGINS_SHARED ((DENSE_TILE_DOUBLES + 2 * DENSE_GROUP * DENSE_MARGINS_THREADS) * 8)

struct dense_margins_arguments {
    struct linear_work work;
    uint32_t rows;   /* of a tile: 64, 128 or 256 */
    uint32_t across; /* 1, 2 or 4; across · rows ≤ 256 */
    uint32_t passes; /* tiles beside each other, for all outputs */
};

/* How it is cut for so many outputs, and chunks of at most so many rows. */
PORTABLE void dense_margins_cut(struct dense_margins_arguments *arguments) {
    const uint32_t outputs = arguments->work.outputs;
    const uint32_t across = outputs > 2 * DENSE_GROUP ? 4 : outputs > DENSE_GROUP ? 2 : 1;
    uint32_t rows = DENSE_TILE_ROWS_LEAST * (DENSE_MARGINS_WARPS / across);
    while (rows > DENSE_TILE_ROWS_LEAST && rows / 2 >= arguments->work.rows_most)
        rows /= 2;
    arguments->rows = rows;
    arguments->across = across;
    arguments->passes = (outputs + across * DENSE_GROUP - 1) / (across * DENSE_GROUP);
}

PORTABLE uint64_t dense_margins_tiles(const struct dense_margins_arguments *arguments,
                                      uint64_t rows) {
    return (rows + arguments->rows - 1) / arguments->rows * arguments->passes;
}

/* Two for each step over the columns. */
PORTABLE uint32_t dense_margins_steps(const struct dense_margins_arguments *arguments) {
    const uint32_t columns = DENSE_TILE_VALUES / arguments->rows;
    return (arguments->work.features + columns - 1) / columns;
}

PORTABLE uint32_t dense_margins_phase_count(const struct dense_margins_arguments *arguments) {
    const uint64_t tiles = dense_margins_tiles(arguments, arguments->work.rows_most);
    const uint64_t rounds = (tiles + arguments->work.blocks_each - 1) / arguments->work.blocks_each;
    return (uint32_t)(rounds * 2 * dense_margins_steps(arguments));
}

/* A step of a tile: its rows, its columns, and the outputs of the thread. */
struct dense_tile {
    uint64_t row, rows;       /* its first one; of the chunk */
    uint64_t column, columns; /* its first one; of a row */
    uint32_t height, width;   /* of a whole tile */
};

/* Rows and columns that are not there are 0, and are not looked at. */
PORTABLE void dense_tile_read(uint32_t type, const void *value, const struct dense_tile *tile,
                              uint32_t thread, double *into) {
    REGISTERS for (uint32_t k = 0; k < DENSE_TILE_VALUES / DENSE_MARGINS_THREADS; k++) {
        const uint32_t i = k * DENSE_MARGINS_THREADS + thread;
        const uint32_t r = i / tile->width, c = i % tile->width;
        const uint64_t row = tile->row + r, column = tile->column + c;
        into[r * (tile->width + 1) + c] =
            row < tile->rows && column < tile->columns
                ? device_value_at(type, value, row * tile->columns + column)
                : 0;
    }
}

PORTABLE void dense_tile_read_typed(const struct device_chunk *chunk, const struct dense_tile *tile,
                                    uint32_t thread, double *into) {
    if (chunk->type == DEVICE_VALUE_ONES)
        dense_tile_read(DEVICE_VALUE_ONES, chunk->value, tile, thread, into);
    else if (chunk->type == DEVICE_VALUE_BYTE)
        dense_tile_read(DEVICE_VALUE_BYTE, chunk->value, tile, thread, into);
    else if (chunk->type == DEVICE_VALUE_FLOAT)
        dense_tile_read(DEVICE_VALUE_FLOAT, chunk->value, tile, thread, into);
    else
        dense_tile_read(DEVICE_VALUE_DOUBLE, chunk->value, tile, thread, into);
}

/* What a thread adds to: two rows of the tile, and `group` outputs from `output` on. */
struct dense_own {
    uint32_t row[2];
    uint32_t output, group;
    double *waiting; /* in `shared`: a double every DENSE_MARGINS_THREADS */
};

/* One step, for a constant `group`. At the last one the margins are complete. */
PORTABLE void dense_tile_add(uint32_t group, const struct linear_work *work,
                             const struct dense_tile *tile, const struct dense_own *own,
                             const double *values, double *margins) {
    const uint64_t end =
        tile->columns - tile->column < tile->width ? tile->columns - tile->column : tile->width;
    const double *first = values + own->row[0] * (tile->width + 1);
    const double *second = values + own->row[1] * (tile->width + 1);
    const double *weight = work->parameters + tile->column * work->outputs + own->output;
    const uint32_t last = tile->column + end == tile->columns;
    double sum[2][DENSE_GROUP];
    REGISTERS for (uint32_t g = 0; g < 2 * group; g++) sum[g % 2][g / 2] =
        tile->column ? own->waiting[g * DENSE_MARGINS_THREADS] : 0;
    for (uint64_t c = 0; c < end; c++, weight += work->outputs)
        REGISTERS for (uint32_t g = 0; g < group; g++) {
            sum[0][g] += first[c] * weight[g];
            sum[1][g] += second[c] * weight[g];
        }
    REGISTERS for (uint32_t g = 0; g < 2 * group; g++) {
        const uint64_t row = tile->row + own->row[g % 2];
        if (!last)
            own->waiting[g * DENSE_MARGINS_THREADS] = sum[g % 2][g / 2];
        else if (row < tile->rows)
            margins[row * work->outputs + own->output + g / 2] = sum[g % 2][g / 2];
    }
}

PORTABLE void dense_tile_add_group(const struct linear_work *work, const struct dense_tile *tile,
                                   const struct dense_own *own, const double *values,
                                   double *margins) {
    switch (own->group) {
    case 1:
        dense_tile_add(1, work, tile, own, values, margins);
        break;
    case 2:
        dense_tile_add(2, work, tile, own, values, margins);
        break;
    case 3:
        dense_tile_add(3, work, tile, own, values, margins);
        break;
    case 4:
        dense_tile_add(4, work, tile, own, values, margins);
        break;
    case 5:
        dense_tile_add(5, work, tile, own, values, margins);
        break;
    case 6:
        dense_tile_add(6, work, tile, own, values, margins);
        break;
    case 7:
        dense_tile_add(7, work, tile, own, values, margins);
        break;
    case 8:
        dense_tile_add(8, work, tile, own, values, margins);
        break;
    default:
        break;
    }
}

/* The outputs are cut into passes · across groups of about the same size. */
PORTABLE struct dense_own dense_own_of(const struct dense_margins_arguments *arguments,
                                       uint32_t thread, uint32_t pass, double *waiting) {
    const uint64_t outputs = arguments->work.outputs;
    const uint32_t warp = thread / DENSE_WARP, groups = arguments->passes * arguments->across;
    const uint32_t group = pass * arguments->across + warp % arguments->across;
    struct dense_own own;
    own.row[0] = warp / arguments->across * DENSE_TILE_ROWS_LEAST + thread % DENSE_WARP;
    own.row[1] = own.row[0] + DENSE_WARP;
    own.output = (uint32_t)(outputs * group / groups);
    own.group = (uint32_t)(outputs * (group + 1) / groups) - own.output;
    own.waiting = waiting + thread;
    return own;
}

PORTABLE void dense_margins_body(const struct place *place,
                                 const struct dense_margins_arguments *arguments, void *shared,
                                 uint32_t phase) {
    const struct linear_work *work = &arguments->work;
    const struct linear_share share = linear_share_of(place, work);
    const struct device_chunk *chunk = share.chunk;
    const uint32_t steps = dense_margins_steps(arguments);
    const uint64_t number = (uint64_t)(phase / (2 * steps)) * work->blocks_each + share.part;
    double *values = (double *)shared;
    if (number >= dense_margins_tiles(arguments, chunk->rows))
        return;
    struct dense_tile tile;
    tile.height = arguments->rows;
    tile.width = DENSE_TILE_VALUES / arguments->rows;
    tile.row = number / arguments->passes * tile.height;
    tile.rows = chunk->rows;
    tile.column = (uint64_t)(phase / 2 % steps) * tile.width;
    tile.columns = work->features;
    if (phase % 2 == 0) {
        dense_tile_read_typed(chunk, &tile, place->thread, values);
        return;
    }
    const struct dense_own own =
        dense_own_of(arguments, place->thread, (uint32_t)(number % arguments->passes),
                     values + DENSE_TILE_DOUBLES);
    if (own.row[0] < tile.height && tile.row + own.row[0] < tile.rows)
        dense_tile_add_group(work, &tile, &own, values,
                             work->margins + chunk->first_row * work->outputs);
}

/* Gradients of linear models over dense rows, on a device, and of biases: the bits of
 * objective/dense.c, numeric/product.c and objective/linear.c. Neighbouring threads have
 * neighbouring columns, and go down the rows. */

/* Rows whose values are waited for together. */
#define DENSE_AHEAD 4

/* v[r] = the value of row first + r, of `count` rows that are there; 0 beyond. */
PORTABLE void dense_read(uint32_t type, const void *value, uint64_t at, uint64_t n, uint32_t count,
                         double *v) {
    REGISTERS for (uint32_t r = 0; r < DENSE_AHEAD; r++) v[r] =
        r < count ? device_value_at(type, value, at + r * n) : 0;
}

PORTABLE void dense_read_typed(const struct device_chunk *chunk, uint64_t at, uint64_t n,
                               uint32_t count, double *v) {
    if (chunk->type == DEVICE_VALUE_ONES)
        dense_read(DEVICE_VALUE_ONES, chunk->value, at, n, count, v);
    else if (chunk->type == DEVICE_VALUE_BYTE)
        dense_read(DEVICE_VALUE_BYTE, chunk->value, at, n, count, v);
    else if (chunk->type == DEVICE_VALUE_FLOAT)
        dense_read(DEVICE_VALUE_FLOAT, chunk->value, at, n, count, v);
    else
        dense_read(DEVICE_VALUE_DOUBLE, chunk->value, at, n, count, v);
}

PORTABLE uint32_t dense_batch_end(const struct device_chunk *chunk, uint64_t first,
                                  uint32_t batch_rows) {
    const uint64_t end = first + batch_rows;
    return end < chunk->rows ? (uint32_t)end : chunk->rows;
}

/* ---- K = 1 ---- */

/* A thread a batch and column. Sums in doubles, rounded once a batch. */
struct dense_gradient_arguments {
    struct linear_work work;
};

PORTABLE double dense_column_sum(const struct linear_work *work, const struct device_chunk *chunk,
                                 uint32_t row, uint32_t end, uint64_t column) {
    const uint64_t n = work->features;
    const double *derivative = work->derivatives + chunk->first_row;
    double total = 0;
    while (row < end) {
        const uint32_t count = end - row < DENSE_AHEAD ? end - row : DENSE_AHEAD;
        double v[DENSE_AHEAD];
        dense_read_typed(chunk, row * n + column, n, count, v);
        REGISTERS for (uint32_t r = 0; r < DENSE_AHEAD; r++) if (r < count) total +=
            derivative[row + r] * v[r];
        row += count;
    }
    return total;
}

PORTABLE void dense_gradient_body(const struct place *place,
                                  const struct dense_gradient_arguments *arguments, void *shared,
                                  uint32_t phase) {
    const struct linear_work *work = &arguments->work;
    const struct linear_share share = linear_share_of(place, work);
    const struct device_chunk *chunk = share.chunk;
    const uint64_t n = work->features;
    const uint64_t batches = ((uint64_t)chunk->rows + work->batch_rows - 1) / work->batch_rows;
    (void)shared, (void)phase;
    for (uint64_t item = share.first; item < batches * n; item += share.step) {
        const uint64_t batch = linear_quotient(item, work->features);
        const uint64_t first = batch * work->batch_rows, column = item - batch * n;
        const double total = dense_column_sum(
            work, chunk, (uint32_t)first, dense_batch_end(chunk, first, work->batch_rows), column);
        device_add_i64(&work->sum[column], fixed_round(total * linear_power(work, column)));
    }
}

/* ---- any K ---- */

/* A thread a column and a group of outputs. The sums of a batch are added to those of the chunk,
 * which are rounded once. */
struct dense_gradients_arguments {
    struct linear_work work;
};

#define DENSE_OUTPUTS 8

PORTABLE uint32_t dense_gradient_groups(uint32_t outputs) {
    return (outputs + DENSE_OUTPUTS - 1) / DENSE_OUTPUTS;
}

/* total[g] += the sum over a batch's rows, for a constant `group`. */
PORTABLE void dense_batch_add(uint32_t group, const struct linear_work *work,
                              const struct device_chunk *chunk, uint32_t row, uint32_t end,
                              uint64_t column, uint32_t output, double *total) {
    const uint64_t n = work->features, outputs = work->outputs;
    const double *derivative = work->derivatives + (chunk->first_row + row) * outputs + output;
    double sum[DENSE_OUTPUTS];
    REGISTERS for (uint32_t g = 0; g < group; g++) sum[g] = 0;
    while (row < end) {
        const uint32_t count = end - row < DENSE_AHEAD ? end - row : DENSE_AHEAD;
        double v[DENSE_AHEAD];
        dense_read_typed(chunk, row * n + column, n, count, v);
        REGISTERS for (uint32_t r = 0; r < DENSE_AHEAD; r++) if (r < count)
            REGISTERS for (uint32_t g = 0; g < group; g++) sum[g] +=
            v[r] * derivative[r * outputs + g];
        row += count;
        derivative += count * outputs;
    }
    REGISTERS for (uint32_t g = 0; g < group; g++) total[g] += sum[g];
}

PORTABLE void dense_outputs_gradient(uint32_t group, const struct linear_work *work,
                                     const struct device_chunk *chunk, uint64_t column,
                                     uint32_t output) {
    double total[DENSE_OUTPUTS];
    REGISTERS for (uint32_t g = 0; g < group; g++) total[g] = 0;
    for (uint64_t first = 0; first < chunk->rows; first += work->batch_rows)
        dense_batch_add(group, work, chunk, (uint32_t)first,
                        dense_batch_end(chunk, first, work->batch_rows), column, output, total);
    const double power = linear_power(work, column);
    REGISTERS for (uint32_t g = 0; g < group; g++) device_add_i64(
        &work->sum[column * work->outputs + output + g], fixed_round(total[g] * power));
}

PORTABLE void dense_group_gradient(uint32_t group, const struct linear_work *work,
                                   const struct device_chunk *chunk, uint64_t column,
                                   uint32_t output) {
    switch (group) {
    case 1:
        dense_outputs_gradient(1, work, chunk, column, output);
        break;
    case 2:
        dense_outputs_gradient(2, work, chunk, column, output);
        break;
    case 3:
        dense_outputs_gradient(3, work, chunk, column, output);
        break;
    case 4:
        dense_outputs_gradient(4, work, chunk, column, output);
        break;
    case 5:
        dense_outputs_gradient(5, work, chunk, column, output);
        break;
    case 6:
        dense_outputs_gradient(6, work, chunk, column, output);
        break;
    case 7:
        dense_outputs_gradient(7, work, chunk, column, output);
        break;
    default:
        dense_outputs_gradient(8, work, chunk, column, output);
    }
}

PORTABLE void dense_gradients_body(const struct place *place,
                                   const struct dense_gradients_arguments *arguments, void *shared,
                                   uint32_t phase) {
    const struct linear_work *work = &arguments->work;
    const struct linear_share share = linear_share_of(place, work);
    const uint64_t n = work->features, outputs = work->outputs;
    const uint32_t groups = dense_gradient_groups(work->outputs);
    (void)shared, (void)phase;
    for (uint64_t item = share.first; item < n * groups; item += share.step) {
        const uint64_t group = linear_quotient(item, work->features);
        const uint32_t output = (uint32_t)(outputs * group / groups);
        const uint32_t end = (uint32_t)(outputs * (group + 1) / groups);
        dense_group_gradient(end - output, work, share.chunk, item - group * n, output);
    }
}

/* ---- biases ---- */

/* A thread a batch and output. `outputs`, `derivatives` and `sum` are those of the biases; the
 * first of `exponent`, if there are any, is that of all. */
struct bias_gradient_arguments {
    struct linear_work work;
};

PORTABLE void bias_gradient_body(const struct place *place,
                                 const struct bias_gradient_arguments *arguments, void *shared,
                                 uint32_t phase) {
    const struct linear_work *work = &arguments->work;
    const struct linear_share share = linear_share_of(place, work);
    const struct device_chunk *chunk = share.chunk;
    const uint64_t outputs = work->outputs;
    const uint64_t batches = ((uint64_t)chunk->rows + work->batch_rows - 1) / work->batch_rows;
    (void)shared, (void)phase;
    for (uint64_t item = share.first; item < batches * outputs; item += share.step) {
        const uint64_t batch = linear_quotient(item, work->outputs);
        const uint64_t first = batch * work->batch_rows, output = item - batch * outputs;
        const uint32_t end = dense_batch_end(chunk, first, work->batch_rows);
        double total = 0;
        for (uint64_t row = first; row < end; row++)
            total += work->derivatives[(chunk->first_row + row) * outputs + output];
        device_add_i64(&work->sum[output], fixed_round(total * linear_power(work, 0)));
    }
}

/* ---- all kernels of linear models ---- */

extern const struct kernel kernel_sparse_margin, kernel_sparse_margins, kernel_sparse_scatter,
    kernel_sparse_gather, kernel_dense_margin, kernel_dense_margins, kernel_dense_gradient,
    kernel_dense_gradients, kernel_bias_gradient, kernel_arrange_rows, kernel_arrange_columns;

#endif
