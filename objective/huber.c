/* Quadratic near the target, linear far from it; see objective/losses_plain.def. */
#include "objective/parts.h"

/* A delta that is far beyond all labels bounds nothing: derivatives rounded to a share of it would
 * be 0. */
#define DELTA_BEYOND 1024.0

static double limit(const struct loss_parameters *parameters) {
    return parameters->value[HUBER_DELTA];
}

/* The start is among the labels, or 0. */
static double bound(const struct loss_parameters *parameters, double at, double label_max_abs) {
    (void)at;
    bool beyond = limit(parameters) / DELTA_BEYOND > label_max_abs;
    return beyond ? 2 * label_max_abs : limit(parameters);
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
    .limit = limit,
    .adapts = true,
    .losses = huber_losses,
    .second = huber_second,
    .second_most = 1,
    .prediction = "value",
    .liblinear = "L2R_L2LOSS_SVR",
};
