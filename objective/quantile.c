/* Pinball losses, whose mean is least at the quantile τ; see objective/losses_plain.def. */
#include <math.h>

#include "objective/parts.h"

static double second_bound(const struct loss_parameters *parameters, double derivative_max,
                           double label_max_abs) {
    (void)derivative_max;
    (void)label_max_abs;
    return 0.5 / parameters->value[QUANTILE_EPSILON];
}

static double start(const struct loss_parameters *parameters, const struct label_summary *labels) {
    return labels
        ->quantile[(size_t)(parameters->value[QUANTILE_TAU] * (LABEL_QUANTILES - 1) + 0.5)];
}

/* ε, if it is left to the data: a share of the distance of the quartiles, or else of the range. */
#define EPSILON_SHARE 0.02

static void complete(struct loss_parameters *parameters, const struct label_summary *labels) {
    const double *quantile = labels->quantile;
    size_t last = LABEL_QUANTILES - 1;
    if (parameters->value[QUANTILE_EPSILON] > 0)
        return;
    double width = quantile[last * 3 / 4] - quantile[last / 4];
    if (!(width > 0))
        width = quantile[last] - quantile[0];
    double epsilon = EPSILON_SHARE * width;
    parameters->value[QUANTILE_EPSILON] =
        epsilon > QUANTILE_EPSILON_LEAST ? fmin(epsilon, 1e100) : 1;
}

const struct objective objective_quantile = {
    .name = "quantile",
    .unit_power = 1,
    .labels = LABEL_TARGET,
    .convex = true,
    .figures = FIGURE_RMSE | FIGURE_COVERAGE,
    .complete = complete,
    .start = start,
    .losses = quantile_losses,
    .second = quantile_second,
    .second_bound = second_bound,
    .prediction = "value",
    .liblinear = "L2R_L2LOSS_SVR",
};
