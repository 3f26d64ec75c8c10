/* Half the deviance of values whose variance is proportional to a power of their mean; see
 * objective/losses_log_link.def. a = 2 − p, b = p − 1 for the power p, and μ is the mean. */
#include <math.h>

#include "objective/parts.h"

static double bound(const struct loss_parameters *parameters, double start, double label_max_abs) {
    double a = 2 - parameters->value[TWEEDIE_POWER], b = parameters->value[TWEEDIE_POWER] - 1;
    return fmax(log_link_exp(a * start), label_max_abs * log_link_exp(-b * start));
}

/* It lies between μ^a and y·μ^−b. The smaller of these is at most y^a, and the other one larger by
 * the derivative. */
static double second_bound(const struct loss_parameters *parameters, double derivative_max,
                           double label_max_abs) {
    (void)parameters;
    return derivative_max + (label_max_abs > 1 ? label_max_abs : 1);
}

const struct objective objective_tweedie = {
    .name = "tweedie",
    .labels = LABEL_TARGET,
    .label_fits = log_link_not_negative,
    .label_allowed = LOG_LINK_NOT_NEGATIVE,
    .convex = true,
    .figures = FIGURE_RMSE | FIGURE_DEVIANCE,
    .start = log_link_start,
    .bound = bound,
    .adapts = true,
    .losses = tweedie_losses,
    .second = tweedie_second, /* a·μ^a + b·y·μ^−b */
    .second_bound = second_bound,
    .predict = log_link_predict,
    .prediction = "value",
};
