#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/suites.h"
#include "wire/program.h"

static struct operation sample(enum operation_code code) {
    struct operation operation = {.code = code,
                                  .a = REGISTER_D,
                                  .b = REGISTER_G,
                                  .c = REGISTER_T,
                                  .d = REGISTER_X,
                                  .e = REGISTER_PG,
                                  .f = REGISTER_PH,
                                  .alpha = 0.125,
                                  .beta = 0.5,
                                  .gamma = -0.25,
                                  .l1 = 0.75,
                                  .scaled = true,
                                  .slot = SLOTS_MAX - 1,
                                  .count = 3,
                                  .tensors = 5,
                                  .slots = {5, 0, SLOTS_MAX - 1},
                                  .u = {1, -2, 3},
                                  .w = {4, 5, -6},
                                  .hash = 77,
                                  .folds = 12,
                                  .serial = UINT64_MAX - 3,
                                  .evaluation = 9,
                                  .sums = SUMS_PARAMETERS,
                                  .bounds = {2, {-40, 41}}};
    return operation;
}

/* Scalars that a whole program yields; -1 if it is malformed. */
static int scalars_of(const void *program, size_t length) {
    struct cursor cursor = cursor_over(program, length);
    struct operation operation;
    uint32_t scalars = 0;
    while (program_next(&cursor, &operation))
        scalars += operation_scalars(&operation);
    return cursor.failed ? -1 : (int)scalars;
}

static void every_operation_reads_back_and_encodes_to_the_same_bytes(void **state) {
    (void)state;
    struct bytes program, again;
    bytes_init(&program);
    bytes_init(&again);
    for (unsigned code = OPERATION_CHECK; code < OPERATIONS; code++) {
        struct operation operation = sample(code);
        program_add(&program, &operation);
    }
    struct cursor cursor = cursor_over(program.data, program.length);
    struct operation operation;
    unsigned count = 0;
    while (program_next(&cursor, &operation)) {
        assert_int_equal(operation.code, ++count);
        program_add(&again, &operation);
    }
    assert_false(cursor.failed);
    assert_int_equal(count, OPERATIONS - 1);
    assert_int_equal(again.length, program.length);
    assert_memory_equal(again.data, program.data, program.length);
    assert_int_equal(scalars_of(program.data, program.length),
                     5 + 4 * 3 + 6 + 6 + 3 + 1 + 1 + 3 + 6 + 2 + 2 + 2 + 2 + 3 + 1);
    assert_true(program_hash(program.data, program.length) !=
                program_hash(program.data, program.length - 1));
    bytes_release(&program);
    bytes_release(&again);
}

static void fields_come_back_as_given(void **state) {
    (void)state;
    struct bytes program;
    bytes_init(&program);
    struct operation given = sample(OPERATION_DIRECTION), back;
    program_add(&program, &given);
    given = sample(OPERATION_BEGIN);
    program_add(&program, &given);
    given = sample(OPERATION_PAIR);
    program_add(&program, &given);
    given = sample(OPERATION_FACTOR);
    program_add(&program, &given);
    given = sample(OPERATION_PRECONDITION);
    program_add(&program, &given);
    given = sample(OPERATION_EXCESS);
    program_add(&program, &given);
    struct cursor cursor = cursor_over(program.data, program.length);
    assert_true(program_next(&cursor, &back));
    assert_int_equal(back.a, REGISTER_D);
    assert_int_equal(back.count, 3);
    assert_int_equal(back.slots[0], 5);
    assert_true(back.alpha == 0.125 && back.u[1] == -2 && back.w[2] == -6 && back.scaled);
    assert_true(program_next(&cursor, &back));
    assert_int_equal(back.evaluation, 9);
    assert_int_equal(back.sums, SUMS_PARAMETERS);
    given = sample(OPERATION_BEGIN);
    assert_memory_equal(&back.bounds, &given.bounds, sizeof back.bounds);
    assert_true(program_next(&cursor, &back));
    assert_int_equal(back.d, REGISTER_X);
    assert_int_equal(back.e, REGISTER_PG);
    assert_int_equal(back.f, REGISTER_PH);
    assert_true(program_next(&cursor, &back));
    assert_true(back.alpha == 0.125 && back.beta == 0.5 && back.gamma == -0.25);
    assert_true(back.serial == UINT64_MAX - 3);
    assert_true(program_next(&cursor, &back));
    assert_int_equal(back.b, REGISTER_G);
    assert_true(back.serial == UINT64_MAX - 3);
    assert_int_equal(back.e, 0); /* what an operation does not have */
    assert_false(back.scaled);
    assert_true(program_next(&cursor, &back));
    assert_true(back.alpha == 0.125 && back.l1 == 0.75);
    assert_false(program_next(&cursor, &back));
    bytes_release(&program);
}

static void a_program_cut_anywhere_but_between_operations_is_malformed(void **state) {
    (void)state;
    for (unsigned code = OPERATION_CHECK; code < OPERATIONS; code++) {
        struct bytes program;
        bytes_init(&program);
        struct operation operation = sample(code);
        program_add(&program, &operation);
        for (size_t length = 1; length < program.length; length++)
            assert_int_equal(scalars_of(program.data, length), -1);
        bytes_release(&program);
    }
}

static void assert_malformed(struct operation operation) {
    struct bytes program;
    bytes_init(&program);
    program_add(&program, &operation);
    assert_int_equal(scalars_of(program.data, program.length), -1);
    bytes_release(&program);
}

static void registers_slots_and_codes_out_of_range_are_malformed(void **state) {
    (void)state;
    struct operation operation = sample(OPERATION_DOT);
    operation.b = REGISTERS;
    assert_malformed(operation);
    operation = sample(OPERATION_PAIR);
    operation.f = REGISTERS;
    assert_malformed(operation);
    operation = sample(OPERATION_PAIR);
    operation.slot = SLOTS_MAX;
    assert_malformed(operation);
    operation = sample(OPERATION_HISTORY_DOTS);
    operation.slots[1] = SLOTS_MAX;
    assert_malformed(operation);
    operation = sample(OPERATION_BEGIN);
    operation.bounds.exponent[1] = 1 << 20;
    assert_malformed(operation);
    operation = sample(OPERATION_BEGIN);
    operation.sums = SUMS_LAYOUTS;
    assert_malformed(operation);
    operation = sample(OPERATION_TENSOR_SQUARES);
    operation.tensors = TENSORS_MAX + 1;
    assert_malformed(operation);
    operation.tensors = 0;
    assert_malformed(operation);
    assert_int_equal(scalars_of("\0", 1), -1);
    assert_int_equal(scalars_of("\xff", 1), -1);
}

static const char *fault_of(struct operation first, struct operation second) {
    struct bytes program;
    bytes_init(&program);
    program_add(&program, &first);
    program_add(&program, &second);
    const char *fault = program_fault(program.data, program.length);
    bytes_release(&program);
    return fault;
}

static void assert_refused(struct operation operation, const char *why) {
    const char *fault = fault_of((struct operation){.code = OPERATION_ZERO}, operation);
    assert_non_null(fault);
    assert_non_null(strstr(fault, why));
}

static void a_gradient_needs_one_weight(void **state) {
    (void)state;
    struct operation gradient = sample(OPERATION_GRADIENT), other = gradient;
    assert_null(fault_of(gradient, gradient));
    other.alpha = 0.25;
    assert_non_null(strstr(fault_of(gradient, other), "two weights"));
    const double none[] = {0, -1, NAN, INFINITY};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        other.alpha = none[i];
        assert_refused(other, "without a weight");
    }
}

static void a_step_of_adagrad_is_of_three_registers_and_sound_numbers(void **state) {
    (void)state;
    const struct operation sound = sample(OPERATION_ADAGRAD);
    struct operation operation = sound;
    assert_null(fault_of(sound, sound));
    operation.b = sound.a;
    assert_refused(operation, "three registers");
    operation = sound;
    operation.c = sound.b;
    assert_refused(operation, "three registers");
    operation = sound;
    operation.alpha = NAN;
    assert_refused(operation, "rate");
    operation = sound;
    operation.l1 = -1;
    assert_refused(operation, "l1");
    operation = sound;
    operation.beta = 0;
    assert_refused(operation, "finite");
    operation = sample(OPERATION_DIAGONAL);
    assert_null(fault_of(operation, operation));
    operation.beta = 0;
    assert_refused(operation, "finite");
}

static void a_curvature_is_above_0_and_biases_have_a_share_of_it(void **state) {
    (void)state;
    const enum operation_code codes[] = {OPERATION_GAP, OPERATION_METRIC};
    const double none[] = {0, -0.25, 1.5, NAN};
    for (size_t i = 0; i < 2; i++) {
        struct operation operation = sample(codes[i]);
        operation.gamma = 1;
        assert_null(fault_of(operation, operation));
        for (size_t j = 0; j < sizeof none / sizeof *none; j++) {
            operation.gamma = none[j];
            assert_refused(operation, "curvature of biases");
        }
        operation.alpha = 0;
        assert_refused(operation, "curvature of columns");
    }
}

static void errors_of_estimates_are_taken_of_sums_that_are_there(void **state) {
    (void)state;
    const struct operation errors = {.code = OPERATION_COVARIANCE, .a = REGISTER_D};
    const struct operation robust = {.code = OPERATION_SANDWICH, .a = REGISTER_PH};
    const struct operation factor = {.code = OPERATION_FACTOR, .serial = 1};
    assert_null(fault_of(errors, (struct operation){.code = OPERATION_ZERO}));
    assert_refused((struct operation){.code = OPERATION_COVARIANCE, .alpha = -1}, "penalty");
    assert_non_null(strstr(fault_of(factor, robust), "errors of estimates"));
}

static void biases_are_not_scaled_beside_a_diagonal(void **state) {
    (void)state;
    const enum operation_code codes[] = {OPERATION_PAIR, OPERATION_DIRECTION};
    for (size_t i = 0; i < 2; i++) {
        struct operation operation = sample(codes[i]);
        assert_refused(operation, "twice");
        operation.beta = 1;
        assert_null(fault_of(operation, operation));
        operation.beta = 0.5;
        operation.scaled = false;
        assert_null(fault_of(operation, operation));
    }
}

SUITE(program) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gradient_needs_one_weight),
        cmocka_unit_test(a_step_of_adagrad_is_of_three_registers_and_sound_numbers),
        cmocka_unit_test(a_curvature_is_above_0_and_biases_have_a_share_of_it),
        cmocka_unit_test(errors_of_estimates_are_taken_of_sums_that_are_there),
        cmocka_unit_test(biases_are_not_scaled_beside_a_diagonal),
        cmocka_unit_test(every_operation_reads_back_and_encodes_to_the_same_bytes),
        cmocka_unit_test(fields_come_back_as_given),
        cmocka_unit_test(a_program_cut_anywhere_but_between_operations_is_malformed),
        cmocka_unit_test(registers_slots_and_codes_out_of_range_are_malformed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
