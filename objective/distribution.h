/* The distribution of labels that a loss belongs to: what the statistics of a fit need of it.
 *
 * Such a loss is half the deviance of its distribution for a row of weight 1. So the deviance of a
 * fit is 2·Σ w·loss. A loss without one (hinges, huber, quantile, ordinal: the last is the sum of
 * the losses of all thresholds, whose outcomes are not independent) has neither a deviance nor a
 * likelihood, and its estimates have no errors but the robust ones. */
#ifndef DML_OBJECTIVE_DISTRIBUTION_H
#define DML_OBJECTIVE_DISTRIBUTION_H

#include <stdbool.h>
#include <stddef.h>

#include "objective/loss.h"

/* By which the margin that is the same for all rows follows from sums over rows. */
enum null_margin {
    NULL_OF_CLASSES, /* from the weight of each class: several outputs, or one of two */
    NULL_IDENTITY,   /* Σ w·a / Σ w·b */
    NULL_LOG,        /* log of that */
};

struct distribution {
    const char *name, *link;         /* for people */
    bool identified_but_for_a_class; /* what all outputs have is no part of the likelihood */
    const char *ratio;               /* what e^estimate is, as in "odds ratio"; NULL: nothing */
    bool has_dispersion;             /* the variance has a factor that is estimated; else it is 1 */
    bool profiled; /* the likelihood is taken at the dispersion where it is largest,
                      deviance/rows; else at the one of Pearson, chi²/freedom */

    /* (y − μ)²/V(μ), over all outputs, of a row of weight 1. */
    double (*pearson)(const struct loss_parameters *parameters, size_t outputs,
                      const double *margins, double label);

    /* The logarithm of the likelihood of a row that weighs more than 0, with all constants. A
     * weight divides the dispersion; where that is 1 it multiplies the logarithm. NULL:
     * −weight·loss. */
    double (*log_likelihood)(const struct loss_parameters *parameters, double margin, double label,
                             double weight, double dispersion);

    /* The terms a and b of a row of a model that has the intercept and `offset` alone. */
    enum null_margin null_margin;
    void (*null_terms)(const struct loss_parameters *parameters, double label, double offset,
                       double *a, double *b);
};

extern const struct distribution distribution_gaussian, distribution_binomial,
    distribution_multinomial, distribution_binomials, distribution_ordered, distribution_poisson,
    distribution_gamma, distribution_tweedie;

#endif
