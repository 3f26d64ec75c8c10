/* How far the objective is above its minimum where a run ends that claims to be at an optimum: an
 * estimate, in the metric of the columns, for linear models with a convex loss.
 *
 * max|∂F| says nothing where columns differ in scale, and F may hardly fall because the steps are
 * too short. With g the gradient and H the Hessian, F is about ½·gᵀH⁻¹g above its minimum.
 *
 * If the run had a preconditioner in force to the end, P stands for H⁻¹.
 *
 * Else the diagonal of H does, with what is known from the columns alone: h_j = h·v_j + l2, where
 * v_j is the variance of the column (its mean square without an intercept) and h bounds the second
 * derivative of a row's loss. Along runs with columns of all kinds ½·Σ g_j²/h_j was 0.07 to 2.7
 * times the true gap, so ten times that is taken. A logarithmic loss that is nearly 0 curves far
 * less than its bound: p(1 − p) is below −log p, so F stands for h as well, without the ten; and so
 * does the mean second derivative of a residual's loss from 0 to the deviation of the labels. Where
 * columns are nearly collinear the diagonal sees too little; but then F still falls with each step,
 * and ten more such steps are taken for the gap. */
#ifndef DML_COORDINATOR_RUN_CONVERGENCE_H
#define DML_COORDINATOR_RUN_CONVERGENCE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/layout.h"
#include "coordinator/job/scaling.h"
#include "coordinator/machine/coordinator.h"
#include "data/set.h"
#include "objective/objective.h"

/* A vector that is read at the end. Zeroed memory is one that was not. */
struct gap_vector {
    double *element; /* owned */
    uint64_t taken, parameters;
};

struct gap_vectors {
    struct gap_vector gradient; /* with l1 the pseudo-gradient */
    struct gap_vector newton;   /* P times the gradient */
};

/* Takes the next slice. */
void gap_vector_take(struct gap_vector *vector, uint64_t parameters, uint64_t first, uint64_t count,
                     const double *values);
bool gap_vector_is_whole(const struct gap_vector *vector);
void gap_vectors_release(struct gap_vectors *vectors);

/* Whether a model of this shape has an estimate; and whether P tells it. With corners as sharp as
 * those of huber most rows have no curvature in P, though all resist a longer step. */
bool gap_is_known(const struct objective_shape *shape);
bool gap_trusts_newton(const struct objective_shape *shape);

/* What is known of the run. */
struct gap_problem {
    const struct objective_shape *shape;
    const struct layout *layout;
    const struct set_info *data;
    const struct moments *moments;
    const struct column_scaling *columns; /* that the gradient is in; or NULL */
    double l1, l2;
    double loss, fall; /* F, and how much it fell in each of the last steps at least */
};

/* The estimates. A sum that is not a number is infinite. */
double gap_by_columns(const struct gap_problem *problem, const double *gradient);
double gap_by_newton(const struct gap_vectors *vectors);

/* What came of it. */
struct gap {
    bool known;
    double estimate; /* of F less its minimum */
    double share;    /* of F, or of what stands for it where F is next to 0 */
};

struct gap gap_of(const struct objective_shape *shape, const struct set_info *data, double loss,
                  double estimate);

/* Whether F may be called converged: the gap is at most this share of it. */
#define GAP_SHARE_MOST 1e-3
bool gap_is_small(const struct gap *gap);

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
};

/* Why it has not converged and what to do about it, as sentences for people: [what was seen, …,
 * what to do]. A new reference. */
json_t *not_converged_json(const struct not_converged *end);

/* The same sentences of a result as warnings in the log, if it has them. */
void not_converged_log(const json_t *result);

/* `--strict`: ERROR_NOT_CONVERGED if the result says that the run has not. */
int not_converged_strict(const json_t *result, bool strict);

/* Steps of Downpour led to where there is no loss: ERROR_DATA, and why. */
int convergence_diverged(const struct downpour_view *downpour);

/* The run has no point to start from: ERROR_DATA, and why. */
int convergence_not_finite(const struct set_info *data, const struct job *job, bool from_model);

#endif
