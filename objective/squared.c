/* ½(margin − target)²: the derivative is the residual, which has no bound. */
#include "objective/parts.h"

static double first_bound(double label_max_abs) {
    return label_max_abs;
}

static void losses(size_t rows, size_t outputs, const double *label, double *margins, double *loss,
                   double *work) {
    (void)outputs;
    (void)work;
    for (size_t i = 0; i < rows; i++) {
        double residual = margins[i] - label[i];
        loss[i] = 0.5 * residual * residual;
        margins[i] = residual;
    }
}

static void second(size_t rows, size_t outputs, const double *label, const double *derivatives,
                   double *diagonal) {
    (void)outputs;
    (void)label;
    (void)derivatives;
    for (size_t i = 0; i < rows; i++)
        diagonal[i] = 1;
}

static double loss_of_one(size_t outputs, const double *margins, double label) {
    (void)outputs;
    double residual = margins[0] - label;
    return 0.5 * residual * residual;
}

const struct objective objective_squared = {
    .name = "squared",
    .labels = LABEL_TARGET,
    .convex = true,
    .figures = FIGURE_RMSE | FIGURE_DEVIANCE,
    .first_bound = first_bound,
    .losses = losses,
    .second = second,
    .second_max = 1,
    .second_constant = true,
    .loss = loss_of_one,
    .prediction = "value",
    .liblinear = "L2R_L2LOSS_SVR",
};
