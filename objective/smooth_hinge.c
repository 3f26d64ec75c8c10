/* Of m = ±margin: 0 from 1 on, (1 − m)²/2 down to 0, and ½ − m below: a hinge with a round corner.
 * The derivative lies between −1 and 0, times ±1. */
#include "objective/parts.h"

/* By m. Not finite if the margin is not. */
static double loss_of(double margin, double label) {
    double m = label == 1 ? margin : -margin, zero_or_nan = margin - margin;
    return (m >= 1 ? 0 : m > 0 ? 0.5 * (1 - m) * (1 - m) : 0.5 - m) + zero_or_nan;
}

static void losses(const struct loss_parameters *parameters, size_t rows, size_t outputs,
                   const double *label, double *margins, double *loss, double *work) {
    (void)parameters;
    (void)outputs;
    (void)work;
    for (size_t i = 0; i < rows; i++) {
        double sign = label[i] == 1 ? 1 : -1, m = sign * margins[i];
        loss[i] = loss_of(margins[i], label[i]);
        margins[i] = sign * (m >= 1 ? 0 : m > 0 ? m - 1 : -1);
    }
}

/* 1 within the round corner, else 0. */
static void second(const struct loss_parameters *parameters, size_t rows, size_t outputs,
                   const double *label, const double *derivatives, const double *work,
                   double *diagonal) {
    (void)parameters;
    (void)outputs;
    (void)label;
    (void)work;
    for (size_t i = 0; i < rows; i++) {
        double slope = derivatives[i] < 0 ? -derivatives[i] : derivatives[i];
        diagonal[i] = slope > 0 && slope < 1 ? 1 : 0;
    }
}

const struct objective objective_smooth_hinge = {
    .name = "smooth_hinge",
    .labels = LABEL_BINARY,
    .convex = true,
    .figures = FIGURE_ACCURACY | FIGURE_AUC,
    .losses = losses,
    .second = second,
    .second_most = 1,
    .prediction = "margin",
    .liblinear = "L2R_L2LOSS_SVC",
};
