/* Of the residual r = margin − target: r²/2 up to |r| = δ, and from there on linear, δ·(|r| − δ/2).
 * The derivative is the residual, at most ±δ. */
#include <math.h>

#include "objective/parts.h"

enum { DELTA };

static double bound(const struct loss_parameters *parameters, double at, double label_max_abs) {
    (void)at;
    (void)label_max_abs;
    return parameters->value[DELTA];
}

static double loss_of(double residual, double delta) {
    double size = fabs(residual);
    return size <= delta ? 0.5 * residual * residual : delta * (size - 0.5 * delta);
}

static void losses(const struct loss_parameters *parameters, size_t rows, size_t outputs,
                   const double *label, double *margins, double *loss, double *work) {
    (void)outputs;
    (void)work;
    double delta = parameters->value[DELTA];
    for (size_t i = 0; i < rows; i++) {
        double residual = margins[i] - label[i];
        loss[i] = loss_of(residual, delta);
        margins[i] = residual > delta ? delta : residual < -delta ? -delta : residual;
    }
}

/* 1 where the loss is quadratic, else 0. */
static void second(const struct loss_parameters *parameters, size_t rows, size_t outputs,
                   const double *label, const double *derivatives, const double *work,
                   double *diagonal) {
    (void)outputs;
    (void)label;
    (void)work;
    for (size_t i = 0; i < rows; i++)
        diagonal[i] = fabs(derivatives[i]) < parameters->value[DELTA] ? 1 : 0;
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
    .losses = losses,
    .second = second,
    .second_most = 1,
    .prediction = "value",
    .liblinear = "L2R_L2LOSS_SVR",
};
