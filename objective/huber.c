/* Quadratic near the target, linear far from it; see objective/losses_plain.def. */
#include "objective/parts.h"

static double bound(const struct loss_parameters *parameters, double at, double label_max_abs) {
    (void)at;
    (void)label_max_abs;
    return parameters->value[HUBER_DELTA];
}

static double start(const struct loss_parameters *parameters, const struct label_summary *labels) {
    (void)parameters;
    return labels->quantile[LABEL_QUANTILES / 2];
}

const struct objective objective_huber = {
    .name = "huber",
    .unit_power = 1,
    .labels = LABEL_TARGET,
    .convex = true,
    .figures = FIGURE_RMSE,
    .start = start,
    .bound = bound,
    .losses = huber_losses,
    .second = huber_second,
    .second_most = 1,
    .prediction = "value",
    .liblinear = "L2R_L2LOSS_SVR",
};
