/* Bounds a tensor on a shard: each element of a gradient is read under the bound of its tensor, on
 * whichever shard and in whichever block it lies. */
#include <math.h>

#include "tests/unit/suites.h"
#include "tests/unit/shard_bench.h"

/* A network's tensors: a first one with an exponent a row, that ends within a block, and others. */
enum { ROWS = 1500, COLUMNS = 3, SECOND = 5000, BIASES = 7, TENSORS = 3 };
enum { N = ROWS * COLUMNS + SECOND + BIASES, EXPONENTS = ROWS + 2, CUT = BLOCK_ELEMENTS };

static const struct bounds bounds = {TENSORS, {-3, 200, 4}};

static struct layout network(void) {
    struct layout layout = {0};
    layout_add(&layout, &(struct layout_tensor){
                            .name = "W1", .rows = ROWS, .columns = COLUMNS, .regularized = true});
    layout_add(&layout, &(struct layout_tensor){.name = "W2",
                                                .rows = SECOND,
                                                .columns = 1,
                                                .regularized = true,
                                                .exponents = LAYOUT_ONE_EXPONENT});
    layout_add(&layout, &(struct layout_tensor){.name = TENSOR_FIRST_BIAS,
                                                .rows = 1,
                                                .columns = BIASES,
                                                .exponents = LAYOUT_ONE_EXPONENT});
    return layout;
}

static int16_t exponent_of(uint64_t number) {
    return (int16_t)(30 + number % 9);
}

static void set_up(struct bench *bench, uint64_t first, uint64_t count) {
    const struct layout layout = network();
    struct message message = setup(N, first, count);
    message.shard_setup.uniform = 0;
    message.shard_setup.layout = blob_of_layout(&layout);
    bench_init(bench, message);
    int16_t exponents[EXPONENTS];
    for (uint64_t i = 0; i < EXPONENTS; i++)
        exponents[i] = exponent_of(i);
    message = (struct message){.type = MESSAGE_EXPONENTS};
    message.exponents = (struct message_exponents){.attempt = 1, .first = 0, .count = EXPONENTS};
    message.bulk = (struct bulk){.data = exponents, .length = sizeof exponents};
    tell(bench, COORDINATOR_LINK, message);
    assert_answer(bench, 0, COORDINATOR_LINK, MESSAGE_READY);
}

static struct operation beginning(const struct bounds *with) {
    return (struct operation){
        .code = OPERATION_BEGIN, .evaluation = 1, .sums = SUMS_PARAMETERS, .bounds = *with};
}

static void assert_read_under_its_bound(uint64_t element, double value, int64_t sum) {
    const struct layout layout = network();
    struct layout_place place = layout_locate(&layout, element);
    int bound = bounds.exponent[place.tensor - layout.tensor];
    int exponent = exponent_of(layout_exponent_of(&layout, element));
    assert_true(value == ldexp((double)sum, bound - exponent) / 10);
}

static void elements_are_read_under_the_bound_of_their_tensor(void **state) {
    (void)state;
    static int64_t sums[N];
    const uint64_t cuts[] = {0, CUT, N};
    for (int64_t i = 0; i < N; i++)
        sums[i] = 640 * (i + 1);
    for (unsigned part = 0; part < 2; part++) {
        uint64_t first = cuts[part], count = cuts[part + 1] - first;
        struct bench bench;
        set_up(&bench, first, count);
        begin_under(&bench, 1, &bounds);
        tell(&bench, REPLICA_LINK, stage(flush(1, 1), sums + first, count));
        tell(&bench, COORDINATOR_LINK, fold(flush(1, 1)));
        run_one(&bench,
                (struct operation){.code = OPERATION_GRADIENT, .a = REGISTER_H, .alpha = 10});
        const double *h = read_register(&bench, REGISTER_H, first, count);
        for (uint64_t i = 0; i < count; i++)
            assert_read_under_its_bound(first + i, h[i], sums[first + i]);
        bench_release(&bench);
    }
}

static void bounds_of_another_number_than_the_tensors_are_refused(void **state) {
    (void)state;
    const struct bounds wrong[] = {{1, {0}}, {TENSORS - 1, {0}}, {TENSORS + 1, {0}}};
    for (unsigned i = 0; i < 3; i++) {
        struct bench bench;
        struct operation operation = beginning(&wrong[i]);
        set_up(&bench, 0, CUT);
        run_operations(&bench, &operation, 1);
        assert_answer(&bench, 0, COORDINATOR_LINK, MESSAGE_FAILED);
        assert_non_null(strstr(answer(&bench, 0).failed.reason, "bounds"));
        bench_release(&bench);
    }
}

static void a_linear_model_has_one_bound(void **state) {
    (void)state;
    struct bench bench;
    struct message message = setup(60, 0, 60);
    struct operation operation = beginning(&(struct bounds){2, {0}});
    message.shard_setup.layout = layout_blob(59, 1, 1);
    bench_init(&bench, message);
    run_operations(&bench, &operation, 1);
    assert_answer(&bench, 0, COORDINATOR_LINK, MESSAGE_FAILED);
    operation = beginning(&(struct bounds){1, {0}});
    run_operations(&bench, &operation, 1);
    bench_release(&bench);
}

SUITE(shard_bounds) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_are_read_under_the_bound_of_their_tensor),
        cmocka_unit_test(bounds_of_another_number_than_the_tensors_are_refused),
        cmocka_unit_test(a_linear_model_has_one_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
