/* Of the residual r = margin − target: (1 − τ)·r above, τ·|r| below, whose mean is least at the
 * quantile τ. The corner is smoothed over ±ε: r²/4ε + (½ − τ)·r + ε/4, written as a sum of terms
 * that are not negative. The derivative lies between −τ and 1 − τ. */
#include <math.h>

#include "objective/parts.h"

enum { TAU, EPSILON };

static double loss_of(double residual, double tau, double epsilon) {
    double inside = residual / epsilon + (1 - 2 * tau);
    if (fabs(residual) < epsilon)
        return epsilon * (0.25 * inside * inside + tau * (1 - tau));
    return residual > 0 ? (1 - tau) * residual : -tau * residual;
}

static void losses(const struct loss_parameters *parameters, size_t rows, size_t outputs,
                   const double *label, double *margins, double *loss, double *work) {
    (void)outputs;
    (void)work;
    double tau = parameters->value[TAU], epsilon = parameters->value[EPSILON];
    for (size_t i = 0; i < rows; i++) {
        double residual = margins[i] - label[i], slope = 0.5 * (residual / epsilon);
        loss[i] = loss_of(residual, tau, epsilon);
        margins[i] = (slope > 0.5 ? 0.5 : slope < -0.5 ? -0.5 : slope) + (0.5 - tau);
    }
}

/* 1/2ε within the smoothed corner, else 0. */
static void second(const struct loss_parameters *parameters, size_t rows, size_t outputs,
                   const double *label, const double *derivatives, const double *work,
                   double *diagonal) {
    (void)outputs;
    (void)label;
    (void)work;
    double middle = 0.5 - parameters->value[TAU], curved = 0.5 / parameters->value[EPSILON];
    double least = -0.5 + middle, most = 0.5 + middle; /* as `losses` rounds them */
    for (size_t i = 0; i < rows; i++)
        diagonal[i] = derivatives[i] > least && derivatives[i] < most ? curved : 0;
}

static double second_bound(const struct loss_parameters *parameters, double derivative_max,
                           double label_max_abs) {
    (void)derivative_max;
    (void)label_max_abs;
    return 0.5 / parameters->value[EPSILON];
}

static double start(const struct loss_parameters *parameters, const struct label_summary *labels) {
    return labels->quantile[(size_t)(parameters->value[TAU] * (LABEL_QUANTILES - 1) + 0.5)];
}

/* ε, if it is left to the data: a share of the distance of the quartiles, or else of the range. */
#define EPSILON_SHARE 0.02

static void complete(struct loss_parameters *parameters, const struct label_summary *labels) {
    const double *quantile = labels->quantile;
    size_t last = LABEL_QUANTILES - 1;
    if (parameters->value[EPSILON] > 0)
        return;
    double width = quantile[last * 3 / 4] - quantile[last / 4];
    if (!(width > 0))
        width = quantile[last] - quantile[0];
    double epsilon = EPSILON_SHARE * width;
    parameters->value[EPSILON] = epsilon > QUANTILE_EPSILON_LEAST ? fmin(epsilon, 1e100) : 1;
}

const struct objective objective_quantile = {
    .name = "quantile",
    .unit_power = 1,
    .labels = LABEL_TARGET,
    .convex = true,
    .figures = FIGURE_RMSE | FIGURE_COVERAGE,
    .complete = complete,
    .start = start,
    .losses = losses,
    .second = second,
    .second_bound = second_bound,
    .prediction = "value",
    .liblinear = "L2R_L2LOSS_SVR",
};
