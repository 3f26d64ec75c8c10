/* log Σ e^margin_k − margin_label: derivatives in [−1, 1]. */
#include <math.h>

#include "numeric/special.h"
#include "objective/parts.h"

/* One row. Let e_k = e^(margin_k − margin_top), so that e_top = 1, and `others` the sum of the
 * other e_k. The loss is log(1 + others) + margin_top − margin_label; this function returns the
 * difference of the margins, and the caller adds the logarithm. The loss, and 1 − p_top, which is
 * others/(1 + others), keep their digits when `others` is small. */
static double row(size_t outputs, size_t label, size_t top, const double *e, double *margins,
                  double *others_out) {
    double above = margins[top] - margins[label];
    double others = 0;
    double not_finite = 0; /* NaN if a margin is not finite, else 0 */
    for (size_t k = 0; k < outputs; k++) {
        others += k == top ? 0 : e[k];
        not_finite += margins[k] - margins[k];
    }
    double total = 1 + others;
    for (size_t k = 0; k < outputs; k++)
        margins[k] = e[k] / total;
    margins[label] = label == top ? -others / total : (e[label] - total) / total;
    *others_out = others;
    return above + not_finite;
}

static void losses(const struct loss_parameters *parameters, size_t rows, size_t outputs,
                   const double *label, double *margins, double *loss, double *work) {
    (void)parameters;
    for (size_t i = 0; i < rows; i++) {
        const double *m = margins + i * outputs;
        double largest = m[objective_best(outputs, m)];
        for (size_t k = 0; k < outputs; k++)
            work[i * outputs + k] = m[k] - largest;
    }
    special_exp(rows * outputs, work, work);
    for (size_t i = 0; i < rows; i++) {
        double *m = margins + i * outputs;
        size_t top = objective_best(outputs, m);
        double others;
        loss[i] = row(outputs, (size_t)label[i], top, work + i * outputs, m, &others);
        work[i] = others; /* overwrites no exponential that a later row needs: those lie at
                             (i + 1)·K and above */
    }
    special_log1p(rows, work, work);
    for (size_t i = 0; i < rows; i++)
        loss[i] += work[i];
}

/* p·(1 − p). The derivative d is p, and p − 1 for the label, so 1 − p keeps its digits there. */
static double variance(double d, bool own) {
    return own ? (1 + d) * -d : d * (1 - d);
}

static void second(const struct loss_parameters *parameters, size_t rows, size_t outputs,
                   const double *label, const double *derivatives, const double *work,
                   double *diagonal) {
    (void)parameters;
    (void)work;
    for (size_t i = 0; i < rows; i++)
        for (size_t k = 0; k < outputs; k++)
            diagonal[i * outputs + k] =
                variance(derivatives[i * outputs + k], k == (size_t)label[i]);
}

/* −p_k·p_k' beside the diagonal. */
static void second_row(size_t outputs, double label, const double *derivatives, size_t k,
                       double *out) {
    size_t own = (size_t)label;
    double p = derivatives[k] + (k == own);
    for (size_t other = 0; other < outputs; other++)
        out[other] = -p * (derivatives[other] + (other == own));
    out[k] = variance(derivatives[k], k == own);
}

static double loss_of_one(const struct loss_parameters *parameters, size_t outputs,
                          const double *margins, double label) {
    (void)parameters;
    size_t best = objective_best(outputs, margins);
    double rest = 0;
    for (size_t k = 0; k < outputs; k++)
        if (k != best)
            rest += exp(margins[k] - margins[best]);
    return (margins[best] - margins[(size_t)label]) + log1p(rest);
}

/* The probability of each class. */
static void predict(size_t outputs, double *margins) {
    double largest = margins[objective_best(outputs, margins)], sum = 0;
    for (size_t k = 0; k < outputs; k++) {
        margins[k] = exp(margins[k] - largest);
        sum += margins[k];
    }
    for (size_t k = 0; k < outputs; k++)
        margins[k] /= sum;
}

/* Over two classes, softmax is the logistic function of the difference of the two margins. For more
 * classes, LIBLINEAR has only the rule that the largest margin wins, and no probabilities. */
const struct objective objective_softmax = {
    .name = "softmax",
    .labels = LABEL_CLASSES,
    .output_a_class = true,
    .convex = true,
    .figures = FIGURE_ACCURACY | FIGURE_AUC | FIGURE_LOG_LOSS,
    .losses = losses,
    .second = second,
    .second_row = second_row,
    .second_most = 0.25,
    .loss = loss_of_one,
    .predict = predict,
    .prediction = "probabilities",
    .liblinear = "L2R_LR",
    .liblinear_classes = "MCSVM_CS",
};
