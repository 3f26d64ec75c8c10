/* A hinge with a round corner; see objective/losses_plain.def. */
#include "objective/parts.h"

const struct objective objective_smooth_hinge = {
    .name = "smooth_hinge",
    .labels = LABEL_BINARY,
    .convex = true,
    .figures = FIGURE_ACCURACY | FIGURE_AUC,
    .losses = smooth_hinge_losses,
    .second = smooth_hinge_second,
    .second_most = 1,
    .prediction = "margin",
    .liblinear = "L2R_L2LOSS_SVC",
};
