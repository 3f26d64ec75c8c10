/* What a set-up may say of sums for the errors of estimates. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/suites.h"
#include "base/layout.h"
#include "base/limits.h"
#include "tests/unit/layout_fixture.h"
#include "wire/evaluation.h"
#include "wire/message.h"

enum { COLUMNS = 20, EXPONENTS = COLUMNS + 1 };

static const double loss[LOSS_PARAMETERS_MAX];
static uint8_t bits[EXPONENTS + 1];

static struct message shard_setup(const struct layout *layout, struct blob extra_bits,
                                  uint8_t form) {
    return (struct message){.type = MESSAGE_SHARD_SETUP,
                            .shard_setup = {.attempt = 1,
                                            .layout = blob_of_layout(layout),
                                            .count = layout_parameters(layout),
                                            .slots = 2,
                                            .weight_sum = 10,
                                            .hessian.precondition = form,
                                            .hessian.block_columns = form ? COLUMNS : 0,
                                            .folder = "",
                                            .machine.device = "cpu",
                                            .hessian.extra_bits = extra_bits}};
}

static struct message replica_setup(const struct layout *layout, struct blob extra_bits,
                                    uint8_t form) {
    return (struct message){.type = MESSAGE_REPLICA_SETUP,
                            .replica_setup = {.attempt = 1,
                                              .set = "data.set",
                                              .fingerprint = "f00",
                                              .objective = "softmax",
                                              .loss = {loss, sizeof loss},
                                              .layout = blob_of_layout(layout),
                                              .shards = 2,
                                              .hessian.precondition = form,
                                              .hessian.block_columns = form ? COLUMNS : 0,
                                              .machine.device = "cpu",
                                              .hessian.extra_bits = extra_bits}};
}

/* What a shard and a replica say of so many bytes; NULL: they take them. */
static const char *fault_of(uint32_t length, uint8_t form) {
    const struct layout layout = layout_linear(COLUMNS, 3, true);
    struct message shard = shard_setup(&layout, (struct blob){bits, length}, form);
    struct message replica = replica_setup(&layout, (struct blob){bits, length}, form);
    const char *fault = message_fault(&shard), *other = message_fault(&replica);
    assert_true(fault == other || (fault && other && strcmp(fault, other) == 0));
    return fault;
}

static void finer_sums_are_of_all_columns_or_of_none(void **state) {
    (void)state;
    bits[COLUMNS] = FINER_MAX;
    assert_null(fault_of(0, PRECONDITION_NONE));
    assert_null(fault_of(0, PRECONDITION_FULL));
    assert_null(fault_of(EXPONENTS, PRECONDITION_FULL));
    assert_non_null(strstr(fault_of(EXPONENTS, PRECONDITION_NONE), "than there are"));
    assert_non_null(strstr(fault_of(EXPONENTS - 1, PRECONDITION_FULL), "another number"));
    assert_non_null(strstr(fault_of(EXPONENTS + 1, PRECONDITION_FULL), "another number"));
    bits[COLUMNS] = FINER_MAX + 1;
    assert_non_null(strstr(fault_of(EXPONENTS, PRECONDITION_FULL), "than there may be"));
}

SUITE(extra_bits) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finer_sums_are_of_all_columns_or_of_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
