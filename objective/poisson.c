/* Half the deviance of counts y with mean μ = e^m: μ − y − y·log(μ/y), 0 at best. With t = m − log
 * y it is y·(e^t − 1 − t), which keeps its digits where μ is close to y; μ for y = 0. The
 * derivative is μ − y, which has no bound. */
#include <math.h>

#include "numeric/special.h"
#include "objective/parts.h"

static double bound(const struct loss_parameters *parameters, double start, double label_max_abs) {
    (void)parameters;
    return fmax(log_link_exp(start), label_max_abs);
}

static void losses(const struct loss_parameters *parameters, size_t rows, size_t outputs,
                   const double *label, double *margins, double *loss, double *work) {
    (void)parameters;
    (void)outputs;
    special_log(rows, work, label);
    for (size_t i = 0; i < rows; i++)
        loss[i] = margins[i] - work[i];
    special_exp_excess(rows, loss, loss);
    special_exp(rows, work, margins);
    for (size_t i = 0; i < rows; i++) {
        double zero_or_nan = margins[i] - margins[i];
        loss[i] = (label[i] > 0 ? label[i] * loss[i] : work[i]) + zero_or_nan;
        margins[i] = work[i] - label[i];
    }
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
    .losses = losses,
    .second = log_link_second, /* μ */
    .second_bound = second_bound,
    .predict = log_link_predict,
    .prediction = "value",
};
