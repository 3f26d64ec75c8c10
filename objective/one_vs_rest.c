/* A logistic loss for each class: log(1 + e^−m_k) for the class of the label, log(1 + e^m_k) for
 * all others. The derivatives are σ(m_k), less 1 for the label's class: within [−1, 1]. */
#include <math.h>

#include "numeric/special.h"
#include "objective/parts.h"

/* Of one class, with t = e^−|m|. On entry `loss` is log(1 + t). With `own`, m counts the other way.
 * Each numerator is 1 or t, so that all digits are kept, however small the derivative is. */
static double finish(double margin, bool own, double t, double *loss) {
    double m = own ? -margin : margin, zero_or_nan = margin - margin;
    *loss += (m > 0 ? m : 0) + zero_or_nan;
    double slope = (m > 0 ? 1 : t) / (1 + t);
    return own ? -slope : slope;
}

/* Class by class of row by row. */
static void losses(const struct loss_parameters *parameters, size_t rows, size_t outputs,
                   const double *label, double *margins, double *loss, double *work) {
    (void)parameters;
    size_t count = rows * outputs, row = 0, class = 0;
    for (size_t i = 0; i < count; i++)
        work[i] = -fabs(margins[i]);
    special_exp(count, work, work);
    for (size_t first = 0; first < count; first += PIECE) {
        double part[PIECE];
        size_t length = count - first < PIECE ? count - first : PIECE;
        special_log1p(length, part, work + first);
        for (size_t i = 0; i < length; i++) {
            double *margin = &margins[first + i];
            *margin = finish(*margin, class == (size_t)label[row], work[first + i], &part[i]);
            loss[row] = class ? loss[row] + part[i] : part[i];
            class = class + 1 < outputs ? class + 1 : 0;
            row += class == 0;
        }
    }
}

/* |d|·(1 − |d|), as for logistic. */
static double variance(double derivative) {
    double size = fabs(derivative);
    return size * (1 - size);
}

static void second(const struct loss_parameters *parameters, size_t rows, size_t outputs,
                   const double *label, const double *derivatives, const double *work,
                   double *diagonal) {
    (void)parameters;
    (void)label;
    (void)work;
    for (size_t i = 0; i < rows * outputs; i++)
        diagonal[i] = variance(derivatives[i]);
}

/* Classes do not act on each other. */
static void second_row(size_t outputs, double label, const double *derivatives, size_t k,
                       double *out) {
    (void)label;
    for (size_t other = 0; other < outputs; other++)
        out[other] = 0;
    out[k] = variance(derivatives[k]);
}

static double loss_of_one(const struct loss_parameters *parameters, size_t outputs,
                          const double *margins, double label) {
    (void)parameters;
    double sum = 0;
    for (size_t k = 0; k < outputs; k++) {
        double loss = log1p(exp(-fabs(margins[k])));
        finish(margins[k], k == (size_t)label, 0, &loss);
        sum += loss;
    }
    return sum;
}

/* The probability of each class, whatever the others have: they do not add up to 1. */
static void predict(size_t outputs, double *margins) {
    for (size_t k = 0; k < outputs; k++) {
        double e = exp(-fabs(margins[k]));
        margins[k] = (margins[k] >= 0 ? 1 : e) / (1 + e);
    }
}

/* LIBLINEAR has only the rule that the largest margin wins: its one-vs-rest divides the
 * probabilities by their sum. */
const struct objective objective_one_vs_rest = {
    .name = "one_vs_rest",
    .labels = LABEL_CLASSES,
    .output_a_class = true,
    .convex = true,
    .figures = FIGURE_ACCURACY | FIGURE_AUC,
    .losses = losses,
    .second = second,
    .second_row = second_row,
    .second_most = 0.25,
    .loss = loss_of_one,
    .predict = predict,
    .prediction = "probabilities",
    .liblinear = "L2R_L2LOSS_SVC",
    .liblinear_classes = "MCSVM_CS",
};
