/* Which family a shape is of, and what follows from the family. */
#include "objective/family.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "numeric/fixed.h"
#include "objective/parts.h"

/* Labels whose spread is beyond 2^±this get no unit: losses in it could overflow. */
#define UNIT_EXPONENT_MAX 200

const struct family *family_of(const struct objective_shape *shape) {
    return shape->plugin           ? &family_plugin
           : shape->network.layers ? &family_network
                                   : &family_linear;
}

const struct plugin_source *objective_source(const struct objective_shape *shape) {
    return shape->plugin ? &shape->plugin->source : NULL;
}

/* ---- layout ---- */

struct layout objective_layout(const struct objective_shape *shape) {
    return family_of(shape)->layout(shape);
}

uint64_t objective_parameters(const struct objective_shape *shape) {
    struct layout layout = objective_layout(shape);
    return layout_parameters(&layout);
}

void objective_read_layout(struct objective_shape *shape, const struct layout *layout) {
    if (!family_network.read_layout(shape, layout))
        family_linear.read_layout(shape, layout);
}

/* ---- what is left to the data ---- */

double labels_width(const struct label_summary *labels, size_t tails) {
    const size_t last = LABEL_QUANTILES - 1;
    assert(tails > 1); /* else the middle is empty */
    double width = 0;
    for (size_t tail = last / tails; !(width > 0); tail /= 2) {
        width = labels->quantile[last - tail] - labels->quantile[tail];
        if (!tail)
            break;
    }
    return width;
}

double labels_size(const struct label_summary *labels) {
    const double size = fabs(labels->quantile[LABEL_QUANTILES / 2]);
    return size > 0 ? size : 1;
}

/* The spread of three quarters of the labels, which is about 2.3 deviations, or else of more of
 * them, or else their size. It is not rounded to a power of 2: then l2 would be four times as
 * strong for some data as for other data that hardly differ. */
double objective_unit(const struct objective *objective, const struct label_summary *labels) {
    if (!objective->has_unit || !labels)
        return 1;
    double spread = labels_width(labels, 8);
    if (!(spread > 0))
        spread = labels_size(labels);
    bool valid = isnormal(spread) && abs(ilogb(spread)) < UNIT_EXPONENT_MAX;
    return valid ? spread : 1;
}

static double typical_second(const struct objective_shape *shape, double unit, double margin) {
    const struct objective *objective = objective_of(shape->kind);
    return objective->typical_second ? objective->typical_second(&shape->loss, unit, margin) : 1;
}

double objective_typical_second(const struct objective_shape *shape,
                                const struct label_summary *labels) {
    const struct objective *objective = objective_of(shape->kind);
    double margin = labels && objective->start ? objective->start(&shape->loss, labels) : 0;
    return labels ? typical_second(shape, objective_unit(objective, labels), margin) : 1;
}

double objective_loss_unit(const struct objective_shape *shape) {
    double unit = objective_output_unit(shape);
    if (!shape->network.layers)
        return 1;
    return typical_second(shape, unit, objective_typical_margin(shape)) * unit * unit;
}

double objective_weight_unit(const struct objective_shape *shape,
                             const struct label_summary *labels) {
    bool linear = family_of(shape) == &family_linear;
    return linear ? objective_unit(objective_of(shape->kind), labels) : 1;
}

double objective_gradient_unit(const struct objective_shape *shape,
                               const struct label_summary *labels) {
    bool linear = family_of(shape) == &family_linear;
    return linear ? objective_typical_second(shape, labels) * objective_weight_unit(shape, labels)
                  : objective_loss_unit(shape);
}

double objective_typical_offset(const struct objective_shape *shape) {
    bool log_link = objective_of(shape->kind)->log_link;
    return log_link ? shape->offsets.log_mean_exp : shape->offsets.mean;
}

double objective_typical_margin(const struct objective_shape *shape) {
    return shape->start + objective_typical_offset(shape);
}

/* A quantile of labels less their offsets is the intercept itself; a mean of labels is that of
 * margins. */
double objective_null_intercept(const struct objective_shape *shape,
                                const struct label_summary *labels) {
    const struct objective *objective = objective_of(shape->kind);
    if (!objective->start)
        return labels->mean - objective_typical_offset(shape);
    double start = objective->start(&shape->loss, labels);
    return objective->has_unit ? start : start - objective_typical_offset(shape);
}

void objective_complete(struct objective_shape *shape, const struct label_summary *labels,
                        const struct offset_summary *offsets) {
    const struct objective *objective = objective_of(shape->kind);
    const struct family *family = family_of(shape);
    shape->offsets = *offsets;
    if (objective->complete)
        objective->complete(&shape->loss, labels,
                            family->second ? (double)(shape->features + shape->intercept)
                                           : INFINITY);
    if (labels && (family->complete || (objective->start && shape->intercept)))
        shape->start = objective_null_intercept(shape, labels);
    if (family->complete)
        family->complete(shape, labels);
}

/* ---- bounds and exponents ---- */

/* How many margins one weight is part of. */
static double sharing(const struct objective_shape *shape) {
    return objective_of(shape->kind)->shares_weights ? shape->outputs : 1;
}

static double loss_bound(const struct objective_shape *shape, double label_max_abs) {
    const struct offset_summary *offsets = &shape->offsets;
    const struct start_margins start = {.least = shape->start + offsets->least,
                                        .most = shape->start + offsets->most,
                                        .offset = fmax(fabs(offsets->least), fabs(offsets->most))};
    assert(!(start.least > start.most));
    return objective_of(shape->kind)->bound(&shape->loss, &start, label_max_abs);
}

double objective_bound(const struct objective_shape *shape, double label_max_abs) {
    double bound = objective_of(shape->kind)->bound ? loss_bound(shape, label_max_abs) : 1;
    return bound * objective_output_unit(shape) * sharing(shape);
}

double objective_bound_of(const struct objective_shape *shape, double derivative_max) {
    return derivative_max * (objective_of(shape->kind)->adapts ? 1 : sharing(shape));
}

bool objective_bound_adapts(const struct objective_shape *shape, double label_max_abs) {
    const struct objective *objective = objective_of(shape->kind);
    bool reached =
        objective->limit && loss_bound(shape, label_max_abs) >= objective->limit(&shape->loss);
    return objective->adapts && !reached;
}

double objective_second_bound(const struct objective_shape *shape, double derivative_max,
                              double label_max_abs) {
    const struct objective *objective = objective_of(shape->kind);
    double bound = objective->second_bound
                       ? objective->second_bound(&shape->loss, derivative_max, label_max_abs)
                       : objective->second_most;
    return bound * sharing(shape);
}

int16_t *objective_exponents(const struct objective_shape *shape, const int16_t *columns,
                             uint64_t chunks) {
    struct layout layout = objective_layout(shape);
    uint64_t count = layout_exponents(&layout);
    const struct family *family = family_of(shape);
    int16_t *exponents = memory_new(count, sizeof *exponents);
    int share = 61; /* less ⌈log₂ chunks⌉, so that terms of all chunks stay below 2⁶² */
    while (share > -2 && UINT64_C(1) << (61 - share) < chunks)
        share--;
    for (uint64_t i = 0; i < count; i++) {
        int exponent = family->exponent(shape, columns, share, i);
        exponents[i] = (int16_t)(exponent < FIXED_EXPONENT_MIN ? FIXED_EXPONENT_MIN : exponent);
    }
    return exponents;
}

struct bounds objective_first_bounds(const struct objective_shape *shape, double label_max_abs,
                                     double weight, uint64_t chunks) {
    double chunk = weight / (double)(chunks ? chunks : 1);
    return family_of(shape)->first_bounds(shape, label_max_abs, chunk > 1 ? chunk : 1);
}

/* ---- computation ---- */

struct objective_scratch *objective_scratch_new(const struct objective_shape *shape) {
    return family_of(shape)->compute->scratch_new(shape);
}

int objective_prepare(const struct objective_shape *shape, const struct objective_need *need,
                      struct objective_scratch *scratch) {
    assert(!need->sample || (family_of(shape)->second && need->sample->form));
    return family_of(shape)->compute->prepare(shape, need, scratch);
}

void objective_scratch_scaled(struct objective_scratch *scratch, struct scaled_point scaled) {
    scratch->scaled = scaled;
}

void objective_scratch_at(struct objective_scratch *scratch, uint64_t point) {
    scratch->point = point;
}

int objective_block(const struct objective_shape *shape, const struct objective_scale *scale,
                    const struct rows *rows, const double *parameters, int64_t *sum,
                    struct objective_scratch *scratch, struct objective_result *result) {
    const struct family_compute *compute = family_of(shape)->compute;
    assert(!sum || scale);
    int code = prepare_for(shape, rows, scale ? scale->change : NULL, scale != NULL, scratch);
    return code ? code : compute->block(shape, scale, rows, parameters, sum, scratch, result);
}

int objective_margins(const struct objective_shape *shape, const struct rows *rows,
                      const double *parameters, struct objective_scratch *scratch,
                      double *margins) {
    int code = prepare_for(shape, rows, NULL, false, scratch);
    return code ? code
                : family_of(shape)->compute->margins(shape, rows, parameters, scratch, margins);
}

bool objective_has_losses(const struct objective_shape *shape) {
    return family_of(shape)->compute->losses != NULL;
}

int objective_losses(const struct objective_shape *shape, const struct rows *rows,
                     const double *parameters, struct objective_scratch *scratch, double *losses) {
    assert(objective_has_losses(shape));
    int code = prepare_for(shape, rows, NULL, false, scratch);
    return code ? code
                : family_of(shape)->compute->losses(shape, rows, parameters, scratch, losses);
}

const char *objective_device_cannot(const struct objective_shape *shape, bool curvature) {
    const struct family *family = family_of(shape);
    const char *why = family->device_cannot ? family->device_cannot(shape) : NULL;
    if (!why && curvature && objective_of(shape->kind)->second_sums)
        why = "this objective has second derivatives beside the diagonal of its thresholds";
    if (!why && curvature && (!objective_of(shape->kind)->second || !family->second))
        why = "this objective has no second derivatives";
    return why;
}
