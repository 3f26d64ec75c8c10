/* Errors of a few estimates of a model that is too large for the inverse of its second derivatives,
 * by conjugate gradients on H + Λ (model/summary.h), a pass over the rows a step. */
#ifndef DML_MODEL_SINGLE_ERRORS_H
#define DML_MODEL_SINGLE_ERRORS_H

#include <stdbool.h>
#include <stdint.h>

#include "data/set/set.h"
#include "model/collinear.h"
#include "model/model.h"

/* Each solution ends when the steps that are to come add less than this share to the variance,
 * estimated by those before, or at the most steps. */
#define SINGLE_SHARE_LEAST 1e-18
#define SINGLE_STEPS_MAX 5000

struct single_point {
    const double
        *parameters;     /* the run's elements, as summary_fit() has them; as all arrays here */
    const double *ridge; /* Λ; NULL: no penalty */
    bool *aliased;       /* parameters that are taken as 0; without a penalty others that follow
                            from those before them are marked, too: biases come first, then
                            columns, and of outputs the last before the first */
    double *restated;    /* estimates whose margins are those of the parameters, and which are 0
                            where parameters are aliased at first; so they are afterwards, too */
    const struct collinear *direct; /* solves in place of conjugate gradients: the parameters are
                                       its optimum, and its kinds say what is aliased; or NULL */
    unsigned threads;               /* do not show in the bits */
    uint32_t steps;                 /* of a solution, at most; 0: SINGLE_STEPS_MAX */
};

struct single_error {
    double variance; /* as struct summary_covariance has them; NaN: it follows from others, or the
                        most steps were not enough */
    double sampling; /* of (H + Λ)⁻¹H(H + Λ)⁻¹; without a penalty as `variance` */
    double robust, clustered; /* without clusters 0 */
};

struct single_totals {
    double distance; /* √(gᵀ(H + Λ)⁻¹g), g the gradient of Σ w·ℓ and the penalty: at most so many of
                        their errors, for a dispersion of 1, estimates are off the optimum; NaN: not
                        known */
    uint64_t products; /* of H with a vector, which are passes over the rows */
    uint64_t clusters, single_rows;
    uint64_t dependent; /* parameters that were marked as aliased */
    bool more;          /* there may be others: DEPENDENT_MAX was reached */
};

/* Each parameter that follows from others takes a solution, as an error does. */
#define DEPENDENT_MAX 1000

/* errors[count] of these elements; and which parameters run away, one for each that there is:
 * without bound the likelihood rises with them. ERROR_DATA.
 *
 * Rows that run away have lost their second derivatives, and Newton's step still changes their
 * margins by about 1, however far the run has gone: logistic, softmax and ordered classes that
 * columns separate, and under a log link labels of 0. At an optimum, also of columns that are
 * nearly collinear, it changes the margins of rows with so little information by nothing. */
int single_errors_find(struct set *set, const struct model_layout *layout,
                       const struct single_point *point, const uint64_t *element, size_t count,
                       struct single_error *errors, bool *runs_away, struct single_totals *totals);

#endif
