#include <math.h>

#include "objective/device_losses_kernels.h"
#include "objective/device_pass.h"
#include "objective/parts.h"

#include "objective/device_losses_kernels.def"

/* More blocks for one chunk would find too little to do. */
#define BLOCKS_EACH_MAX 4096

uint32_t device_pass_blocks(uint64_t items, uint32_t threads) {
    uint64_t blocks = (items + threads - 1) / threads;
    return blocks < 1 ? 1 : blocks > BLOCKS_EACH_MAX ? BLOCKS_EACH_MAX : (uint32_t)blocks;
}

/* Of a network the biases are in the margins, and derivatives are weighed elsewhere. */
static const double *linear_bias(const struct device_pass *pass) {
    struct layout layout = objective_layout(pass->shape);
    const struct layout_tensor *bias = layout_find(&layout, TENSOR_BIAS);
    return bias && !pass->shape->network.layers ? pass->parameters + bias->first : NULL;
}

static int launch_losses(const struct device_pass *pass, enum judge judge) {
    const struct chunk_losses_arguments arguments = {
        .chunks = pass->chunks,
        .count = pass->count,
        .blocks_each = device_pass_blocks(pass->rows_most, kernel_chunk_losses.threads),
        .kind = pass->shape->kind,
        .outputs = pass->shape->outputs,
        .judge = judge,
        .weighs = pass->sum && !pass->shape->network.layers,
        .bias = linear_bias(pass),
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

static int launch_fold(const struct device_pass *pass, enum judge judge) {
    const struct chunk_fold_arguments arguments = {
        .chunks = pass->chunks,
        .tiles = (pass->rows_most + FOLD_ROWS - 1) / FOLD_ROWS,
        .batch_rows = pass->batch_rows,
        .loss = pass->loss,
        .right = judge != JUDGE_NONE ? pass->right : NULL,
        .chunk_loss = pass->chunk_loss,
        .chunk_correct = pass->chunk_correct,
    };
    return device_launch(pass->device, QUEUE_COMPUTE, &kernel_chunk_fold, pass->count, &arguments);
}

int device_losses(const struct device_pass *pass) {
    const struct objective_shape *shape = pass->shape;
    enum judge judge = pass->sum ? JUDGE_NONE : judge_of(objective_of(shape->kind), shape->outputs);
    int code = launch_losses(pass, judge);
    return code ? code : launch_fold(pass, judge);
}
