/* Inside objective/ only: what the kernels of linear models share, and those over sparse rows. See
 * objective/device_pass.h for what a pass is. */
#ifndef DML_OBJECTIVE_DEVICE_SPARSE_H
#define DML_OBJECTIVE_DEVICE_SPARSE_H

#include <stdint.h>

#include "device/kernel.h"
#include "numeric/sum_element.h"
#include "objective/device_chunk.h"

/* Arrays stay in registers only if the loops over them are unrolled. */
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

/* ---- arranging ---- */

/* Sparse rows arranged for a device, and their values once more column by column.
 *
 * Arranged, the rows of a chunk are in order of falling length. From position `straight` on they
 * are in slices of SLICE_ROWS: the first values of all rows of a slice, then their second ones, and
 * so on, each slice as long as its longest row. Rows so much longer than others that their slice
 * would be mostly empty come before, each by itself.
 *
 * Column by column, the values of a chunk are sorted by column, and cut into runs of COLUMN_RUN.
 * COLUMN_LANES runs lie beside each other: the first values of all, then their second ones, and so
 * on. */

#define COLUMN_RUN 32
#define COLUMN_LANES 32

/* Where the first value of a run is; the next ones are COLUMN_LANES apart. */
PORTABLE uint64_t column_run_at(uint64_t run) {
    return run / COLUMN_LANES * (COLUMN_LANES * COLUMN_RUN) + run % COLUMN_LANES;
}

/* Where value `i` in the order of columns is. */
PORTABLE uint64_t column_value_at(uint64_t i) {
    return column_run_at(i / COLUMN_RUN) + i % COLUMN_RUN * COLUMN_LANES;
}

/* For how many values there must be room. */
PORTABLE uint64_t column_values_room(uint64_t values) {
    const uint64_t together = COLUMN_LANES * COLUMN_RUN;
    return (values + together - 1) / together * together;
}

PORTABLE void device_value_copy(uint32_t type, void *to, uint64_t at, const void *from,
                                uint64_t i) {
    if (type == DEVICE_VALUE_BYTE)
        ((uint8_t *)to)[at] = ((const uint8_t *)from)[i];
    else if (type == DEVICE_VALUE_FLOAT)
        ((float *)to)[at] = ((const float *)from)[i];
    else if (type == DEVICE_VALUE_DOUBLE)
        ((double *)to)[at] = ((const double *)from)[i];
}

/* ---- rows in slices ---- */

/* From a chunk as it was read to one that is arranged: `to` has `order`, `at` and `straight`, and
 * room for features and values. A thread a row. */
struct arrange_rows_arguments {
    struct device_chunk from, to;
    uint32_t *feature; /* those of `to` */
    void *value;
};

PORTABLE void arrange_rows_body(const struct place *place,
                                const struct arrange_rows_arguments *arguments, void *shared,
                                uint32_t phase) {
    const struct device_chunk *from = &arguments->from, *to = &arguments->to;
    const uint64_t step = (uint64_t)place->blocks * place->threads;
    (void)shared, (void)phase;
    for (uint64_t p = (uint64_t)place->block * place->threads + place->thread; p < from->rows;
         p += step) {
        const uint64_t stride = p < to->straight ? 1 : SLICE_ROWS;
        const uint32_t row = to->order[p], end = from->start[row + 1];
        uint64_t at = to->at[p];
        for (uint32_t i = from->start[row]; i < end; i++, at += stride) {
            arguments->feature[at] = from->feature[i];
            device_value_copy(from->type, arguments->value, at, from->value, i);
        }
    }
}

/* ---- columns ---- */

/* From a chunk as it was read. One block: it counts the values of each column, finds where each
 * begins, and puts every value to the next place of its column, so that their order within a column
 * is any. */
struct arrange_columns_arguments {
    struct device_chunk from;
    uint32_t features;
    uint32_t *next;   /* features; scratch memory */
    uint32_t *column; /* of each value */
    uint32_t *row;
    void *value;
};

#define ARRANGE_THREADS 1024
#define ARRANGE_PHASES 6

/* The first column of a thread's share, which ends where the next one's begins. */
PORTABLE uint64_t arrange_share(const struct arrange_columns_arguments *arguments, uint32_t threads,
                                uint32_t thread) {
    return (uint64_t)arguments->features * thread / threads;
}

/* next[j] = what stands before column j, of a thread's share; returns what follows. */
PORTABLE uint32_t arrange_begin(const struct arrange_columns_arguments *arguments, uint64_t j,
                                uint64_t end, uint32_t before) {
    for (; j < end; j++) {
        const uint32_t count = arguments->next[j];
        arguments->next[j] = before;
        before += count;
    }
    return before;
}

PORTABLE void arrange_place(const struct arrange_columns_arguments *arguments, uint32_t row) {
    const struct device_chunk *from = &arguments->from;
    for (uint32_t i = from->start[row]; i < from->start[row + 1]; i++) {
        const uint32_t column = from->feature[i];
        const uint64_t at = column_value_at(device_count_u32(&arguments->next[column], 1));
        arguments->column[at] = column;
        arguments->row[at] = row;
        device_value_copy(from->type, arguments->value, at, from->value, i);
    }
}

/* The phases: no counts; counts of columns; what each thread's columns have, to `shared`; sums of
 * that; where each column begins; and the values. */
PORTABLE void arrange_columns_body(const struct place *place,
                                   const struct arrange_columns_arguments *arguments, void *shared,
                                   uint32_t phase) {
    const struct device_chunk *from = &arguments->from;
    const uint32_t t = place->thread, threads = place->threads;
    const uint64_t first = arrange_share(arguments, threads, t);
    const uint64_t end = arrange_share(arguments, threads, t + 1);
    uint32_t *before = (uint32_t *)shared;
    if (phase == 0) {
        for (uint64_t j = first; j < end; j++)
            arguments->next[j] = 0;
    } else if (phase == 1) {
        for (uint64_t i = t; i < from->values; i += threads)
            device_count_u32(&arguments->next[from->feature[i]], 1);
    } else if (phase == 2) {
        before[t] = 0;
        for (uint64_t j = first; j < end; j++)
            before[t] += arguments->next[j];
    } else if (phase == 3 && t == 0) {
        uint32_t total = 0;
        for (uint32_t other = 0; other < threads; other++) {
            const uint32_t count = before[other];
            before[other] = total;
            total += count;
        }
    } else if (phase == 4) {
        arrange_begin(arguments, first, end, before[t]);
    } else if (phase == 5) {
        for (uint32_t row = t; row < from->rows; row += threads)
            arrange_place(arguments, row);
    }
}

/* Margins and gradients of linear models over sparse rows, on a device: the bits of
 * objective/sparse.c.
 *
 * The rows of a chunk may be arranged (see above): then neighbouring
 * threads, which work on rows of about the same length, read neighbouring words. A chunk may also
 * have its values once more, column by column. Then the terms of a column are added up before they
 * go to the sum, which many threads want to add to; else each term goes there by itself. */

/* ---- rows ---- */

/* Value e of the row is at first + e·stride. */
struct sparse_row {
    uint32_t number, length;
    uint64_t first, stride;
};

PORTABLE struct sparse_row sparse_row_at(const struct device_chunk *chunk, uint64_t position) {
    struct sparse_row row;
    row.number = chunk->order ? chunk->order[position] : (uint32_t)position;
    row.length = chunk->start[row.number + 1] - chunk->start[row.number];
    row.first = chunk->order ? chunk->at[position] : chunk->start[row.number];
    row.stride = chunk->order && position >= chunk->straight ? SLICE_ROWS : 1;
    return row;
}

/* A row and an output of a chunk. */
struct sparse_item {
    struct sparse_row row;
    uint64_t output;
    uint64_t at; /* of the item in margins and derivatives */
};

PORTABLE struct sparse_item sparse_item_at(const struct device_chunk *chunk, uint32_t outputs,
                                           uint64_t number) {
    const uint64_t position = linear_quotient(number, outputs);
    struct sparse_item item;
    item.row = sparse_row_at(chunk, position);
    item.output = number - position * outputs;
    item.at = (chunk->first_row + item.row.number) * outputs + item.output;
    return item;
}

/* ---- margins ---- */

/* Margins for K = 1. */
struct sparse_margin_arguments {
    struct linear_work work;
};

/* Four sums, as the processor has them. */
PORTABLE double sparse_margin_of(uint32_t type, const struct device_chunk *chunk,
                                 const struct sparse_row *row, const double *x) {
    const uint32_t *feature = chunk->feature;
    const void *value = chunk->value;
    const uint64_t stride = row->stride;
    double a = 0, b = 0, c = 0, d = 0;
    uint64_t i = row->first;
    uint32_t left = row->length;
    for (; left >= 4; left -= 4, i += 4 * stride) {
        a += device_value_at(type, value, i) * x[feature[i]];
        b += device_value_at(type, value, i + stride) * x[feature[i + stride]];
        c += device_value_at(type, value, i + 2 * stride) * x[feature[i + 2 * stride]];
        d += device_value_at(type, value, i + 3 * stride) * x[feature[i + 3 * stride]];
    }
    if (left > 0)
        a += device_value_at(type, value, i) * x[feature[i]];
    if (left > 1)
        b += device_value_at(type, value, i + stride) * x[feature[i + stride]];
    if (left > 2)
        c += device_value_at(type, value, i + 2 * stride) * x[feature[i + 2 * stride]];
    return (a + b) + (c + d);
}

/* Lets the compiler make loops for each type. */
PORTABLE double sparse_margin_typed(const struct device_chunk *chunk, const struct sparse_row *row,
                                    const double *x) {
    if (chunk->type == DEVICE_VALUE_ONES)
        return sparse_margin_of(DEVICE_VALUE_ONES, chunk, row, x);
    if (chunk->type == DEVICE_VALUE_BYTE)
        return sparse_margin_of(DEVICE_VALUE_BYTE, chunk, row, x);
    if (chunk->type == DEVICE_VALUE_FLOAT)
        return sparse_margin_of(DEVICE_VALUE_FLOAT, chunk, row, x);
    return sparse_margin_of(DEVICE_VALUE_DOUBLE, chunk, row, x);
}

/* A thread a row. */
PORTABLE void sparse_margin_body(const struct place *place,
                                 const struct sparse_margin_arguments *arguments, void *shared,
                                 uint32_t phase) {
    const struct linear_work *work = &arguments->work;
    const struct linear_share share = linear_share_of(place, work);
    (void)shared, (void)phase;
    for (uint64_t p = share.first; p < share.chunk->rows; p += share.step) {
        const struct sparse_row row = sparse_row_at(share.chunk, p);
        work->margins[share.chunk->first_row + row.number] =
            sparse_margin_typed(share.chunk, &row, work->parameters);
    }
}

/* Margins for any K. */
struct sparse_margins_arguments {
    struct linear_work work;
};

/* A thread a row and output: those of a row read the same words, and neighbouring parameters. */
PORTABLE void sparse_margins_body(const struct place *place,
                                  const struct sparse_margins_arguments *arguments, void *shared,
                                  uint32_t phase) {
    const struct linear_work *work = &arguments->work;
    const struct linear_share share = linear_share_of(place, work);
    const struct device_chunk *chunk = share.chunk;
    const uint32_t outputs = work->outputs;
    (void)shared, (void)phase;
    for (uint64_t i = share.first; i < (uint64_t)chunk->rows * outputs; i += share.step) {
        const struct sparse_item item = sparse_item_at(chunk, outputs, i);
        double margin = 0;
        uint64_t at = item.row.first;
        for (uint32_t left = item.row.length; left; left--, at += item.row.stride)
            margin += device_value_at(chunk->type, chunk->value, at) *
                      work->parameters[(uint64_t)chunk->feature[at] * outputs + item.output];
        work->margins[item.at] = margin;
    }
}

/* ---- gradients ---- */

/* The derivative that all terms of a row have, and then the term of a value. If there are no
 * exponents by column, the derivative includes the exponent of all columns. */
PORTABLE double sparse_derivative(const struct linear_work *work, uint64_t at) {
    const double derivative = work->derivatives[at];
    return work->exponent ? derivative : derivative * fixed_power(work->uniform);
}

PORTABLE int64_t sparse_term(const struct linear_work *work, double derivative, double value,
                             uint32_t column) {
    double term = derivative * value;
    if (work->exponent)
        term *= fixed_power(work->exponent[column]);
    return fixed_round(term);
}

/* The gradient of chunks that are not there column by column. */
struct sparse_scatter_arguments {
    struct linear_work work;
};

/* A thread a row and output. */
PORTABLE void sparse_scatter_body(const struct place *place,
                                  const struct sparse_scatter_arguments *arguments, void *shared,
                                  uint32_t phase) {
    const struct linear_work *work = &arguments->work;
    const struct linear_share share = linear_share_of(place, work);
    const struct device_chunk *chunk = share.chunk;
    const uint32_t outputs = work->outputs;
    (void)shared, (void)phase;
    if (chunk->column)
        return;
    for (uint64_t i = share.first; i < (uint64_t)chunk->rows * outputs; i += share.step) {
        const struct sparse_item item = sparse_item_at(chunk, outputs, i);
        const double derivative = sparse_derivative(work, item.at);
        uint64_t at = item.row.first;
        for (uint32_t left = item.row.length; left; left--, at += item.row.stride) {
            const uint32_t column = chunk->feature[at];
            const double value = device_value_at(chunk->type, chunk->value, at);
            device_add_i64(&work->sum[(uint64_t)column * outputs + item.output],
                           sparse_term(work, derivative, value, column));
        }
    }
}

/* The gradient of chunks that are there column by column. */
struct sparse_gather_arguments {
    struct linear_work work;
};

/* A thread a run and output. A run is a part of a long column, or some short ones. */
PORTABLE void sparse_gather_terms(const struct linear_work *work, const struct device_chunk *chunk,
                                  uint64_t run, uint64_t output) {
    const uint32_t outputs = work->outputs;
    uint64_t left = chunk->values - run * COLUMN_RUN, i = column_run_at(run);
    if (left > COLUMN_RUN)
        left = COLUMN_RUN;
    uint32_t column = chunk->column[i];
    uint64_t total = 0; /* as int64_t; without a sign it may pass 2⁶³ */
    for (; left; left--, i += COLUMN_LANES) {
        if (chunk->column[i] != column) {
            device_add_i64(&work->sum[(uint64_t)column * outputs + output], (int64_t)total);
            column = chunk->column[i];
            total = 0;
        }
        const uint64_t row = chunk->first_row + chunk->column_row[i];
        total +=
            (uint64_t)sparse_term(work, sparse_derivative(work, row * outputs + output),
                                  device_value_at(chunk->type, chunk->column_value, i), column);
    }
    device_add_i64(&work->sum[(uint64_t)column * outputs + output], (int64_t)total);
}

PORTABLE void sparse_gather_body(const struct place *place,
                                 const struct sparse_gather_arguments *arguments, void *shared,
                                 uint32_t phase) {
    const struct linear_work *work = &arguments->work;
    const struct linear_share share = linear_share_of(place, work);
    const struct device_chunk *chunk = share.chunk;
    (void)shared, (void)phase;
    if (!chunk->column)
        return;
    const uint64_t runs = (chunk->values + COLUMN_RUN - 1) / COLUMN_RUN;
    for (uint64_t item = share.first; item < runs * work->outputs; item += share.step) {
        const uint64_t run = linear_quotient(item, work->outputs);
        sparse_gather_terms(work, chunk, run, item - run * work->outputs);
    }
}

#endif
