/* The memory of evaluations on a device, and how they end early. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "tests/unit/suites.h"
#include "tests/unit/device_fixture.h"
#include "tests/unit/on_device_bench.h"

/* Bytes for the vectors of all bench_shapes, and little more: chunks must take turns. */
#define LITTLE (UINT64_C(120) << 10)

static void chunks_that_do_not_fit_are_copied_each_time(void **state) {
    (void)state;
    static struct found found;
    for (uint64_t memory = 1; memory <= LITTLE; memory += LITTLE - 1)
        for (size_t s = 0; s < BENCH_SHAPES; s += 3)
            for (int dense = 0; dense < 2; dense++) {
                struct bench bench;
                bench_begin(&bench, &bench_shapes[s], dense, VALUE_FLOAT, true, NULL, s + 1);
                device_shuffle(bench.device, s + 1); /* copies come late, or early */
                assert_int_equal(bench_open(&bench, memory), 0);
                bench_assert_computes(&bench);
                struct device_chunks_usage usage = objective_device_usage(bench.on);
                uint32_t asked = bench.asked;
                assert_true(usage.streamed > 0);
                assert_true((usage.bytes > 0) == (memory > 1)); /* no rows take no room */
                assert_true(usage.bytes <= memory);
                bench_assert_computes(&bench);
                assert_true(bench.asked - asked >= 3 * (BENCH_CHUNKS - usage.resident));
                assert_int_equal(objective_device_usage(bench.on).resident, usage.resident);
                assert_int_equal(bench_compute(&bench, OBJECTIVE_DEVICE_GRADIENT, true, &found), 0);
                bench_assert_products(&bench, memory);
                bench_end(&bench);
            }
}

static void chunks_that_fit_are_copied_once(void **state) {
    (void)state;
    struct bench bench;
    bench_begin(&bench, bench_shape(OBJECTIVE_SOFTMAX), false, VALUE_BYTE, false, NULL, 1);
    assert_int_equal(bench_open(&bench, 0), 0);
    bench_assert_computes(&bench);
    bench_assert_computes(&bench);
    assert_int_equal(bench.asked, BENCH_CHUNKS);
    assert_int_equal(objective_device_usage(bench.on).resident, BENCH_CHUNKS);
    bench_end(&bench);
}

static void a_device_that_is_full_keeps_no_more_chunks(void **state) {
    (void)state;
    struct bench bench;
    bench_begin(&bench, bench_shape(OBJECTIVE_LOGISTIC), false, VALUE_DOUBLE, false, NULL, 1);
    assert_int_equal(bench_open(&bench, UINT64_C(4) << 20), 0);
    device_limit(bench.device, UINT64_C(900) << 10); /* others have taken the rest */
    bench_assert_computes(&bench);
    assert_int_equal(objective_device_usage(bench.on).resident, 0);
    bench_end(&bench);
}

static void a_device_that_others_have_filled_keeps_no_chunks(void **state) {
    (void)state;
    struct bench bench;
    bench_begin(&bench, bench_shape(OBJECTIVE_LOGISTIC), false, VALUE_DOUBLE, false, NULL, 1);
    assert_int_equal(bench_open(&bench, 0), 0);
    device_limit(bench.device, UINT64_C(250) << 20); /* below a sixteenth of what there was */
    bench_assert_computes(&bench);
    assert_int_equal(objective_device_usage(bench.on).resident, 0);
    bench_end(&bench);
}

static void a_device_without_memory_says_so(void **state) {
    (void)state;
    struct bench bench;
    bench_begin(&bench, bench_shape(OBJECTIVE_LOGISTIC), false, VALUE_DOUBLE, false, NULL, 1);
    assert_int_equal(bench_open(&bench, UINT64_C(4) << 20), 0);
    device_limit(bench.device, UINT64_C(20) << 10);
    assert_int_equal(bench_compute(&bench, OBJECTIVE_DEVICE_GRADIENT, true, &(struct found){0}),
                     ERROR_UNAVAILABLE);
    assert_non_null(strstr(error_text(), "memory"));
    bench_end(&bench);
}

static void work_that_is_stopped_ends_with_the_group(void **state) {
    (void)state;
    static struct found found;
    struct bench bench;
    bench_begin(&bench, bench_shape(OBJECTIVE_LOGISTIC), true, VALUE_FLOAT, false, NULL, 1);
    assert_int_equal(bench_open(&bench, 1), 0);
    atomic_bool stop = true;
    const struct objective_device_work work = {
        .count = BENCH_CHUNKS, .bounds = bench.scale.bounds, .stop = &stop};
    bool stopped;
    assert_int_equal(objective_device_compute(bench.on, &work, found.results, &stopped), 0);
    assert_true(stopped);
    assert_true(bench.asked < 2 * BENCH_CHUNKS);
    bench_end(&bench);
}

static void chunks_that_cannot_be_read_say_why(void **state) {
    (void)state;
    struct bench bench;
    bench_begin(&bench, bench_shape(OBJECTIVE_LOGISTIC), true, VALUE_FLOAT, false, NULL, 1);
    assert_int_equal(bench_open(&bench, 1), 0);
    const struct objective_device_work work = {.count = BENCH_CHUNKS + 1,
                                               .bounds = bench.scale.bounds};
    struct objective_device_result results[BENCH_CHUNKS + 1];
    bool stopped;
    assert_int_equal(objective_device_compute(bench.on, &work, results, &stopped), ERROR_DATA);
    assert_string_equal(error_text(), "there is no chunk 6");
    bench_end(&bench);
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
            bench_begin(&bench, bench_shape(OBJECTIVE_MULTILABEL), false, VALUE_FLOAT, true, NULL,
                        1);
            device_fail_after(bench.device, calls);
            code = bench_open(&bench, memory);
            if (!code)
                code = bench_compute(&bench, OBJECTIVE_DEVICE_GRADIENT, true, &found);
            assert_true(code == 0 || code == ERROR_UNAVAILABLE);
            assert_true(code == 0 || strlen(error_text()) > 0);
            assert_true(calls < 1000);
            if (!code)
                assert_false(bench_assert_same(&bench, OBJECTIVE_DEVICE_GRADIENT, true, &found));
            bench_end(&bench);
        }
    }
}

SUITE(on_device_memory) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunks_that_fit_are_copied_once),
        cmocka_unit_test(chunks_that_do_not_fit_are_copied_each_time),
        cmocka_unit_test(a_device_that_is_full_keeps_no_more_chunks),
        cmocka_unit_test(a_device_that_others_have_filled_keeps_no_chunks),
        cmocka_unit_test(a_device_without_memory_says_so),
        cmocka_unit_test(work_that_is_stopped_ends_with_the_group),
        cmocka_unit_test(chunks_that_cannot_be_read_say_why),
        cmocka_unit_test(a_device_that_fails_at_any_call_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
