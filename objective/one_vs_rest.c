/* A logistic loss for each class: log(1 + e^−m_k) for the class of the label, log(1 + e^m_k) for
 * all others. */
#include "objective/parts.h"

static double loss_of_one(const struct loss_parameters *parameters, size_t outputs,
                          const double *margins, double label) {
    (void)parameters;
    return logistics_loss(LOGISTICS_CLASS, outputs, margins, label);
}

/* A prediction is the probability of each class, whatever the others have: they do not add up to 1.
 * LIBLINEAR has only the rule that the largest margin wins: its one-vs-rest divides the
 * probabilities by their sum. */
const struct objective objective_one_vs_rest = {
    .name = "one_vs_rest",
    .labels = LABEL_CLASSES,
    .output_a_class = true,
    .convex = true,
    .figures = FIGURE_ACCURACY | FIGURE_AUC,
    .losses = one_vs_rest_losses,
    .second = one_vs_rest_second,
    .second_row = one_vs_rest_second_row,
    .second_most = 0.25,
    .loss = loss_of_one,
    .predict = logistics_predict,
    .prediction = "probabilities",
    .liblinear = "L2R_L2LOSS_SVC",
    .liblinear_classes = "MCSVM_CS",
};
