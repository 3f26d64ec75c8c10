/* A shard with a preconditioner: programs that make and apply it, sweeps, empty ranges. */
#include "tests/unit/suites.h"
#include "tests/unit/shard_factor.h"

#include <math.h>

static void a_program_makes_the_preconditioner_and_later_ones_apply_it(void **state) {
    (void)state;
    struct bench bench;
    const double g[N] = {1, -2, 3, 4};
    bench_of_all(&bench);
    refresh(&bench, 1, 6);
    put(&bench, REGISTER_G, g);
    run_one(&bench, precondition(REGISTER_PG, REGISTER_G, 6));
    const double *pg = read_register(&bench, REGISTER_PG, 0, N);
    for (size_t r = 0; r < N; r++) {
        double product = 0;
        for (size_t c = 0; c < N; c++)
            product += matrix[r][c] * pg[c];
        assert_true(fabs(product - g[r]) < 1e-8);
    }
    bench_release(&bench);
}

/* Operations before PRECONDITION form what it is applied to; those behind it use what it gives. */
static void a_program_is_swept_on_both_sides_of_the_preconditioner(void **state) {
    (void)state;
    struct bench bench;
    struct yield_pair {
        struct exact before, after;
    } yields;
    const double x[N] = {1, 1, 0, 0}, d[N] = {0, 0, 1, 2}, sum[N] = {1, 1, 3, 6};
    bench_of_all(&bench);
    refresh(&bench, 1, 1);
    put(&bench, REGISTER_X, x);
    put(&bench, REGISTER_D, d);
    run_operations(
        &bench,
        (const struct operation[]){
            {.code = OPERATION_ADD, .a = REGISTER_H, .b = REGISTER_X, .c = REGISTER_D, .alpha = 3},
            {.code = OPERATION_DOT, .a = REGISTER_H, .b = REGISTER_D},
            precondition(REGISTER_PH, REGISTER_H, 1),
            {.code = OPERATION_DOT, .a = REGISTER_PH, .b = REGISTER_H},
            {.code = OPERATION_DIRECTION,
             .a = REGISTER_D,
             .b = REGISTER_PH,
             .alpha = 1,
             .beta = 1}},
        5);
    assert_answer(&bench, 0, COORDINATOR_LINK, MESSAGE_RESULT);
    struct message result = answer(&bench, 0);
    struct cursor cursor = cursor_over(result.result.scalars.data, result.result.scalars.length);
    assert_true(exact_decode(&yields.before, &cursor) && exact_decode(&yields.after, &cursor));
    assert_int_equal(cursor_left(&cursor), 0);
    bench_pull(&bench.shard->registers);
    const double *ph = bench.shard->registers.vector[REGISTER_PH].elements;
    double after = 0;
    for (size_t i = 0; i < N; i++)
        after += ph[i] * sum[i];
    assert_true(exact_value(&yields.before) == 3 + 12);
    assert_true(fabs(exact_value(&yields.after) - after) < 1e-12 && after > 0);
    const double *found = read_register(&bench, REGISTER_D, 0, N);
    for (size_t i = 0; i < N; i++)
        assert_true(found[i] == -ph[i]);
    bench_release(&bench);
}

static void a_preconditioner_of_another_serial_is_not_applied(void **state) {
    (void)state;
    struct bench bench;
    bench_of_all(&bench);
    assert_refused_program(&bench, precondition(REGISTER_PG, REGISTER_G, 1),
                           "but this shard has 0");
    refresh(&bench, 1, 4);
    assert_refused_program(&bench, precondition(REGISTER_PG, REGISTER_G, 3),
                           "but this shard has 4");
    refresh(&bench, 2, 5);
    assert_refused_program(&bench, precondition(REGISTER_PG, REGISTER_G, 4),
                           "but this shard has 5");
    run_one(&bench, precondition(REGISTER_PG, REGISTER_G, 5));
    bench_release(&bench);
}

static void a_new_attempt_begins_without_one(void **state) {
    (void)state;
    struct bench bench;
    bench_of_all(&bench);
    refresh(&bench, 1, 4);
    struct message again = preconditioned(0, N);
    again.shard_setup.attempt = 2;
    tell(&bench, COORDINATOR_LINK, again);
    tell(&bench, COORDINATOR_LINK, all_exponents(2));
    assert_answer(&bench, 0, COORDINATOR_LINK, MESSAGE_READY);
    assert_null(bench.shard->registers.factor);
    assert_int_equal(bench.shard->sums, SUMS_NONE); /* nor with sums to make one of */
    bench_release(&bench);
}

static void sums_that_have_no_factor_leave_none(void **state) {
    (void)state;
    struct bench bench;
    bench_of_all(&bench);
    refresh(&bench, 1, 4);
    add_up(&bench, 2);
    struct operation operation = factor_as(5);
    operation.alpha = NAN;
    run_one(&bench, operation);
    assert_true(isinf(yielded(&bench)));
    assert_refused_program(&bench, precondition(REGISTER_PG, REGISTER_G, 4), "has 0");
    assert_refused_program(&bench, precondition(REGISTER_PG, REGISTER_G, 5), "has 0");
    bench_release(&bench);
}

static void only_second_derivatives_make_one(void **state) {
    (void)state;
    struct bench bench;
    bench_of_all(&bench);
    assert_refused_program(&bench, factor_as(1), "no second derivatives");
    begin(&bench, 1);
    assert_refused_program(&bench, factor_as(1), "no second derivatives");
    run_one(&bench, begin_triangle(2));
    assert_refused_program(
        &bench, (struct operation){.code = OPERATION_GRADIENT, .a = REGISTER_H, .alpha = 10},
        "adds up none");
    bench_release(&bench);
    bench_init(&bench, setup(N, 0, N)); /* without a preconditioner */
    assert_refused_program(&bench, begin_triangle(1), "no room");
    bench_release(&bench);
}

static void a_slice_has_the_length_of_the_triangle(void **state) {
    (void)state;
    struct bench bench;
    bench_of_all(&bench);
    assert_int_equal(bench.shard->registers.sum_length, TRIANGLE);
    run_one(&bench, begin_triangle(1));
    tell(&bench, REPLICA_LINK, stage(flush(1, 1), triangle, N));
    assert_answer(&bench, 0, REPLICA_LINK, MESSAGE_REFUSED);
    tell(&bench, REPLICA_LINK, stage(flush(1, 1), triangle, TRIANGLE));
    assert_answer(&bench, 0, REPLICA_LINK, MESSAGE_STAGED);
    bench_release(&bench);
}

/* What a model of one block leaves to the second shard. */
static void a_shard_without_parameters_does_everything_with_nothing(void **state) {
    (void)state;
    struct bench bench;
    bench_init(&bench, preconditioned(N, 0));
    assert_answer(&bench, 0, COORDINATOR_LINK, MESSAGE_READY);
    tell(&bench, COORDINATOR_LINK, all_exponents(1));
    run_one(&bench, begin_triangle(1));
    tell(&bench, REPLICA_LINK, fetch_all(1));
    assert_answer(&bench, 0, REPLICA_LINK, MESSAGE_PARAMETERS);
    assert_int_equal(answer(&bench, 0).parameters.count, 0);
    tell(&bench, REPLICA_LINK, stage(flush(1, 1), triangle, 0));
    assert_answer(&bench, 0, REPLICA_LINK, MESSAGE_STAGED);
    tell(&bench, COORDINATOR_LINK, fold(flush(1, 1)));
    assert_answer(&bench, 0, COORDINATOR_LINK, MESSAGE_FOLDED);
    run_one(&bench, factor_as(3));
    assert_true(yielded(&bench) == 0);
    run_one(&bench, precondition(REGISTER_PG, REGISTER_G, 3));
    assert_refused_program(&bench, precondition(REGISTER_PG, REGISTER_G, 2), "has 3");
    begin(&bench, 2);
    run_one(&bench, (struct operation){.code = OPERATION_GRADIENT, .a = REGISTER_H, .alpha = 10});
    run_one(&bench, (struct operation){.code = OPERATION_MAX_ABS, .a = REGISTER_H});
    assert_true(yielded(&bench) == 0);
    (void)read_register(&bench, REGISTER_PG, N, 0);
    bench_release(&bench);
}

/* What is wrong with a shard's part of a model without biases that has two blocks of columns. */
static const char *fault_of_part(enum precondition precondition, uint32_t columns, uint64_t first,
                                 uint64_t count) {
    const struct layout flat = layout_linear(2 * BLOCK_ELEMENTS, 1, false);
    struct message message = setup(1, first, count);
    message.shard_setup.layout = blob_of_layout(&flat);
    message.shard_setup.hessian.precondition = (uint8_t)precondition;
    message.shard_setup.hessian.block_columns = columns;
    message.shard_setup.scaling.coordinates = precondition == PRECONDITION_LEADING;
    message.shard_setup.machine.device = "cpu";
    return message_fault(&message);
}

static void a_shard_is_not_set_up_for_a_block_that_others_have(void **state) {
    (void)state;
    enum { ONE = BLOCK_ELEMENTS, BOTH = 2 * BLOCK_ELEMENTS };
    assert_non_null(fault_of_part(PRECONDITION_FULL, BOTH, 0, ONE));
    assert_non_null(fault_of_part(PRECONDITION_FULL, BOTH, ONE, ONE));
    assert_non_null(fault_of_part(PRECONDITION_LEADING, BOTH, 0, ONE));
    assert_null(fault_of_part(PRECONDITION_FULL, BOTH, 0, BOTH));
    assert_null(fault_of_part(PRECONDITION_FULL, BOTH, BOTH, 0));
    assert_null(fault_of_part(PRECONDITION_LEADING, ONE, 0, ONE));
    assert_null(fault_of_part(PRECONDITION_LEADING, BOTH, ONE, ONE));
    struct layout biases = {0};
    layout_add(&biases, &(struct layout_tensor){.name = TENSOR_BIAS, .rows = 1, .columns = 5});
    struct message message = setup(1, 0, 5);
    message.shard_setup.layout = blob_of_layout(&biases);
    assert_null(message_fault(&message));
    message.shard_setup.hessian.precondition =
        PRECONDITION_LISTED; /* its biases, and three of them */
    message.shard_setup.hessian.block_columns = 3;
    assert_non_null(message_fault(&message));
}

SUITE(precondition) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_makes_the_preconditioner_and_later_ones_apply_it),
        cmocka_unit_test(a_program_is_swept_on_both_sides_of_the_preconditioner),
        cmocka_unit_test(a_preconditioner_of_another_serial_is_not_applied),
        cmocka_unit_test(a_new_attempt_begins_without_one),
        cmocka_unit_test(sums_that_have_no_factor_leave_none),
        cmocka_unit_test(only_second_derivatives_make_one),
        cmocka_unit_test(a_slice_has_the_length_of_the_triangle),
        cmocka_unit_test(a_shard_without_parameters_does_everything_with_nothing),
        cmocka_unit_test(a_shard_is_not_set_up_for_a_block_that_others_have),
    };
    return cmocka_run_group_tests_name("precondition", tests, NULL, NULL);
}
