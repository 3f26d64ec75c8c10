/* Half the deviance of values y > 0 with mean μ = e^m, whose deviation is proportional to μ:
 * y/μ − 1 − log(y/μ), 0 at best. With t = log y − m it is e^t − 1 − t. The derivative is 1 − y/μ,
 * which has no bound. */
#include <math.h>

#include "numeric/special.h"
#include "objective/parts.h"

static double bound(const struct loss_parameters *parameters, double start, double label_max_abs) {
    (void)parameters;
    return fmax(1, label_max_abs * log_link_exp(-start));
}

static void losses(const struct loss_parameters *parameters, size_t rows, size_t outputs,
                   const double *label, double *margins, double *loss, double *work) {
    (void)parameters;
    (void)outputs;
    special_log(rows, work, label);
    for (size_t i = 0; i < rows; i++)
        work[i] -= margins[i];
    special_exp_excess(rows, loss, work);
    special_exp(rows, work, work);
    for (size_t i = 0; i < rows; i++)
        margins[i] = 1 - work[i];
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
    .losses = losses,
    .second = log_link_second, /* y/μ */
    .second_bound = second_bound,
    .predict = log_link_predict,
    .prediction = "value",
};
