/* Which rows are predicted correctly: without branches, since no processor foresees them. */
#include "objective/parts.h"

/* `right` gets 1 for each row whose class is predicted, else 0. */
static void judge_one(size_t rows, const double *margins, const double *label, uint8_t *right) {
    for (size_t i = 0; i < rows; i++)
        right[i] = (margins[i] > 0) == (label[i] > 0);
}

/* The label's margin is above those before it, and none after it is above: objective_best(). */
static void judge_best(size_t rows, size_t outputs, const double *margins, const double *label,
                       uint8_t *right) {
    for (size_t i = 0; i < rows; i++) {
        const double *m = margins + i * outputs;
        size_t class = (size_t)label[i];
        double own = m[class];
        bool beaten = false;
        for (size_t k = 0; k < outputs; k++)
            beaten |= (m[k] > own) | ((k < class) & !(own > m[k]));
        right[i] = !beaten;
    }
}

static void judge_ordered(const struct objective *objective, size_t rows, size_t outputs,
                          const double *margins, const double *label, uint8_t *right) {
    for (size_t i = 0; i < rows; i++)
        right[i] = objective_is_correct(objective, outputs, margins + i * outputs, label + i);
}

static void judge_lists(size_t rows, size_t outputs, const double *margins, const double *label,
                        uint8_t *right) {
    for (size_t i = 0; i < rows; i++) {
        bool differ = false;
        for (size_t at = i * outputs; at < (i + 1) * outputs; at++)
            differ |= (margins[at] > 0) != (label[at] > 0);
        right[i] = !differ;
    }
}

static void judge(const struct objective *objective, size_t rows, size_t outputs,
                  const double *margins, const double *label, uint8_t *right) {
    if (objective->labels == LABEL_LISTS)
        judge_lists(rows, outputs, margins, label, right);
    else if (objective->output_a_class)
        judge_best(rows, outputs, margins, label, right);
    else if (outputs == 1)
        judge_one(rows, margins, label, right);
    else
        judge_ordered(objective, rows, outputs, margins, label, right);
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
    const struct objective *objective = objective_of(shape->kind);
    const double *weight = batch->rows->weight;
    size_t outputs = shape->outputs, labels = objective->labels == LABEL_LISTS ? outputs : 1;
    double correct = 0;
    for (size_t i = 0; objective_has_classes(objective) && i < batch->count; i += PIECE) {
        uint8_t right[PIECE];
        size_t rows = batch->count - i < PIECE ? batch->count - i : PIECE;
        judge(objective, rows, outputs, margins + i * outputs, label + i * labels, right);
        correct += weigh(rows, right, weight ? weight + batch->first + i : NULL);
    }
    return correct;
}
