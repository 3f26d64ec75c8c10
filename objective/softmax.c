/* log Σ e^margin_k − margin_label: derivatives in [−1, 1]. See objective/losses_softmax.def. */
#include <math.h>

#include "objective/parts.h"

static double loss_of_one(const struct loss_parameters *parameters, size_t outputs,
                          const double *margins, double label) {
    (void)parameters;
    size_t best = objective_best(outputs, margins);
    double rest = 0;
    for (size_t k = 0; k < outputs; k++)
        if (k != best)
            rest += exp(margins[k] - margins[best]);
    return (margins[best] - margins[(size_t)label]) + log1p(rest);
}

/* The probability of each class. */
static void predict(size_t outputs, double *margins) {
    double largest = margins[objective_best(outputs, margins)], sum = 0;
    for (size_t k = 0; k < outputs; k++) {
        margins[k] = exp(margins[k] - largest);
        sum += margins[k];
    }
    for (size_t k = 0; k < outputs; k++)
        margins[k] /= sum;
}

/* Over two classes, softmax is the logistic function of the difference of the two margins. For more
 * classes, LIBLINEAR has only the rule that the largest margin wins, and no probabilities. */
const struct objective objective_softmax = {
    .name = "softmax",
    .labels = LABEL_CLASSES,
    .output_a_class = true,
    .convex = true,
    .figures = FIGURE_ACCURACY | FIGURE_AUC | FIGURE_LOG_LOSS,
    .losses = softmax_losses,
    .second = softmax_second,
    .second_row = softmax_second_row,
    .second_most = 0.25,
    .loss = loss_of_one,
    .predict = predict,
    .prediction = "probabilities",
    .liblinear = "L2R_LR",
    .liblinear_classes = "MCSVM_CS",
};
