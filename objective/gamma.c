/* Half the deviance of values whose deviation is proportional to their mean; see
 * objective/losses_log_link.def. */
#include <math.h>

#include "objective/parts.h"

static double bound(const struct loss_parameters *parameters, double start, double label_max_abs) {
    (void)parameters;
    return fmax(1, label_max_abs * log_link_exp(-start));
}

static double second_bound(const struct loss_parameters *parameters, double derivative_max,
                           double label_max_abs) {
    (void)parameters;
    (void)label_max_abs;
    return 1 + derivative_max;
}

const struct objective objective_gamma = {
    .name = "gamma",
    .labels = LABEL_TARGET,
    .label_fits = log_link_positive,
    .label_allowed = LOG_LINK_POSITIVE,
    .convex = true,
    .figures = FIGURE_RMSE | FIGURE_DEVIANCE,
    .start = log_link_start,
    .bound = bound,
    .adapts = true,
    .losses = gamma_losses,
    .second = gamma_second, /* y/μ */
    .second_bound = second_bound,
    .predict = log_link_predict,
    .prediction = "value",
};
