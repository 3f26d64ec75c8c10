/* max(0, 1 − m)², m = ±margin: the derivative is −2·max(0, 1 − m)·(±1), which has no bound. */
#include "objective/parts.h"

/* |derivative| at margin 0. */
static double bound(const struct loss_parameters *parameters, double start, double label_max_abs) {
    (void)start;
    (void)parameters;
    (void)label_max_abs;
    return 2;
}

/* max(0, 1 − m): how much is missing to a margin of 1 on the label's side. Not finite if the margin
 * is not. */
static double shortfall(double margin, double label) {
    double m = label == 1 ? margin : -margin;
    double short_by = 1 - m, zero_or_nan = margin - margin;
    return (short_by > 0 ? short_by : 0) + zero_or_nan;
}

static void losses(const struct loss_parameters *parameters, size_t rows, size_t outputs,
                   const double *label, double *margins, double *loss, double *work) {
    (void)parameters;
    (void)outputs;
    (void)work;
    for (size_t i = 0; i < rows; i++) {
        double short_by = shortfall(margins[i], label[i]);
        loss[i] = short_by * short_by;
        margins[i] = label[i] == 1 ? -2 * short_by : 2 * short_by;
    }
}

/* 2 where the margin falls short, else 0. */
static void second(const struct loss_parameters *parameters, size_t rows, size_t outputs,
                   const double *label, const double *derivatives, const double *work,
                   double *diagonal) {
    (void)parameters;
    (void)work;
    (void)outputs;
    (void)label;
    for (size_t i = 0; i < rows; i++)
        diagonal[i] = derivatives[i] != 0 ? 2 : 0;
}

const struct objective objective_squared_hinge = {
    .name = "squared_hinge",
    .labels = LABEL_BINARY,
    .convex = true,
    .figures = FIGURE_ACCURACY | FIGURE_AUC,
    .bound = bound,
    .adapts = true,
    .losses = losses,
    .second = second,
    .second_most = 2,
    .prediction = "margin",
    .liblinear = "L2R_L2LOSS_SVC",
};
