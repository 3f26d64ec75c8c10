/* What linear models and networks share: the losses of a batch of rows, their weights, and which
 * rows are predicted correctly. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "objective/loss_row.h"
#include "objective/network.h"
#include "objective/parts.h"

struct objective_scratch *batch_scratch_new(const struct objective_shape *shape, uint32_t rows) {
    struct objective_scratch *scratch = memory_new(1, sizeof *scratch);
    size_t margins = (size_t)rows * shape->outputs;
    bool lists = objective_of(shape->kind)->labels == LABEL_LISTS;
    assert(rows > 0 && shape->outputs > 0);
    scratch->margins = memory_new(margins, sizeof(double));
    scratch->work = memory_new(margins, sizeof(double));
    scratch->loss = memory_new(rows, sizeof(double));
    scratch->listed = lists ? memory_new(margins, sizeof(double)) : NULL;
    return scratch;
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
    hessian_workspace_free(scratch->workspace);
    network_scratch_free(scratch->network);
    plugin_stop(scratch->plugin);
    free(scratch);
}

struct row_batch batch_at(const struct rows *rows, uint32_t first, uint32_t most) {
    assert(first < rows->count && most > 0);
    uint32_t left = rows->count - first;
    return (struct row_batch){rows, first, left < most ? left : most};
}

/* ---- losses ---- */

/* The labels of a batch as losses take them. */
static const double *labels_of(const struct row_batch *batch, size_t outputs,
                               struct objective_scratch *scratch) {
    const double *label = batch->rows->label + batch->first;
    const struct label_lists *lists = batch->rows->lists;
    if (!scratch->listed)
        return label;
    assert(lists);
    memset(scratch->listed, 0, batch->count * outputs * sizeof(double));
    for (size_t i = 0; i < batch->count; i++)
        for (uint32_t at = lists->start[(size_t)label[i]]; at < lists->start[(size_t)label[i] + 1];
             at++)
            scratch->listed[i * outputs + lists->class[at]] = 1;
    return scratch->listed;
}

void batch_losses(const struct objective_shape *shape, const struct row_batch *batch,
                  struct objective_scratch *scratch, double *correct) {
    const double *label = labels_of(batch, shape->outputs, scratch);
    assert(batch->count <= batch->rows->count - batch->first);
    /* A row's offset is the same for all of its margins. */
    for (size_t i = 0; batch->rows->offset && i < batch->count; i++)
        for (size_t k = 0; k < shape->outputs; k++)
            scratch->margins[i * shape->outputs + k] += batch->rows->offset[batch->first + i];
    if (correct)
        *correct += batch_correct(shape, batch, scratch->margins, label);
    objective_of(shape->kind)
        ->losses(&shape->loss, batch->count, shape->outputs, label, scratch->margins, scratch->loss,
                 scratch->work);
}

void batch_weigh_losses(const struct row_batch *batch, size_t outputs,
                        struct objective_scratch *scratch) {
    assert(batch->rows->weight);
    const double *weight = batch->rows->weight + batch->first;
    for (size_t i = 0; i < batch->count; i++)
        scratch->loss[i] = weight[i] > 0 ? weight[i] * scratch->loss[i] : 0;
    batch_clear_derivatives(batch, outputs, scratch->margins);
}

void batch_clear_derivatives(const struct row_batch *batch, size_t outputs, double *derivatives) {
    assert(batch->rows->weight);
    const double *weight = batch->rows->weight + batch->first;
    for (size_t i = 0; i < batch->count; i++)
        for (size_t k = 0; k < outputs && weight[i] == 0; k++)
            derivatives[i * outputs + k] = 0;
}

void batch_weigh_derivatives(const struct row_batch *batch, size_t outputs, double *derivatives) {
    assert(batch->rows->weight);
    const double *weight = batch->rows->weight + batch->first;
    for (size_t i = 0; i < batch->count; i++)
        for (size_t k = 0; k < outputs; k++)
            derivatives[i * outputs + k] *= weight[i];
}

/* ---- predictions ---- */

enum prediction_check prediction_check_of(const struct objective *objective, size_t outputs) {
    return !objective_has_classes(objective)  ? CHECK_NONE
           : objective->labels == LABEL_LISTS ? CHECK_LISTS
           : objective->output_a_class        ? CHECK_BEST
           : outputs == 1                     ? CHECK_SIGN
                                              : CHECK_ORDERED;
}

/* `right` gets 1 for each row whose class is predicted, else 0. */
static void check_rows(enum prediction_check check, size_t rows, size_t outputs,
                       const double *margins, const double *label, uint8_t *right) {
    const size_t labels = check == CHECK_LISTS ? outputs : 1;
    assert(check != CHECK_NONE && rows <= CHECK_PIECE);
    if (check == CHECK_SIGN)
        for (size_t i = 0; i < rows; i++)
            right[i] = check_sign(margins[i], label[i]);
    else
        for (size_t i = 0; i < rows; i++)
            right[i] = check_row(check, outputs, margins + i * outputs, label + i * labels);
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

double batch_correct(const struct objective_shape *shape, const struct row_batch *batch,
                     const double *margins, const double *label) {
    const double *weight = batch->rows->weight;
    const enum prediction_check check =
        prediction_check_of(objective_of(shape->kind), shape->outputs);
    size_t outputs = shape->outputs, labels = check == CHECK_LISTS ? outputs : 1;
    double correct = 0;
    for (size_t i = 0; check != CHECK_NONE && i < batch->count; i += CHECK_PIECE) {
        uint8_t right[CHECK_PIECE];
        size_t rows = batch->count - i < CHECK_PIECE ? batch->count - i : CHECK_PIECE;
        check_rows(check, rows, outputs, margins + i * outputs, label + i * labels, right);
        correct += weigh(rows, right, weight ? weight + batch->first + i : NULL);
    }
    return correct;
}
