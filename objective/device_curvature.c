#include "objective/device_pass.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "numeric/fixed.h"
#include "objective/device_chunks.h"
#include "objective/device_curvature_kernels.h"

/* More entries of a slab would not make it faster. */
#define SLAB_ENTRIES_MAX 4096

struct device_curvature {
    struct device *device;
    struct curvature_model model;
    uint64_t examples;
    void *power;
    uint32_t stride; /* entries of a slab */
    void *left, *seconds;
    struct device_room rows;    /* what is kept of each row */
    struct device_room chunks;  /* and of each chunk */
    struct curvature_sum *sums; /* of the chunks, on the host */
    uint64_t *before;
};

/* What lies in `rows` and `chunks`. */
struct hessian_places {
    double *diagonal, *traced, *weighted, *factor;
    uint32_t *flags, *touched, *sampled;
    struct curvature_sum *sums;
    uint64_t *before;
};

/* ---- memory ---- */

/* A sampled row is as many entries of a slab. */
static uint32_t entries_each(const struct curvature_model *model) {
    return model->shares ? model->outputs : 1;
}

static struct curvature_model model_of(const struct objective_shape *shape, uint32_t block_columns,
                                       bool shared) {
    const struct objective *objective = objective_of(shape->kind);
    struct curvature_model model = {
        .kind = shape->kind,
        .features = objective_columns(shape),
        .outputs = shape->outputs,
        .intercept = shape->intercept,
        .shares = objective->shares_weights,
        .block_columns = block_columns,
        .columns = block_columns + shape->intercept,
        .weights = objective_weights(objective, shape->outputs),
        .loss = shape->loss,
    };
    if (model.shares && shape->intercept)
        model.columns = block_columns + shape->outputs;
    if (shared && model.weights > 1) {
        model.weights = 1;
        model.second_shared = objective_second_at_zero(shape);
    }
    return model;
}

/* A slab has as many entries as fit into `bytes`: a multiple of the depth, and of the entries of a
 * row. */
static int make_slab(struct device_curvature *curvature, uint64_t bytes) {
    const struct curvature_model *model = &curvature->model;
    uint64_t pairs = (uint64_t)model->weights * model->weights;
    uint64_t least = (uint64_t)CURVATURE_DEPTH * entries_each(model);
    uint64_t stride = bytes / ((model->columns + pairs) * sizeof(double));
    stride = stride > SLAB_ENTRIES_MAX ? SLAB_ENTRIES_MAX : stride;
    stride = stride < least ? least : stride - stride % least;
    curvature->stride = (uint32_t)stride;
    int code =
        device_new(curvature->device, stride * model->columns * sizeof(double), &curvature->left);
    return code ? code
                : device_new(curvature->device, stride * pairs * sizeof(double),
                             &curvature->seconds);
}

int device_curvature_new(struct device *device, const struct objective_shape *shape,
                         uint32_t block_columns, bool shared, const int16_t *exponent,
                         uint64_t examples, uint64_t slab, struct device_curvature **out) {
    struct device_curvature *curvature = memory_new(1, sizeof *curvature);
    curvature->device = device;
    curvature->model = model_of(shape, block_columns, shared);
    curvature->examples = examples;
    const struct curvature_model *model = &curvature->model;
    size_t count = (size_t)model->features + model->intercept, bytes = count * sizeof(double);
    double *power = memory_new(count, sizeof *power);
    for (size_t j = 0; j < count; j++)
        power[j] = ldexp(1, exponent[j] - 31);
    int code = device_new(curvature->device, bytes, &curvature->power);
    if (!code)
        code = device_put(curvature->device, QUEUE_COMPUTE, curvature->power, power, bytes);
    free(power);
    curvature->model.power = curvature->power;
    if (!code)
        code = make_slab(curvature, slab);
    if (code) {
        device_curvature_free(curvature);
        curvature = NULL;
    }
    *out = curvature;
    return code;
}

void device_curvature_free(struct device_curvature *curvature) {
    if (!curvature)
        return;
    device_room_release(curvature->device, &curvature->chunks);
    device_room_release(curvature->device, &curvature->rows);
    device_delete(curvature->device, curvature->seconds);
    device_delete(curvature->device, curvature->left);
    device_delete(curvature->device, curvature->power);
    free(curvature->sums);
    free(curvature->before);
    free(curvature);
}

/* Makes room for the rows and chunks of a pass. */
static int reserve(struct device_curvature *curvature, const struct device_pass *pass,
                   struct hessian_places *places) {
    uint64_t wide = pass->rows * curvature->model.outputs;
    uint64_t rows = (wide + 3 * pass->rows) * sizeof(double) + 3 * pass->rows * sizeof(uint32_t);
    uint64_t chunks =
        pass->count * sizeof(struct curvature_sum) + (pass->count + 1) * sizeof(uint64_t);
    int code = device_room_reserve(curvature->device, &curvature->rows, rows);
    if (!code)
        code = device_room_reserve(curvature->device, &curvature->chunks, chunks);
    if (code)
        return code;
    places->diagonal = curvature->rows.memory;
    places->traced = places->diagonal + wide;
    places->weighted = places->traced + pass->rows;
    places->factor = places->weighted + pass->rows;
    places->flags = (uint32_t *)(places->factor + pass->rows);
    places->touched = places->flags + pass->rows;
    places->sampled = places->touched + pass->rows;
    assert((char *)(places->sampled + pass->rows) <=
           (char *)curvature->rows.memory + curvature->rows.bytes);
    places->sums = curvature->chunks.memory;
    places->before = (uint64_t *)(places->sums + pass->count);
    curvature->sums = memory_resize(curvature->sums, pass->count, sizeof *curvature->sums);
    curvature->before =
        memory_resize(curvature->before, pass->count + 1, sizeof *curvature->before);
    return 0;
}

/* ---- sampling ---- */

static int draw(const struct device_curvature *curvature, const struct device_pass *pass,
                const struct row_sampling *sampling, int exponent,
                const struct hessian_places *places) {
    const struct curvature_draw_arguments arguments = {
        .chunks = pass->chunks,
        .blocks_each = device_pass_blocks(pass->rows_most, CURVATURE_ROW_THREADS),
        .model = curvature->model,
        .share = (double)curvature->examples * 0x1p-31,
        .bound = ldexp(sampling->floor, exponent),
        .rate = sampling->rate,
        .floor = sampling->floor,
        .sample_seed = sampling->sample_seed,
        .derivatives = pass->margins,
        .work = pass->work,
        .diagonal = places->diagonal,
        .traced = places->traced,
        .weighted = places->weighted,
        .factor = places->factor,
        .flags = places->flags,
        .touched = places->touched,
    };
    return device_launch(pass->device, QUEUE_COMPUTE, &kernel_curvature_draw,
                         (uint64_t)pass->count * arguments.blocks_each, &arguments);
}

/* Also fetches what the chunks add up to. */
static int add_up(const struct device_curvature *curvature, const struct device_pass *pass,
                  const struct hessian_places *places) {
    const struct curvature_total_arguments arguments = {
        .chunks = pass->chunks,
        .model = curvature->model,
        .traced = places->traced,
        .weighted = places->weighted,
        .flags = places->flags,
        .touched = places->touched,
        .sampled = places->sampled,
        .sums = places->sums,
    };
    int code = device_launch(pass->device, QUEUE_COMPUTE, &kernel_curvature_total, pass->count,
                             &arguments);
    return code ? code
                : device_get(pass->device, QUEUE_COMPUTE, curvature->sums, places->sums,
                             pass->count * sizeof *curvature->sums);
}

/* ---- the triangle ---- */

static int fill_slab(const struct device_curvature *curvature, const struct device_pass *pass,
                     int exponent, uint64_t first, uint32_t rows,
                     const struct hessian_places *places) {
    const struct curvature_fill_arguments arguments = {
        .chunks = pass->chunks,
        .count = pass->count,
        .model = curvature->model,
        .before = places->before,
        .sampled = places->sampled,
        .first = first,
        .rows = rows,
        .stride = curvature->stride,
        .inverse = fixed_power(-exponent),
        .derivatives = pass->margins,
        .diagonal = places->diagonal,
        .factor = places->factor,
        .left = curvature->left,
        .seconds = curvature->seconds,
    };
    uint32_t blocks = (curvature->stride + CURVATURE_FILL_THREADS - 1) / CURVATURE_FILL_THREADS;
    return device_launch(pass->device, QUEUE_COMPUTE, &kernel_curvature_fill, blocks, &arguments);
}

static int add_slab(const struct device_curvature *curvature, const struct device_pass *pass,
                    uint32_t entries, int64_t *triangle) {
    const struct curvature_model *model = &curvature->model;
    uint64_t n = (uint64_t)model->columns * model->weights;
    uint64_t tiles = (n + CURVATURE_TILE - 1) / CURVATURE_TILE;
    uint32_t filled = (entries + CURVATURE_DEPTH - 1) / CURVATURE_DEPTH * CURVATURE_DEPTH;
    assert(filled <= curvature->stride);
    const struct curvature_triangle_arguments arguments = {
        .columns = model->columns,
        .weights = model->weights,
        .entries = filled,
        .stride = curvature->stride,
        .left = curvature->left,
        .seconds = curvature->seconds,
        .triangle = triangle,
    };
    return device_launch(pass->device, QUEUE_COMPUTE, &kernel_curvature_triangle,
                         tiles * (tiles + 1) / 2, &arguments);
}

static int add_triangle(const struct device_curvature *curvature, const struct device_pass *pass,
                        int exponent, const struct hessian_places *places, int64_t *triangle) {
    const struct curvature_model *model = &curvature->model;
    uint64_t sampled = 0;
    for (uint32_t i = 0; i < pass->count; i++) {
        curvature->before[i] = sampled;
        sampled += curvature->sums[i].sampled;
    }
    curvature->before[pass->count] = sampled;
    int code = device_put(pass->device, QUEUE_COMPUTE, places->before, curvature->before,
                          (pass->count + 1) * sizeof *curvature->before);
    uint32_t most = curvature->stride / entries_each(model);
    assert(most > 0);
    for (uint64_t first = 0; first < sampled && !code; first += most) {
        uint32_t rows = sampled - first < most ? (uint32_t)(sampled - first) : most;
        code = fill_slab(curvature, pass, exponent, first, rows, places);
        if (!code)
            code = add_slab(curvature, pass, rows * entries_each(model), triangle);
    }
    return code;
}

/* ---- all of it ---- */

int device_curvature_add(struct device_curvature *curvature, const struct device_pass *pass,
                         const struct row_sampling *sampling, int exponent, int64_t *triangle,
                         struct objective_hessian *hessian) {
    struct hessian_places places;
    int code = reserve(curvature, pass, &places);
    curvature->model.dense = pass->dense;
    if (!code)
        code = draw(curvature, pass, sampling, exponent, &places);
    if (!code)
        code = add_up(curvature, pass, &places);
    if (code)
        return code;
    /* Whether a chunk has exceeded its bound. */
    bool exceeded = false;
    for (uint32_t i = 0; i < pass->count; i++) {
        const struct curvature_sum *sum = &curvature->sums[i];
        hessian[i] = (struct objective_hessian){.trace_leverage = sum->trace_leverage,
                                                .trace = sum->trace,
                                                .sampled = sum->sampled,
                                                .terms = (triangle != NULL) ? sum->terms : 0,
                                                .exceeded = sum->exceeded};
        exceeded |= sum->exceeded != 0;
    }
    if (!triangle || exceeded) /* sums are of no use then */
        return 0;
    return add_triangle(curvature, pass, exponent, &places, triangle);
}
