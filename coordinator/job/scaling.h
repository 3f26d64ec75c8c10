/* The scaling that a job trains in (base/layout.h): what `standardise` asks for, a diagonal
 * preconditioner, that of networks, whose columns are always centred, and that of minibatches. */
#ifndef DML_COORDINATOR_JOB_SCALING_H
#define DML_COORDINATOR_JOB_SCALING_H

#include "base/layout.h"
#include "coordinator/job/column_rules.h"
#include "coordinator/job/job.h"
#include "optimizer/preconditioner.h"
#include "data/set/statistics.h"
#include "objective/shape.h"

struct scaling {
    struct column_scaling *columns; /* [features]; owned. NULL: not scaled */
    bool standardised;              /* l2 and l1 are meant for standardised columns */
    bool diagonal;                  /* the scales are those of the diagonal preconditioner */
    bool bytes;                     /* of a network on bytes: 255 becomes 1, unless standardised */
    bool sized;                     /* a column has the unit of its values, for minibatches */
    bool plain;                     /* columns are as they are, but for their penalties */
    struct column_limit *limits;    /* [features]; owned. NULL: none */
    struct column_scaling *of_data; /* [features]; owned. Leads from the columns of the data to
                                       those that are trained in, where `columns` leads from those
                                       of a set that has centres; NULL: `columns` does */
};

/* The scaling between models and what is trained; NULL: they are the same. */
static inline const struct column_scaling *scaling_of_data(const struct scaling *scaling) {
    return scaling->of_data ? scaling->of_data : scaling->columns;
}

/* Whether a set for the job may have centres (data/set/set.h): what is left out of the values goes
 * to biases of the model, which the scaling of columns finds. */
bool job_may_centre(const struct job *job);

/* The kind of scaling as a number, for files: 0 if there is none, else 1 if standardised, plus 2 if
 * it preconditions, plus 4 if bytes are scaled, plus 8 times the exponent (mod 1024) of the unit of
 * the outputs, if there is one, plus 8192 if columns have the units of their values, plus 16384
 * times a hash of the centres of the set, which is 0 if it has none. Vectors that are scaled by one
 * form suit those of the same form on other rows. */
uint32_t scaling_form(const struct scaling *scaling, const struct set_info *data, double unit);

/* Whether the moments of the columns must be found to choose: from the job and the data's shape. */
bool scaling_needs_moments(const struct job *job, const struct set_info *data,
                           enum precondition form);

/* Chooses the scaling, for a run that has the block preconditioner or none. With a
 * preconditioner H₀ = γ·T·Tᵀ, where T leads from scaled parameters to weights, is the diagonal
 *
 *     D_j = 1/(v_j/√density_j + l2/h)
 *
 * in centred columns: v is the variance, density the share of values that are not 0, and h what the
 * second derivative of a row's loss is at the start, about. Frequent columns of ones share more of
 * their curvature with others than rare ones: hence the root. Without an intercept columns are not
 * centred, and v is the mean square. With `precondition = auto` there is a diagonal where columns
 * are badly scaled. With PRECONDITION_LEADING there is always one, without the root: what columns
 * have in common is in the block.
 *
 * If only minibatches train (job_has_units()) and there is no diagonal, each column has a unit of
 * its own: its root mean square over the values that are not 0. Then a step of Adagrad moves the
 * margin of a row by as much whatever the unit of the data is (normalised updates: Ross, Mineiro
 * and Langford, UAI 2013). A column that most rows have is centred, and its unit is the deviation.
 * l2 and l1 act on the weights as they are.
 *
 * The scales of columns that `rules` bounds are powers of two, so that bounds have the same bits
 * before and after: what is 0 stays 0, and a weight at its bound is that. `rules` may be NULL.
 *
 * ERROR_DATA if a column cannot be scaled as the job asks for. */
int scaling_choose(const struct job *job, const struct set_info *data,
                   const struct objective_shape *shape, enum precondition form,
                   const struct moments *moments, const struct column_rules *rules,
                   struct scaling *scaling);
/* After that, if a scaling was chosen: multiplies penalties by the factors of the rules, for which
 * there always is a scaling, if need be one of columns as they are; and finds the limits, if there
 * are bounds, or factors and (`l1`) an l1. */
void scaling_add_rules(const struct set_info *data, const struct column_rules *rules, bool l1,
                       struct scaling *scaling);
/* After that: a set with centres always has a scaling, if need be one of columns as they are. */
void scaling_add_centres(const struct set_info *data, struct scaling *scaling);
void scaling_release(struct scaling *scaling);

/* Whether all columns have the same unit, as the pixels of an image: the values are bytes, or look
 * like it. Then nobody is advised to standardise: that would make rare noise as large as the rest.
 */
bool scaling_is_of_one_unit(const struct set_info *data, const struct moments *moments);

#endif
