/* Margins and gradients of linear models over sparse rows, on a device: the bits of
 * objective/sparse.c.
 *
 * The rows of a chunk may be arranged (objective/device_arrange.h): then neighbouring threads,
 * which work on rows of about the same length, read neighbouring words. A chunk may also have its
 * values once more, column by column. Then the terms of a column are added up before they go to the
 * sum, which many threads want to add to; else each term goes there by itself. */
#ifndef DML_OBJECTIVE_DEVICE_SPARSE_H
#define DML_OBJECTIVE_DEVICE_SPARSE_H

#include "objective/device_linear.h"

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

/* Of K = 1. */
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

/* Of any K. */
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

/* Of chunks that are not there column by column. */
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

/* Of chunks that are there column by column. */
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
