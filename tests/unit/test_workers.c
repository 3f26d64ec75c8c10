/* The pool of threads, on made-up chunks and a made-up objective: what comes out is that of one
 * plain loop, to the bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "tests/unit/made_up_objective.h"
#include "tests/unit/suites.h"
#include "tests/unit/workers_bench.h"

/* Derivatives of chunks whose loss alone is asked for are beyond the bound, and of no matter. */
static void chunks_of_the_loss_alone_give_it_and_nothing_else(void **state) {
    (void)state;
    enum { BORDER = 30 };
    for (unsigned threads = DEVICE; threads <= THREADS_MOST; threads++) {
        struct bench bench;
        struct computed computed;
        struct exact loss, loss_alone;
        struct computation wanted = computation(0, CHUNKS);
        wanted.parts = (struct evaluation_parts){
            {{EVALUATION_GRADIENT, 0, BORDER}, {EVALUATION_LOSS, BORDER, CHUNKS - BORDER}}, 2};
        int64_t *expected = new_sum(SHORT), *sum = new_sum(SHORT);
        bench_init(&bench, threads, SHORT, threads);
        plain_loop(SHORT, BORDER, CHUNKS - BORDER, sum, &loss_alone);
        plain_loop(SHORT, 0, BORDER, expected, &loss);
        wanted.bounds = bounds_of_one(5);
        run(&bench, wanted, &computed);
        gather(&bench, SHORT, sum);
        assert_memory_equal(sum, expected, SHORT * sizeof *sum);
        assert_true(exact_value(&computed.totals.sum[0]) == exact_value(&loss));
        assert_true(exact_value(&computed.totals.sum[1]) == exact_value(&loss_alone));
        assert_true(exact_value(&computed.totals.sum[2]) ==
                    (CHUNKS * (CHUNKS - 1) - BORDER * (BORDER - 1)) / 2);
        assert_false(computed.exceeded);
        assert_true(maxima_largest(&computed.maxima) == BORDER);
        assert_int_equal(computed.values, BORDER * (BORDER - 1) / 2);
        bench_release(&bench);
        free(expected);
        free(sum);
    }
}

static void one_setting_gives_the_bits_of_a_loop(unsigned threads, uint32_t parameters,
                                                 uint64_t shuffle) {
    struct bench bench;
    bench_init(&bench, threads, parameters, shuffle);
    int64_t *expected = new_sum(parameters), *sum = new_sum(parameters);
    struct exact loss;
    struct computed computed;
    for (int round = 0; round < 2; round++) {
        plain_loop(parameters, 0, CHUNKS, expected, &loss);
        run(&bench, computation(0, CHUNKS), &computed);
        assert_true(exact_value(&computed.totals.sum[0]) == exact_value(&loss));
        assert_true(maxima_largest(&computed.maxima) == CHUNKS);
        assert_false(computed.exceeded || computed.stopped || computed.error);
        assert_int_equal(computed.values, CHUNKS * (CHUNKS - 1) / 2);
        gather(&bench, parameters, sum);
        assert_memory_equal(sum, expected, parameters * sizeof *sum);
    }
    free(expected);
    free(sum);
    bench_release(&bench);
}

static void threads_and_order_do_not_change_a_bit(void **state) {
    (void)state;
    for (unsigned threads = DEVICE; threads <= THREADS_MOST; threads++)
        for (uint64_t shuffle = 0; shuffle <= 2; shuffle++) {
            one_setting_gives_the_bits_of_a_loop(threads, SHORT, shuffle);
            one_setting_gives_the_bits_of_a_loop(threads, LONG, shuffle);
        }
}

static void computations_accrue_until_they_are_gathered(void **state) {
    struct bench bench;
    bench_init(&bench, threads_or_device(state, 3), LONG, 0);
    int64_t *expected = new_sum(LONG), *sum = new_sum(LONG);
    struct exact loss;
    struct computed computed;
    run(&bench, computation(0, 1), &computed);
    run(&bench, computation(1, 2), &computed);
    run(&bench, computation(3, 30), &computed);
    gather(&bench, LONG, sum);
    plain_loop(LONG, 0, 33, expected, &loss);
    assert_memory_equal(sum, expected, LONG * sizeof *sum);
    gather(&bench, LONG, sum);
    plain_loop(LONG, 0, 0, expected, &loss);
    assert_memory_equal(sum, expected, LONG * sizeof *sum);
    free(expected);
    free(sum);
    bench_release(&bench);
}

static void a_clear_throws_away_what_was_accrued(void **state) {
    struct bench bench;
    bench_init(&bench, threads_or_device(state, 3), LONG, 0);
    int64_t *expected = new_sum(LONG), *sum = new_sum(LONG);
    struct exact loss;
    struct computed computed;
    run(&bench, computation(0, CHUNKS), &computed);
    struct computation anew = computation(7, 1);
    anew.clear = true;
    run(&bench, anew, &computed);
    run(&bench, computation(8, 20), &computed);
    gather(&bench, LONG, sum);
    plain_loop(LONG, 7, 21, expected, &loss);
    assert_memory_equal(sum, expected, LONG * sizeof *sum);
    free(expected);
    free(sum);
    bench_release(&bench);
}

static void beyond_the_bound_loss_and_largest_derivative_stay_exact(void **state) {
    struct bench bench;
    bench_init(&bench, threads_or_device(state, 2), SHORT, 0);
    int64_t *sum = new_sum(SHORT);
    struct exact loss;
    struct computed computed;
    struct computation tight = computation(0, CHUNKS);
    tight.bounds = bounds_of_one(3);
    run(&bench, tight, &computed);
    plain_loop(SHORT, 0, CHUNKS, sum, &loss);
    assert_true(computed.exceeded);
    assert_true(maxima_largest(&computed.maxima) == CHUNKS);
    assert_true(exact_value(&computed.totals.sum[0]) == exact_value(&loss));
    free(sum);
    bench_release(&bench);
}

static void where_nobody_needs_them_the_sums_stay_as_they_are(void **state) {
    struct bench bench;
    bench_init(&bench, threads_or_device(state, 2), SHORT, 0);
    int64_t *sum = new_sum(SHORT);
    struct computed computed;
    struct computation losses = computation(0, CHUNKS);
    losses.sums = false;
    run(&bench, losses, &computed);
    gather(&bench, SHORT, sum);
    for (int i = 0; i < SHORT; i++)
        assert_int_equal(sum[i], 0);
    free(sum);
    bench_release(&bench);
}

static struct computation curvature(uint32_t count) {
    struct computation wanted = computation(0, count);
    wanted.parts.items[0].kind = EVALUATION_CURVATURE;
    wanted.sampling.rate = 2;
    return wanted;
}

/* Sums that were left behind are of another layout. */
static void curvature_and_gradient_leave_no_trace_in_each_other(void **state) {
    struct bench bench;
    bench_init(&bench, threads_or_device(state, 2), SHORT, 0);
    uint64_t elements = (uint64_t)SHORT * (SHORT + 1) / 2;
    int64_t *triangle = new_sum((uint32_t)elements), *sum = new_sum(SHORT);
    int64_t *expected = new_sum(SHORT);
    struct exact loss;
    struct computed computed;
    run(&bench, curvature(7), &computed); /* never gathered */
    struct computation clearing = computation(0, CHUNKS);
    clearing.clear = true;
    run(&bench, clearing, &computed);
    gather(&bench, SHORT, sum);
    plain_loop(SHORT, 0, CHUNKS, expected, &loss);
    assert_memory_equal(sum, expected, SHORT * sizeof *sum);

    run(&bench, computation(0, CHUNKS), &computed); /* never gathered */
    clearing = curvature(CHUNKS);
    clearing.clear = true;
    run(&bench, clearing, &computed);
    gather(&bench, elements, triangle);
    for (uint64_t i = 0; i < elements; i++)
        assert_int_equal(triangle[i], CHUNKS * (CHUNKS + 1) / 2);
    assert_true(exact_value(&computed.totals.sum[0]) == 2 * CHUNKS);
    assert_true(exact_value(&computed.totals.sum[1]) == CHUNKS);
    free(triangle);
    free(sum);
    free(expected);
    bench_release(&bench);
}

/* ---- errors ---- */

static void a_chunk_that_is_of_no_part_ends_the_computation_with_its_number(void **state) {
    struct bench bench;
    bench_init(&bench, threads_or_device(state, 2), SHORT, 0);
    struct computed computed;
    struct computation wanted = computation(0, CHUNKS);
    wanted.parts.items[0].count = CHUNKS - 1;
    run(&bench, wanted, &computed);
    assert_int_equal(computed.error, ERROR_INTERNAL);
    assert_non_null(strstr(computed.reason, "of no part"));
    assert_false(computed.device_failed);
    bench_release(&bench);
}

static void a_damaged_chunk_ends_the_computation_with_its_text(void **state) {
    struct bench bench;
    bench_init(&bench, threads_or_device(state, 2), SHORT, 0);
    struct computed computed;
    struct computation wanted = computation(CHUNKS - 1, 3);
    wanted.parts.items[0].count = CHUNKS + 2;
    run(&bench, wanted, &computed);
    assert_int_equal(computed.error, ERROR_DATA);
    assert_memory_equal(computed.reason, "chunk 5", 7);
    assert_false(computed.device_failed);
    bench_release(&bench);
}

static void threads_forget_an_error(void **state) {
    (void)state;
    struct bench bench;
    bench_init(&bench, 2, SHORT, 0);
    struct computed computed;
    run(&bench, computation(CHUNKS - 1, 3), &computed);
    run(&bench, computation(0, 3), &computed);
    assert_int_equal(computed.error, 0);
    assert_string_equal(computed.reason, "");
    bench_release(&bench);
}

static void a_stopped_computation_ends_at_the_next_chunk(void **state) {
    (void)state;
    struct bench bench;
    bench_init(&bench, 2, SHORT, 0);
    bench.gated = true;
    struct computation long_one = computation(0, CHUNKS);
    workers_compute(bench.workers, &long_one);
    sem_wait(&bench.waiting);
    sem_wait(&bench.waiting);
    workers_stop(bench.workers);
    sem_post(&bench.gate);
    sem_post(&bench.gate);
    sem_wait(&bench.done);
    struct computed computed;
    assert_int_equal(workers_take(bench.workers, &computed), WORK_COMPUTE);
    assert_true(computed.stopped);
    assert_true(maxima_largest(&computed.maxima) == 2);
    bench_release(&bench);
}

static void workers_may_be_freed_while_they_work(void **state) {
    struct bench bench;
    bench_init(&bench, threads_or_device(state, 3), LONG, 1);
    struct computation long_one = computation(0, CHUNKS);
    workers_compute(bench.workers, &long_one);
    bench_release(&bench);
}

/* The chunk at which a device is told to stop is its last. */
static void a_stopped_device_ends_at_its_next_group(void **state) {
    (void)state;
    struct bench bench;
    bench_init(&bench, DEVICE, SHORT, 0);
    bench.gated = true;
    struct computation long_one = computation(0, CHUNKS);
    workers_compute(bench.workers, &long_one);
    sem_wait(&bench.waiting);
    workers_stop(bench.workers);
    sem_post(&bench.gate);
    sem_wait(&bench.done);
    struct computed computed;
    assert_int_equal(workers_take(bench.workers, &computed), WORK_COMPUTE);
    assert_true(computed.stopped && !computed.error);
    bench.gated = false;
    long_one.clear = true;
    run(&bench, long_one, &computed);
    assert_false(computed.stopped);
    assert_true(maxima_largest(&computed.maxima) == CHUNKS);
    bench_release(&bench);
}

static void a_device_is_given_each_point_once(void **state) {
    (void)state;
    struct bench bench;
    bench_init(&bench, DEVICE, SHORT, 0);
    struct computed computed;
    struct computation wanted = computation(0, 1);
    made_up_points = 0;
    run(&bench, wanted, &computed);
    run(&bench, wanted, &computed);
    assert_int_equal(made_up_points, 1);
    static const double two[1] = {2};
    double once = exact_value(&computed.totals.sum[0]);
    wanted.parameters = two;
    wanted.point = 2;
    run(&bench, wanted, &computed);
    assert_int_equal(made_up_points, 2);
    assert_true(exact_value(&computed.totals.sum[0]) == 2 * once);
    bench_release(&bench);
}

static void assert_device_failed(const struct computed *computed) {
    assert_int_equal(computed->error, ERROR_UNAVAILABLE);
    assert_true(computed->device_failed);
    assert_string_equal(computed->reason, "the device is lost");
}

static void a_device_that_fails_answers_so_from_then_on(void **state) {
    (void)state;
    struct bench bench;
    struct computed computed;
    int64_t *sum = new_sum(SHORT);
    bench_init(&bench, DEVICE, SHORT, 0);
    run(&bench, computation(0, 3), &computed);
    assert_int_equal(computed.error, 0);
    made_up_failure = "the device is lost";
    assert_false(workers_gather(bench.workers, 0, SHORT, sum));
    sem_wait(&bench.done);
    assert_int_equal(workers_take(bench.workers, &computed), WORK_GATHER);
    assert_device_failed(&computed);
    made_up_failure = NULL;
    run(&bench, computation(0, 3), &computed);
    assert_device_failed(&computed);
    free(sum);
    bench_release(&bench);
}

static void a_device_that_cannot_be_had_gives_no_workers(void **state) {
    (void)state;
    struct bench bench;
    bench_init(&bench, DEVICE, SHORT, 0);
    bench_release(&bench);
    made_up_failure = "the memory is full";
    assert_int_equal(open_workers(&bench, DEVICE, SHORT, 0), ERROR_UNAVAILABLE);
    assert_null(bench.workers);
    assert_string_equal(error_text(), "the memory is full");
    error_clear();
}

SUITE(workers) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunks_of_the_loss_alone_give_it_and_nothing_else),
        cmocka_unit_test(threads_and_order_do_not_change_a_bit),
        ON_BOTH(computations_accrue_until_they_are_gathered),
        ON_BOTH(a_clear_throws_away_what_was_accrued),
        ON_BOTH(beyond_the_bound_loss_and_largest_derivative_stay_exact),
        ON_BOTH(where_nobody_needs_them_the_sums_stay_as_they_are),
        ON_BOTH(curvature_and_gradient_leave_no_trace_in_each_other),
        ON_BOTH(a_chunk_that_is_of_no_part_ends_the_computation_with_its_number),
        ON_BOTH(a_damaged_chunk_ends_the_computation_with_its_text),
        cmocka_unit_test(a_stopped_computation_ends_at_the_next_chunk),
        cmocka_unit_test(threads_forget_an_error),
        cmocka_unit_test(a_stopped_device_ends_at_its_next_group),
        cmocka_unit_test(a_device_is_given_each_point_once),
        cmocka_unit_test(a_device_that_fails_answers_so_from_then_on),
        cmocka_unit_test(a_device_that_cannot_be_had_gives_no_workers),
        ON_BOTH(workers_may_be_freed_while_they_work),
    };
    return cmocka_run_group_tests_name("workers", tests, NULL, NULL);
}
