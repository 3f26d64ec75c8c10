#include "objective/on_device.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "numeric/fixed.h"
#include "objective/device_chunks.h"
#include "objective/device_pass.h"
#include "objective/parts.h"

/* The most memory that a group takes beside its chunks, and that the chunks of a group take which
 * do not stay. Between groups a device is idle for some 40 µs, so groups must be large. Not
 * measured on hardware. */
#define GROUP_BYTES (UINT64_C(1) << 30)
#define BUFFER_BYTES (UINT64_C(64) << 20)
#define SLAB_BYTES (UINT64_C(32) << 20) /* of rows whose second derivatives are added */

/* The results of the chunks of a pass, which the host reads in one copy. */
struct outcomes {
    double *loss, *correct;
    uint64_t *largest;
};
#define OUTCOME_BYTES (2 * sizeof(double) + sizeof(uint64_t))

struct objective_device {
    struct device *device;
    struct objective_device_settings settings;
    uint64_t parameters, sums; /* how many */
    void *point, *exponent, *sum;
    const struct device_family *family;
    void *own; /* what the family's open() made, or NULL */
    struct device_chunks *chunks;
    struct device_curvature *curvature; /* NULL: no evaluation asks for it */
    struct objective_hessian *hessian;  /* of the chunks of a group */
    struct device_group groups[2];
    struct device_group_limit limit;
    struct device_room rows;     /* what passes keep of each row */
    struct device_room outcomes; /* and of each chunk */
    void *outcomes_here;
    double *margins_here;       /* of a group, of products */
    struct maxima *maxima_here; /* of a group, of families that find a maximum for each tensor */
};

/* ---- memory ---- */

static const struct device_family *device_family_of(const struct objective_shape *shape) {
    static const struct device_family *const families[] = {&device_family_linear,
                                                           &device_family_network};
    size_t i = 0;
    while (families[i]->family != family_of(shape)) {
        i++; /* objective_device_cannot() refuses shapes of others */
        assert(i < sizeof families / sizeof *families);
    }
    return families[i];
}

static bool has_lists(const struct objective_shape *shape) {
    return objective_of(shape->kind)->labels == LABEL_LISTS;
}

/* Whether a pass keeps one margin a row, without biases, for all outputs. */
static bool shares_weights(const struct objective_device *on) {
    return objective_of(on->settings.shape.kind)->shares_weights && on->family->adds_biases;
}

/* What a pass keeps of a row: see struct device_pass. */
static uint64_t row_bytes(const struct objective_device *on) {
    const struct objective_shape *shape = &on->settings.shape;
    uint64_t arrays = has_lists(shape) ? 3 : 2;
    return (arrays * shape->outputs + (shares_weights(on) ? 1 : 0) + 2) * sizeof(double);
}

/* Shares the device's memory out: some for groups, some for buffers, a sixteenth for other users of
 * the device, and the rest for chunks that stay. */
static struct device_chunks_settings
share_memory(struct objective_device *on, const struct device_costs *costs, uint64_t taken) {
    const struct objective_device_settings *settings = &on->settings;
    uint64_t all = settings->memory ? settings->memory : device_room(on->device) + taken;
    uint64_t left = all > taken ? all - taken : 0;
    uint64_t group = left / 4 < GROUP_BYTES ? left / 4 : GROUP_BYTES;
    uint64_t buffer = left / 8 < BUFFER_BYTES ? left / 8 : BUFFER_BYTES;
    uint64_t chunk = OUTCOME_BYTES + 2 * sizeof(struct device_chunk);
    assert(group + 2 * buffer + left / 16 <= left);
    on->limit = (struct device_group_limit){
        .row = row_bytes(on) + costs->row,
        .dense_chunk = chunk + costs->dense_chunk,
        .sparse_chunk = chunk + costs->sparse_chunk,
        .column = costs->column,
        .most = group,
    };
    return (struct device_chunks_settings){.lists = has_lists(&settings->shape),
                                           .columns = on->family->lists_columns,
                                           .arranged = on->family->arranges && !settings->curvature,
                                           .features = objective_columns(&settings->shape),
                                           .bytes = left - group - 2 * buffer - left / 16,
                                           .spare = settings->memory ? 0 : left / 16,
                                           .buffer = buffer,
                                           .chunk = settings->chunk,
                                           .context = settings->context};
}

static int put_vectors(struct objective_device *on) {
    const struct objective_device_settings *settings = &on->settings;
    struct layout layout = objective_layout(&settings->shape);
    uint64_t exponents = settings->exponent ? layout_exponents(&layout) * sizeof(int16_t) : 0;
    uint64_t point = on->parameters * sizeof(double), sum = on->sums * sizeof(int64_t);
    int code = device_new(on->device, point, &on->point);
    if (!code)
        code = device_new(on->device, sum, &on->sum);
    if (!code)
        code = device_new(on->device, exponents, &on->exponent);
    if (!code)
        code = device_put(on->device, QUEUE_COMPUTE, on->exponent, settings->exponent, exponents);
    if (!code && on->family->open)
        code = on->family->open(on->device, &settings->shape, &on->own);
    if (code)
        return code;
    struct device_costs costs = {0};
    if (on->family->costs)
        costs = on->family->costs(&settings->shape);
    struct device_chunks_settings chunks =
        share_memory(on, &costs, point + sum + exponents + costs.fixed);
    on->chunks = device_chunks_new(on->device, &chunks);
    return objective_device_discard(on);
}

int objective_device_new(struct device *device, const struct objective_device_settings *settings,
                         struct objective_device **out) {
    struct objective_device *on = memory_new(1, sizeof *on);
    int code = 0;
    on->device = device;
    on->settings = *settings;
    on->family = device_family_of(&settings->shape);
    on->parameters = on->sums = objective_parameters(&settings->shape);
    if (settings->curvature) {
        const struct layout layout = objective_layout(&settings->shape);
        uint64_t order = settings->shared ? layout_leading_block(&layout, settings->block_columns)
                                          : layout_block(&layout, settings->block_columns);
        uint64_t triangle = order * (order + 1) / 2;
        on->sums = triangle > on->sums ? triangle : on->sums;
        uint64_t all = settings->memory ? settings->memory : device_room(device);
        code = device_curvature_new(device, &settings->shape, settings->block_columns,
                                    settings->shared, settings->exponents, settings->examples,
                                    all / 8 < SLAB_BYTES ? all / 8 : SLAB_BYTES, &on->curvature);
    }
    if (!code)
        code = put_vectors(on);
    if (code)
        objective_device_free(on);
    *out = code ? NULL : on;
    return code;
}

void objective_device_free(struct objective_device *on) {
    if (!on)
        return;
    for (size_t i = 0; i < 2; i++)
        device_group_release(on->device, &on->groups[i]);
    if (on->family->close)
        on->family->close(on->own);
    device_chunks_free(on->chunks);
    device_curvature_free(on->curvature);
    device_room_release(on->device, &on->rows);
    device_room_release(on->device, &on->outcomes);
    device_delete(on->device, on->exponent);
    device_delete(on->device, on->sum);
    device_delete(on->device, on->point);
    free(on->outcomes_here);
    free(on->margins_here);
    free(on->maxima_here);
    free(on->hessian);
    free(on);
}

int objective_device_point(struct objective_device *on, const double *parameters) {
    int code = device_put(on->device, QUEUE_COMPUTE, on->point, parameters,
                          on->parameters * sizeof *parameters);
    if (!code && on->family->point)
        code = on->family->point(on->own, on->point);
    return code;
}

/* ---- a pass over a group ---- */

/* Whether there are derivatives, and with them maxima and perhaps sums. */
static bool has_gradient(const struct objective_device_work *work) {
    return work->kind == OBJECTIVE_DEVICE_GRADIENT || work->kind == OBJECTIVE_DEVICE_TRANSPOSE;
}

static struct outcomes outcomes_at(void *memory, uint32_t count) {
    double *loss = memory;
    return (struct outcomes){loss, loss + count, (uint64_t *)(loss + 2 * (size_t)count)};
}

/* The next array of `count` numbers in the memory from *at on. */
static double *take(double **at, uint64_t count) {
    double *first = *at;
    *at += count;
    return first;
}

static struct device_pass pass_over(const struct objective_device *on,
                                    const struct objective_device_work *work,
                                    const struct device_group *group) {
    const struct objective_device_settings *settings = &on->settings;
    const struct outcomes outcomes = outcomes_at(on->outcomes.memory, group->count);
    bool scaled = has_gradient(work);
    struct device_pass pass = {
        .device = on->device,
        .shape = &settings->shape,
        .family = on->family,
        .dense = group->dense,
        .batch_rows =
            family_of(&settings->shape)->compute->batch_rows(&settings->shape, group->dense),
        .chunks = group->table.memory,
        .count = group->count,
        .rows_most = group->rows_most,
        .rows = group->rows,
        .values = group->values,
        .values_most = group->values_most,
        .columns = group->columns,
        .columns_most = group->columns_most,
        .by_column = group->by_column,
        .parameters = on->point,
        .exponent = settings->exponent ? on->exponent : NULL,
        .uniform = settings->uniform,
        .bound = scaled ? fixed_power(work->bounds.exponent[0]) : INFINITY,
        .chunk_loss = outcomes.loss,
        .chunk_correct = outcomes.correct,
        .chunk_largest = outcomes.largest,
        .sum = scaled && work->sums ? on->sum : NULL,
        .task = (work->kind == OBJECTIVE_DEVICE_PRODUCT     ? PASS_MARGINS
                 : work->kind == OBJECTIVE_DEVICE_TRANSPOSE ? PASS_DERIVATIVES
                                                            : PASS_LOSSES),
    };
    const struct objective_shape *shape = &on->settings.shape;
    uint64_t margins = pass.rows * shape->outputs;
    double *at = on->rows.memory;
    pass.margins = take(&at, margins);
    pass.work = take(&at, margins);
    pass.listed = has_lists(shape) ? take(&at, margins) : NULL;
    pass.common = shares_weights(on) ? take(&at, pass.rows) : NULL;
    pass.loss = take(&at, pass.rows);
    pass.right = take(&at, pass.rows);
    assert((char *)at <= (char *)on->rows.memory + on->rows.bytes);
    return pass;
}

/* `done` rows of the work come before those of the pass. */
static int compute_pass(struct objective_device *on, const struct objective_device_work *work,
                        const struct device_pass *pass, uint64_t done) {
    uint64_t outputs = pass->shape->outputs;
    int code =
        work->kind == OBJECTIVE_DEVICE_TRANSPOSE
            ? device_put(on->device, QUEUE_COMPUTE, pass->margins,
                         work->derivatives + done * outputs, pass->rows * outputs * sizeof(double))
            : on->family->margins(on->own, pass);
    if (!code)
        code = device_losses(pass);
    if (!code && has_gradient(work))
        code = on->family->gradient(on->own, pass, &work->bounds);
    if (!code && work->kind == OBJECTIVE_DEVICE_CURVATURE)
        code = device_curvature_add(on->curvature, pass, &work->sampling, work->bounds.exponent[0],
                                    work->sums ? on->sum : NULL, on->hessian);
    return code;
}

/* Makes all memory for a group, on the device and here, before anything of it is computed. */
static int make_room(struct objective_device *on, const struct objective_device_work *work,
                     const struct device_group *group) {
    const uint64_t bytes = group->count * OUTCOME_BYTES;
    const uint64_t margins = group->rows * on->settings.shape.outputs;
    on->outcomes_here = memory_resize(on->outcomes_here, bytes, 1);
    if (work->kind == OBJECTIVE_DEVICE_CURVATURE)
        on->hessian = memory_resize(on->hessian, group->count, sizeof *on->hessian);
    if (work->kind == OBJECTIVE_DEVICE_PRODUCT)
        on->margins_here = memory_resize(on->margins_here, margins, sizeof *on->margins_here);
    if (on->family->maxima)
        on->maxima_here = memory_resize(on->maxima_here, group->count, sizeof *on->maxima_here);
    int code = device_room_reserve(on->device, &on->rows, group->rows * row_bytes(on));
    return code ? code : device_room_reserve(on->device, &on->outcomes, bytes);
}

static int launch(struct objective_device *on, const struct objective_device_work *work,
                  const struct device_group *group, uint64_t done) {
    struct device *device = on->device;
    uint64_t bytes = group->count * OUTCOME_BYTES;
    int code = make_room(on, work, group);
    if (!code)
        code = device_order(device, QUEUE_COPY, QUEUE_COMPUTE);
    if (!code)
        code = device_fill(device, QUEUE_COMPUTE, on->outcomes.memory, 0, bytes);
    if (code)
        return code;
    const struct device_pass pass = pass_over(on, work, group);
    return compute_pass(on, work, &pass, done);
}

/* ---- results ---- */

/* The result of a chunk; maxima that the family itself finds are filled in by collect(). */
static struct objective_device_result result_of(const struct objective_device *on,
                                                const struct objective_device_work *work,
                                                const struct device_group *group,
                                                const struct outcomes *outcomes, uint32_t i) {
    struct objective_device_result result = {.values = group->chunks[i].values,
                                             .rows = group->chunks[i].rows};
    if (work->kind == OBJECTIVE_DEVICE_PRODUCT)
        return result;
    if (work->kind == OBJECTIVE_DEVICE_CURVATURE) {
        result.hessian = on->hessian[i];
        return result;
    }
    if (on->family->maxima)
        result.result.loss = outcomes->loss[i];
    else {
        double largest;
        memcpy(&largest, &outcomes->largest[i], sizeof largest);
        if (!isfinite(largest) || !isfinite(outcomes->loss[i]))
            largest = INFINITY;
        double bound = has_gradient(work) ? fixed_power(work->bounds.exponent[0]) : INFINITY;
        result.result = (struct objective_result){.loss = outcomes->loss[i],
                                                  .maxima = maxima_of_one(largest),
                                                  .exceeded = largest > bound};
    }
    result.result.correct = outcomes->correct[i];
    return result;
}

/* Waits for the margins of a group, which begin what a pass keeps of its rows. */
static int collect_margins(struct objective_device *on, const struct objective_device_work *work,
                           const struct device_group *group, uint64_t done) {
    uint64_t outputs = on->settings.shape.outputs, count = group->rows * outputs;
    if (work->kind != OBJECTIVE_DEVICE_PRODUCT)
        return 0;
    int code = device_get(on->device, QUEUE_COMPUTE, on->margins_here, on->rows.memory,
                          count * sizeof *on->margins_here);
    for (uint64_t i = 0; i < count && !code; i++)
        add_bits(&work->margins[done * outputs + i], on->margins_here[i]);
    return code;
}

/* Waits for the group's pass. */
static int collect(struct objective_device *on, const struct objective_device_work *work,
                   const struct device_group *group, struct objective_device_result *results) {
    uint64_t bytes = group->count * OUTCOME_BYTES;
    int code = device_get(on->device, QUEUE_COMPUTE, on->outcomes_here, on->outcomes.memory, bytes);
    const struct outcomes outcomes = outcomes_at(on->outcomes_here, group->count);
    for (uint32_t i = 0; i < group->count && !code; i++)
        results[i] = result_of(on, work, group, &outcomes, i);
    if (!code && on->family->maxima && work->kind == OBJECTIVE_DEVICE_GRADIENT) {
        /* Collects the results of families with a maximum for each tensor. */
        struct maxima *maxima = on->maxima_here;
        memset(maxima, 0, group->count * sizeof *maxima);
        code = on->family->maxima(on->own, group->count, maxima);
        for (uint32_t j = 0; j < group->count && !code; j++) {
            results[j].result.maxima = maxima[j];
            results[j].result.exceeded = maxima_exceed(&maxima[j], &work->bounds);
        }
    }
    return code;
}

/* While the device computes a group, the next one is loaded. */
int objective_device_compute(struct objective_device *on, const struct objective_device_work *work,
                             struct objective_device_result *results, bool *stopped) {
    struct device_group *now = &on->groups[0], *next = &on->groups[1];
    uint32_t done = 0;
    uint64_t rows = 0; /* of the chunks that are done */
    *stopped = false;
    assert(work->count > 0 && work->kind != OBJECTIVE_DEVICE_NONE);
    int code = device_chunks_load(on->chunks, work->first, work->count, &on->limit, now);
    while (!code && done < work->count && !*stopped) {
        uint32_t loaded = done + now->count;
        assert(now->count > 0 && loaded <= work->count);
        code = launch(on, work, now, rows);
        if (!code && loaded < work->count)
            code = device_chunks_load(on->chunks, work->first + loaded, work->count - loaded,
                                      &on->limit, next);
        if (!code)
            code = collect(on, work, now, results + done);
        if (!code)
            code = collect_margins(on, work, now, rows);
        rows += now->rows;
        done = loaded;
        struct device_group *other = now;
        now = next;
        next = other;
        *stopped = work->stop && atomic_load(work->stop) && done < work->count;
    }
    return code;
}

/* ---- sums ---- */

int objective_device_gather(struct objective_device *on, int64_t *into, uint64_t count) {
    if (count > on->sums)
        return error_set(ERROR_INTERNAL, "%" PRIu64 " sums are asked of a device that has %" PRIu64,
                         count, on->sums);
    int code = device_get(on->device, QUEUE_COMPUTE, into, on->sum, count * sizeof *into);
    return code ? code : objective_device_discard(on);
}

int objective_device_discard(struct objective_device *on) {
    return device_fill(on->device, QUEUE_COMPUTE, on->sum, 0, on->sums * sizeof(int64_t));
}

struct device_chunks_usage objective_device_usage(const struct objective_device *on) {
    return device_chunks_usage(on->chunks);
}
