#include "tests/unit/on_device_bench.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "objective/halves.h"
#include "tests/unit/device_fixture.h"

/* Chunks that are shorter than a batch and longer, and one of no rows. */
const uint32_t bench_rows[BENCH_CHUNKS] = {1, 40, 0, 65, 400, 194};

const struct objective_shape bench_shapes[BENCH_SHAPES] = {
    CANNED_SHAPE(LOGISTIC, 1, true, 0),          CANNED_SHAPE(LOGISTIC, 1, false, 0),
    CANNED_SHAPE(SQUARED, 1, true, 0),           CANNED_SHAPE(SOFTMAX, 2, true, 0),
    CANNED_SHAPE(SOFTMAX, 5, false, 0),          CANNED_SHAPE(SOFTMAX, 11, true, 0),
    CANNED_SHAPE(SQUARED_HINGE, 1, true, 0),     CANNED_SHAPE(HUBER, 1, true, 1.35),
    CANNED_SHAPE(QUANTILE, 1, true, 0.9, 1),     CANNED_SHAPE(SMOOTH_HINGE, 1, true, 0),
    CANNED_SHAPE(ONE_VS_REST, 2, true, 0),       CANNED_SHAPE(ONE_VS_REST, 11, false, 0),
    CANNED_SHAPE(POISSON, 1, true, 0),           CANNED_SHAPE(GAMMA, 1, true, 0),
    CANNED_SHAPE(TWEEDIE, 1, true, 1.2),         CANNED_SHAPE(ORDINAL, 1, true, 0),
    CANNED_SHAPE(ORDINAL, 4, true, 0),           CANNED_SHAPE(MULTILABEL, 3, true, 0),
    CANNED_SHAPE(PROPORTIONAL_ODDS, 4, true, 0), CANNED_SHAPE(MULTILABEL, 11, false, 0),
};

const struct objective_shape *bench_shape(enum objective_kind kind) {
    size_t s = 0;
    while (bench_shapes[s].kind != kind)
        s++;
    return &bench_shapes[s];
}

/* ---- chunks ---- */

static const void *value_from(const struct rows *rows, uint64_t at) {
    return rows->value ? (const char *)rows->value + at * value_bytes(rows->type) : NULL;
}

/* The rows of a chunk: some of the block's. Offsets of a chunk begin at 0. */
static void cut(struct bench *bench, uint32_t number, uint32_t first) {
    const struct rows *all = &bench->canned->rows;
    const uint32_t *start = bench->canned->start + first;
    struct rows *rows = &bench->rows[number];
    uint32_t count = bench_rows[number];
    bench->start[number] = memory_new(count + 1, sizeof(uint32_t));
    for (uint32_t i = 0; i <= count; i++)
        bench->start[number][i] = start[i] - start[0];
    *rows = *all;
    rows->count = count;
    rows->values = start[count] - start[0];
    rows->start = all->dense ? NULL : bench->start[number];
    rows->feature = all->dense ? NULL : all->feature + start[0];
    rows->value = value_from(all, start[0]);
    rows->label = all->label + first;
    rows->weight = all->weight ? all->weight + first : NULL;
}

static int chunk_of(void *context, uint32_t number, struct rows *rows) {
    struct bench *bench = context;
    if (number >= BENCH_CHUNKS)
        return error_set(ERROR_DATA, "there is no chunk %u", number);
    bench->asked++;
    *rows = bench->rows[number];
    return 0;
}

void bench_begin(struct bench *bench, const struct objective_shape *shape, bool dense,
                 enum value_type type, bool weighted, const double *scale, uint64_t seed) {
    *bench = (struct bench){.canned = canned_new(*shape, dense, type, scale, seed)};
    bool adapts = objective_of(shape->kind)->bound || objective_of(shape->kind)->shares_weights;
    if (weighted)
        canned_weigh(bench->canned, 3, seed);
    for (uint32_t c = 0, first = 0; c < BENCH_CHUNKS; first += bench_rows[c++])
        cut(bench, c, first);
    bench->scale = (struct objective_scale){.exponent = bench->canned->exponent,
                                            .uniform = bench->canned->uniform,
                                            .bounds = bounds_of_one(adapts ? 6 : 0)};
    bench->device = test_device();
    bench->room = device_room(bench->device);
}

void bench_end(struct bench *bench) {
    objective_device_free(bench->on);
    if (test_device_is_emulated(bench->device) && !device_is_lost(bench->device)) {
        device_limit(bench->device, UINT64_MAX);
        assert_int_equal(device_room(bench->device), bench->room);
    }
    device_close(bench->device);
    for (uint32_t c = 0; c < BENCH_CHUNKS; c++)
        free(bench->start[c]);
    free(bench->canned);
    error_clear();
}

/* ---- what a device finds, and what the processor does ---- */

int bench_open(struct bench *bench, uint64_t memory) {
    const struct objective_device_settings settings = {.shape = bench->canned->shape,
                                                       .exponent = bench->scale.exponent,
                                                       .uniform = bench->scale.uniform,
                                                       .memory = memory,
                                                       .chunk = chunk_of,
                                                       .context = bench};
    objective_device_free(bench->on);
    int code = objective_device_new(bench->device, &settings, &bench->on);
    return code ? code : objective_device_point(bench->on, bench->canned->parameters);
}

int bench_compute(struct bench *bench, enum objective_device_kind kind, bool sums,
                  struct found *found) {
    const struct objective_device_work work = {
        .kind = kind, .count = BENCH_CHUNKS, .sums = sums, .bounds = bench->scale.bounds};
    uint64_t n = objective_parameters(&bench->canned->shape);
    bool stopped;
    int code = objective_device_compute(bench->on, &work, found->results, &stopped);
    return code ? code : objective_device_gather(bench->on, found->sum, n);
}

/* One NaN is as good as another. */
static void assert_same_double(double a, double b) {
    if (!isnan(a) || !isnan(b))
        assert_memory_equal(&a, &b, sizeof a);
}

static void assert_same_result(const struct objective_result *a, const struct objective_result *b) {
    assert_same_double(a->loss, b->loss);
    assert_int_equal(a->maxima.count, b->maxima.count);
    assert_same_double(a->maxima.value[0], b->maxima.value[0]);
    assert_int_equal(a->exceeded, b->exceeded);
    assert_same_double(a->correct, b->correct);
}

/* Whether a bound was exceeded. */
bool bench_assert_same(const struct bench *bench, enum objective_device_kind kind, bool sums,
                       const struct found *found) {
    _Alignas(64) static int64_t sum[CANNED_PARAMETERS];
    const struct objective_shape *shape = &bench->canned->shape;
    struct objective_scratch *scratch = objective_scratch_new(shape);
    bool exceeded = false;
    memset(sum, 0, sizeof sum);
    for (uint32_t c = 0; c < BENCH_CHUNKS; c++) {
        struct objective_result result;
        objective_block(shape, kind == OBJECTIVE_DEVICE_LOSS ? NULL : &bench->scale,
                        &bench->rows[c], bench->canned->parameters, sums ? sum : NULL, scratch,
                        &result);
        assert_same_result(&found->results[c].result, &result);
        assert_int_equal(found->results[c].values, bench->rows[c].values);
        exceeded |= result.exceeded;
    }
    objective_scratch_free(scratch);
    if (!exceeded)
        assert_memory_equal(found->sum, sum, objective_parameters(shape) * sizeof *sum);
    return exceeded;
}

static void assert_product(struct bench *bench, struct found *found) {
    static int64_t margins[CANNED_ROWS * CANNED_OUTPUTS_MAX];
    const struct objective_shape *shape = &bench->canned->shape;
    const struct objective_device_work work = {.kind = OBJECTIVE_DEVICE_PRODUCT,
                                               .count = BENCH_CHUNKS,
                                               .bounds = bench->scale.bounds,
                                               .margins = found->margins};
    struct objective_scratch *scratch = objective_scratch_new(shape);
    bool stopped;
    memset(margins, 0, sizeof margins);
    memset(found->margins, 0, sizeof found->margins);
    assert_int_equal(objective_device_compute(bench->on, &work, found->results, &stopped), 0);
    for (uint32_t c = 0, row = 0; c < BENCH_CHUNKS; row += bench_rows[c++]) {
        struct objective_result result;
        objective_product(shape, NULL, &bench->rows[c], bench->canned->parameters,
                          margins + (size_t)row * shape->outputs, scratch, &result);
        assert_int_equal(found->results[c].rows, bench_rows[c]);
    }
    objective_scratch_free(scratch);
    assert_memory_equal(found->margins, margins, sizeof margins);
}

static void assert_transpose(struct bench *bench, const double *derivatives, bool sums,
                             struct found *found) {
    _Alignas(64) static int64_t sum[CANNED_PARAMETERS];
    const struct objective_shape *shape = &bench->canned->shape;
    const struct objective_device_work work = {.kind = OBJECTIVE_DEVICE_TRANSPOSE,
                                               .count = BENCH_CHUNKS,
                                               .sums = sums,
                                               .bounds = bench->scale.bounds,
                                               .derivatives = derivatives};
    uint64_t n = objective_parameters(shape);
    struct objective_scratch *scratch = objective_scratch_new(shape);
    bool stopped;
    memset(sum, 0, sizeof sum);
    assert_int_equal(objective_device_compute(bench->on, &work, found->results, &stopped), 0);
    assert_int_equal(objective_device_gather(bench->on, found->sum, n), 0);
    for (uint32_t c = 0, row = 0; c < BENCH_CHUNKS; row += bench_rows[c++]) {
        struct objective_result result;
        objective_transpose(shape, &bench->scale, &bench->rows[c],
                            derivatives + (size_t)row * shape->outputs, sums ? sum : NULL, scratch,
                            &result);
        assert_same_result(&found->results[c].result, &result);
        assert_int_equal(found->results[c].rows, bench_rows[c]);
        assert_int_equal(found->results[c].values, bench->rows[c].values);
    }
    objective_scratch_free(scratch);
    assert_memory_equal(found->sum, sum, n * sizeof *sum);
}

void bench_assert_products(struct bench *bench, uint64_t memory) {
    static struct found found;
    static double derivatives[CANNED_ROWS * CANNED_OUTPUTS_MAX];
    if (!objective_has_products(&bench->canned->shape))
        return;
    for (size_t i = 0; i < sizeof derivatives / sizeof *derivatives; i++)
        derivatives[i] = (double)((int)(i % 37) - 18) / 20;
    assert_int_equal(bench_open(bench, memory), 0);
    assert_product(bench, &found);
    assert_transpose(bench, derivatives, true, &found);
    assert_transpose(bench, derivatives, false, &found);
    assert_product(bench, &found);
}

void bench_assert_computes(struct bench *bench) {
    static struct found found;
    const enum objective_device_kind gradient = OBJECTIVE_DEVICE_GRADIENT;
    assert_int_equal(bench_compute(bench, gradient, true, &found), 0);
    assert_false(bench_assert_same(bench, gradient, true, &found));
    assert_int_equal(bench_compute(bench, gradient, false, &found), 0);
    assert_false(bench_assert_same(bench, gradient, false, &found));
    assert_int_equal(bench_compute(bench, OBJECTIVE_DEVICE_LOSS, false, &found), 0);
    assert_false(bench_assert_same(bench, OBJECTIVE_DEVICE_LOSS, false, &found));
}
