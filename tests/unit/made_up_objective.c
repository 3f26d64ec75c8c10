#include "tests/unit/made_up_objective.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/random.h"
#include "numeric/fixed.h"
#include "objective/halves.h"
#include "wire/evaluation.h"

/* ---- on the processor ---- */

uint64_t objective_parameters(const struct objective_shape *shape) {
    return shape->features;
}

struct objective_shape objective_strip(const struct objective_shape *shape, uint32_t columns,
                                       uint32_t number) {
    struct objective_shape strip = *shape;
    uint32_t first = number * columns;
    if (columns)
        strip.features = shape->features - first < columns ? shape->features - first : columns;
    return strip;
}

struct objective_scratch *objective_scratch_new(const struct objective_shape *shape) {
    (void)shape;
    return memory_new(1, 1);
}

int objective_prepare(const struct objective_shape *shape, const struct objective_need *need,
                      struct objective_scratch *scratch) {
    (void)shape, (void)need, (void)scratch;
    return 0;
}

void objective_scratch_at(struct objective_scratch *scratch, uint64_t point) {
    (void)scratch, (void)point;
}

void objective_scratch_scaled(struct objective_scratch *scratch, struct scaled_point scaled) {
    (void)scratch, (void)scaled;
}

void objective_scratch_free(struct objective_scratch *scratch) {
    free(scratch);
}

int objective_block(const struct objective_shape *shape, const struct objective_scale *scale,
                    const struct rows *rows, const double *parameters, int64_t *sum,
                    struct objective_scratch *scratch, struct objective_result *result) {
    (void)scratch;
    struct random random;
    random_init(&random, (uint64_t)rows->label[0] + 1);
    result->loss = ldexp(random_unit(&random), (int)random_below(&random, 80)) * parameters[0];
    result->maxima = maxima_of_one(1 + rows->label[0]);
    result->correct = sum ? 0 : rows->label[0];
    result->exceeded = scale && maxima_exceed(&result->maxima, &scale->bounds);
    for (int i = 0; sum && i < 300; i++)
        fixed_add(&sum[random_below(&random, shape->features)],
                  (double)((int64_t)random_next(&random) >> 12));
    return 0;
}

/* Only whether they are of scores is looked at. */
#define HESSIAN(NAME, form, listed, extra_bits) const struct second_form second_##form;
#include "wire/kinds.def"
const struct second_form second_scores = {.scores = true};

/* A chunk adds its number plus one to every element of the triangle. */
void objective_curvature(const struct objective_shape *shape, const struct objective_sample *sample,
                         const struct rows *rows, uint32_t number, const double *parameters,
                         int64_t *triangle, struct objective_scratch *scratch,
                         struct objective_hessian *hessian) {
    (void)rows, (void)parameters, (void)scratch;
    uint64_t elements = (uint64_t)shape->features * (shape->features + 1) / 2;
    for (uint64_t i = 0; triangle && i < elements; i++)
        triangle[i] += number + 1;
    *hessian = (struct objective_hessian){.trace_leverage = sample->sampling.rate, .sampled = 1};
}

/* The one row of chunk i is number i. Its margins are its label times the point, and its weight is
 * the label plus a half. */
static void add_made_up(double number, int64_t *sum) {
    int64_t bits;
    memcpy(&bits, &number, sizeof bits);
    *sum += bits;
}

void objective_product(const struct objective_shape *shape, const struct objective_scale *scale,
                       const struct rows *rows, const double *parameters, int64_t *sum,
                       struct objective_scratch *scratch, struct objective_result *result) {
    (void)scale, (void)scratch;
    *result = (struct objective_result){0};
    for (uint32_t k = 0; k < shape->outputs; k++)
        add_made_up(rows->label[0] * parameters[0] + k, &sum[k]);
}

struct objective_shape objective_upper(const struct objective_shape *shape) {
    struct objective_shape upper = *shape;
    upper.features = MADE_UP_UPPER;
    return upper;
}

/* The derivatives are the margins times the first parameter. */
void objective_derivatives(const struct objective_shape *shape, const struct objective_scale *scale,
                           const struct rows *rows, const struct upper_point *point, int64_t *sum,
                           struct objective_scratch *scratch, struct objective_result *result) {
    (void)rows, (void)scratch, (void)scale;
    *result = (struct objective_result){.loss = 1, .maxima = maxima_of_one(point->margins[0])};
    for (uint32_t k = 0; sum && k < shape->outputs; k++)
        add_made_up(point->margins[k] * point->parameters[0], &sum[k]);
}

/* A row adds its first margin times the parameters. */
void objective_upper_gradient(const struct objective_shape *shape,
                              const struct objective_scale *scale, const struct rows *rows,
                              const struct upper_point *point, int64_t *sum,
                              struct objective_scratch *scratch, struct objective_result *result) {
    (void)rows, (void)scratch, (void)scale;
    *result = (struct objective_result){.loss = 1, .maxima = maxima_of_one(point->margins[0])};
    for (uint32_t i = 0; sum && i < shape->features; i++)
        sum[i] += (int64_t)(point->margins[0] * point->parameters[i]);
}

/* The loss is the first margin times the first parameter; every row is predicted correctly. */
void objective_upper_loss(const struct objective_shape *shape, const struct rows *rows,
                          const struct upper_point *point, struct objective_scratch *scratch,
                          struct objective_result *result) {
    (void)shape, (void)scratch;
    *result = (struct objective_result){.loss = point->margins[0] * point->parameters[0],
                                        .correct = (double)rows->count};
}

void objective_add_labels(const struct objective_shape *shape, const struct rows *rows,
                          int64_t *sum) {
    (void)shape;
    add_made_up(rows->label[0], sum);
}

void objective_add_weights(const struct objective_shape *shape, const struct rows *rows,
                           int64_t *sum) {
    (void)shape;
    add_made_up(rows->label[0] + 0.5, sum);
}

void objective_add_offsets(const struct objective_shape *shape, const struct rows *rows,
                           int64_t *sum) {
    (void)shape;
    add_made_up(rows->label[0] - 0.5, sum);
}

void objective_add_sizes(const struct objective_shape *shape, const struct rows *rows,
                         int64_t *sum) {
    (void)shape;
    add_made_up(rows->size[0], sum);
}

/* A derivative goes to the parameter of the row's number. */
void objective_transpose(const struct objective_shape *shape, const struct objective_scale *scale,
                         const struct rows *rows, const double *derivatives, int64_t *sum,
                         struct objective_scratch *scratch, struct objective_result *result) {
    (void)scratch;
    *result = (struct objective_result){.maxima = maxima_of_one(derivatives[0])};
    result->exceeded = maxima_exceed(&result->maxima, &scale->bounds);
    if (sum)
        sum[rows->first % shape->features] += (int64_t)derivatives[0];
}

/* ---- on a device ---- */

struct objective_device {
    struct objective_device_settings settings;
    uint64_t parameters, most;
    double point[1];
    bool has_point;
    bool failed;
    int64_t *sums; /* `most` of them */
    enum objective_device_kind kind;
    bool dirty;
};

uint32_t made_up_points;
const char *made_up_failure;

static int failing(struct objective_device *on) {
    assert(!on->failed); /* only free() is of use */
    on->failed = made_up_failure != NULL;
    return on->failed ? error_set(ERROR_UNAVAILABLE, "%s", made_up_failure) : 0;
}

int objective_device_new(struct device *device, const struct objective_device_settings *settings,
                         struct objective_device **out) {
    (void)device;
    *out = NULL;
    if (made_up_failure)
        return error_set(ERROR_UNAVAILABLE, "%s", made_up_failure);
    struct objective_device *on = memory_new(1, sizeof *on);
    on->settings = *settings;
    on->parameters = objective_parameters(&settings->shape);
    on->most = on->parameters;
    if (settings->curvature)
        on->most = on->parameters * (on->parameters + 1) / 2;
    on->sums = memory_new(on->most, sizeof *on->sums);
    *out = on;
    return 0;
}

void objective_device_free(struct objective_device *on) {
    if (on)
        free(on->sums);
    free(on);
}

int objective_device_point(struct objective_device *on, const double *parameters) {
    on->point[0] = parameters[0];
    on->has_point = true;
    made_up_points++;
    return failing(on);
}

static int compute_one(struct objective_device *on, const struct objective_device_work *work,
                       uint32_t number, struct objective_device_result *result) {
    const uint64_t at = (uint64_t)(number - work->first) * on->settings.shape.outputs;
    struct rows rows;
    const struct objective_scale scale = {.bounds = work->bounds};
    const struct objective_sample sample = {.sampling = work->sampling};
    int code = on->settings.chunk(on->settings.context, number, &rows);
    if (code)
        return code;
    result->values = rows.values;
    result->rows = rows.count;
    int64_t *sums = work->sums ? on->sums : NULL;
    if (work->kind == OBJECTIVE_DEVICE_PRODUCT)
        objective_product(&on->settings.shape, NULL, &rows, on->point, work->margins + at, NULL,
                          &result->result);
    else if (work->kind == OBJECTIVE_DEVICE_TRANSPOSE)
        objective_transpose(&on->settings.shape, &scale, &rows, work->derivatives + at, sums, NULL,
                            &result->result);
    else if (work->kind == OBJECTIVE_DEVICE_CURVATURE)
        objective_curvature(&on->settings.shape, &sample, &rows, number, on->point, sums, NULL,
                            &result->hessian);
    else
        objective_block(&on->settings.shape, work->kind == OBJECTIVE_DEVICE_LOSS ? NULL : &scale,
                        &rows, on->point, work->kind == OBJECTIVE_DEVICE_LOSS ? NULL : sums, NULL,
                        &result->result);
    return 0;
}

/* A group is a chunk. */
int objective_device_compute(struct objective_device *on, const struct objective_device_work *work,
                             struct objective_device_result *results, bool *stopped) {
    int code = failing(on);
    assert(on->has_point || work->kind == OBJECTIVE_DEVICE_TRANSPOSE);
    *stopped = false;
    if (work->sums) {
        assert(!on->dirty || on->kind == work->kind); /* one kind at a time has sums */
        assert(work->kind != OBJECTIVE_DEVICE_PRODUCT);
        on->kind = work->kind;
        on->dirty = true;
    }
    for (uint32_t i = 0; i < work->count && !code && !*stopped; i++) {
        results[i] = (struct objective_device_result){0};
        *stopped = work->stop && atomic_load(work->stop);
        if (!*stopped)
            code = compute_one(on, work, work->first + i, &results[i]);
        on->failed |= code != 0;
    }
    return code;
}

int objective_device_gather(struct objective_device *on, int64_t *into, uint64_t count) {
    int code = failing(on);
    uint64_t all = on->dirty && on->kind == OBJECTIVE_DEVICE_CURVATURE
                       ? on->parameters * (on->parameters + 1) / 2
                       : on->parameters;
    if (code)
        return code;
    assert(count == all);
    memcpy(into, on->sums, count * sizeof *into);
    return objective_device_discard(on);
}

int objective_device_discard(struct objective_device *on) {
    memset(on->sums, 0, on->most * sizeof *on->sums);
    on->dirty = false;
    return failing(on);
}
