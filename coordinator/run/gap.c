#include "coordinator/run/gap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "coordinator/job/sizing.h"

/* See the head of gap.h. */
#define COLUMNS_FACTOR 10.0
#define NEWTON_FACTOR 2.0
#define FALLS_AHEAD 10.0

/* A loss whose minimum is 0 falls for ever: below this nobody asks how far it is. Of labels that
 * have a unit, times the loss of a residual of that unit. */
#define LOSS_LEAST 1e-3

void gap_vector_take(struct gap_vector *vector, uint64_t parameters, uint64_t first, uint64_t count,
                     const double *values) {
    if (first == 0) {
        free(vector->element);
        *vector = (struct gap_vector){.element = memory_new(parameters, sizeof(double)),
                                      .parameters = parameters};
    }
    memcpy(vector->element + first, values, count * sizeof(double));
    vector->taken = first + count;
}

bool gap_vector_is_whole(const struct gap_vector *vector) {
    return vector->element && vector->taken == vector->parameters;
}

void gap_vectors_release(struct gap_vectors *vectors) {
    free(vectors->gradient.element);
    free(vectors->newton.element);
    *vectors = (struct gap_vectors){0};
}

bool gap_is_known(const struct objective_shape *shape) {
    return objective_of(shape->kind)->convex && !shape->network.layers && !shape->plugin;
}

bool gap_trusts_newton(const struct objective_shape *shape) {
    const struct objective *objective = objective_of(shape->kind);
    return objective->unit_power == 0 || objective->second_constant;
}

/* Second derivatives that have no bound of their own are taken where the run starts. */
static double second_of(const struct gap_problem *problem) {
    const struct objective *objective = objective_of(problem->shape->kind);
    if (objective->adapts && objective->second_bound)
        return sizing_second_first(problem->data, problem->shape);
    return objective_second_bound(problem->shape, 0, problem->data->label_max_abs);
}

/* ½·g²/h. A parameter without curvature, as of a column that is constant, moves nothing. */
static double fall_of(double gradient, double curvature) {
    return curvature > 0 && gradient != 0 ? 0.5 * gradient * (gradient / curvature) : 0;
}

/* Of a column's weights: the curvature in the coordinates that the gradient is in, or in its
 * centred column. */
static double curvature_of(const struct gap_problem *problem, double second, uint32_t j) {
    double variance = problem->moments->variance[j], mean = problem->moments->mean[j];
    if (!problem->columns)
        return second * (problem->shape->intercept ? variance : variance + mean * mean) +
               problem->l2;
    const struct coordinate *column = &problem->columns[j];
    double shift = mean - column->mean;
    return second * column->scale * column->scale * (variance + shift * shift) +
           problem->l2 * column->penalty;
}

static double columns_sum(const struct gap_problem *problem, double second,
                          const double *gradient) {
    const struct layout_tensor *weight = &problem->layout->tensor[0];
    const struct layout_tensor *bias = layout_input_bias(problem->layout);
    double sum = 0, all = 0;
    for (uint64_t k = 0; bias && k < bias->columns; k++) {
        sum += fall_of(gradient[bias->first + k], second);
        all += gradient[bias->first + k];
    }
    for (uint32_t j = 0; j < weight->rows; j++) {
        double curvature = curvature_of(problem, second, j);
        for (uint64_t k = 0; k < weight->columns; k++) {
            double own = gradient[weight->first + j * weight->columns + k];
            /* What l1 holds at 0 stays there. */
            if (bias && !problem->columns && !(problem->l1 > 0 && own == 0))
                own -= problem->moments->mean[j] *
                       (weight->columns == bias->columns ? gradient[bias->first + k] : all);
            sum += fall_of(own, curvature);
        }
    }
    return isnan(sum) ? INFINITY : sum;
}

/* A loss of labels that have a unit, for a residual of one unit: how large it is, and how its
 * derivative changes on the way, which is far less than its bound where corners are sharp. */
struct typical {
    double loss, second;
};

static struct typical typical_of(const struct objective_shape *shape, const struct set_info *data) {
    const struct objective *objective = objective_of(shape->kind);
    double unit = objective_unit(objective, data->targets), work[2], loss[2];
    double label[2] = {shape->start - unit, shape->start + unit};
    double derivative[2] = {shape->start, shape->start};
    objective->losses(&shape->loss, 2, 1, label, derivative, loss, work);
    return (struct typical){.loss = 0.5 * (loss[0] + loss[1]),
                            .second = (derivative[0] - derivative[1]) / (2 * unit)};
}

/* What second derivatives may be rather than their bound. */
static double second_rather(const struct gap_problem *problem) {
    const struct objective *objective = objective_of(problem->shape->kind);
    if (objective->figures & FIGURE_LOG_LOSS)
        return problem->loss;
    return objective->unit_power ? typical_of(problem->shape, problem->data).second : INFINITY;
}

double gap_by_columns(const struct gap_problem *problem, const double *gradient) {
    double second = second_of(problem), rather = second_rather(problem);
    double estimate = COLUMNS_FACTOR * columns_sum(problem, second, gradient);
    if (rather > 0 && rather < second)
        estimate = fmax(estimate, columns_sum(problem, rather, gradient));
    return fmax(estimate, FALLS_AHEAD * problem->fall);
}

double gap_by_newton(const struct gap_vectors *vectors) {
    double sum = 0;
    for (uint64_t i = 0; i < vectors->gradient.parameters; i++)
        sum += vectors->gradient.element[i] * vectors->newton.element[i];
    return isnan(sum) ? INFINITY : NEWTON_FACTOR * 0.5 * sum;
}

struct gap gap_of(const struct objective_shape *shape, const struct set_info *data, double loss,
                  double estimate) {
    double least = LOSS_LEAST;
    if (objective_of(shape->kind)->unit_power)
        least *= typical_of(shape, data).loss;
    estimate = fmin(estimate, loss); /* no loss is below 0 */
    double share = estimate > 0 ? estimate / fmax(loss, least) : 0;
    return (struct gap){.known = true, .estimate = estimate, .share = share};
}

bool gap_is_small(const struct gap *gap) {
    return !gap->known || gap->share <= GAP_SHARE_MOST;
}
