/* The kernels of linear models have the bits of the processor, whatever the problem is like, and
 * however it is cut into blocks and threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/memory.h"
#include "objective/device_linear_kernels.h"
#include "tests/unit/linear_fixture.h"

static void assert_margins(const struct linear_problem *problem, struct linear_device *on) {
    size_t count = problem->rows * on->weights;
    double *expected = memory_new(count, sizeof *expected);
    double *found = memory_new(count, sizeof *found);
    linear_margins(problem, expected);
    assert_int_equal(device_linear_margins(&on->pass), 0);
    double *margins = on->pass.common ? on->pass.common : on->pass.margins;
    assert_int_equal(device_get(on->device, QUEUE_COMPUTE, found, margins, count * sizeof *found),
                     0);
    assert_memory_equal(found, expected, count * sizeof *found);
    free(expected);
    free(found);
}

static void assert_gradient(const struct linear_problem *problem, struct linear_device *on) {
    size_t count = problem->parameters;
    int64_t *expected = memory_new(count, sizeof *expected);
    int64_t *found = memory_new(count, sizeof *found);
    linear_gradient(problem, expected);
    assert_int_equal(device_linear_gradient(&on->pass), 0);
    assert_int_equal(
        device_get(on->device, QUEUE_COMPUTE, found, on->pass.sum, count * sizeof *found), 0);
    assert_memory_equal(found, expected, count * sizeof *found);
    free(expected);
    free(found);
}

/* The gradient comes first: the margins overwrite the derivatives. */
static void assert_bits(const struct linear_kind *kind, uint64_t seed) {
    struct linear_problem *problem = linear_new(kind, seed);
    struct linear_device *on = linear_device_new(problem);
    assert_gradient(problem, on);
    assert_margins(problem, on);
    linear_device_free(on);
    linear_free(problem);
}

static const uint32_t some_outputs[] = {1, 2, 3, 5, 8, 9, 16, 17, 33, 100};
#define SOME_OUTPUTS (sizeof some_outputs / sizeof *some_outputs)

static struct linear_kind any_kind(struct random *random, bool dense) {
    struct linear_kind kind = {.features = 1 + (uint32_t)random_below(random, 50),
                               .rows_most = 1 + (uint32_t)random_below(random, 90),
                               .intercept = random_below(random, 2),
                               .dense = dense,
                               .by_column = random_below(random, 2),
                               .decades = random_below(random, 2) ? 300 : 1,
                               .density = random_unit(random)};
    kind.outputs = some_outputs[random_below(random, SOME_OUTPUTS)];
    kind.kind = kind.outputs == 1         ? OBJECTIVE_LOGISTIC
                : random_below(random, 4) ? OBJECTIVE_SOFTMAX
                                          : OBJECTIVE_ORDINAL;
    return kind;
}

static void sparse_rows_of_any_shape_have_the_bits_of_the_processor(void **state) {
    (void)state;
    struct random random;
    random_init(&random, 1);
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct linear_kind kind = any_kind(&random, false);
        assert_bits(&kind, seed);
    }
}

static void dense_rows_of_any_shape_have_the_bits_of_the_processor(void **state) {
    (void)state;
    struct random random;
    random_init(&random, 2);
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct linear_kind kind = any_kind(&random, true);
        assert_bits(&kind, seed);
    }
}

/* Rows of all lengths about whole lanes; batches of 16 and 256 rows. */
static void dense_rows_of_many_lengths_and_batches_have_the_bits_of_the_processor(void **state) {
    (void)state;
    for (uint32_t n = 1; n <= 40; n++) {
        struct linear_kind kind = {OBJECTIVE_LOGISTIC, n, 1, 20, true, true, true, 2, 1};
        assert_bits(&kind, n);
    }
    struct linear_kind wide = {OBJECTIVE_SOFTMAX, 2500, 3, 40, true, true, true, 2, 1};
    assert_bits(&wide, 1);
    struct linear_kind wide_one = {OBJECTIVE_LOGISTIC, 2500, 1, 40, true, true, false, 2, 1};
    assert_bits(&wide_one, 2);
    struct linear_kind tall = {OBJECTIVE_SOFTMAX, 5, 12, 700, true, true, true, 2, 1};
    assert_bits(&tall, 3);
    struct linear_kind tall_one = {OBJECTIVE_LOGISTIC, 5, 1, 700, true, true, true, 2, 1};
    assert_bits(&tall_one, 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sparse_rows_of_any_shape_have_the_bits_of_the_processor),
        cmocka_unit_test(dense_rows_of_any_shape_have_the_bits_of_the_processor),
        cmocka_unit_test(dense_rows_of_many_lengths_and_batches_have_the_bits_of_the_processor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
