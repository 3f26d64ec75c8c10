#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

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
                                  .l1 = 0.75,
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
    assert_int_equal(scalars_of(program.data, program.length), 4 + 4 * 3 + 6 + 5);
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
    assert_true(back.alpha == 0.125 && back.u[1] == -2 && back.w[2] == -6);
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
    assert_true(back.alpha == 0.125 && back.serial == UINT64_MAX - 3);
    assert_true(program_next(&cursor, &back));
    assert_int_equal(back.b, REGISTER_G);
    assert_true(back.serial == UINT64_MAX - 3);
    assert_int_equal(back.e, 0); /* what an operation does not have */
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operation_reads_back_and_encodes_to_the_same_bytes),
        cmocka_unit_test(fields_come_back_as_given),
        cmocka_unit_test(a_program_cut_anywhere_but_between_operations_is_malformed),
        cmocka_unit_test(registers_slots_and_codes_out_of_range_are_malformed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
