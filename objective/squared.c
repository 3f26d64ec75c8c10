/* ½(margin − target)²: the derivative is the residual, which has no bound. */
#include "objective/parts.h"

static double bound(const struct loss_parameters *parameters, double start, double label_max_abs) {
    (void)start;
    (void)parameters;
    return label_max_abs;
}

static void losses(const struct loss_parameters *parameters, size_t rows, size_t outputs,
                   const double *label, double *margins, double *loss, double *work) {
    (void)parameters;
    (void)outputs;
    (void)work;
    for (size_t i = 0; i < rows; i++) {
        double residual = margins[i] - label[i];
        loss[i] = 0.5 * residual * residual;
        margins[i] = residual;
    }
}

static void second(const struct loss_parameters *parameters, size_t rows, size_t outputs,
                   const double *label, const double *derivatives, const double *work,
                   double *diagonal) {
    (void)parameters;
    (void)work;
    (void)outputs;
    (void)label;
    (void)derivatives;
    for (size_t i = 0; i < rows; i++)
        diagonal[i] = 1;
}

const struct objective objective_squared = {
    .name = "squared",
    .unit_power = 2,
    .labels = LABEL_TARGET,
    .convex = true,
    .figures = FIGURE_RMSE | FIGURE_DEVIANCE,
    .bound = bound,
    .adapts = true,
    .losses = losses,
    .second = second,
    .second_most = 1,
    .second_constant = true,
    .prediction = "value",
    .liblinear = "L2R_L2LOSS_SVR",
};
