/* ½(margin − target)²: the derivative is the residual, which has no bound. */
#include "objective/parts.h"

static double bound(const struct loss_parameters *parameters, double start, double label_max_abs) {
    (void)start;
    (void)parameters;
    return label_max_abs;
}

const struct objective objective_squared = {
    .name = "squared",
    .unit_power = 2,
    .labels = LABEL_TARGET,
    .convex = true,
    .figures = FIGURE_RMSE | FIGURE_DEVIANCE,
    .bound = bound,
    .adapts = true,
    .losses = squared_losses,
    .second = squared_second,
    .second_most = 1,
    .second_constant = true,
    .prediction = "value",
    .liblinear = "L2R_L2LOSS_SVR",
};
