/* Half the deviance of counts; see objective/losses_log_link.def. */
#include <math.h>

#include "objective/parts.h"

static double bound(const struct loss_parameters *parameters, double start, double label_max_abs) {
    (void)parameters;
    return fmax(log_link_exp(start), label_max_abs);
}

static double second_bound(const struct loss_parameters *parameters, double derivative_max,
                           double label_max_abs) {
    (void)parameters;
    return derivative_max + label_max_abs;
}

const struct objective objective_poisson = {
    .name = "poisson",
    .labels = LABEL_TARGET,
    .label_fits = log_link_not_negative,
    .label_allowed = LOG_LINK_NOT_NEGATIVE,
    .convex = true,
    .figures = FIGURE_RMSE | FIGURE_DEVIANCE,
    .start = log_link_start,
    .bound = bound,
    .adapts = true,
    .losses = poisson_losses,
    .second = poisson_second, /* μ */
    .second_bound = second_bound,
    .predict = log_link_predict,
    .prediction = "value",
};
