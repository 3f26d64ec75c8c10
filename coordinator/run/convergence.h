/* Whether a run has converged, and what stands in its way: for linear models with a convex loss,
 * how far F is above its minimum is estimated at each step (optimizer/row.h has the estimate).
 * max|∂F| says nothing where columns differ in scale, and F may hardly fall because steps are too
 * short. */
#ifndef DML_COORDINATOR_RUN_CONVERGENCE_H
#define DML_COORDINATOR_RUN_CONVERGENCE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/layout.h"
#include "coordinator/job/scaling.h"
#include "coordinator/machine/coordinator.h"
#include "data/set/statistics.h"
#include "model/collinear.h"
#include "objective/shape.h"

/* What the optimizer must know to estimate it (optimizer/row.h). Tolerances wait until the run has
 * converged where the job gives none, or says what the gap may be. */
struct gap_settings gap_settings_of(const struct job *job, const struct objective_shape *shape,
                                    const struct set_info *data);

/* Sets the loss below which a loss counts as that, where rows have to be read for it.
 * ERROR_DATA if a chunk of the set is damaged. */
int gap_find_least(const struct objective_shape *shape, struct set *set,
                   struct gap_settings *settings);

/* Fills in the squares of the columns as they are scaled. Of columns that are not scaled they are
 * mean squares about 0 (moments_squares()), as their gradients are not centred: 0 in place of those
 * that are too large. */
void gap_measure(const struct set_info *data, const struct moments *moments,
                 struct column_scaling *columns);
void gap_unscaled(const struct set_info *data, double *squares);

/* How much of its curvature a bias keeps where the weights follow it, as they do where there are as
 * many columns as rows and none is centred: uᵀ(I + A)⁻¹u with A = second·X·Xᵀ/(rows·l2) and the
 * unit vector u of all rows. That is at least 1/(1 + uᵀAu), and uᵀAu is about the mean of A's
 * eigenvalues. Fewer columns leave 1 − columns/rows of u. `l2` is that of the optimizer. */
double gap_bias_share(const struct gap_settings *settings, const struct set_info *data, double l2,
                      const double *squares);

/* Whether what l2 alone says of the gap is near it, so that squares of columns are not asked.
 * Without scales of columns. `l2` is that of the optimizer. */
bool gap_is_by_l2(const struct gap_settings *settings, const struct set_info *data, double l2,
                  double mean_square);

/* What came of it. */
struct gap {
    bool known;
    double estimate; /* of F less its minimum */
    double allowed;  /* up to this the run has converged */
};

/* The gap of the last point, which alone is meant to be the optimum: the model of a run with early
 * stopping may be an earlier point. */
struct gap gap_of(const struct gap_settings *settings, const struct coordinator_view *view);
bool gap_is_small(const struct gap *gap);

/* Whether weights can grow for ever, as nothing bounds them: there is no optimum to converge to. */
bool convergence_is_separable(const struct job *job, const struct set_info *data,
                              const struct coordinator_view *view);

/* ---- a run that has not converged ---- */

/* What is known of it at its end. */
struct not_converged {
    const struct coordinator *coordinator;
    const struct job *job;
    const char *command; /* "run" or "retrain" */
    const struct set_info *data;
    const struct moments *moments;
    const struct scaling *scaling;
    bool preconditioned; /* by a block */
    const struct gap *gap;
    double loss;                        /* of the model */
    const struct collinear_fit *nearly; /* columns nearly follow from others; NULL: not known */
    const bool *runs_away; /* by the run's elements: estimates that no finite value is the best one
                              for; NULL: none is known */
};

/* Whether an estimate may run away without a bound, so that a run which claims an optimum and has
 * not converged may have none. Finding it out takes passes: it is not asked of much data. */
bool convergence_may_run_away(const struct job *job, const struct set_info *data,
                              enum reason reason);

/* Why it has not converged and what to do about it, as sentences for people: [what was seen, …,
 * what to do]. A new reference. */
json_t *not_converged_json(const struct not_converged *end);

/* Writes the sentences of not_converged_json() that a result has, if any, as warnings to the
 * log. */
void not_converged_log(const json_t *result);

/* Whether the time was over before the first step, by the result: the model is where it started. */
bool not_converged_at_all(const json_t *result);

/* `--strict`: ERROR_NOT_CONVERGED if the result says that the run has not. */
int not_converged_strict(const json_t *result, bool strict);

/* Steps of Downpour led to where there is no loss: ERROR_DATA, and why. */
int convergence_diverged(const struct downpour_view *downpour);

/* The run has no point to start from: ERROR_DATA, and why. */
int convergence_not_finite(const struct set_info *data, const struct job *job, bool from_model);

#endif
