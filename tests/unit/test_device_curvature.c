/* Second derivatives on a device against objective_curvature(), chunk for chunk and bit for bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/suites.h"
#include "objective/on_device.h"
#include "tests/unit/curvature_fixture.h"
#include "tests/unit/device_fixture.h"

/* The same rows again and again: which are drawn depends on the number of the chunk. */
enum { FIRST = 5, CHUNKS = 3 };

static const struct objective_shape shapes[] = {
    CANNED_SHAPE(LOGISTIC, 1, true, 0),     CANNED_SHAPE(LOGISTIC, 1, false, 0),
    CANNED_SHAPE(SQUARED, 1, true, 0),      CANNED_SHAPE(SOFTMAX, 2, true, 0),
    CANNED_SHAPE(SOFTMAX, 5, false, 0),     CANNED_SHAPE(SQUARED_HINGE, 1, true, 0),
    CANNED_SHAPE(HUBER, 1, true, 1.35),     CANNED_SHAPE(QUANTILE, 1, true, 0.9, 1),
    CANNED_SHAPE(SMOOTH_HINGE, 1, true, 0), CANNED_SHAPE(ONE_VS_REST, 3, true, 0),
    CANNED_SHAPE(POISSON, 1, true, 0),      CANNED_SHAPE(GAMMA, 1, true, 0),
    CANNED_SHAPE(TWEEDIE, 1, true, 1.2),    CANNED_SHAPE(ORDINAL, 4, true, 0),
    CANNED_SHAPE(MULTILABEL, 3, true, 0),
};
#define SHAPES (sizeof shapes / sizeof *shapes)

struct bench {
    struct canned *canned;
    struct objective_sample sample;
    struct device *device;
    struct objective_device *on;
    int64_t *expected, *found;
    struct objective_hessian hessian[CHUNKS];
    struct objective_device_result results[CHUNKS];
};

static int chunk_of(void *context, uint32_t number, struct rows *rows) {
    (void)number;
    *rows = ((struct bench *)context)->canned->rows;
    return 0;
}

/* With a block of the first columns. */
static void begin_block(struct bench *bench, const struct objective_shape *shape, bool dense,
                        enum value_type type, uint64_t memory, uint32_t columns) {
    *bench = (struct bench){.canned = canned_new(*shape, dense, type, NULL, 3)};
    if (type % 2)
        canned_weigh(bench->canned, 3, 11);
    bench->sample = sample_of(bench->canned);
    bench->sample.columns = columns;
    bench->sample.derivative_exponent += 12; /* also where rows are drawn: floor·2^b */
    bench->expected = new_triangle(shape);
    bench->found = new_triangle(shape);
    const struct objective_device_settings settings = {.shape = bench->canned->shape,
                                                       .curvature = true,
                                                       .block_columns = columns,
                                                       .exponents = bench->canned->exponent,
                                                       .examples = CANNED_ROWS,
                                                       .exponent = bench->canned->exponent,
                                                       .memory = memory,
                                                       .chunk = chunk_of,
                                                       .context = bench};
    bench->device = test_device();
    assert_null(objective_device_cannot(shape, true));
    assert_int_equal(objective_device_new(bench->device, &settings, &bench->on), 0);
    assert_int_equal(objective_device_point(bench->on, bench->canned->parameters), 0);
}

static void begin_within(struct bench *bench, const struct objective_shape *shape, bool dense,
                         enum value_type type, uint64_t memory) {
    begin_block(bench, shape, dense, type, memory, objective_columns(shape));
}

static void begin(struct bench *bench, const struct objective_shape *shape, bool dense,
                  enum value_type type) {
    begin_within(bench, shape, dense, type, 0);
}

static void end(struct bench *bench) {
    objective_device_free(bench->on);
    device_close(bench->device);
    free(bench->expected);
    free(bench->found);
    free(bench->canned);
    error_clear();
}

static size_t elements_of(const struct bench *bench) {
    return block_elements(&bench->canned->shape, bench->sample.columns);
}

static int compute(struct bench *bench, bool sums) {
    const struct objective_device_work work = {
        .kind = OBJECTIVE_DEVICE_CURVATURE,
        .first = FIRST,
        .count = CHUNKS,
        .sums = sums,
        .bounds = bounds_of_one(bench->sample.derivative_exponent),
        .sampling = bench->sample.sampling,
    };
    bool stopped;
    int code = objective_device_compute(bench->on, &work, bench->results, &stopped);
    return code ? code : objective_device_gather(bench->on, bench->found, elements_of(bench));
}

static void expect(struct bench *bench, bool sums) {
    memset(bench->expected, 0, elements_of(bench) * sizeof(int64_t));
    for (uint32_t c = 0; c < CHUNKS; c++)
        bench->hessian[c] =
            curve(bench->canned, &bench->sample, FIRST + c, sums ? bench->expected : NULL);
}

static void assert_same_hessian(const struct objective_hessian *a,
                                const struct objective_hessian *b) {
    assert_memory_equal(&a->trace_leverage, &b->trace_leverage, sizeof(double));
    assert_memory_equal(&a->trace, &b->trace, sizeof(double));
    assert_int_equal(a->sampled, b->sampled);
    assert_int_equal(a->terms, b->terms);
    assert_int_equal(a->exceeded, b->exceeded);
}

static void assert_computes(struct bench *bench, bool sums) {
    expect(bench, sums);
    assert_int_equal(compute(bench, sums), 0);
    for (uint32_t c = 0; c < CHUNKS; c++)
        assert_same_hessian(&bench->results[c].hessian, &bench->hessian[c]);
    assert_memory_equal(bench->found, bench->expected, elements_of(bench) * sizeof(int64_t));
}

/* A rate that draws about half of the rows, by what the rows have to say. */
static double half_rate(struct bench *bench) {
    expect(bench, false);
    return CANNED_ROWS / (2 * bench->hessian[0].trace_leverage);
}

/* ---- tests ---- */

static void every_objective_on_any_rows_is_as_on_the_processor(void **state) {
    (void)state;
    canned_assert_every_loss(shapes, SHAPES, CANNED_OF_CURVATURE);
    for (size_t s = 0; s < SHAPES; s++)
        for (int dense = SANITIZED ? (int)(s % 2) : 0; dense < 2; dense += SANITIZED ? 2 : 1) {
            struct bench bench;
            begin(&bench, &shapes[s], dense, (enum value_type)((s + (size_t)dense) % 4));
            assert_computes(&bench, true);
            assert_computes(&bench, false);
            end(&bench);
        }
}

static void the_same_rows_are_drawn_as_on_the_processor(void **state) {
    (void)state;
    for (size_t s = 0; s < SHAPES; s++) {
        struct bench bench;
        begin(&bench, &shapes[s], s % 2, (enum value_type)(s % 4));
        bench.sample.sampling = (struct row_sampling){half_rate(&bench), 0x1p-10, 99};
        assert_computes(&bench, true);
        assert_true(bench.hessian[0].sampled > 0);
        assert_true(bench.hessian[0].sampled < CANNED_ROWS);
        end(&bench);
    }
}

static void a_block_of_the_first_columns_is_as_on_the_processor(void **state) {
    (void)state;
    const uint32_t blocks[] = {1, 17, CANNED_FEATURES - 1};
    for (size_t s = 0; s < SHAPES; s++)
        for (size_t b = SANITIZED ? s % 3 : 0; b < sizeof blocks / sizeof *blocks;
             b += SANITIZED ? 3 : 1) {
            struct bench bench;
            begin_block(&bench, &shapes[s], (s + b) % 2, (enum value_type)((s + b) % 4),
                        s % 3 ? 0 : 100000, blocks[b]);
            assert_computes(&bench, true);
            assert_computes(&bench, false);
            end(&bench);
        }
}

static void rows_that_do_not_fit_at_once_are_added_one_part_after_the_other(void **state) {
    (void)state;
    for (size_t s = 0; s < SHAPES; s++) {
        struct bench bench;
        begin_within(&bench, &shapes[s], s % 2, VALUE_DOUBLE, 100000);
        assert_computes(&bench, true);
        end(&bench);
    }
}

static void a_bound_that_is_too_small_is_found_as_on_the_processor(void **state) {
    (void)state;
    struct bench bench;
    begin(&bench, &shapes[0], true, VALUE_DOUBLE);
    bench.sample.derivative_exponent = -8;
    expect(&bench, true);
    assert_int_equal(compute(&bench, true), 0);
    for (uint32_t c = 0; c < CHUNKS; c++) {
        assert_true(bench.hessian[c].exceeded);
        assert_true(bench.results[c].hessian.exceeded);
    }
    end(&bench);
}

static void a_device_that_fails_at_any_call_is_an_error(void **state) {
    (void)state;
    int code = ERROR_UNAVAILABLE;
    for (uint64_t calls = 0; code; calls++) {
        struct bench bench;
        begin(&bench, &shapes[0], true, VALUE_FLOAT);
        device_fail_after(bench.device, calls);
        code = compute(&bench, true);
        assert_true(code == 0 || code == ERROR_UNAVAILABLE);
        assert_true(calls || code);
        end(&bench);
    }
}

SUITE(device_curvature) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_objective_on_any_rows_is_as_on_the_processor),
        cmocka_unit_test(the_same_rows_are_drawn_as_on_the_processor),
        cmocka_unit_test(a_block_of_the_first_columns_is_as_on_the_processor),
        cmocka_unit_test(rows_that_do_not_fit_at_once_are_added_one_part_after_the_other),
        cmocka_unit_test(a_bound_that_is_too_small_is_found_as_on_the_processor),
        cmocka_unit_test(a_device_that_fails_at_any_call_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
