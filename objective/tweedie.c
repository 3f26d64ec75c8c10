/* Half the deviance of values y ≥ 0 with mean μ = e^m and variance proportional to μ^p, 1 < p < 2:
 * zeros, and values that are sums of a random number of amounts. With a = 2 − p, b = p − 1,
 * t = m − log y and q(x) = e^x − 1 − x it is y^a·(q(at)/a + q(−bt)/b); μ^a/a for y = 0. The
 * derivative is μ^a − y·μ^−b, which has no bound. */
#include <math.h>

#include "numeric/special.h"
#include "objective/parts.h"

enum { POWER };

static double bound(const struct loss_parameters *parameters, double start, double label_max_abs) {
    double a = 2 - parameters->value[POWER], b = parameters->value[POWER] - 1;
    return fmax(log_link_exp(a * start), label_max_abs * log_link_exp(-b * start));
}

/* As `losses`, of at most PIECE rows. */
static void piece(double power, size_t rows, const double *label, double *margins, double *loss,
                  double *work) {
    double a = 2 - power, b = power - 1;
    double log_label[PIECE], scale[PIECE], up[PIECE], down[PIECE];
    special_log(rows, log_label, label);
    for (size_t i = 0; i < rows; i++) {
        double t = margins[i] - log_label[i];
        up[i] = a * t;
        down[i] = -b * t;
        scale[i] = a * log_label[i];
    }
    special_exp(rows, scale, scale);
    special_exp_excess(rows, up, up);
    special_exp_excess(rows, down, down);
    for (size_t i = 0; i < rows; i++) {
        loss[i] = scale[i] * (up[i] / a + down[i] / b);
        up[i] = a * margins[i];
        down[i] = log_label[i] - b * margins[i];
    }
    special_exp(rows, up, up);
    special_exp(rows, down, down);
    for (size_t i = 0; i < rows; i++) {
        double zero_or_nan = margins[i] - margins[i];
        double rest = label[i] > 0 ? down[i] : 0; /* y·μ^−b */
        loss[i] = (label[i] > 0 ? loss[i] : up[i] / a) + zero_or_nan;
        margins[i] = up[i] - rest;
        work[i] = a * up[i] + b * rest;
    }
}

static void losses(const struct loss_parameters *parameters, size_t rows, size_t outputs,
                   const double *label, double *margins, double *loss, double *work) {
    (void)outputs;
    for (size_t i = 0; i < rows; i += PIECE)
        piece(parameters->value[POWER], rows - i < PIECE ? rows - i : PIECE, label + i, margins + i,
              loss + i, work + i);
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
    .losses = losses,
    .second = log_link_second, /* a·μ^a + b·y·μ^−b */
    .second_bound = second_bound,
    .predict = log_link_predict,
    .prediction = "value",
};
