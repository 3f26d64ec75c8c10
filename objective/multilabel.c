/* A logistic loss for each class, as for one_vs_rest, where a row can have any number of classes:
 * log(1 + e^−m_k) for those that it has, log(1 + e^m_k) for all others. */
#include "objective/parts.h"

static double loss_of_one(const struct loss_parameters *parameters, size_t outputs,
                          const double *margins, double label) {
    (void)parameters;
    (void)outputs;
    return logistic_loss(margins[0], label == 1);
}

const struct objective objective_multilabel = {
    .name = "multilabel",
    .labels = LABEL_LISTS,
    .output_a_class = true,
    .convex = true,
    .figures = FIGURE_LISTS | FIGURE_AUC,
    .losses = multilabel_losses,
    .second = multilabel_second,
    .second_row = multilabel_second_row,
    .second_most = 0.25,
    .loss = loss_of_one,
    .predict = logistics_predict,
    .prediction = "probabilities",
};
