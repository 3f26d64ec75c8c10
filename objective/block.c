#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "numeric/fixed.h"
#include "numeric/vector.h"
#include "objective/device_pass.h"
#include "objective/loss_row.h"
#include "objective/network.h"
#include "objective/parts.h"

/* How many values, or margins, of a batch fit into the cache. */
#define BATCH_VALUES 32768
#define BATCH_ROWS_MIN 16

/* Products are fastest over a multiple of so many rows. */
#define PRODUCT_ROWS 24

/* Depends on the shape alone: the rows of a batch decide the order in which its sums are added, and
 * so their last bits. */
uint32_t objective_batch_rows(const struct objective_shape *shape, bool dense) {
    if (shape->network.layers)
        return network_batch_rows(shape);
    uint32_t width = shape->outputs;
    if (dense && shape->features > width)
        width = shape->features;
    uint32_t rows = BATCH_VALUES / (width + 1);
    if (dense && objective_weights(objective_of(shape->kind), shape->outputs) > 1)
        rows -= rows % PRODUCT_ROWS;
    return rows < BATCH_ROWS_MIN ? BATCH_ROWS_MIN : rows > BATCH_ROWS_MAX ? BATCH_ROWS_MAX : rows;
}

/* What a network and a linear model both have: of the rows of a batch. */
static struct objective_scratch *scratch_for(const struct objective_shape *shape, uint32_t rows) {
    struct objective_scratch *scratch = memory_new(1, sizeof *scratch);
    size_t margins = (size_t)rows * shape->outputs;
    bool lists = objective_of(shape->kind)->labels == LABEL_LISTS;
    scratch->margins = memory_new(margins, sizeof(double));
    scratch->work = memory_new(margins, sizeof(double));
    scratch->loss = memory_new(rows, sizeof(double));
    scratch->listed = lists ? memory_new(margins, sizeof(double)) : NULL;
    return scratch;
}

static struct objective_scratch *network_scratch(const struct objective_shape *shape) {
    struct network_scratch *network = network_scratch_new(shape);
    struct objective_scratch *scratch = scratch_for(shape, network->batch_rows);
    scratch->network = network;
    return scratch;
}

struct objective_scratch *objective_scratch_new(const struct objective_shape *shape) {
    if (shape->plugin)
        return memory_new(1, sizeof(struct objective_scratch));
    if (shape->network.layers)
        return network_scratch(shape);
    const struct objective *objective = objective_of(shape->kind);
    struct layout layout = objective_layout(shape);
    uint32_t rows = objective_batch_rows(shape, false); /* a batch of dense rows has no more */
    struct objective_scratch *scratch = scratch_for(shape, rows);
    scratch->weights = *shape;
    scratch->weights.outputs = objective_weights(objective, shape->outputs);
    const struct layout_tensor *bias = layout_find(&layout, TENSOR_BIAS);
    if (bias)
        scratch->bias = *bias;
    scratch->common = objective->shares_weights ? memory_new(rows, sizeof(double)) : NULL;
    return scratch;
}

void objective_scratch_at(struct objective_scratch *scratch, uint64_t point) {
    scratch->point = point;
    if (scratch->network)
        scratch->network->point = point;
}

void objective_scratch_free(struct objective_scratch *scratch) {
    if (!scratch)
        return;
    free(scratch->margins);
    free(scratch->work);
    free(scratch->loss);
    free(scratch->common);
    free(scratch->listed);
    free(scratch->tile);
    memory_unmap(scratch->packed, scratch->packed_bytes);
    free(scratch->gradient);
    curving_free(scratch->curving);
    network_scratch_free(scratch->network);
    plugin_stop(scratch->plugin);
    free(scratch);
}

struct batch batch_at(const struct rows *rows, uint32_t first, uint32_t most) {
    uint32_t left = rows->count - first;
    return (struct batch){rows, first, left < most ? left : most};
}

static void weight_margins(const struct batch *batch, const double *parameters,
                           struct objective_scratch *scratch, double *margins) {
    if (batch->rows->dense)
        dense_margins(&scratch->weights, batch, parameters, scratch, margins);
    else
        sparse_margins(&scratch->weights, batch, parameters, margins);
}

static void batch_margins(const struct objective_shape *shape, const struct batch *batch,
                          const double *parameters, struct objective_scratch *scratch) {
    size_t outputs = shape->outputs;
    double *margins = scratch->margins, *common = scratch->common;
    weight_margins(batch, parameters, scratch, common ? common : margins);
    const double *bias = parameters + scratch->bias.first;
    for (size_t i = 0; common && i < batch->count; i++)
        for (size_t k = 0; k < outputs; k++)
            margins[i * outputs + k] = common[i];
    for (size_t i = 0; shape->intercept && i < batch->count; i++)
        for (size_t k = 0; k < outputs; k++)
            margins[i * outputs + k] += bias[k];
}

struct batches batches_over(const struct objective_shape *shape, const struct rows *rows,
                            const double *parameters, struct objective_scratch *scratch) {
    if (rows->dense)
        dense_begin(&scratch->weights, parameters, scratch);
    return (struct batches){.shape = shape,
                            .rows = rows,
                            .parameters = parameters,
                            .scratch = scratch,
                            .most = objective_batch_rows(shape, rows->dense)};
}

/* The labels of a batch as losses take them. */
static const double *labels_of(const struct batch *batch, size_t outputs,
                               struct objective_scratch *scratch) {
    const double *label = batch->rows->label + batch->first;
    const struct label_lists *lists = batch->rows->lists;
    if (!scratch->listed)
        return label;
    memset(scratch->listed, 0, batch->count * outputs * sizeof(double));
    for (size_t i = 0; i < batch->count; i++)
        for (uint32_t at = lists->start[(size_t)label[i]]; at < lists->start[(size_t)label[i] + 1];
             at++)
            scratch->listed[i * outputs + lists->class[at]] = 1;
    return scratch->listed;
}

void batch_losses(const struct objective_shape *shape, const struct batch *batch,
                  struct objective_scratch *scratch, double *correct) {
    const double *label = labels_of(batch, shape->outputs, scratch);
    if (correct)
        *correct += batch_correct(shape, batch, scratch->margins, label);
    objective_of(shape->kind)
        ->losses(&shape->loss, batch->count, shape->outputs, label, scratch->margins, scratch->loss,
                 scratch->work);
}

bool batches_next(struct batches *batches, struct batch *batch) {
    const struct objective_shape *shape = batches->shape;
    struct objective_scratch *scratch = batches->scratch;
    if (batches->next >= batches->rows->count)
        return false;
    *batch = batch_at(batches->rows, batches->next, batches->most);
    batches->next += batch->count;
    batch_margins(shape, batch, batches->parameters, scratch);
    batch_losses(shape, batch, scratch, batches->judges ? &batches->correct : NULL);
    return true;
}

/* The derivatives of rows that weigh something are compared with the bound as they are. */
void batch_weigh_losses(const struct batch *batch, size_t outputs,
                        struct objective_scratch *scratch) {
    const double *weight = batch->rows->weight + batch->first;
    for (size_t i = 0; i < batch->count; i++) {
        scratch->loss[i] = weight[i] > 0 ? weight[i] * scratch->loss[i] : 0;
        for (size_t k = 0; k < outputs && weight[i] == 0; k++)
            scratch->margins[i * outputs + k] = 0;
    }
}

/* Takes the losses and derivatives of a batch into the result. */
static void note_losses(const struct batch *batch, size_t outputs,
                        struct objective_scratch *scratch, struct objective_result *result) {
    if (batch->rows->weight)
        batch_weigh_losses(batch, outputs, scratch);
    for (size_t i = 0; i < batch->count; i++)
        result->loss += scratch->loss[i];
    double largest = vector_max_abs(batch->count * outputs, scratch->margins);
    if (!isfinite(result->loss))
        largest = INFINITY;
    if (largest > result->maxima.value[0])
        result->maxima.value[0] = largest;
}

void batch_bias_gradient(const struct layout_tensor *bias, const struct objective_scale *scale,
                         const struct batch *batch, const double *derivatives, int64_t *sum) {
    size_t outputs = bias->columns;
    double power = scale_of(scale, bias->first_exponent);
    for (size_t k = 0; k < outputs; k++) {
        double total = 0;
        for (size_t i = 0; i < batch->count; i++)
            total += derivatives[i * outputs + k];
        fixed_add(&sum[bias->first + k], total * power);
    }
}

void batch_weigh_derivatives(const struct batch *batch, size_t outputs, double *derivatives) {
    const double *weight = batch->rows->weight + batch->first;
    for (size_t i = 0; i < batch->count; i++)
        for (size_t k = 0; k < outputs; k++)
            derivatives[i * outputs + k] *= weight[i];
}

/* What the outputs ask of the weights that they share. */
static double *add_outputs(const struct batch *batch, size_t outputs,
                           struct objective_scratch *scratch) {
    for (size_t i = 0; i < batch->count; i++) {
        const double *derivative = scratch->margins + i * outputs;
        scratch->common[i] = 0;
        for (size_t k = 0; k < outputs; k++)
            scratch->common[i] += derivative[k];
    }
    return scratch->common;
}

static void batch_gradient(const struct objective_shape *shape, const struct objective_scale *scale,
                           const struct batch *batch, int64_t *sum,
                           struct objective_scratch *scratch) {
    double *derivatives = scratch->margins;
    if (scale->bounds.exponent[0] != 0) {
        double power = fixed_power(-scale->bounds.exponent[0]);
        for (size_t i = 0; i < (size_t)batch->count * shape->outputs; i++)
            derivatives[i] *= power;
    }
    if (batch->rows->weight)
        batch_weigh_derivatives(batch, shape->outputs, derivatives);
    if (shape->intercept)
        batch_bias_gradient(&scratch->bias, scale, batch, derivatives, sum);
    if (scratch->common)
        derivatives = add_outputs(batch, shape->outputs, scratch);
    if (batch->rows->dense)
        dense_gradient(&scratch->weights, scale, batch, derivatives, sum, scratch);
    else
        sparse_gradient(&scratch->weights, scale, batch, derivatives, sum);
}

static void linear_block(const struct objective_shape *shape, const struct objective_scale *scale,
                         const struct rows *rows, const double *parameters, int64_t *sum,
                         struct objective_scratch *scratch, struct objective_result *result) {
    *result = (struct objective_result){.maxima = maxima_of_one(0)};
    double bound = scale ? fixed_power(scale->bounds.exponent[0]) : INFINITY;
    struct batches batches = batches_over(shape, rows, parameters, scratch);
    struct batch batch;
    batches.judges = !sum;
    while (batches_next(&batches, &batch)) {
        note_losses(&batch, shape->outputs, scratch, result);
        if (result->maxima.value[0] > bound)
            result->exceeded = true;
        else if (sum)
            batch_gradient(shape, scale, &batch, sum, scratch);
    }
    result->correct = batches.correct;
    if (rows->dense && sum && !result->exceeded)
        dense_finish(&scratch->weights, scale, sum, scratch);
}

int objective_block(const struct objective_shape *shape, const struct objective_scale *scale,
                    const struct rows *rows, const double *parameters, int64_t *sum,
                    struct objective_scratch *scratch, struct objective_result *result) {
    if (shape->plugin)
        return plugin_block(shape, scale, rows, parameters, sum, scratch, result);
    if (shape->network.layers)
        network_block(shape, scale, rows, parameters, sum, scratch, result);
    else
        linear_block(shape, scale, rows, parameters, sum, scratch, result);
    return 0;
}

static void linear_margins(const struct objective_shape *shape, const struct rows *rows,
                           const double *parameters, struct objective_scratch *scratch,
                           double *margins) {
    struct batches batches = batches_over(shape, rows, parameters, scratch);
    for (uint32_t first = 0; first < rows->count; first += batches.most) {
        struct batch batch = batch_at(rows, first, batches.most);
        batch_margins(shape, &batch, parameters, scratch);
        memcpy(margins + (size_t)first * shape->outputs, scratch->margins,
               (size_t)batch.count * shape->outputs * sizeof *margins);
    }
}

int objective_margins(const struct objective_shape *shape, const struct rows *rows,
                      const double *parameters, struct objective_scratch *scratch,
                      double *margins) {
    if (shape->plugin)
        return plugin_margins(shape, rows, parameters, scratch, margins);
    if (shape->network.layers)
        network_margins(shape, rows, parameters, scratch, margins);
    else
        linear_margins(shape, rows, parameters, scratch, margins);
    return 0;
}

/* Which rows are predicted correctly: without branches, since no processor foresees them. */

enum judge judge_of(const struct objective *objective, size_t outputs) {
    return !objective_has_classes(objective)  ? JUDGE_NONE
           : objective->labels == LABEL_LISTS ? JUDGE_LISTS
           : objective->output_a_class        ? JUDGE_BEST
           : outputs == 1                     ? JUDGE_SIGN
                                              : JUDGE_ORDERED;
}

/* `right` gets 1 for each row whose class is predicted, else 0. */
static void judge_rows(enum judge judge, size_t rows, size_t outputs, const double *margins,
                       const double *label, uint8_t *right) {
    const size_t labels = judge == JUDGE_LISTS ? outputs : 1;
    if (judge == JUDGE_SIGN)
        for (size_t i = 0; i < rows; i++)
            right[i] = judge_sign(margins[i], label[i]);
    else
        for (size_t i = 0; i < rows; i++)
            right[i] = judge_row(judge, outputs, margins + i * outputs, label + i * labels);
}

static double weigh(size_t rows, const uint8_t *right, const double *weight) {
    double sum = 0;
    unsigned count = 0;
    for (size_t i = 0; weight && i < rows; i++)
        sum += right[i] * weight[i];
    for (size_t i = 0; !weight && i < rows; i++)
        count += right[i];
    return sum + count;
}

double batch_correct(const struct objective_shape *shape, const struct batch *batch,
                     const double *margins, const double *label) {
    const double *weight = batch->rows->weight;
    const enum judge judge = judge_of(objective_of(shape->kind), shape->outputs);
    size_t outputs = shape->outputs, labels = judge == JUDGE_LISTS ? outputs : 1;
    double correct = 0;
    for (size_t i = 0; judge != JUDGE_NONE && i < batch->count; i += JUDGE_PIECE) {
        uint8_t right[JUDGE_PIECE];
        size_t rows = batch->count - i < JUDGE_PIECE ? batch->count - i : JUDGE_PIECE;
        judge_rows(judge, rows, outputs, margins + i * outputs, label + i * labels, right);
        correct += weigh(rows, right, weight ? weight + batch->first + i : NULL);
    }
    return correct;
}
