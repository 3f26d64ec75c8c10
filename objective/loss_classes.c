/* The losses of classes: rows of the table of objectives. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "numeric/clones.h"
#include "objective/parts.h"

double logistic_loss(double margin, bool own) {
    double m = own ? -margin : margin;
    return log1p(exp(-fabs(m))) + (m > 0 ? m : 0);
}

double logistics_loss(enum logistics_side kind, size_t outputs, const double *margins,
                      double label) {
    struct logistics_side_range own = logistics_side_of(kind, label);
    double sum = 0;
    for (size_t k = 0; k < outputs; k++)
        sum += logistic_loss(margins[k], k >= own.first && k < own.end);
    return sum;
}

/* 1/(1 + e^−m) without overflow. */
static double probability(double margin) {
    double e = exp(-fabs(margin));
    return (margin >= 0 ? 1 : e) / (1 + e);
}

void logistics_predict(size_t outputs, double *margins) {
    for (size_t k = 0; k < outputs; k++)
        margins[k] = probability(margins[k]);
}

/* log(1 + e^−m), m = ±margin: derivatives in [−1, 1]. See objective/losses_classes.def. */

static double loss_of_one(const struct loss_parameters *parameters, size_t outputs,
                          const double *margins, double label) {
    (void)parameters;
    (void)outputs;
    return logistic_loss(margins[0], label == 1);
}

const struct objective objective_logistic = {
    .name = "logistic",
    .labels = LABEL_BINARY,
    .convex = true,
    .figures = FIGURE_ACCURACY | FIGURE_AUC | FIGURE_LOG_LOSS,
    .losses = logistic_losses,
    .second = logistic_second,
    .second_most = 0.25,
    .loss = loss_of_one,
    .distribution = &distribution_binomial,
    .predict = logistics_predict,
    .prediction = "probability",
    .liblinear = "L2R_LR",
};

/* A logistic loss for each class: log(1 + e^−m_k) for the class of the label, log(1 + e^m_k) for
 * all others. */

static double one_vs_rest_loss_of_one(const struct loss_parameters *parameters, size_t outputs,
                                      const double *margins, double label) {
    (void)parameters;
    return logistics_loss(LOGISTICS_CLASS, outputs, margins, label);
}

/* A prediction is the probability of each class, whatever the others have: they do not add up to 1.
 * LIBLINEAR has only the rule that the largest margin wins: its one-vs-rest divides the
 * probabilities by their sum. */
const struct objective objective_one_vs_rest = {
    .name = "one_vs_rest",
    .labels = LABEL_CLASSES,
    .output_a_class = true,
    .convex = true,
    .figures = FIGURE_ACCURACY | FIGURE_AUC,
    .losses = one_vs_rest_losses,
    .second = one_vs_rest_second,
    .second_row = one_vs_rest_second_row,
    .second_most = 0.25,
    .loss = one_vs_rest_loss_of_one,
    .distribution = &distribution_binomials,
    .predict = logistics_predict,
    .prediction = "probabilities",
    .liblinear = "L2R_L2LOSS_SVC",
    .liblinear_classes = "MCSVM_CS",
};

/* A logistic loss for each class, as for one_vs_rest, where a row can have any number of classes:
 * log(1 + e^−m_k) for those that it has, log(1 + e^m_k) for all others. */

const struct objective objective_multilabel = {
    .name = "multilabel",
    .labels = LABEL_LISTS,
    .output_a_class = true,
    .convex = true,
    .figures = FIGURE_LISTS | FIGURE_AUC,
    .losses = multilabel_losses,
    .second = multilabel_second,
    .second_row = multilabel_second_row,
    .second_most = 0.25,
    .loss = loss_of_one,
    .distribution = &distribution_binomials,
    .predict = logistics_predict,
    .prediction = "probabilities",
};

/* Ordered classes 0 … K: "all thresholds" of Rennie and Srebro, Loss Functions for Preference
 * Levels (2005). Output k tells the classes up to k from those above; its margin is that of the
 * row, the same for all, less the threshold θ_k: the bias is −θ_k. The loss is the sum of their
 * logistic losses: log(1 + e^−m_k) for the k below the label, log(1 + e^m_k) for the others. At the
 * minimum the thresholds rise. */

static double ordinal_loss_of_one(const struct loss_parameters *parameters, size_t outputs,
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
    .loss = ordinal_loss_of_one,
    .predict = predict,
    .prediction = "probabilities",
};

/* Ordered classes 0 … K, of which a row has more than k with the probability 1/(1 + e^−m_k): the
 * cumulative logit model of proportional odds (McCullagh, "Regression models for ordinal data",
 * 1980). Margins are as those of `ordinal`. The loss is minus the logarithm of the probability of
 * the label; it is convex in weights and thresholds (Pratt, "Concavity of the log likelihood",
 * 1981). See objective/losses_classes.def. */

/* log(e^x − 1) for x > 0. */
static double log_expm1(double x) {
    return x > 1 ? x + log1p(-exp(-x)) : log(expm1(x));
}

double proportional_odds_loss(size_t outputs, const double *margins, double label) {
    size_t own = (size_t)label;
    double sum = 0;
    assert(own <= outputs);
    if (own > 0)
        sum += logistic_loss(margins[own - 1], true);
    if (own < outputs)
        sum += logistic_loss(margins[own], false);
    if (own == 0 || own == outputs)
        return sum;
    double gap = margins[own - 1] - margins[own];
    return gap > 0 ? sum + log1p(exp(-log_expm1(gap))) : INFINITY;
}

static double proportional_odds_loss_of_one(const struct loss_parameters *parameters,
                                            size_t outputs, const double *margins, double label) {
    (void)parameters;
    return proportional_odds_loss(outputs, margins, label);
}

/* The bound of derivatives where biases start: σ and 1/(e^gap − 1) of gaps that so many outputs
 * have. */
static double proportional_odds_bound(const struct loss_parameters *parameters,
                                      const struct start_margins *start, double label_max_abs) {
    (void)parameters;
    (void)start;
    (void)label_max_abs;
    return 2;
}

/* p·(1 − p) + AB, with A and B derivatives. */
static double proportional_odds_second_bound(const struct loss_parameters *parameters,
                                             double derivative_max, double label_max_abs) {
    (void)parameters;
    (void)label_max_abs;
    return 0.25 + derivative_max * derivative_max;
}

const struct objective objective_proportional_odds = {
    .name = "proportional_odds",
    .labels = LABEL_ORDERED,
    .shares_weights = true,
    .parts_outputs = true,
    .convex = true,
    .figures = FIGURE_ACCURACY | FIGURE_RANK | FIGURE_LOG_LOSS,
    .bound = proportional_odds_bound,
    .adapts = true,
    .losses = proportional_odds_losses,
    .second = proportional_odds_second,
    .second_row = proportional_odds_second_row,
    .second_sums = proportional_odds_sums,
    .second_bound = proportional_odds_second_bound,
    .loss = proportional_odds_loss_of_one,
    .distribution = &distribution_ordered,
    .predict = predict,
    .prediction = "probabilities",
};

/* log Σ e^margin_k − margin_label: derivatives in [−1, 1]. See objective/losses_classes.def. */

static double softmax_loss_of_one(const struct loss_parameters *parameters, size_t outputs,
                                  const double *margins, double label) {
    (void)parameters;
    size_t best = objective_best(outputs, margins);
    double rest = 0;
    assert((size_t)label < outputs);
    for (size_t k = 0; k < outputs; k++)
        if (k != best)
            rest += exp(margins[k] - margins[best]);
    return (margins[best] - margins[(size_t)label]) + log1p(rest);
}

/* The probability of each class. */
static void softmax_predict(size_t outputs, double *margins) {
    double largest = margins[objective_best(outputs, margins)], sum = 0;
    for (size_t k = 0; k < outputs; k++) {
        margins[k] = exp(margins[k] - largest);
        sum += margins[k];
    }
    for (size_t k = 0; k < outputs; k++)
        margins[k] /= sum;
}

/* S = diag(p) − ppᵀ. As each of its rows adds up to 0, the row of the label may be taken off all
 * others: then what is left of a row that is nearly fitted keeps its digits. `bytes`: of as many
 * columns as there are lanes, or fewer. */
LANES_INLINE void softmax_product_lanes(size_t bytes, size_t outputs, size_t own,
                                        const double *derivatives, double factor, size_t columns,
                                        const double *of, double *product) {
    half_lanes origin = {0}, mean = {0}, other = {0};
    memcpy(&origin, of + own * columns, bytes);
    for (size_t k = 0; k < outputs; k++) {
        memcpy(&other, of + k * columns, bytes);
        mean += (k == own ? 0 : derivatives[k]) * (other - origin);
    }
    for (size_t k = 0; k < outputs; k++) {
        memcpy(&other, of + k * columns, bytes);
        other =
            factor * (k == own ? 1 + derivatives[k] : derivatives[k]) * ((other - origin) - mean);
        memcpy(product + k * columns, &other, bytes);
    }
}

VECTOR_CLONES
static void softmax_product(size_t outputs, double label, const double *derivatives, double factor,
                            size_t columns, const double *of, double *product) {
    size_t own = (size_t)label, j = 0;
    assert(own < outputs);
    for (; j + HALF <= columns; j += HALF)
        softmax_product_lanes(sizeof(half_lanes), outputs, own, derivatives, factor, columns,
                              of + j, product + j);
    if (j < columns)
        softmax_product_lanes((columns - j) * sizeof(double), outputs, own, derivatives, factor,
                              columns, of + j, product + j);
}

/* Over two classes, softmax is the logistic function of the difference of the two margins. For more
 * classes, LIBLINEAR has only the rule that the largest margin wins, and no probabilities. */
const struct objective objective_softmax = {
    .name = "softmax",
    .labels = LABEL_CLASSES,
    .output_a_class = true,
    .convex = true,
    .figures = FIGURE_ACCURACY | FIGURE_AUC | FIGURE_LOG_LOSS,
    .losses = softmax_losses,
    .second = softmax_second,
    .second_row = softmax_second_row,
    .second_product = softmax_product,
    .second_most = 0.25,
    .loss = softmax_loss_of_one,
    .distribution = &distribution_multinomial,
    .predict = softmax_predict,
    .prediction = "probabilities",
    .liblinear = "L2R_LR",
    .liblinear_classes = "MCSVM_CS",
};

/* A hinge, squared; see objective/losses_targets.def. */

/* |derivative| where the margin is no more than the offset. */
static double bound(const struct loss_parameters *parameters, const struct start_margins *start,
                    double label_max_abs) {
    (void)parameters;
    (void)label_max_abs;
    return 2 * (1 + start->offset);
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

/* A hinge with a round corner; see objective/losses_targets.def. */

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
