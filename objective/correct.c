/* Which rows are predicted correctly: without branches, since no processor foresees them. */
#include "objective/judge.h"
#include "objective/parts.h"

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
