/* A hinge, squared; see objective/losses_plain.def. */
#include "objective/parts.h"

/* |derivative| at margin 0. */
static double bound(const struct loss_parameters *parameters, double start, double label_max_abs) {
    (void)start;
    (void)parameters;
    (void)label_max_abs;
    return 2;
}

const struct objective objective_squared_hinge = {
    .name = "squared_hinge",
    .labels = LABEL_BINARY,
    .convex = true,
    .figures = FIGURE_ACCURACY | FIGURE_AUC,
    .bound = bound,
    .adapts = true,
    .losses = squared_hinge_losses,
    .second = squared_hinge_second,
    .second_most = 2,
    .prediction = "margin",
    .liblinear = "L2R_L2LOSS_SVC",
};
