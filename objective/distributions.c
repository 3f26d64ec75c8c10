#include "objective/distribution.h"

#include <math.h>

#include "objective/parts.h"

/* ---- the Poisson distribution, in whose terms the densities of three others are written ---- */

/* What Stirling's formula leaves out of log Γ(k): DLMF 5.11.1. */
static double stirling_rest(double k) {
    double square = k * k;
    return (1.0 / 12 - (1.0 / 360 - (1.0 / 1260 - 1.0 / 1680 / square) / square) / square) / k;
}

#define STIRLING_LEAST 30

/* log(mean^k·e^−mean/Γ(k + 1)) for k ≥ 0: of large k without the difference of large numbers
 * (Loader, "Fast and accurate computation of binomial probabilities", 2000). The
 * logarithm of the mean is finite, too, where the mean is 0 or infinite as a double. */
static double log_poisson_of(double k, double mean, double log_mean) {
    int sign;
    if (k == 0)
        return -mean;
    if (k < STIRLING_LEAST)
        return k * log_mean - mean - lgamma_r(k + 1, &sign);
    double excess = (mean - k) / k;
    double log_ratio = fabs(excess) < 0.5 ? log1p(excess) : log_mean - log(k);
    return -k * (excess - log_ratio) - 0.5 * log(2 * M_PI * k) - stirling_rest(k);
}

static double log_poisson(double k, double mean) {
    return log_poisson_of(k, mean, log(mean));
}

/* ---- (y − μ)²/V(μ) ---- */

static double pearson_gaussian(const struct loss_parameters *parameters, size_t outputs,
                               const double *margins, double label) {
    (void)parameters;
    (void)outputs;
    return (label - margins[0]) * (label - margins[0]);
}

/* Pearson's statistic with probability p = 1/(1 + e^−m) of the label's class: (1 − p)/p. */
static double pearson_binomial(const struct loss_parameters *parameters, size_t outputs,
                               const double *margins, double label) {
    (void)parameters;
    (void)outputs;
    return exp(label == 1 ? -margins[0] : margins[0]);
}

/* Σ_k (y_k − p_k)²/p_k = 1/p − 1 with p that of the label's class. */
static double pearson_multinomial(const struct loss_parameters *parameters, size_t outputs,
                                  const double *margins, double label) {
    (void)parameters;
    double sum = 0;
    for (size_t k = 0; k < outputs; k++)
        if (k != (size_t)label)
            sum += exp(margins[k] - margins[(size_t)label]);
    return sum;
}

/* Pearson's statistic (1 − p)/p, as the loss is −log p. */
static double pearson_ordered(const struct loss_parameters *parameters, size_t outputs,
                              const double *margins, double label) {
    (void)parameters;
    return expm1(proportional_odds_loss(outputs, margins, label));
}

static double pearson_binomials(const struct loss_parameters *parameters, size_t outputs,
                                const double *margins, double label) {
    (void)parameters;
    double sum = 0;
    for (size_t k = 0; k < outputs; k++)
        sum += exp(k == (size_t)label ? -margins[k] : margins[k]);
    return sum;
}

/* V(μ) = μ^power with μ = e^margin. By t = log μ/y, so that nothing between is 0 or infinite where
 * the value is not. */
static double pearson_power(double power, double margin, double label) {
    double t = margin - log(label), share = expm1(-fabs(t)); /* t = ∞ of a label of 0 */
    double scale = t > 0 ? (2 - power) * margin : 2 * log(label) - power * margin;
    return exp(scale) * share * share;
}

static double pearson_poisson(const struct loss_parameters *parameters, size_t outputs,
                              const double *margins, double label) {
    (void)parameters;
    (void)outputs;
    return pearson_power(1, margins[0], label);
}

static double pearson_gamma(const struct loss_parameters *parameters, size_t outputs,
                            const double *margins, double label) {
    (void)parameters;
    (void)outputs;
    return pearson_power(2, margins[0], label);
}

static double pearson_tweedie(const struct loss_parameters *parameters, size_t outputs,
                              const double *margins, double label) {
    (void)outputs;
    return pearson_power(parameters->value[TWEEDIE_POWER], margins[0], label);
}

/* ---- log-likelihoods ---- */

static double likelihood_gaussian(const struct loss_parameters *parameters, double margin,
                                  double label, double weight, double dispersion) {
    (void)parameters;
    double residual = label - margin;
    return -0.5 * (weight * residual * residual / dispersion + log(2 * M_PI * dispersion / weight));
}

static double likelihood_poisson(const struct loss_parameters *parameters, double margin,
                                 double label, double weight, double dispersion) {
    (void)parameters;
    (void)dispersion;
    return weight * log_poisson_of(label, exp(margin), margin);
}

/* With the shape s = weight/dispersion: s^s·y^(s − 1)·μ^−s·e^(−s·y/μ)/Γ(s). */
static double likelihood_gamma(const struct loss_parameters *parameters, double margin,
                               double label, double weight, double dispersion) {
    (void)parameters;
    double shape = weight / dispersion;
    double log_mean = log(shape) + (log(label) - margin);
    return log_poisson_of(shape, exp(log_mean), log_mean) + log(shape) - log(label);
}

/* Terms are left out that are this much smaller, as logarithms. */
#define TERM_LEAST 45

/* log of the part of a sum of terms e^term(j) at j = from, from + step, … */
static double tweedie_side(double from, double step, double mean, double ratio, double largest) {
    double sum = 0;
    for (double j = from; j >= 1; j += step) {
        double term = log_poisson(j, mean) + log_poisson(ratio * j, ratio * mean) + log(ratio * j);
        if (term < largest - TERM_LEAST)
            break;
        sum += exp(term - largest);
    }
    return sum;
}

/* The terms are normal but for a share of 1/mean. Added up they lose digits as the root of the mean
 * grows, and from 2^106 on j + step is j: so from here on they are not. */
#define MEAN_NORMAL 1e11

/* The density at μ = y, y > 0, times y: a Poisson number j of amounts with mean `mean`, whose sum
 * has a gamma distribution of shape ratio·j (Dunn and Smyth, "Series evaluation of Tweedie
 * exponential dispersion model densities", 2005). The terms are about normal in j; where these are
 * many, every h-th is as good as all: a sum of a normal density with a step of half its deviation
 * differs from the integral by e^−79. A dispersion that is infinite, or 0, has no other end. */
static double tweedie_series(double mean, double ratio) {
    if (!(mean > 0) || isinf(mean))
        return log(mean);
    double deviation = sqrt(mean / (1 + ratio));
    double step = fmax(1, floor(0.5 * deviation)), middle = fmax(1, floor(mean));
    double largest =
        log_poisson(middle, mean) + log_poisson(ratio * middle, ratio * mean) + log(ratio * middle);
    if (mean > MEAN_NORMAL)
        return largest + log(sqrt(2 * M_PI) * deviation);
    double sum = tweedie_side(middle, step, mean, ratio, largest) +
                 tweedie_side(middle - step, -step, mean, ratio, largest);
    return largest + log(step * sum);
}

static double likelihood_tweedie(const struct loss_parameters *parameters, double margin,
                                 double label, double weight, double dispersion) {
    double power = parameters->value[TWEEDIE_POWER], a = 2 - power, b = power - 1;
    double scale = dispersion / weight;
    if (label == 0)
        return -exp(a * margin) / (a * scale);
    double t = margin - log(label), size = exp(a * log(label)); /* y^a */
    double half_deviance = size * ((expm1(a * t) - a * t) / a + (expm1(-b * t) + b * t) / b);
    return tweedie_series(size / (a * scale), a / b) - log(label) - half_deviance / scale;
}

/* ---- a model with the intercept and the offset alone ---- */

static void null_gaussian(const struct loss_parameters *parameters, double label, double offset,
                          double *a, double *b) {
    (void)parameters;
    *a = label - offset;
    *b = 1;
}

/* Σ w·(y − μ)·μ^(1 − power) = 0 with μ = e^(margin + offset). */
static void null_power(double power, double label, double offset, double *a, double *b) {
    *a = label * exp((1 - power) * offset);
    *b = exp((2 - power) * offset);
}

static void null_poisson(const struct loss_parameters *parameters, double label, double offset,
                         double *a, double *b) {
    (void)parameters;
    null_power(1, label, offset, a, b);
}

static void null_gamma(const struct loss_parameters *parameters, double label, double offset,
                       double *a, double *b) {
    (void)parameters;
    null_power(2, label, offset, a, b);
}

static void null_tweedie(const struct loss_parameters *parameters, double label, double offset,
                         double *a, double *b) {
    null_power(parameters->value[TWEEDIE_POWER], label, offset, a, b);
}

/* ---- the table ---- */

const struct distribution distribution_gaussian = {.name = "gaussian",
                                                   .link = "identity",
                                                   .has_dispersion = true,
                                                   .profiled = true,
                                                   .pearson = pearson_gaussian,
                                                   .log_likelihood = likelihood_gaussian,
                                                   .null_margin = NULL_IDENTITY,
                                                   .null_terms = null_gaussian};

const struct distribution distribution_binomial = {
    .name = "binomial", .link = "logit", .ratio = "odds ratio", .pearson = pearson_binomial};

const struct distribution distribution_multinomial = {.name = "multinomial",
                                                      .link = "logit",
                                                      .identified_but_for_a_class = true,
                                                      .ratio = "odds ratio",
                                                      .pearson = pearson_multinomial};

const struct distribution distribution_binomials = {.name = "binomial, one for each class",
                                                    .link = "logit",
                                                    .ratio = "odds ratio",
                                                    .pearson = pearson_binomials};

const struct distribution distribution_ordered = {.name = "ordered classes",
                                                  .link = "cumulative logit",
                                                  .ratio = "odds ratio",
                                                  .pearson = pearson_ordered};

const struct distribution distribution_poisson = {.name = "poisson",
                                                  .link = "log",
                                                  .ratio = "rate ratio",
                                                  .pearson = pearson_poisson,
                                                  .log_likelihood = likelihood_poisson,
                                                  .null_margin = NULL_LOG,
                                                  .null_terms = null_poisson};

const struct distribution distribution_gamma = {.name = "gamma",
                                                .link = "log",
                                                .ratio = "ratio of means",
                                                .has_dispersion = true,
                                                .pearson = pearson_gamma,
                                                .log_likelihood = likelihood_gamma,
                                                .null_margin = NULL_LOG,
                                                .null_terms = null_gamma};

const struct distribution distribution_tweedie = {.name = "tweedie",
                                                  .link = "log",
                                                  .ratio = "ratio of means",
                                                  .has_dispersion = true,
                                                  .pearson = pearson_tweedie,
                                                  .log_likelihood = likelihood_tweedie,
                                                  .null_margin = NULL_LOG,
                                                  .null_terms = null_tweedie};
