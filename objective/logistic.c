/* log(1 + e^−m), m = ±margin: derivatives in [−1, 1]. See objective/losses_logistic.def. */
#include "objective/parts.h"

static double loss_of_one(const struct loss_parameters *parameters, size_t outputs,
                          const double *margins, double label) {
    (void)parameters;
    (void)outputs;
    return logistic_loss(margins[0], label == 1);
}

const struct objective objective_logistic = {
    .name = "logistic",
    .labels = LABEL_BINARY,
    .convex = true,
    .figures = FIGURE_ACCURACY | FIGURE_AUC | FIGURE_LOG_LOSS,
    .losses = logistic_losses,
    .second = logistic_second,
    .second_most = 0.25,
    .loss = loss_of_one,
    .predict = logistics_predict,
    .prediction = "probability",
    .liblinear = "L2R_LR",
};
