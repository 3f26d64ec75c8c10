#include "model/residuals.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "model/weight_sum.h"
#include "numeric/exact.h"

struct residuals {
    struct weight_sum all, covered; /* covered: the target is at most the prediction */
    double quantile;
    struct exact half_squares, above, below; /* the last two: of |residual| by its sign */
    struct exact targets, target_squares;    /* weighted, without rounding */
};

struct residuals *residuals_new(double quantile) {
    struct residuals *residuals = memory_new(1, sizeof *residuals);
    residuals->quantile = quantile;
    exact_init(&residuals->half_squares);
    exact_init(&residuals->above);
    exact_init(&residuals->below);
    exact_init(&residuals->targets);
    exact_init(&residuals->target_squares);
    return residuals;
}

void residuals_free(struct residuals *residuals) {
    if (!residuals)
        return;
    weight_sum_release(&residuals->all);
    weight_sum_release(&residuals->covered);
    free(residuals);
}

/* Of equal targets the mean may be off by its last bit, and their spread that much above 0. */
#define EQUAL 1e-30

/* a·b as two doubles whose sum it is. */
static void split(double a, double b, double *high, double *low) {
    *high = a * b;
    *low = fma(a, b, -*high);
}

static void add_product(struct exact *sum, double a, double b) {
    double high, low;
    split(a, b, &high, &low);
    exact_add(sum, high);
    exact_add(sum, low);
}

void residuals_add(struct residuals *residuals, double prediction, double target, double weight) {
    double residual = prediction - target, high, low;
    weight_sum_add(&residuals->all, weight);
    if (target <= prediction)
        weight_sum_add(&residuals->covered, weight);
    exact_add(&residuals->half_squares, weight * (0.5 * residual * residual));
    exact_add(residual > 0 ? &residuals->above : &residuals->below, weight * fabs(residual));
    split(weight, target, &high, &low);
    exact_add(&residuals->targets, high);
    exact_add(&residuals->targets, low);
    add_product(&residuals->target_squares, high, target);
    add_product(&residuals->target_squares, low, target);
}

/* Σ w (y − c)² with c the mean of y, as Σ w y² − 2c Σ w y + c² Σ w. The terms are large and cancel,
 * so they are added without rounding, and each sum counts with what its double leaves out. */
static double spread(const struct residuals *residuals) {
    double weights_low, weights = weight_sum_split(&residuals->all, &weights_low);
    double sum = exact_value(&residuals->targets), mean = sum / weights, high, low;
    struct exact rest = residuals->targets, total = residuals->target_squares;
    exact_add(&rest, -sum);
    add_product(&total, -2 * mean, sum);
    add_product(&total, -2 * mean, exact_value(&rest));
    split(mean, mean, &high, &low);
    add_product(&total, high, weights);
    add_product(&total, low, weights);
    add_product(&total, high, weights_low);
    return exact_value(&total);
}

void residuals_finish(const struct residuals *residuals, struct score_figures *result) {
    double weights = weight_sum_value(&residuals->all);
    if (!(weights > 0))
        return;
    double half_squares = exact_value(&residuals->half_squares);
    result->rmse = sqrt(2 * (half_squares / weights));
    double above = exact_value(&residuals->above), below = exact_value(&residuals->below);
    result->mae = (above + below) / weights;
    result->pinball = ((1 - residuals->quantile) * above + residuals->quantile * below) / weights;
    result->coverage = weight_sum_value(&residuals->covered) / weights;
    double around_mean = spread(residuals);
    if (around_mean > EQUAL * exact_value(&residuals->target_squares))
        result->r2 = 1 - 2 * half_squares / around_mean;
}
