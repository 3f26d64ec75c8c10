/* Gradients of linear models over dense rows, on a device, and of biases: the bits of
 * objective/dense.c, numeric/product.c and objective/block.c. Neighbouring threads have
 * neighbouring columns, and go down the rows. */
#ifndef DML_OBJECTIVE_DEVICE_DENSE_GRADIENT_H
#define DML_OBJECTIVE_DEVICE_DENSE_GRADIENT_H

#include "objective/device_linear.h"

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

#endif
