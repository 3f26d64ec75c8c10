/* Draws rows of a block and adds up their second derivatives by the parameters. */
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "numeric/fixed.h"
#include "objective/loss_row.h"
#include "objective/parts.h"

/* A value is multiplied by 2^e in two halves, so that the product of two values of a row stays in
 * range: 2^(e − 31) is a double for every base exponent (the smallest are denormal, and exact). */
static double half_power(int exponent) {
    return ldexp(1, exponent - 31);
}

static struct curving *curving_new(const struct objective_shape *shape) {
    struct curving *curving = memory_new(1, sizeof *curving);
    const struct objective *objective = objective_of(shape->kind);
    size_t columns = (size_t)shape->features + shape->intercept, outputs = shape->outputs;
    if (objective->shares_weights && shape->intercept)
        columns = shape->features + outputs;
    outputs = objective_weights(objective, shape->outputs);
    curving->columns = columns;
    curving->outputs = outputs;
    curving->power = memory_new(columns, sizeof(double));
    curving->diagonal = memory_new(BATCH_ROWS_MAX * (size_t)shape->outputs, sizeof(double));
    curving->leverage = memory_new(BATCH_ROWS_MAX, sizeof(double));
    curving->column = memory_new(columns, sizeof(uint32_t));
    curving->value = memory_new(columns, sizeof(double));
    curving->runs = memory_new(columns, sizeof *curving->runs);
    curving->second = memory_new(outputs, sizeof(double));
    curving->seconds = memory_new(TRIANGLE_ROWS * outputs, sizeof(double));
    curving->right = memory_new(TRIANGLE_ROWS * columns * outputs, sizeof(double));
    curving->left = memory_new(TRIANGLE_ROWS * columns, sizeof(double));
    curving->derivatives = memory_new(TRIANGLE_ROWS * outputs, sizeof(double));
    return curving;
}

void curving_free(struct curving *curving) {
    if (!curving)
        return;
    free(curving->power);
    free(curving->diagonal);
    free(curving->leverage);
    free(curving->column);
    free(curving->value);
    free(curving->runs);
    free(curving->second);
    free(curving->seconds);
    free(curving->right);
    free(curving->left);
    free(curving->derivatives);
    free(curving);
}

/* ---- leverage ---- */

/* Σ |x_j|·power_j over the stored values of a row, in an order that depends on the row alone. */
LANES_INLINE double sparse_size(enum value_type type, const struct rows *rows, size_t row,
                                const double *power) {
    const uint32_t *feature = rows->feature;
    size_t i = rows->start[row], end = rows->start[row + 1];
    double sum[4] = {0};
    for (; i + 4 <= end; i += 4)
        for (size_t k = 0; k < 4; k++)
            sum[k] += fabs(value_at(type, rows->value, i + k)) * power[feature[i + k]];
    for (; i < end; i++)
        sum[0] += fabs(value_at(type, rows->value, i)) * power[feature[i]];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* sum += |value·power| at HALF values from i on. */
LANES_INLINE void add_sizes(half_lanes *sum, enum value_type type, const void *value, size_t i,
                            const double *power) {
    half_lanes size, by;
    half_float_lanes narrow;
    half_words bits;
    memcpy(&size, power, sizeof size);
    if (type == VALUE_BYTE) {
        load_values(type, &by, value, i);
        size *= by;
    } else if (type == VALUE_FLOAT) {
        memcpy(&narrow, (const float *)value + i, sizeof narrow);
        size *= __builtin_convertvector(narrow, half_lanes);
    } else if (type == VALUE_DOUBLE) {
        memcpy(&by, (const double *)value + i, sizeof by);
        size *= by;
    }
    memcpy(&bits, &size, sizeof bits);
    bits &= UINT64_MAX >> 1;
    memcpy(&size, &bits, sizeof size);
    *sum += size;
}

LANES_INLINE double dense_size(enum value_type type, const struct rows *rows, size_t row,
                               const double *power) {
    size_t n = rows->features, begin = row * n, j = 0;
    half_lanes a = {0}, b = {0};
    for (; j + 2 * HALF <= n; j += 2 * HALF) {
        add_sizes(&a, type, rows->value, begin + j, power + j);
        add_sizes(&b, type, rows->value, begin + j + HALF, power + j + HALF);
    }
    a += b;
    double sum = (a[0] + a[2]) + (a[1] + a[3]);
    for (; j < n; j++)
        sum += fabs(value_at(type, rows->value, begin + j)) * power[j];
    return sum;
}

LANES_INLINE void typed_sizes(enum value_type type, const struct batch *batch, const double *power,
                              double *size) {
    for (size_t i = 0; i < batch->count; i++)
        size[i] = batch->rows->dense ? dense_size(type, batch->rows, batch->first + i, power)
                                     : sparse_size(type, batch->rows, batch->first + i, power);
}

VECTOR_CLONES
static void sizes(const struct batch *batch, const double *power, double *size) {
    switch (batch->rows->type) {
    case VALUE_ONES:
        typed_sizes(VALUE_ONES, batch, power, size);
        break;
    case VALUE_BYTE:
        typed_sizes(VALUE_BYTE, batch, power, size);
        break;
    case VALUE_FLOAT:
        typed_sizes(VALUE_FLOAT, batch, power, size);
        break;
    case VALUE_DOUBLE:
        typed_sizes(VALUE_DOUBLE, batch, power, size);
        break;
    }
}

/* ---- drawing ---- */

LANES_INLINE size_t typed_values(enum value_type type, const struct rows *rows, size_t row,
                                 struct curving *curving) {
    size_t i = rows->dense ? row * rows->features : rows->start[row];
    size_t end = rows->dense ? i + rows->features : rows->start[row + 1];
    size_t count = 0;
    for (uint32_t j = 0; i < end; i++, j++) {
        uint32_t column = rows->dense ? j : rows->feature[i];
        double value = value_at(type, rows->value, i) * curving->power[column];
        curving->column[count] = column;
        curving->value[count] = value;
        count += value != 0;
    }
    return count;
}

/* Lists the columns and values of a row, the intercept last; how many there are. */
static size_t list_values(const struct objective_shape *shape, const struct rows *rows, size_t row,
                          struct curving *curving) {
    size_t count = rows->type == VALUE_ONES    ? typed_values(VALUE_ONES, rows, row, curving)
                   : rows->type == VALUE_BYTE  ? typed_values(VALUE_BYTE, rows, row, curving)
                   : rows->type == VALUE_FLOAT ? typed_values(VALUE_FLOAT, rows, row, curving)
                                               : typed_values(VALUE_DOUBLE, rows, row, curving);
    if (shape->intercept) {
        curving->column[count] = shape->features;
        curving->value[count++] = curving->power[shape->features];
    }
    return count;
}

/* Outputs that share their weights count one after the other, as rows that differ in their last
 * column: each has its own bias. */
static void draw_row(const struct objective_shape *shape, const struct objective_sample *sample,
                     const struct batch *batch, size_t i, double chance, const double *derivatives,
                     struct curving *curving, int64_t *triangle, struct objective_curved *curved) {
    const struct objective *objective = objective_of(shape->kind);
    size_t count = list_values(shape, batch->rows, batch->first + i, curving);
    size_t touched = count * curving->outputs;
    double weight = weight_at(batch->rows, batch->first + i) / chance;
    struct drawn row = {.count = count,
                        .column = curving->column,
                        .value = curving->value,
                        .factor = fixed_power(-sample->derivative_exponent) * weight,
                        .label = batch->rows->label[batch->first + i],
                        .derivatives = derivatives + i * shape->outputs,
                        .second = curving->diagonal + i * shape->outputs};
    for (uint32_t k = 0; k < shape->outputs; k += (uint32_t)curving->outputs, row.second++) {
        if (objective->shares_weights && shape->intercept)
            curving->column[count - 1] = shape->features + k;
        triangle_add(objective, curving, &row, triangle);
        curved->terms += touched * (touched + 1) / 2;
    }
}

/* A trace that is not a number makes a chance that is none, and draws nothing. */
static void draw_batch(const struct objective_shape *shape, const struct objective_sample *sample,
                       const struct batch *batch, uint32_t number, const double *derivatives,
                       struct curving *curving, int64_t *triangle,
                       struct objective_curved *curved) {
    const struct objective_drawing *drawing = &sample->drawing;
    double bound = ldexp(drawing->floor, sample->derivative_exponent);
    size_t outputs = shape->outputs;
    for (uint32_t i = 0; i < batch->count; i++) {
        double trace = 0, weight = weight_at(batch->rows, batch->first + i);
        if (weight == 0)
            continue;
        for (size_t k = 0; k < outputs; k++) {
            trace += curving->diagonal[i * outputs + k];
            curved->exceeded |= !(curving->diagonal[i * outputs + k] <= bound);
        }
        double weighted = trace * curving->leverage[i];
        double chance = drawing->floor + drawing->rate * weighted;
        chance = chance > 1 ? 1 : chance;
        curved->trace += weight * trace;
        curved->trace_leverage += weighted;
        if (!(dice_throw(drawing->dice, number, batch->first + i) < chance))
            continue;
        curved->drawn++;
        if (triangle && !curved->exceeded)
            draw_row(shape, sample, batch, i, chance, derivatives, curving, triangle, curved);
    }
    curved->exceeded |= !isfinite(curved->trace_leverage);
}

void objective_curvature(const struct objective_shape *shape, const struct objective_sample *sample,
                         const struct rows *rows, uint32_t number, const double *parameters,
                         int64_t *triangle, struct objective_scratch *scratch,
                         struct objective_curved *curved) {
    const struct objective *objective = objective_of(shape->kind);
    struct batches batches = batches_over(shape, rows, parameters, scratch);
    if (!scratch->curving)
        scratch->curving = curving_new(shape);
    for (size_t j = 0; j < scratch->curving->columns; j++)
        scratch->curving->power[j] =
            half_power(sample->exponent[j < shape->features ? j : shape->features]);
    struct curving *curving = scratch->curving;
    struct batch batch;
    *curved = (struct objective_curved){0};
    while (batches_next(&batches, &batch)) {
        objective->second(&shape->loss, batch.count, shape->outputs, rows->label + batch.first,
                          scratch->margins, scratch->work, curving->diagonal);
        sizes(&batch, curving->power, curving->leverage);
        double intercept = shape->intercept ? curving->power[shape->features] : 0;
        double share = (double)sample->examples * 0x1p-31;
        for (size_t i = 0; i < batch.count; i++)
            curving->leverage[i] =
                share * weight_at(batch.rows, batch.first + i) * (curving->leverage[i] + intercept);
        draw_batch(shape, sample, &batch, number, scratch->margins, curving, triangle, curved);
    }
    if (triangle && !curved->exceeded)
        triangle_finish(objective, curving, triangle);
    curving->waiting = 0;
}
