/* Evaluations on a device against objective_block(), chunk for chunk and bit for bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "objective/on_device.h"
#include "tests/unit/canned.h"
#include "tests/unit/device_fixture.h"

/* Chunks that are shorter than a batch and longer, and one of no rows. */
static const uint32_t chunk_rows[] = {1, 40, 0, 65, 400, 194};
enum { CHUNKS = sizeof chunk_rows / sizeof *chunk_rows };

static const struct objective_shape shapes[] = {
    CANNED_SHAPE(LOGISTIC, 1, true, 0),      CANNED_SHAPE(LOGISTIC, 1, false, 0),
    CANNED_SHAPE(SQUARED, 1, true, 0),       CANNED_SHAPE(SOFTMAX, 2, true, 0),
    CANNED_SHAPE(SOFTMAX, 5, false, 0),      CANNED_SHAPE(SOFTMAX, 11, true, 0),
    CANNED_SHAPE(SQUARED_HINGE, 1, true, 0), CANNED_SHAPE(HUBER, 1, true, 1.35),
    CANNED_SHAPE(QUANTILE, 1, true, 0.9, 1), CANNED_SHAPE(SMOOTH_HINGE, 1, true, 0),
    CANNED_SHAPE(ONE_VS_REST, 2, true, 0),   CANNED_SHAPE(ONE_VS_REST, 11, false, 0),
    CANNED_SHAPE(POISSON, 1, true, 0),       CANNED_SHAPE(GAMMA, 1, true, 0),
    CANNED_SHAPE(TWEEDIE, 1, true, 1.2),     CANNED_SHAPE(ORDINAL, 1, true, 0),
    CANNED_SHAPE(ORDINAL, 4, true, 0),       CANNED_SHAPE(MULTILABEL, 3, true, 0),
    CANNED_SHAPE(MULTILABEL, 11, false, 0),
};
#define SHAPES (sizeof shapes / sizeof *shapes)

struct bench {
    struct canned *canned;
    struct rows rows[CHUNKS];
    uint32_t *start[CHUNKS];
    uint32_t asked; /* how often rows were asked for */
    struct objective_scale scale;
    struct device *device;
    uint64_t room; /* of the device at first */
    struct objective_device *on;
};

/* ---- chunks ---- */

static const void *value_from(const struct rows *rows, uint64_t at) {
    return rows->value ? (const char *)rows->value + at * value_bytes(rows->type) : NULL;
}

/* The rows of a chunk: some of the block's. Offsets of a chunk begin at 0. */
static void cut(struct bench *bench, uint32_t number, uint32_t first) {
    const struct rows *all = &bench->canned->rows;
    const uint32_t *start = bench->canned->start + first;
    struct rows *rows = &bench->rows[number];
    uint32_t count = chunk_rows[number];
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
    if (number >= CHUNKS)
        return error_set(ERROR_DATA, "there is no chunk %u", number);
    bench->asked++;
    *rows = bench->rows[number];
    return 0;
}

static void begin(struct bench *bench, const struct objective_shape *shape, bool dense,
                  enum value_type type, bool weighted, uint64_t seed) {
    *bench = (struct bench){.canned = canned_new(*shape, dense, type, NULL, seed)};
    bool adapts = objective_of(shape->kind)->bound || objective_of(shape->kind)->shares_weights;
    if (weighted)
        canned_weigh(bench->canned, 3, seed);
    for (uint32_t c = 0, first = 0; c < CHUNKS; first += chunk_rows[c++])
        cut(bench, c, first);
    bench->scale = (struct objective_scale){.exponent = bench->canned->exponent,
                                            .uniform = bench->canned->uniform,
                                            .bounds = bounds_of_one(adapts ? 6 : 0)};
    bench->device = test_device();
    bench->room = device_room(bench->device);
}

static void end(struct bench *bench) {
    objective_device_free(bench->on);
    if (!device_is_lost(bench->device)) {
        device_limit(bench->device, UINT64_MAX);
        assert_int_equal(device_room(bench->device), bench->room);
    }
    device_close(bench->device);
    for (uint32_t c = 0; c < CHUNKS; c++)
        free(bench->start[c]);
    free(bench->canned);
    error_clear();
}

/* ---- what a device finds, and what the processor does ---- */

static int open_bench(struct bench *bench, uint64_t memory) {
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

struct found {
    struct objective_device_result results[CHUNKS];
    int64_t sum[CANNED_PARAMETERS];
};

static int compute(struct bench *bench, enum objective_device_kind kind, bool sums,
                   struct found *found) {
    const struct objective_device_work work = {
        .kind = kind, .count = CHUNKS, .sums = sums, .bounds = bench->scale.bounds};
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
static bool assert_as_block(const struct bench *bench, enum objective_device_kind kind, bool sums,
                            const struct found *found) {
    _Alignas(64) static int64_t sum[CANNED_PARAMETERS];
    const struct objective_shape *shape = &bench->canned->shape;
    struct objective_scratch *scratch = objective_scratch_new(shape);
    bool exceeded = false;
    memset(sum, 0, sizeof sum);
    for (uint32_t c = 0; c < CHUNKS; c++) {
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

static void assert_computes(struct bench *bench) {
    static struct found found;
    const enum objective_device_kind gradient = OBJECTIVE_DEVICE_GRADIENT;
    assert_int_equal(compute(bench, gradient, true, &found), 0);
    assert_false(assert_as_block(bench, gradient, true, &found));
    assert_int_equal(compute(bench, gradient, false, &found), 0);
    assert_false(assert_as_block(bench, gradient, false, &found));
    assert_int_equal(compute(bench, OBJECTIVE_DEVICE_LOSS, false, &found), 0);
    assert_false(assert_as_block(bench, OBJECTIVE_DEVICE_LOSS, false, &found));
}

/* ---- tests ---- */

static void every_objective_on_any_rows_is_as_on_the_processor(void **state) {
    (void)state;
    for (size_t s = 0; s < SHAPES; s++)
        for (int dense = 0; dense < 2; dense++)
            for (int type = VALUE_ONES; type <= VALUE_DOUBLE; type++) {
                struct bench bench;
                begin(&bench, &shapes[s], dense, (enum value_type)type, type % 2, s + 1);
                if (type > VALUE_BYTE)
                    bench.scale.exponent = NULL;
                assert_int_equal(open_bench(&bench, 0), 0);
                assert_computes(&bench);
                end(&bench);
            }
}

static const struct objective_shape *shape_of(enum objective_kind kind) {
    size_t s = 0;
    while (shapes[s].kind != kind)
        s++;
    return &shapes[s];
}

/* Bytes for the vectors of all shapes, and little more: chunks must take turns. */
#define LITTLE (UINT64_C(120) << 10)

static void chunks_that_do_not_fit_are_copied_each_time(void **state) {
    (void)state;
    static struct found found;
    for (uint64_t memory = 1; memory <= LITTLE; memory += LITTLE - 1)
        for (size_t s = 0; s < SHAPES; s += 3)
            for (int dense = 0; dense < 2; dense++) {
                struct bench bench;
                begin(&bench, &shapes[s], dense, VALUE_FLOAT, true, s + 1);
                assert_int_equal(open_bench(&bench, memory), 0);
                assert_computes(&bench);
                struct objective_device_usage usage = objective_device_usage(bench.on);
                uint32_t asked = bench.asked;
                assert_true(usage.streamed > 0);
                assert_true((usage.bytes > 0) == (memory > 1)); /* no rows take no room */
                assert_true(usage.bytes <= memory);
                assert_computes(&bench);
                assert_true(bench.asked - asked >= 3 * (CHUNKS - usage.resident));
                assert_int_equal(objective_device_usage(bench.on).resident, usage.resident);
                assert_int_equal(compute(&bench, OBJECTIVE_DEVICE_GRADIENT, true, &found), 0);
                end(&bench);
            }
}

static void chunks_that_fit_are_copied_once(void **state) {
    (void)state;
    struct bench bench;
    begin(&bench, shape_of(OBJECTIVE_SOFTMAX), false, VALUE_BYTE, false, 1);
    assert_int_equal(open_bench(&bench, 0), 0);
    assert_computes(&bench);
    assert_computes(&bench);
    assert_int_equal(bench.asked, CHUNKS);
    assert_int_equal(objective_device_usage(bench.on).resident, CHUNKS);
    end(&bench);
}

static void a_device_that_is_full_keeps_no_more_chunks(void **state) {
    (void)state;
    struct bench bench;
    begin(&bench, shape_of(OBJECTIVE_LOGISTIC), false, VALUE_DOUBLE, false, 1);
    assert_int_equal(open_bench(&bench, UINT64_C(4) << 20), 0);
    device_limit(bench.device, UINT64_C(900) << 10); /* others have taken the rest */
    assert_computes(&bench);
    assert_int_equal(objective_device_usage(bench.on).resident, 0);
    end(&bench);
}

static void a_device_without_memory_says_so(void **state) {
    (void)state;
    struct bench bench;
    begin(&bench, shape_of(OBJECTIVE_LOGISTIC), false, VALUE_DOUBLE, false, 1);
    assert_int_equal(open_bench(&bench, UINT64_C(4) << 20), 0);
    device_limit(bench.device, UINT64_C(20) << 10);
    assert_int_equal(compute(&bench, OBJECTIVE_DEVICE_GRADIENT, true, &(struct found){0}),
                     ERROR_UNAVAILABLE);
    assert_non_null(strstr(error_text(), "memory"));
    end(&bench);
}

/* More rows than a block of threads has at a time, in the last chunk; the others stay. */
enum { MANY = 5000 };
struct many {
    uint32_t start[MANY + 1], *feature;
    float *value;
    double label[MANY], weight[MANY];
};

static struct many *many_of(const struct canned *canned) {
    struct many *many = memory_new(1, sizeof *many);
    uint64_t values = canned->rows.values * (MANY / CANNED_ROWS + 1);
    many->feature = memory_new(values, sizeof *many->feature);
    many->value = memory_new(values, sizeof *many->value);
    for (uint32_t i = 0; i < MANY; i++) {
        uint32_t row = i % CANNED_ROWS, at = many->start[i];
        many->label[i] = canned->label[row];
        many->weight[i] = canned->weight[row];
        for (uint32_t v = canned->start[row]; v < canned->start[row + 1]; v++, at++) {
            many->feature[at] = canned->feature[v];
            many->value[at] = canned->narrow[v] / MANY;
        }
        many->start[i + 1] = at;
    }
    return many;
}

static void chunks_of_many_rows_are_added_up_row_by_row(void **state) {
    (void)state;
    struct bench bench;
    begin(&bench, shape_of(OBJECTIVE_SMOOTH_HINGE), false, VALUE_FLOAT, true, 1);
    struct many *many = many_of(bench.canned);
    struct rows *rows = &bench.rows[CHUNKS - 1];
    rows->count = MANY;
    rows->values = many->start[MANY];
    rows->start = many->start;
    rows->feature = many->feature;
    rows->value = many->value;
    rows->label = many->label;
    rows->weight = many->weight;
    bench.scale.uniform -= 4;
    bench.scale.exponent = NULL;
    assert_int_equal(open_bench(&bench, 0), 0);
    assert_computes(&bench);
    end(&bench);
    free(many->feature);
    free(many->value);
    free(many);
}

static void a_bound_that_is_exceeded_is_found_in_the_chunks_that_exceed_it(void **state) {
    (void)state;
    static struct found found;
    for (size_t s = 0; s < SHAPES; s++)
        for (int dense = 0; dense < 2; dense++) {
            struct bench bench;
            begin(&bench, &shapes[s], dense, VALUE_FLOAT, true, s + 1);
            assert_int_equal(open_bench(&bench, 0), 0);
            struct bounds bounds = bench.scale.bounds;
            bench.scale.bounds = bounds_of_one(-4);
            assert_int_equal(compute(&bench, OBJECTIVE_DEVICE_GRADIENT, true, &found), 0);
            assert_true(assert_as_block(&bench, OBJECTIVE_DEVICE_GRADIENT, true, &found));
            bench.scale.bounds = bounds;
            assert_int_equal(objective_device_discard(bench.on), 0);
            assert_computes(&bench);
            end(&bench);
        }
}

static void points_that_are_too_far_out_have_infinite_maxima(void **state) {
    (void)state;
    static struct found found;
    const double far[] = {1e300, -1e300, INFINITY, NAN};
    for (size_t s = 0; s < SHAPES; s++)
        for (size_t i = 0; i < 4; i++) {
            struct bench bench;
            begin(&bench, &shapes[s], s % 2, VALUE_FLOAT, i % 2, s + 1);
            bench.canned->parameters[0] = far[i];
            assert_int_equal(open_bench(&bench, 0), 0);
            assert_int_equal(compute(&bench, OBJECTIVE_DEVICE_GRADIENT, true, &found), 0);
            assert_as_block(&bench, OBJECTIVE_DEVICE_GRADIENT, true, &found);
            assert_int_equal(compute(&bench, OBJECTIVE_DEVICE_LOSS, false, &found), 0);
            assert_as_block(&bench, OBJECTIVE_DEVICE_LOSS, false, &found);
            end(&bench);
        }
}

static void values_of_any_size_are_as_on_the_processor(void **state) {
    (void)state;
    double scale[CANNED_FEATURES];
    for (int j = 0; j < CANNED_FEATURES; j++)
        scale[j] = pow(10, 600.0 * j / (CANNED_FEATURES - 1) - 300);
    for (size_t s = 0; s < SHAPES; s++)
        for (int dense = 0; dense < 2; dense++) {
            struct bench bench;
            begin(&bench, &shapes[s], dense, VALUE_DOUBLE, false, s + 1);
            free(bench.canned);
            bench.canned = canned_new(shapes[s], dense, VALUE_DOUBLE, scale, s + 1);
            for (uint32_t c = 0, first = 0; c < CHUNKS; first += chunk_rows[c++]) {
                free(bench.start[c]);
                cut(&bench, c, first);
            }
            bench.scale.exponent = bench.canned->exponent;
            assert_int_equal(open_bench(&bench, 0), 0);
            assert_computes(&bench);
            end(&bench);
        }
}

/* The parts of an evaluation are computed one after the other; sums are those of all gradients. */
static void ranges_add_up_until_the_sums_are_gathered(void **state) {
    (void)state;
    static struct found found, part;
    struct bench bench;
    begin(&bench, shape_of(OBJECTIVE_ORDINAL), false, VALUE_ONES, true, 1);
    uint64_t n = objective_parameters(&bench.canned->shape);
    assert_int_equal(open_bench(&bench, 0), 0);
    for (uint32_t first = 0; first < CHUNKS; first += 2) {
        struct objective_device_work work = {
            .first = first, .count = 2, .sums = true, .bounds = bench.scale.bounds};
        bool stopped;
        assert_int_equal(objective_device_compute(bench.on, &work, found.results + first, &stopped),
                         0);
        work.kind = OBJECTIVE_DEVICE_LOSS;
        assert_int_equal(objective_device_compute(bench.on, &work, part.results + first, &stopped),
                         0);
    }
    assert_int_equal(objective_device_gather(bench.on, found.sum, n), 0);
    assert_as_block(&bench, OBJECTIVE_DEVICE_GRADIENT, true, &found);
    assert_int_equal(objective_device_gather(bench.on, part.sum, n), 0);
    for (uint64_t i = 0; i < n; i++)
        assert_int_equal(part.sum[i], 0);
    memset(part.sum, 0, sizeof part.sum);
    assert_as_block(&bench, OBJECTIVE_DEVICE_LOSS, false, &part);
    end(&bench);
}

static void work_that_is_stopped_ends_with_the_group(void **state) {
    (void)state;
    static struct found found;
    struct bench bench;
    begin(&bench, shape_of(OBJECTIVE_LOGISTIC), true, VALUE_FLOAT, false, 1);
    assert_int_equal(open_bench(&bench, 1), 0);
    atomic_bool stop = true;
    const struct objective_device_work work = {
        .count = CHUNKS, .bounds = bench.scale.bounds, .stop = &stop};
    bool stopped;
    assert_int_equal(objective_device_compute(bench.on, &work, found.results, &stopped), 0);
    assert_true(stopped);
    assert_true(bench.asked < 2 * CHUNKS);
    end(&bench);
}

static void chunks_that_cannot_be_read_say_why(void **state) {
    (void)state;
    struct bench bench;
    begin(&bench, shape_of(OBJECTIVE_LOGISTIC), true, VALUE_FLOAT, false, 1);
    assert_int_equal(open_bench(&bench, 1), 0);
    const struct objective_device_work work = {.count = CHUNKS + 1, .bounds = bench.scale.bounds};
    struct objective_device_result results[CHUNKS + 1];
    bool stopped;
    assert_int_equal(objective_device_compute(bench.on, &work, results, &stopped), ERROR_DATA);
    assert_string_equal(error_text(), "there is no chunk 6");
    end(&bench);
}

/* How many calls succeed before one fails; and everything is released then, or a sanitizer says so.
 */
static void a_device_that_fails_at_any_call_is_told(void **state) {
    (void)state;
    static struct found found;
    for (uint64_t memory = 0; memory < 2; memory++) {
        int code = ERROR_UNAVAILABLE;
        for (uint64_t calls = 0; code; calls++) {
            struct bench bench;
            begin(&bench, shape_of(OBJECTIVE_MULTILABEL), false, VALUE_FLOAT, true, 1);
            device_fail_after(bench.device, calls);
            code = open_bench(&bench, memory);
            if (!code)
                code = compute(&bench, OBJECTIVE_DEVICE_GRADIENT, true, &found);
            assert_true(code == 0 || code == ERROR_UNAVAILABLE);
            assert_true(code == 0 || strlen(error_text()) > 0);
            assert_true(calls < 1000);
            if (!code)
                assert_false(assert_as_block(&bench, OBJECTIVE_DEVICE_GRADIENT, true, &found));
            end(&bench);
        }
    }
}

static void what_a_device_does_not_compute_it_says(void **state) {
    (void)state;
    struct objective_shape shape = shapes[0];
    const struct objective_plugin plugin = {.rank = NULL};
    assert_null(objective_device_cannot(&shape, false));
    shape.plugin = &plugin;
    assert_string_equal(objective_device_cannot(&shape, false), "plug-ins are computed by the CPU");
}

static void a_device_with_the_bits_of_the_processor_passes_the_proof(void **state) {
    (void)state;
    struct device *device = test_device();
    assert_int_equal(objective_device_prove(device), 0);
    device_close(device);
}

static void a_device_that_fails_does_not_pass_the_proof(void **state) {
    (void)state;
    struct device *device = test_device();
    device_fail_after(device, 100);
    assert_int_equal(objective_device_prove(device), ERROR_UNAVAILABLE);
    device_close(device);
    error_clear();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_objective_on_any_rows_is_as_on_the_processor),
        cmocka_unit_test(values_of_any_size_are_as_on_the_processor),
        cmocka_unit_test(chunks_that_fit_are_copied_once),
        cmocka_unit_test(chunks_that_do_not_fit_are_copied_each_time),
        cmocka_unit_test(a_device_that_is_full_keeps_no_more_chunks),
        cmocka_unit_test(a_device_without_memory_says_so),
        cmocka_unit_test(chunks_of_many_rows_are_added_up_row_by_row),
        cmocka_unit_test(a_bound_that_is_exceeded_is_found_in_the_chunks_that_exceed_it),
        cmocka_unit_test(points_that_are_too_far_out_have_infinite_maxima),
        cmocka_unit_test(ranges_add_up_until_the_sums_are_gathered),
        cmocka_unit_test(work_that_is_stopped_ends_with_the_group),
        cmocka_unit_test(chunks_that_cannot_be_read_say_why),
        cmocka_unit_test(a_device_that_fails_at_any_call_is_told),
        cmocka_unit_test(a_device_with_the_bits_of_the_processor_passes_the_proof),
        cmocka_unit_test(a_device_that_fails_does_not_pass_the_proof),
        cmocka_unit_test(what_a_device_does_not_compute_it_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
