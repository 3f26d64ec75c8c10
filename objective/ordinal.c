/* Ordered classes 0 … K: "all thresholds" of Rennie and Srebro, Loss Functions for Preference
 * Levels (2005). Output k tells the classes up to k from those above; its margin is that of the
 * row, the same for all, less the threshold θ_k: the bias is −θ_k. The loss is the sum of their
 * logistic losses: log(1 + e^−m_k) for the k below the label, log(1 + e^m_k) for the others. At the
 * minimum the thresholds rise. */
#include "objective/parts.h"

static double loss_of_one(const struct loss_parameters *parameters, size_t outputs,
                          const double *margins, double label) {
    (void)parameters;
    return logistics_loss(LOGISTICS_BELOW, outputs, margins, label);
}

/* The probability of class k is that of more than k − 1 less that of more than k. Where thresholds
 * do not rise yet, as in a training that was stopped, the probability of more than k is at most
 * that of more than k − 1. */
static void predict(size_t outputs, double *margins) {
    double above = 1;
    logistics_predict(outputs, margins);
    for (size_t k = 0; k < outputs; k++) {
        double next = margins[k] < above ? margins[k] : above;
        margins[k] = above - next;
        above = next;
    }
    margins[outputs] = above;
}

const struct objective objective_ordinal = {
    .name = "ordinal",
    .labels = LABEL_ORDERED,
    .shares_weights = true,
    .convex = true,
    .figures = FIGURE_ACCURACY | FIGURE_RANK,
    .losses = ordinal_losses,
    .second = ordinal_second,
    .second_row = ordinal_second_row,
    .second_most = 0.25,
    .loss = loss_of_one,
    .predict = predict,
    .prediction = "probabilities",
};
