/* Linear models: a weight for each feature and output, and a bias for each output. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "numeric/fixed.h"
#include "numeric/vector.h"
#include "objective/parts.h"

/* ---- the shape ---- */

/* How far the first of several biases and the last start from 0: classes of about the same
 * frequency have thresholds about there. */
#define PARTED_STEP 0.5
#define PARTED_MOST 3.0

static struct layout linear_layout(const struct objective_shape *shape) {
    uint32_t weights = objective_weights(objective_of(shape->kind), shape->outputs);
    struct layout layout =
        layout_linear_of(shape->features, weights, shape->intercept ? shape->outputs : 0);
    if (shape->intercept && layout.count) {
        struct layout_tensor *bias = &layout.tensor[layout.count - 1];
        double parted = fmin(PARTED_STEP * (shape->outputs - 1), PARTED_MOST);
        if (objective_of(shape->kind)->parts_outputs) {
            bias->start = LAYOUT_START_FALLING;
            bias->bound = parted;
        } else if (shape->start != 0) {
            bias->start = LAYOUT_START_CONSTANT;
            bias->bound = shape->start;
        }
    }
    return layout;
}

static bool linear_read_layout(struct objective_shape *shape, const struct layout *layout) {
    const struct layout_tensor *weight = layout_find(layout, TENSOR_WEIGHT);
    const struct layout_tensor *bias = layout_find(layout, TENSOR_BIAS);
    bool shares = objective_of(shape->kind)->shares_weights;
    const struct layout_tensor *outputs = shares ? bias : weight;
    shape->outputs = outputs ? (uint32_t)outputs->columns : 0;
    shape->intercept = bias != NULL;
    shape->start = bias && bias->start == LAYOUT_START_CONSTANT ? bias->bound : 0;
    shape->network.layers = 0;
    return true;
}

static int linear_exponent(const struct objective_shape *shape, const int16_t *columns, int share,
                           uint64_t number) {
    (void)shape, (void)share;
    return columns[number];
}

static struct bounds linear_first_bounds(const struct objective_shape *shape, double label_max_abs,
                                         double chunk) {
    (void)chunk;
    return bounds_of_one(fixed_derivative_exponent(objective_bound(shape, label_max_abs)));
}

static uint64_t linear_width(const struct objective_shape *shape) {
    return shape->outputs;
}

/* ---- batches ---- */

/* How many values, or margins, of a batch fit into the cache. */
#define BATCH_VALUES 32768
#define BATCH_ROWS_MIN 16

/* Products are fastest over a multiple of so many rows. */
#define PRODUCT_ROWS 24

/* Depends on the shape alone: the rows of a batch decide the order in which its sums are added, and
 * so their last bits. */
static uint32_t linear_batch_rows(const struct objective_shape *shape, bool dense) {
    uint64_t width = shape->outputs;
    if (dense && shape->features > width)
        width = shape->features;
    uint32_t rows = (uint32_t)(BATCH_VALUES / (width + 1));
    if (dense && objective_weights(objective_of(shape->kind), shape->outputs) > 1)
        rows -= rows % PRODUCT_ROWS;
    return rows < BATCH_ROWS_MIN ? BATCH_ROWS_MIN : rows > BATCH_ROWS_MAX ? BATCH_ROWS_MAX : rows;
}

static struct objective_scratch *linear_scratch_new(const struct objective_shape *shape) {
    const struct objective *objective = objective_of(shape->kind);
    struct layout layout = objective_layout(shape);
    uint32_t rows = linear_batch_rows(shape, false); /* a batch of dense rows has no more */
    struct objective_scratch *scratch = batch_scratch_new(shape, rows);
    scratch->weights = *shape;
    scratch->weights.outputs = objective_weights(objective, shape->outputs);
    const struct layout_tensor *bias = layout_find(&layout, TENSOR_BIAS);
    if (bias)
        scratch->bias = *bias;
    scratch->common = objective->shares_weights ? memory_new(rows, sizeof(double)) : NULL;
    return scratch;
}

static int linear_prepare(const struct objective_shape *shape, const struct objective_need *need,
                          struct objective_scratch *scratch) {
    if (need->rows.dense)
        dense_prepare(&scratch->weights, &need->rows, linear_batch_rows(shape, true), scratch);
    if (need->sample)
        curvature_prepare(shape, need, scratch);
    return 0;
}

/* Most runs start where all weights are 0: there no row has to be read for its margins, and an
 * evaluation is half a pass. Looked for once a point. */
static bool is_weightless(const double *parameters, struct objective_scratch *scratch) {
    const uint64_t weights = scratch->weights.features * scratch->weights.outputs;
    if (!scratch->point || scratch->point == scratch->looked_at)
        return scratch->point && scratch->weightless;
    uint64_t zeros = 0;
    while (zeros < weights && parameters[zeros] == 0)
        zeros++;
    scratch->looked_at = scratch->point;
    scratch->weightless = zeros == weights;
    return scratch->weightless;
}

static void weight_margins(const struct row_batch *batch, const double *parameters,
                           struct objective_scratch *scratch, double *margins) {
    const struct column_scaling *columns = scratch->scaled.columns;
    assert(!batch->rows->dense || !columns);
    if (is_weightless(parameters, scratch)) {
        memset(margins, 0, (size_t)batch->count * scratch->weights.outputs * sizeof *margins);
        if (batch->rows->dense)
            dense_take(&scratch->weights, batch, scratch);
    } else if (batch->rows->dense)
        dense_margins(&scratch->weights, batch, parameters, scratch, margins);
    else
        sparse_margins(&scratch->weights, batch, parameters, columns, margins);
}

static void batch_margins(const struct objective_shape *shape, const struct row_batch *batch,
                          const double *parameters, struct objective_scratch *scratch) {
    size_t outputs = shape->outputs;
    double *margins = scratch->margins, *common = scratch->common;
    weight_margins(batch, parameters, scratch, common ? common : margins);
    const double *bias =
        scratch->scaled.columns ? scratch->scaled.bias : parameters + scratch->bias.first;
    for (size_t i = 0; common && i < batch->count; i++)
        for (size_t k = 0; k < outputs; k++)
            margins[i * outputs + k] = common[i];
    for (size_t i = 0; shape->intercept && i < batch->count; i++)
        for (size_t k = 0; k < outputs; k++)
            margins[i * outputs + k] += bias[k];
}

struct batches batches_over(const struct objective_shape *shape, const struct rows *rows,
                            const double *parameters, struct objective_scratch *scratch) {
    assert(!rows->dense || rows->features == shape->features);
    if (rows->dense)
        dense_begin(&scratch->weights, parameters, scratch);
    return (struct batches){.shape = shape,
                            .rows = rows,
                            .parameters = parameters,
                            .scratch = scratch,
                            .most = linear_batch_rows(shape, rows->dense)};
}

/* The next batch, with its margins alone; false at the end. */
static bool batches_next_margins(struct batches *batches, struct row_batch *batch) {
    if (batches->next >= batches->rows->count)
        return false;
    *batch = batch_at(batches->rows, batches->next, batches->most);
    batches->next += batch->count;
    batch_margins(batches->shape, batch, batches->parameters, batches->scratch);
    return true;
}

bool batches_next(struct batches *batches, struct row_batch *batch) {
    if (!batches_next_margins(batches, batch))
        return false;
    batch_losses(batches->shape, batch, batches->scratch,
                 batches->checks ? &batches->correct : NULL);
    return true;
}

static void note_derivatives(double largest, struct objective_result *result) {
    if (largest > result->maxima.value[0])
        result->maxima.value[0] = largest;
}

void batch_bias_gradient(const struct layout_tensor *bias, const struct objective_scale *scale,
                         const struct row_batch *batch, const double *derivatives, int64_t *sum) {
    size_t outputs = bias->columns;
    double power = scale_of(scale, bias->first_exponent);
    for (size_t k = 0; k < outputs; k++) {
        double total = 0;
        for (size_t i = 0; i < batch->count; i++)
            total += derivatives[i * outputs + k];
        fixed_add(&sum[bias->first + k], total * power);
    }
}

static void batch_gradient(const struct objective_shape *shape, const struct objective_scale *scale,
                           const struct row_batch *batch, int64_t *sum,
                           struct objective_scratch *scratch) {
    double *derivatives = scratch->margins;
    assert(!scratch->common || scratch->weights.outputs == 1);
    if (scale->bounds.exponent[0] != 0) {
        double power = fixed_power(-scale->bounds.exponent[0]);
        for (size_t i = 0; i < (size_t)batch->count * shape->outputs; i++)
            derivatives[i] *= power;
    }
    if (batch->rows->weight)
        batch_weigh_derivatives(batch, shape->outputs, derivatives);
    if (shape->intercept)
        batch_bias_gradient(&scratch->bias, scale, batch, derivatives, sum);
    if (scratch->common) {
        /* What the outputs ask of the weights that they share. */
        for (size_t i = 0; i < batch->count; i++) {
            const double *derivative = scratch->margins + i * shape->outputs;
            scratch->common[i] = 0;
            for (size_t k = 0; k < shape->outputs; k++)
                scratch->common[i] += derivative[k];
        }
        derivatives = scratch->common;
    }
    if (batch->rows->dense)
        dense_gradient(&scratch->weights, scale, batch, derivatives, sum, scratch);
    else
        sparse_gradient(&scratch->weights, scale, batch, derivatives, sum);
}

static int linear_block(const struct objective_shape *shape, const struct objective_scale *scale,
                        const struct rows *rows, const double *parameters, int64_t *sum,
                        struct objective_scratch *scratch, struct objective_result *result) {
    *result = (struct objective_result){.maxima = maxima_of_one(0)};
    double bound = scale ? fixed_power(scale->bounds.exponent[0]) : INFINITY;
    struct batches batches = batches_over(shape, rows, parameters, scratch);
    struct row_batch batch;
    batches.checks = !sum;
    while (batches_next(&batches, &batch)) {
        /* Takes the losses and derivatives of a batch into the result. */
        if (batch.rows->weight)
            batch_weigh_losses(&batch, shape->outputs, scratch);
        for (size_t i = 0; i < batch.count; i++)
            result->loss += scratch->loss[i];
        double largest = vector_max_abs(batch.count * shape->outputs, scratch->margins);
        if (!isfinite(result->loss))
            largest = INFINITY;
        note_derivatives(largest, result);
        if (result->maxima.value[0] > bound)
            result->exceeded = true;
        else if (sum)
            batch_gradient(shape, scale, &batch, sum, scratch);
    }
    result->correct = batches.correct;
    if (rows->dense && sum && !result->exceeded)
        dense_finish(&scratch->weights, scale, sum, scratch);
    return 0;
}

static int linear_margins(const struct objective_shape *shape, const struct rows *rows,
                          const double *parameters, struct objective_scratch *scratch,
                          double *margins) {
    struct batches batches = batches_over(shape, rows, parameters, scratch);
    struct row_batch batch;
    while (batches_next_margins(&batches, &batch))
        memcpy(margins + (size_t)batch.first * shape->outputs, scratch->margins,
               (size_t)batch.count * shape->outputs * sizeof *margins);
    return 0;
}

/* ---- the two halves of a pass ---- */

static void add_row_bits(size_t outputs, const double *margin, int64_t *sum) {
    for (size_t k = 0; k < outputs; k++)
        add_bits(&sum[k], margin[k]);
}

/* If a point is within its bound, no part of a margin is beyond this in fixed point. */
#define TILE_PART_MOST 0x1p61

static double times_power(double number, int exponent) {
    bool normal = exponent >= FIXED_EXPONENT_MIN && exponent <= FIXED_EXPONENT_MAX;
    return normal ? number * fixed_power(exponent) : ldexp(number, exponent);
}

static void note_beyond(double part, int size, struct objective_result *result) {
    double largest = isfinite(part) ? times_power(fabs(part), -size) : INFINITY;
    result->exceeded = true;
    result->maxima.count = 1;
    note_derivatives(largest, result);
}

/* What a tile has of the margins of a row; of most rows many tiles have nothing. */
static void add_row_parts(size_t outputs, const double *part, int size, int point, int64_t *sum,
                          struct objective_result *result) {
    for (size_t k = 0; k < outputs; k++) {
        if (part[k] == 0)
            continue;
        double scaled = times_power(part[k], -fixed_tile_exponent(size, point));
        if (!(fabs(scaled) <= TILE_PART_MOST))
            note_beyond(part[k], size, result);
        else if (sum)
            sum[k] += fixed_round(scaled);
    }
}

static void linear_product(const struct objective_shape *shape, const struct objective_scale *scale,
                           const struct rows *rows, const double *parameters, int64_t *sum,
                           struct objective_scratch *scratch, struct objective_result *result) {
    const size_t outputs = shape->outputs;
    struct batches batches = batches_over(shape, rows, parameters, scratch);
    struct row_batch batch;
    *result = (struct objective_result){0};
    while (batches_next_margins(&batches, &batch))
        for (size_t i = 0; i < batch.count; i++) {
            const double *margin = scratch->margins + i * outputs;
            int64_t *into = sum ? sum + (batch.first + i) * outputs : NULL;
            if (rows->size)
                add_row_parts(outputs, margin, rows->size[batch.first + i],
                              scale->bounds.exponent[0], into, result);
            else if (into)
                add_row_bits(outputs, margin, into);
        }
}

/* Step for step the second half of linear_block(): the order of every addition is the same. */
static void linear_transpose(const struct objective_shape *shape,
                             const struct objective_scale *scale, const struct rows *rows,
                             const double *derivatives, int64_t *sum,
                             struct objective_scratch *scratch, struct objective_result *result) {
    *result = (struct objective_result){.maxima = maxima_of_one(0)};
    const double bound = fixed_power(scale->bounds.exponent[0]);
    const uint32_t most = linear_batch_rows(shape, rows->dense);
    if (rows->dense)
        dense_begin(&scratch->weights, NULL, scratch);
    for (uint32_t first = 0; first < rows->count; first += most) {
        struct row_batch batch = batch_at(rows, first, most);
        /* The derivatives of a batch, as linear_block() has them after the losses. */
        size_t count = (size_t)batch.count * shape->outputs;
        memcpy(scratch->margins, derivatives + (size_t)batch.first * shape->outputs,
               count * sizeof *derivatives);
        if (batch.rows->weight)
            batch_clear_derivatives(&batch, shape->outputs, scratch->margins);
        if (batch.rows->dense)
            dense_take(&scratch->weights, &batch, scratch);
        note_derivatives(vector_max_abs(count, scratch->margins), result);
        if (result->maxima.value[0] > bound)
            result->exceeded = true;
        else if (sum)
            batch_gradient(shape, scale, &batch, sum, scratch);
    }
    if (rows->dense && sum && !result->exceeded)
        dense_finish(&scratch->weights, scale, sum, scratch);
}

static const struct family_compute linear_compute = {
    .scratch_new = linear_scratch_new,
    .prepare = linear_prepare,
    .batch_rows = linear_batch_rows,
    .block = linear_block,
    .margins = linear_margins,
    .product = linear_product,
    .transpose = linear_transpose,
};

const struct family family_linear = {
    .name = "linear",
    .convex = true,
    .second = true,
    .scales_columns = true,
    .thread_vectors = 1,
    .layout = linear_layout,
    .read_layout = linear_read_layout,
    .exponent = linear_exponent,
    .first_bounds = linear_first_bounds,
    .width = linear_width,
    .compute = &linear_compute,
};
