/* The losses of numbers: rows of the table of objectives. */
#include <assert.h>
#include <math.h>

#include "numeric/special.h"
#include "objective/parts.h"

/* ½(margin − target)²: the derivative is the residual, which has no bound. */

static double squared_bound(const struct loss_parameters *parameters,
                            const struct start_margins *start, double label_max_abs) {
    (void)parameters;
    return label_max_abs + start->offset;
}

const struct objective objective_squared = {
    .name = "squared",
    .has_unit = true,
    .labels = LABEL_TARGET,
    .convex = true,
    .figures = FIGURE_RMSE | FIGURE_DEVIANCE,
    .bound = squared_bound,
    .adapts = true,
    .losses = squared_losses,
    .second = squared_second,
    .second_most = 1,
    .second_constant = true,
    .distribution = &distribution_gaussian,
    .prediction = "value",
    .liblinear = "L2R_L2LOSS_SVR",
};

/* Quadratic near the target, linear far from it; see objective/losses_targets.def. */

/* A delta that is far beyond all labels bounds nothing: derivatives rounded to a share of it would
 * be 0. */
#define DELTA_BEYOND 1024.0

static double huber_limit(const struct loss_parameters *parameters) {
    return parameters->value[HUBER_DELTA];
}

/* The start is among the labels, or 0; less what offsets are on average. */
static double huber_bound(const struct loss_parameters *parameters,
                          const struct start_margins *start, double label_max_abs) {
    double largest = label_max_abs + start->offset;
    bool beyond = huber_limit(parameters) / DELTA_BEYOND > largest;
    return beyond ? 2 * largest : huber_limit(parameters);
}

/* Where all labels are one number, their width is this share of its size: so far from it may the
 * prediction be. */
#define WIDTH_SHARE 1e-6

/* The distance between the quartiles, or, if that is 0, between quantiles further out. */
static double width_of(const struct label_summary *labels) {
    double width = labels_width(labels, 4);
    return width > 0 ? width : WIDTH_SHARE * labels_size(labels);
}

/* A parameter that is left to the data: `width`, or 1 where that cannot be. */
static double left_to_data(double width) {
    return width > DATA_PARAMETER_LEAST ? fmin(width, DATA_PARAMETER_MOST) : 1;
}

/* δ: of normal residuals as wide as the labels that is 1.35 deviations. */
static void huber_complete(struct loss_parameters *parameters, const struct label_summary *labels,
                           double columns) {
    (void)columns;
    if (!(parameters->value[HUBER_DELTA] > 0))
        parameters->value[HUBER_DELTA] = left_to_data(width_of(labels));
}

static double huber_typical_second(const struct loss_parameters *parameters, double unit,
                                   double margin) {
    (void)margin;
    return fmin(1, parameters->value[HUBER_DELTA] / unit);
}

static double huber_start(const struct loss_parameters *parameters,
                          const struct label_summary *labels) {
    (void)parameters;
    return labels->quantile[LABEL_QUANTILES / 2];
}

const struct objective objective_huber = {
    .name = "huber",
    .has_unit = true,
    .labels = LABEL_TARGET,
    .convex = true,
    .figures = FIGURE_RMSE,
    .complete = huber_complete,
    .start = huber_start,
    .bound = huber_bound,
    .limit = huber_limit,
    .adapts = true,
    .losses = huber_losses,
    .second = huber_second,
    .second_most = 1,
    .typical_second = huber_typical_second,
    .prediction = "value",
    .liblinear = "L2R_L2LOSS_SVR",
};

/* Pinball losses, whose mean is least at the quantile τ; see objective/losses_targets.def. */

static double quantile_second_bound(const struct loss_parameters *parameters, double derivative_max,
                                    double label_max_abs) {
    (void)derivative_max;
    (void)label_max_abs;
    assert(parameters->value[QUANTILE_EPSILON] > 0);
    return 0.5 / parameters->value[QUANTILE_EPSILON];
}

static double quantile_start(const struct loss_parameters *parameters,
                             const struct label_summary *labels) {
    size_t nearest = (size_t)(parameters->value[QUANTILE_TAU] * (LABEL_QUANTILES - 1) + 0.5);
    assert(nearest < LABEL_QUANTILES);
    return labels->quantile[nearest];
}

/* ε, if it is left to the data: a share of the labels' width. The optimum without smoothing has a
 * row in the corner for each column. The more columns there are, the more evaluations it takes to
 * find out which rows these are, so the share grows with them. */
#define EPSILON_SHARE_COLUMN 2e-5
#define EPSILON_SHARE_LEAST 2e-4
#define EPSILON_SHARE_MOST 0.02

static void quantile_complete(struct loss_parameters *parameters,
                              const struct label_summary *labels, double columns) {
    double share =
        fmin(fmax(EPSILON_SHARE_COLUMN * columns, EPSILON_SHARE_LEAST), EPSILON_SHARE_MOST);
    if (!(parameters->value[QUANTILE_EPSILON] > 0))
        parameters->value[QUANTILE_EPSILON] = left_to_data(share * width_of(labels));
}

static double quantile_smoothed(const struct loss_parameters *parameters) {
    return parameters->value[QUANTILE_EPSILON];
}

static double quantile_typical_second(const struct loss_parameters *parameters, double unit,
                                      double margin) {
    (void)margin;
    return 1 / fmax(unit, 2 * parameters->value[QUANTILE_EPSILON]);
}

const struct objective objective_quantile = {
    .name = "quantile",
    .has_unit = true,
    .labels = LABEL_TARGET,
    .convex = true,
    .figures = FIGURE_RMSE | FIGURE_COVERAGE,
    .complete = quantile_complete,
    .start = quantile_start,
    .losses = quantile_losses,
    .second = quantile_second,
    .second_bound = quantile_second_bound,
    .second_change = 1e-5,
    .smoothed = quantile_smoothed,
    .typical_second = quantile_typical_second,
    .prediction = "value",
    .liblinear = "L2R_L2LOSS_SVR",
};

/* What losses share whose prediction is e^margin. */

bool log_link_positive(double label) {
    return label > 0 && label <= LOG_LINK_LABEL_MAX;
}

bool log_link_not_negative(double label) {
    return label >= 0 && label <= LOG_LINK_LABEL_MAX;
}

double log_link_exp(double x) {
    double e;
    special_exp(1, &e, &x);
    return e < LOG_LINK_BOUND_MAX ? e : LOG_LINK_BOUND_MAX;
}

double log_link_start(const struct loss_parameters *parameters,
                      const struct label_summary *labels) {
    (void)parameters;
    double start = 0;
    if (labels->mean > 0)
        special_log(1, &start, &labels->mean);
    return isfinite(start) ? start : 0;
}

void log_link_predict(size_t outputs, double *margins) {
    (void)outputs;
    margins[0] = exp(margins[0]);
}

/* Half the deviance of counts; see objective/losses_targets.def. */

static double poisson_bound(const struct loss_parameters *parameters,
                            const struct start_margins *start, double label_max_abs) {
    (void)parameters;
    return fmax(log_link_exp(start->most), label_max_abs);
}

static double poisson_second_bound(const struct loss_parameters *parameters, double derivative_max,
                                   double label_max_abs) {
    (void)parameters;
    return derivative_max + label_max_abs;
}

/* That of the mean. */
static double poisson_typical_second(const struct loss_parameters *parameters, double unit,
                                     double margin) {
    (void)parameters, (void)unit;
    return log_link_exp(margin);
}

const struct objective objective_poisson = {
    .name = "poisson",
    .labels = LABEL_TARGET,
    .label_fits = log_link_not_negative,
    .label_allowed = LOG_LINK_NOT_NEGATIVE,
    .convex = true,
    .figures = FIGURE_RMSE | FIGURE_DEVIANCE,
    .log_link = true,
    .start = log_link_start,
    .bound = poisson_bound,
    .adapts = true,
    .losses = poisson_losses,
    .second = poisson_second, /* μ */
    .second_bound = poisson_second_bound,
    .typical_second = poisson_typical_second,
    .distribution = &distribution_poisson,
    .predict = log_link_predict,
    .prediction = "value",
};

/* Half the deviance of values whose deviation is proportional to their mean; see
 * objective/losses_targets.def. */

static double gamma_bound(const struct loss_parameters *parameters,
                          const struct start_margins *start, double label_max_abs) {
    (void)parameters;
    return fmax(1, label_max_abs * log_link_exp(-start->least));
}

static double gamma_second_bound(const struct loss_parameters *parameters, double derivative_max,
                                 double label_max_abs) {
    (void)parameters;
    (void)label_max_abs;
    return 1 + derivative_max;
}

/* That of y/μ: 1. */
static void gamma_expected(const struct loss_parameters *parameters, size_t rows,
                           const double *derivatives, double *diagonal) {
    (void)parameters, (void)derivatives;
    for (size_t i = 0; i < rows; i++)
        diagonal[i] = 1;
}

const struct objective objective_gamma = {
    .name = "gamma",
    .labels = LABEL_TARGET,
    .label_fits = log_link_positive,
    .label_allowed = LOG_LINK_POSITIVE,
    .convex = true,
    .figures = FIGURE_RMSE | FIGURE_DEVIANCE,
    .log_link = true,
    .start = log_link_start,
    .bound = gamma_bound,
    .adapts = true,
    .losses = gamma_losses,
    .second = gamma_second, /* y/μ */
    .expected = gamma_expected,
    .second_bound = gamma_second_bound,
    .distribution = &distribution_gamma,
    .predict = log_link_predict,
    .prediction = "value",
};

/* Half the deviance of values whose variance is proportional to a power of their mean; see
 * objective/losses_targets.def. a = 2 − p, b = p − 1 for the power p, and μ is the mean. */

static double tweedie_bound(const struct loss_parameters *parameters,
                            const struct start_margins *start, double label_max_abs) {
    double a = 2 - parameters->value[TWEEDIE_POWER], b = parameters->value[TWEEDIE_POWER] - 1;
    assert(a > 0 && b > 0);
    return fmax(log_link_exp(a * start->most), label_max_abs * log_link_exp(-b * start->least));
}

/* It lies between μ^a and y·μ^−b. The smaller of these is at most y^a, and the other one larger by
 * the derivative. */
static double tweedie_second_bound(const struct loss_parameters *parameters, double derivative_max,
                                   double label_max_abs) {
    (void)parameters;
    return derivative_max + (label_max_abs > 1 ? label_max_abs : 1);
}

/* That of a·μ^a + b·y·μ^−b: μ^a, which is b times the derivative μ^a − y·μ^−b more, as a + b is 1.
 */
static void tweedie_expected(const struct loss_parameters *parameters, size_t rows,
                             const double *derivatives, double *diagonal) {
    double b = parameters->value[TWEEDIE_POWER] - 1;
    for (size_t i = 0; i < rows; i++)
        diagonal[i] = fmax(diagonal[i] + b * derivatives[i], 0);
}

static double tweedie_typical_second(const struct loss_parameters *parameters, double unit,
                                     double margin) {
    (void)unit;
    return log_link_exp((2 - parameters->value[TWEEDIE_POWER]) * margin);
}

const struct objective objective_tweedie = {
    .name = "tweedie",
    .labels = LABEL_TARGET,
    .label_fits = log_link_not_negative,
    .label_allowed = LOG_LINK_NOT_NEGATIVE,
    .convex = true,
    .figures = FIGURE_RMSE | FIGURE_DEVIANCE,
    .log_link = true,
    .start = log_link_start,
    .bound = tweedie_bound,
    .adapts = true,
    .losses = tweedie_losses,
    .second = tweedie_second, /* a·μ^a + b·y·μ^−b */
    .expected = tweedie_expected,
    .second_bound = tweedie_second_bound,
    .typical_second = tweedie_typical_second,
    .distribution = &distribution_tweedie,
    .predict = log_link_predict,
    .prediction = "value",
};
