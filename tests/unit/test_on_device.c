/* Evaluations on a device against objective_block(), chunk for chunk and bit for bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/suites.h"
#include "base/clock.h"
#include "base/memory.h"
#include "tests/unit/device_fixture.h"
#include "tests/unit/on_device_bench.h"

enum { EACH_TYPE = SANITIZED ? 3 : 1 };

static void every_objective_on_any_rows_is_as_on_the_processor(void **state) {
    (void)state;
    canned_assert_every_loss(bench_shapes, BENCH_SHAPES, CANNED_ALL);
    for (size_t s = 0; s < BENCH_SHAPES; s++)
        for (int dense = 0; dense < 2; dense++)
            for (int type = (int)(s + (size_t)dense) % EACH_TYPE; type <= VALUE_DOUBLE;
                 type += EACH_TYPE) {
                struct bench bench;
                bench_begin(&bench, &bench_shapes[s], dense, (enum value_type)type, type % 2, NULL,
                            s + 1);
                if (type > VALUE_BYTE)
                    bench.scale.exponent = NULL;
                assert_int_equal(bench_open(&bench, 0), 0);
                bench_assert_computes(&bench);
                bench_end(&bench);
            }
}

static void products_and_transposes_are_as_on_the_processor(void **state) {
    (void)state;
    for (size_t s = 0; s < BENCH_SHAPES; s++)
        for (int dense = 0; dense < 2; dense++)
            for (int type = (int)(s + (size_t)dense) % EACH_TYPE; type <= VALUE_DOUBLE;
                 type += EACH_TYPE) {
                struct bench bench;
                bench_begin(&bench, &bench_shapes[s], dense, (enum value_type)type, type % 2, NULL,
                            s + 1);
                if (type > VALUE_BYTE)
                    bench.scale.exponent = NULL;
                bench_assert_products(&bench, 0);
                bench_end(&bench);
            }
}

static void values_of_any_size_are_as_on_the_processor(void **state) {
    (void)state;
    double scale[CANNED_FEATURES];
    for (int j = 0; j < CANNED_FEATURES; j++)
        scale[j] = pow(10, 600.0 * j / (CANNED_FEATURES - 1) - 300);
    for (size_t s = 0; s < BENCH_SHAPES; s++)
        for (int dense = 0; dense < 2; dense++) {
            struct bench bench;
            bench_begin(&bench, &bench_shapes[s], dense, VALUE_DOUBLE, false, scale, s + 1);
            assert_int_equal(bench_open(&bench, 0), 0);
            bench_assert_computes(&bench);
            bench_end(&bench);
        }
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
    bench_begin(&bench, bench_shape(OBJECTIVE_SQUARED), false, VALUE_FLOAT, true, NULL, 1);
    struct many *many = many_of(bench.canned);
    struct rows *rows = &bench.rows[BENCH_CHUNKS - 1];
    rows->count = MANY;
    rows->values = many->start[MANY];
    rows->start = many->start;
    rows->feature = many->feature;
    rows->value = many->value;
    rows->label = many->label;
    rows->weight = many->weight;
    bench.scale.uniform -= 4;
    bench.scale.exponent = NULL;
    assert_int_equal(bench_open(&bench, 0), 0);
    bench_assert_computes(&bench);
    bench_end(&bench);
    free(many->feature);
    free(many->value);
    free(many);
}

static void a_bound_that_is_exceeded_is_found_in_the_chunks_that_exceed_it(void **state) {
    (void)state;
    static struct found found;
    for (size_t s = 0; s < BENCH_SHAPES; s++)
        for (int dense = 0; dense < 2; dense++) {
            struct bench bench;
            bench_begin(&bench, &bench_shapes[s], dense, VALUE_FLOAT, true, NULL, s + 1);
            assert_int_equal(bench_open(&bench, 0), 0);
            struct bounds bounds = bench.scale.bounds;
            bench.scale.bounds = bounds_of_one(-4);
            assert_int_equal(bench_compute(&bench, OBJECTIVE_DEVICE_GRADIENT, true, &found), 0);
            assert_true(bench_assert_same(&bench, OBJECTIVE_DEVICE_GRADIENT, true, &found));
            bench.scale.bounds = bounds;
            assert_int_equal(objective_device_discard(bench.on), 0);
            bench_assert_computes(&bench);
            bench_end(&bench);
        }
}

static void points_that_are_too_far_out_have_infinite_maxima(void **state) {
    (void)state;
    static struct found found;
    const double far[] = {1e300, -1e300, INFINITY, NAN};
    for (size_t s = 0; s < BENCH_SHAPES; s++)
        for (size_t i = 0; i < 4; i++) {
            struct bench bench;
            bench_begin(&bench, &bench_shapes[s], s % 2, VALUE_FLOAT, i % 2, NULL, s + 1);
            bench.canned->parameters[0] = far[i];
            assert_int_equal(bench_open(&bench, 0), 0);
            assert_int_equal(bench_compute(&bench, OBJECTIVE_DEVICE_GRADIENT, true, &found), 0);
            bench_assert_same(&bench, OBJECTIVE_DEVICE_GRADIENT, true, &found);
            assert_int_equal(bench_compute(&bench, OBJECTIVE_DEVICE_LOSS, false, &found), 0);
            bench_assert_same(&bench, OBJECTIVE_DEVICE_LOSS, false, &found);
            bench_end(&bench);
        }
}

/* The parts of an evaluation are computed one after the other; sums are those of all gradients. */
static void ranges_add_up_until_the_sums_are_gathered(void **state) {
    (void)state;
    static struct found found, part;
    struct bench bench;
    bench_begin(&bench, bench_shape(OBJECTIVE_ORDINAL), false, VALUE_ONES, true, NULL, 1);
    uint64_t n = objective_parameters(&bench.canned->shape);
    assert_int_equal(bench_open(&bench, 0), 0);
    for (uint32_t first = 0; first < BENCH_CHUNKS; first += 2) {
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
    bench_assert_same(&bench, OBJECTIVE_DEVICE_GRADIENT, true, &found);
    assert_int_equal(objective_device_gather(bench.on, part.sum, n), 0);
    for (uint64_t i = 0; i < n; i++)
        assert_int_equal(part.sum[i], 0);
    memset(part.sum, 0, sizeof part.sum);
    bench_assert_same(&bench, OBJECTIVE_DEVICE_LOSS, false, &part);
    bench_end(&bench);
}

static void what_a_device_does_not_compute_it_says(void **state) {
    (void)state;
    struct objective_shape shape = bench_shapes[0];
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

static void count_beat(void *context) {
    ++*(unsigned *)context;
}

/* A slow device, or a busy machine, takes longer for all of it than a worker may say nothing. */
static void each_computation_of_the_proof_gives_signs_of_life(void **state) {
    (void)state;
    struct device *device = test_device();
    unsigned beats = 0;
    heartbeat_call(count_beat, &beats);
    assert_int_equal(objective_device_prove(device), 0);
    heartbeat_call(NULL, NULL);
    unsigned least = 3 * OBJECTIVES + 2 * ACTIVATIONS; /* gradients, products and transposes */
    assert_true(beats >= 2 * least);
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

SUITE(on_device) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_objective_on_any_rows_is_as_on_the_processor),
        cmocka_unit_test(products_and_transposes_are_as_on_the_processor),
        cmocka_unit_test(values_of_any_size_are_as_on_the_processor),
        cmocka_unit_test(chunks_of_many_rows_are_added_up_row_by_row),
        cmocka_unit_test(a_bound_that_is_exceeded_is_found_in_the_chunks_that_exceed_it),
        cmocka_unit_test(points_that_are_too_far_out_have_infinite_maxima),
        cmocka_unit_test(ranges_add_up_until_the_sums_are_gathered),
        cmocka_unit_test(a_device_with_the_bits_of_the_processor_passes_the_proof),
        cmocka_unit_test(each_computation_of_the_proof_gives_signs_of_life),
        cmocka_unit_test(a_device_that_fails_does_not_pass_the_proof),
        cmocka_unit_test(what_a_device_does_not_compute_it_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
