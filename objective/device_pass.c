/* Linear models on a device; and the losses of all models. */
#include "objective/device_pass.h"

#include <assert.h>
#include <math.h>

#include "objective/device_linear_kernels.h"
#include "objective/device_losses_kernels.h"
#include "objective/parts.h"

/* Blocks that keep a large device busy. Not measured on hardware. */
#define BLOCKS_ENOUGH 4096

/* How many blocks work on a chunk that has so many items for its threads: no block is without an
 * item, and there are no more than keep the device busy. */
static uint32_t blocks_for(const struct device_pass *pass, uint64_t items, uint32_t threads) {
    assert(threads > 0 && pass->count > 0);
    uint64_t useful = (items + threads - 1) / threads;
    uint64_t enough = (BLOCKS_ENOUGH + pass->count - 1) / pass->count;
    uint64_t blocks = useful < enough ? useful : enough;
    return blocks ? (uint32_t)blocks : 1;
}

static int launch(const struct device_pass *pass, const struct kernel *kernel,
                  const struct linear_work *work, const void *arguments) {
    return device_launch(pass->device, QUEUE_COMPUTE, kernel,
                         (uint64_t)pass->count * work->blocks_each, arguments);
}

/* What the kernels of weights take. Outputs that share their weights are one here. */
static struct linear_work work_of(const struct device_pass *pass) {
    double *margins = pass->common ? pass->common : pass->margins;
    return (struct linear_work){.chunks = pass->chunks,
                                .count = pass->count,
                                .blocks_each = 1,
                                .features = objective_columns(pass->shape),
                                .outputs = pass->common ? 1 : pass->shape->outputs,
                                .batch_rows = pass->batch_rows,
                                .rows_most = pass->rows_most,
                                .parameters = pass->parameters,
                                .margins = margins,
                                .derivatives = margins,
                                .exponent = pass->exponent,
                                .uniform = pass->uniform,
                                .sum = pass->sum};
}

static uint64_t batches_of(const struct device_pass *pass) {
    assert(pass->batch_rows > 0);
    return ((uint64_t)pass->rows_most + pass->batch_rows - 1) / pass->batch_rows;
}

/* ---- margins ---- */

static int start_sparse_margins(const struct device_pass *pass) {
    struct sparse_margins_arguments arguments = {work_of(pass)};
    struct linear_work *work = &arguments.work;
    const struct kernel *kernel =
        work->outputs > 1 ? &kernel_sparse_margins : &kernel_sparse_margin;
    work->blocks_each =
        blocks_for(pass, (uint64_t)pass->rows_most * work->outputs, kernel->threads);
    if (work->outputs > 1)
        return launch(pass, kernel, work, &arguments);
    struct sparse_margin_arguments one = {*work};
    return launch(pass, kernel, work, &one);
}

static bool has_one_output(const struct device_pass *pass) {
    return pass->common || pass->shape->outputs == 1;
}

static int start_dense_margins(const struct device_pass *pass) {
    if (has_one_output(pass)) {
        struct dense_margin_arguments one = {work_of(pass)};
        one.work.blocks_each = blocks_for(pass, pass->rows_most, DENSE_MARGIN_ROWS);
        return launch(pass, &kernel_dense_margin, &one.work, &one);
    }
    struct dense_margins_arguments arguments = {.work = work_of(pass)};
    dense_margins_cut(&arguments);
    arguments.work.blocks_each =
        blocks_for(pass, dense_margins_tiles(&arguments, pass->rows_most), 1);
    return launch(pass, &kernel_dense_margins, &arguments.work, &arguments);
}

static int linear_margins(void *own, const struct device_pass *pass) {
    (void)own;
    return pass->dense ? start_dense_margins(pass) : start_sparse_margins(pass);
}

/* ---- gradients ---- */

static int start_bias_gradient(const struct device_pass *pass) {
    struct layout layout = objective_layout(pass->shape);
    const struct layout_tensor *bias = layout_find(&layout, TENSOR_BIAS);
    struct bias_gradient_arguments arguments = {work_of(pass)};
    struct linear_work *work = &arguments.work;
    if (!bias)
        return 0;
    work->outputs = pass->shape->outputs;
    work->derivatives = pass->margins;
    work->exponent = pass->exponent ? pass->exponent + bias->first_exponent : NULL;
    work->sum = pass->sum + bias->first;
    work->blocks_each =
        blocks_for(pass, batches_of(pass) * work->outputs, kernel_bias_gradient.threads);
    return launch(pass, &kernel_bias_gradient, work, &arguments);
}

static int start_scatter(const struct device_pass *pass) {
    struct sparse_scatter_arguments arguments = {work_of(pass)};
    struct linear_work *work = &arguments.work;
    if (pass->by_column == pass->count)
        return 0;
    work->blocks_each =
        blocks_for(pass, (uint64_t)pass->rows_most * work->outputs, kernel_sparse_scatter.threads);
    return launch(pass, &kernel_sparse_scatter, work, &arguments);
}

static int start_gather(const struct device_pass *pass) {
    struct sparse_gather_arguments arguments = {work_of(pass)};
    struct linear_work *work = &arguments.work;
    if (!pass->by_column)
        return 0;
    uint64_t runs = (pass->values_most + COLUMN_RUN - 1) / COLUMN_RUN;
    work->blocks_each = blocks_for(pass, runs * work->outputs, kernel_sparse_gather.threads);
    return launch(pass, &kernel_sparse_gather, work, &arguments);
}

static int start_dense_gradients(const struct device_pass *pass) {
    if (has_one_output(pass)) {
        struct dense_gradient_arguments one = {work_of(pass)};
        one.work.blocks_each =
            blocks_for(pass, batches_of(pass) * one.work.features, kernel_dense_gradient.threads);
        return launch(pass, &kernel_dense_gradient, &one.work, &one);
    }
    struct dense_gradients_arguments arguments = {work_of(pass)};
    struct linear_work *work = &arguments.work;
    uint64_t groups = dense_gradient_groups(work->outputs);
    work->blocks_each = blocks_for(pass, groups * work->features, kernel_dense_gradients.threads);
    return launch(pass, &kernel_dense_gradients, work, &arguments);
}

static int linear_gradient(void *own, const struct device_pass *pass, const struct bounds *bounds) {
    (void)own, (void)bounds;
    if (!pass->sum)
        return 0;
    int error = pass->shape->intercept ? start_bias_gradient(pass) : 0;
    if (error)
        return error;
    if (pass->dense)
        return start_dense_gradients(pass);
    error = start_scatter(pass);
    return error ? error : start_gather(pass);
}

const struct device_family device_family_linear = {
    .family = &family_linear,
    .arranges = true,
    .adds_biases = true,
    .margins = linear_margins,
    .gradient = linear_gradient,
};

/* ---- losses ---- */

/* With more blocks for one chunk each would have too little to do. */
#define BLOCKS_EACH_MAX 4096

uint32_t device_pass_blocks(uint64_t items, uint32_t threads) {
    uint64_t blocks = (items + threads - 1) / threads;
    return blocks < 1 ? 1 : blocks > BLOCKS_EACH_MAX ? BLOCKS_EACH_MAX : (uint32_t)blocks;
}

static int launch_losses(const struct device_pass *pass, enum prediction_check check) {
    const struct layout layout = objective_layout(pass->shape);
    const struct layout_tensor *bias =
        pass->family->adds_biases ? layout_find(&layout, TENSOR_BIAS) : NULL;
    const struct chunk_losses_arguments arguments = {
        .chunks = pass->chunks,
        .count = pass->count,
        .blocks_each = device_pass_blocks(pass->rows_most, kernel_chunk_losses.threads),
        .kind = pass->shape->kind,
        .outputs = pass->shape->outputs,
        .task = pass->task,
        .check = check,
        .weighs = pass->sum && pass->family->adds_biases,
        .bias = bias ? pass->parameters + bias->first : NULL,
        .margins = pass->margins,
        .common = pass->common,
        .work = pass->work,
        .listed = pass->listed,
        .loss = pass->loss,
        .right = pass->right,
        .bound = pass->bound,
        .power = isfinite(pass->bound) ? 1 / pass->bound : 1,
        .parameters = pass->shape->loss,
        .largest = pass->chunk_largest,
    };
    return device_launch(pass->device, QUEUE_COMPUTE, &kernel_chunk_losses,
                         (uint64_t)pass->count * arguments.blocks_each, &arguments);
}

static int launch_fold(const struct device_pass *pass, enum prediction_check check) {
    const struct chunk_fold_arguments arguments = {
        .chunks = pass->chunks,
        .tiles = (pass->rows_most + FOLD_ROWS - 1) / FOLD_ROWS,
        .batch_rows = pass->batch_rows,
        .loss = pass->loss,
        .right = check != CHECK_NONE ? pass->right : NULL,
        .chunk_loss = pass->chunk_loss,
        .chunk_correct = pass->chunk_correct,
    };
    return device_launch(pass->device, QUEUE_COMPUTE, &kernel_chunk_fold, pass->count, &arguments);
}

int device_losses(const struct device_pass *pass) {
    const struct objective_shape *shape = pass->shape;
    enum prediction_check check =
        pass->sum ? CHECK_NONE : prediction_check_of(objective_of(shape->kind), shape->outputs);
    int code = launch_losses(pass, check);
    return code || pass->task != PASS_LOSSES ? code : launch_fold(pass, check);
}
