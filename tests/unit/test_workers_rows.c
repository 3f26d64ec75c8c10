/* Vectors of rows that threads compute, on the processor and beside a device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "tests/unit/made_up_objective.h"
#include "tests/unit/suites.h"
#include "tests/unit/workers_bench.h"

static struct computation by_rows(enum evaluation_kind kind, uint32_t first, uint32_t count) {
    struct computation wanted = computation(first, count);
    wanted.parts.items[0].kind = kind;
    wanted.point = kind;
    return wanted;
}

/* What chunks [first, end) add, as doubles; what they do not touch is 0. */
static void assert_rows(const int64_t *sum, uint32_t first, uint32_t end) {
    const double *number = (const double *)(const void *)sum;
    for (uint32_t i = 0; i < NUMBERS; i++) {
        uint32_t row = i / OUTPUTS;
        double expected = row < first || row >= end ? 0 : row + i % OUTPUTS;
        assert_true(number[i] == expected);
    }
}

static void each_row_is_added_where_it_belongs(void **state) {
    struct bench bench;
    struct computed computed;
    int64_t *sum = new_sum(NUMBERS);
    for (uint64_t shuffle = 0; shuffle <= 1; shuffle++) {
        bench_init(&bench, threads_or_device(state, 3), SHORT, shuffle);
        run(&bench, by_rows(EVALUATION_PRODUCT, 5, 10), &computed);
        assert_true(exact_value(&computed.totals.sum[0]) == 10 && computed.values == 10);
        run(&bench, by_rows(EVALUATION_PRODUCT, 15, 25), &computed);
        gather(&bench, NUMBERS, sum);
        assert_rows(sum, 5, 40);
        gather(&bench, NUMBERS, sum);
        assert_rows(sum, 0, 0);
        bench_release(&bench);
    }
    free(sum);
}

static void labels_and_weights_of_rows_are_gathered(void **state) {
    struct bench bench;
    struct computed computed;
    int64_t *sum = new_sum(NUMBERS);
    const double *number = (const double *)(const void *)sum;
    bench_init(&bench, threads_or_device(state, 2), SHORT, 0);
    for (int kind = EVALUATION_LABELS; kind <= EVALUATION_WEIGHTS; kind++) {
        run(&bench, by_rows((enum evaluation_kind)kind, 0, CHUNKS), &computed);
        gather(&bench, NUMBERS, sum);
        for (uint32_t i = 0; i < NUMBERS; i++)
            assert_true(number[i] ==
                        (i % OUTPUTS ? 0 : i / OUTPUTS + (kind == EVALUATION_WEIGHTS ? 0.5 : 0)));
    }
    free(sum);
    bench_release(&bench);
}

static void a_transpose_takes_each_rows_derivatives(void **state) {
    struct bench bench;
    struct computed computed;
    int64_t *sum = new_sum(SHORT);
    static double derivatives[NUMBERS];
    for (int i = 0; i < NUMBERS; i++)
        derivatives[i] = i + 1;
    bench_init(&bench, threads_or_device(state, 3), SHORT, 1);
    struct computation wanted = by_rows(EVALUATION_TRANSPOSE, 3, 40);
    wanted.parameters = derivatives;
    made_up_points = 0;
    run(&bench, wanted, &computed);
    assert_int_equal(made_up_points, 0); /* it is no point for a device */
    assert_true(exact_value(&computed.totals.sum[0]) == 40);
    assert_true(maxima_largest(&computed.maxima) == 42 * OUTPUTS + 1 && !computed.exceeded);
    gather(&bench, SHORT, sum);
    for (uint32_t i = 0; i < SHORT; i++)
        assert_int_equal(sum[i], i >= 3 && i < 43 ? i * OUTPUTS + 1 : 0);
    wanted.bounds = bounds_of_one(3);
    run(&bench, wanted, &computed);
    assert_true(computed.exceeded);
    free(sum);
    bench_release(&bench);
}

static void rows_and_gradients_leave_no_trace_in_each_other(void **state) {
    struct bench bench;
    struct computed computed;
    struct exact loss;
    int64_t *rows = new_sum(NUMBERS), *sum = new_sum(SHORT), *expected = new_sum(SHORT);
    bench_init(&bench, threads_or_device(state, 2), SHORT, 0);
    struct computation product = by_rows(EVALUATION_PRODUCT, 20, 4);
    run(&bench, product, &computed); /* never gathered */
    struct computation clearing = computation(0, CHUNKS);
    clearing.clear = true;
    run(&bench, clearing, &computed); /* never gathered, either */
    product = by_rows(EVALUATION_PRODUCT, 30, 4);
    product.clear = true;
    run(&bench, product, &computed);
    gather(&bench, NUMBERS, rows);
    assert_rows(rows, 30, 34);
    run(&bench, clearing, &computed);
    gather(&bench, SHORT, sum);
    plain_loop(SHORT, 0, CHUNKS, expected, &loss);
    assert_memory_equal(sum, expected, SHORT * sizeof *sum);
    free(rows);
    free(sum);
    free(expected);
    bench_release(&bench);
}

/* Those of the holdout are numbered behind all of training. */
static void rows_beyond_the_vector_end_the_computation(void **state) {
    struct bench bench;
    struct computed computed;
    bench_init(&bench, threads_or_device(state, 2), SHORT, 0);
    bench.shift = 1;
    for (int kind = EVALUATION_LABELS; kind <= EVALUATION_TRANSPOSE; kind++) {
        run(&bench, by_rows((enum evaluation_kind)kind, CHUNKS - 1, 1), &computed);
        assert_int_equal(computed.error, ERROR_INTERNAL);
        assert_non_null(strstr(computed.reason, "the rows of chunk 49"));
        assert_false(computed.device_failed);
    }
    bench_release(&bench);
}

/* Held-out rows add their losses beside the derivatives of the others, and nothing to the sums. */
static void the_loss_of_held_out_rows_is_that_at_their_margins(void **state) {
    (void)state;
    enum { TRAINED = CHUNKS - 10, FIRST = TRAINED - 5 };
    struct bench bench;
    struct computed computed;
    int64_t *sum = new_sum(NUMBERS);
    static double margins[(CHUNKS - FIRST) * OUTPUTS], upper[MADE_UP_UPPER];
    double losses = 0;
    for (uint32_t i = 0; i < (CHUNKS - FIRST) * OUTPUTS; i++)
        margins[i] = i + 1;
    for (uint32_t i = TRAINED - FIRST; i < CHUNKS - FIRST; i++)
        losses += 2 * margins[i * OUTPUTS];
    upper[0] = 2;
    bench_init_strips(&bench, 3);
    struct computation wanted = by_rows(EVALUATION_DERIVATIVES, FIRST, CHUNKS - FIRST);
    wanted.parts = (struct evaluation_parts){
        {{EVALUATION_DERIVATIVES, 0, TRAINED}, {EVALUATION_LOSS, TRAINED, CHUNKS - TRAINED}}, 2};
    wanted.parameters = margins;
    wanted.first_number = FIRST * OUTPUTS;
    wanted.upper = upper;
    run(&bench, wanted, &computed);
    assert_true(exact_value(&computed.totals.sum[0]) == TRAINED - FIRST);
    assert_true(exact_value(&computed.totals.sum[1]) == losses);
    assert_true(exact_value(&computed.totals.sum[2]) == CHUNKS - TRAINED);
    gather(&bench, NUMBERS, sum);
    for (uint32_t i = 0; i < NUMBERS; i++)
        assert_true((sum[i] != 0) == (i / OUTPUTS >= FIRST && i / OUTPUTS < TRAINED));
    free(sum);
    bench_release(&bench);
}

/* Margins of some rows are at hand, and the rows of tiles of a strip above are those of chunks. */
static void layers_above_strips_are_computed_at_the_margins_of_their_rows(void **state) {
    (void)state;
    enum { BELOW = 3 * CHUNKS, FIRST = 10, COUNT = 20 };
    struct bench bench;
    struct computed computed;
    int64_t *sum = new_sum(NUMBERS);
    const double *number = (const double *)(const void *)sum;
    static double margins[COUNT * OUTPUTS], upper[MADE_UP_UPPER];
    for (int i = 0; i < COUNT * OUTPUTS; i++)
        margins[i] = i + 1;
    for (int i = 0; i < MADE_UP_UPPER; i++)
        upper[i] = i + 2;
    bench_init_strips(&bench, 3);
    struct computation wanted = by_rows(EVALUATION_DERIVATIVES, FIRST, COUNT);
    wanted.parameters = margins;
    wanted.first_number = FIRST * OUTPUTS;
    wanted.upper = upper;
    run(&bench, wanted, &computed);
    assert_true(exact_value(&computed.totals.sum[0]) == COUNT && computed.values == COUNT);
    gather(&bench, NUMBERS, sum);
    for (uint32_t i = 0; i < NUMBERS; i++)
        assert_true(number[i] == (i / OUTPUTS < FIRST || i / OUTPUTS >= FIRST + COUNT
                                      ? 0
                                      : 2 * margins[i - FIRST * OUTPUTS]));
    wanted.parts = (struct evaluation_parts){
        {{EVALUATION_TRANSPOSE, 0, BELOW}, {EVALUATION_UPPER, BELOW, CHUNKS}}, 2};
    wanted.first = BELOW + FIRST;
    wanted.tiles_below = BELOW;
    wanted.strip = 3;
    run(&bench, wanted, &computed);
    assert_true(exact_value(&computed.totals.sum[1]) == COUNT);
    gather(&bench, MADE_UP_UPPER, sum);
    const int64_t first_margins = COUNT + OUTPUTS * COUNT * (COUNT - 1) / 2;
    for (int i = 0; i < MADE_UP_UPPER; i++)
        assert_int_equal(sum[i], first_margins * (i + 2));
    free(sum);
    bench_release(&bench);
}

SUITE(workers_rows) {
    const struct CMUnitTest tests[] = {
        ON_BOTH(each_row_is_added_where_it_belongs),
        ON_BOTH(labels_and_weights_of_rows_are_gathered),
        ON_BOTH(a_transpose_takes_each_rows_derivatives),
        ON_BOTH(rows_and_gradients_leave_no_trace_in_each_other),
        ON_BOTH(rows_beyond_the_vector_end_the_computation),
        cmocka_unit_test(layers_above_strips_are_computed_at_the_margins_of_their_rows),
        cmocka_unit_test(the_loss_of_held_out_rows_is_that_at_their_margins),
    };
    return cmocka_run_group_tests_name("workers rows", tests, NULL, NULL);
}
