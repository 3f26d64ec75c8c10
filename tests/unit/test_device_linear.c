/* The kernels of linear models have the bits of the processor, whatever the problem is like, and
 * however it is cut into blocks and threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/suites.h"
#include "base/memory.h"
#include "objective/device_arranged.h"
#include "objective/device_chunks.h"
#include "objective/device_linear_kernels.h"
#include "tests/unit/linear_fixture.h"

static void assert_margins(const struct linear_problem *problem, const struct linear_device *on) {
    size_t count = problem->rows * on->weights;
    double *expected = memory_new(count, sizeof *expected);
    double *found = memory_new(count, sizeof *found);
    double *margins = on->pass.common ? on->pass.common : on->pass.margins;
    linear_margins(problem, expected);
    assert_int_equal(device_get(on->device, QUEUE_COMPUTE, found, margins, count * sizeof *found),
                     0);
    assert_memory_equal(found, expected, count * sizeof *found);
    free(expected);
    free(found);
}

static void assert_gradient(const struct linear_problem *problem, const struct linear_device *on) {
    size_t count = problem->parameters;
    int64_t *expected = memory_new(count, sizeof *expected);
    int64_t *found = memory_new(count, sizeof *found);
    linear_gradient(problem, expected);
    assert_int_equal(
        device_get(on->device, QUEUE_COMPUTE, found, on->pass.sum, count * sizeof *found), 0);
    assert_memory_equal(found, expected, count * sizeof *found);
    free(expected);
    free(found);
}

/* The gradient comes first: the margins overwrite the derivatives. */
static void assert_pass(const struct linear_problem *problem, const struct linear_device *on) {
    assert_int_equal(device_family_linear.gradient(NULL, &on->pass, NULL), 0);
    assert_gradient(problem, on);
    assert_int_equal(device_family_linear.margins(NULL, &on->pass), 0);
    assert_margins(problem, on);
}

static void assert_bits(const struct linear_kind *kind, uint64_t seed) {
    struct linear_problem *problem = linear_new(kind, seed);
    struct linear_device *on = linear_device_new(problem);
    assert_pass(problem, on);
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
    kind.outputs = random_below(random, 2) ? some_outputs[random_below(random, SOME_OUTPUTS)]
                                           : 1 + (uint32_t)random_below(random, 100);
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

static void arranged_rows_and_columns_have_the_bits_of_the_processor(void **state) {
    (void)state;
    struct random random;
    random_init(&random, 3);
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct linear_kind kind = any_kind(&random, false);
        struct linear_problem *problem = linear_new(&kind, seed);
        struct linear_device *on = linear_device_new(problem);
        linear_arrange(problem, seed % 3 ? (unsigned)random_next(&random) : 15 * (seed % 2), on);
        assert_pass(problem, on);
        linear_device_free(on);
        linear_free(problem);
    }
}

/* Launched by hand: in some blocks a chunk, of some threads where their number is free. */
struct by_hand {
    const struct linear_device *on;
    struct random random;
    struct linear_work work;
};

static struct by_hand by_hand(const struct linear_problem *problem, const struct linear_device *on,
                              uint64_t seed) {
    const struct device_pass *pass = &on->pass;
    double *margins = pass->common ? pass->common : pass->margins;
    struct by_hand hand = {.on = on};
    random_init(&hand.random, seed);
    hand.work = (struct linear_work){.chunks = pass->chunks,
                                     .count = pass->count,
                                     .features = objective_columns(&problem->shape),
                                     .outputs = on->weights,
                                     .batch_rows = pass->batch_rows,
                                     .rows_most = pass->rows_most,
                                     .parameters = pass->parameters,
                                     .margins = margins,
                                     .derivatives = margins,
                                     .exponent = pass->exponent,
                                     .uniform = pass->uniform,
                                     .sum = pass->sum};
    hand.work.blocks_each = 1 + (uint32_t)random_below(&hand.random, 7);
    return hand;
}

/* Arguments are the work, and what may follow it. */
static void launch(struct by_hand *hand, const struct kernel *kernel, bool any_threads,
                   const void *arguments) {
    struct kernel changed = *kernel;
    uint64_t blocks = (uint64_t)LINEAR_CHUNKS * hand->work.blocks_each;
    if (any_threads)
        changed.threads = 1 + (uint32_t)random_below(&hand->random, 40);
    assert_int_equal(device_launch(hand->on->device, QUEUE_COMPUTE, &changed, blocks, arguments),
                     0);
    assert_int_equal(device_wait(hand->on->device, QUEUE_COMPUTE), 0);
}

static void launch_biases(struct by_hand *hand, const struct linear_problem *problem) {
    struct layout layout = objective_layout(&problem->shape);
    const struct layout_tensor *bias = layout_find(&layout, TENSOR_BIAS);
    struct bias_gradient_arguments arguments = {hand->work};
    arguments.work.outputs = problem->shape.outputs;
    arguments.work.derivatives = hand->on->pass.margins;
    arguments.work.exponent += problem->exponent ? bias->first_exponent : 0;
    arguments.work.sum += bias->first;
    launch(hand, &kernel_bias_gradient, true, &arguments);
}

static void launch_gradient(struct by_hand *hand, const struct linear_problem *problem) {
    if (problem->shape.intercept)
        launch_biases(hand, problem);
    if (hand->on->pass.dense) {
        bool one = hand->work.outputs == 1;
        launch(hand, one ? &kernel_dense_gradient : &kernel_dense_gradients, true, &hand->work);
        return;
    }
    launch(hand, &kernel_sparse_gather, true, &hand->work);
    launch(hand, &kernel_sparse_scatter, true, &hand->work);
}

static void launch_margins(struct by_hand *hand) {
    struct dense_margins_arguments dense = {.work = hand->work};
    bool one = hand->work.outputs == 1;
    dense_margins_cut(&dense);
    if (!hand->on->pass.dense)
        launch(hand, one ? &kernel_sparse_margin : &kernel_sparse_margins, true, &hand->work);
    else if (one)
        launch(hand, &kernel_dense_margin, false, &hand->work);
    else
        launch(hand, &kernel_dense_margins, false, &dense);
}

static void any_number_of_blocks_and_threads_has_the_bits_of_the_processor(void **state) {
    (void)state;
    struct random random;
    random_init(&random, 4);
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct linear_kind kind = any_kind(&random, seed % 2);
        struct linear_problem *problem = linear_new(&kind, seed);
        struct linear_device *on = linear_device_new(problem);
        if (!kind.dense)
            linear_arrange(problem, (unsigned)random_next(&random), on);
        struct by_hand hand = by_hand(problem, on, seed);
        launch_gradient(&hand, problem);
        assert_gradient(problem, on);
        launch_margins(&hand);
        assert_margins(problem, on);
        linear_device_free(on);
        linear_free(problem);
    }
}

static int give_chunk(void *context, uint32_t number, struct rows *rows) {
    static const double label[2000];
    const struct linear_problem *problem = context;
    *rows = problem->chunk[number].rows;
    rows->label = label;
    return 0;
}

/* Long chunks by column, too, as long as half of the room is free; what does not fit as it was
 * read. */
static void chunks_that_stay_are_arranged_while_there_is_room(void **state) {
    (void)state;
    struct linear_kind kind = {OBJECTIVE_LOGISTIC, 60, 1, 300, true, false, true, 1, 0.8};
    struct linear_problem *problem = linear_new(&kind, 7);
    struct linear_device *on = linear_device_new(problem);
    struct device_chunks_settings settings = {.arranged = true,
                                              .features = kind.features,
                                              .bytes = 400000,
                                              .buffer = 100000,
                                              .chunk = give_chunk,
                                              .context = problem};
    const struct device_group_limit limit = {.most = UINT64_MAX};
    struct device_chunks *chunks = device_chunks_new(on->device, &settings);
    struct device_group group = {0};
    assert_int_equal(device_chunks_load(chunks, 0, LINEAR_CHUNKS, &limit, &group), 0);
    assert_int_equal(group.count, LINEAR_CHUNKS);
    assert_true(group.chunks[0].order && group.chunks[0].column);
    assert_true(group.chunks[1].order && !group.chunks[LINEAR_CHUNKS - 1].column);
    assert_null(group.chunks[LINEAR_CHUNKS - 1].order);
    assert_true(group.by_column > 0 && group.by_column < LINEAR_CHUNKS);
    assert_int_equal(device_order(on->device, QUEUE_COPY, QUEUE_COMPUTE), 0);
    memcpy(on->chunk, group.chunks, sizeof on->chunk);
    on->pass.by_column = group.by_column;
    linear_put_table(on);
    assert_pass(problem, on);
    device_group_release(on->device, &group);
    device_chunks_free(chunks);
    linear_device_free(on);
    linear_free(problem);
}

/* One row is as long as all others together, or each row is. */
static void arranged_rows_take_little_memory(void **state) {
    (void)state;
    enum { ROWS = 300, LONG = 3000 };
    uint32_t start[ROWS + 1] = {0}, feature[LONG + ROWS];
    for (uint32_t i = 0; i < LONG + ROWS; i++)
        feature[i] = i < LONG ? i : 0;
    for (uint32_t i = 0; i < ROWS; i++)
        start[i + 1] = start[i] + (i == 77 ? LONG : 1);
    struct rows rows = {.count = ROWS,
                        .features = LONG,
                        .values = start[ROWS],
                        .type = VALUE_ONES,
                        .start = start,
                        .feature = feature};
    struct device_arrangement arrangement;
    device_arrangement_init(&arrangement, &rows, false);
    assert_int_equal(arrangement.order[0], 77);
    assert_true(arrangement.straight > 0 && arrangement.room <= 3 * rows.values);
    rows.features = UINT32_MAX;
    assert_true(device_arrange_scratch(&arrangement, &rows) <= 8 * rows.values);
    device_arrangement_release(&arrangement);
    rows.count = 1;
    rows.start = start + 77;
    rows.values = LONG;
    device_arrangement_init(&arrangement, &rows, false);
    assert_true(arrangement.room < LONG + SLICE_ROWS);
    device_arrangement_release(&arrangement);
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

SUITE(device_linear) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sparse_rows_of_any_shape_have_the_bits_of_the_processor),
        cmocka_unit_test(dense_rows_of_any_shape_have_the_bits_of_the_processor),
        cmocka_unit_test(arranged_rows_and_columns_have_the_bits_of_the_processor),
        cmocka_unit_test(any_number_of_blocks_and_threads_has_the_bits_of_the_processor),
        cmocka_unit_test(chunks_that_stay_are_arranged_while_there_is_room),
        cmocka_unit_test(arranged_rows_take_little_memory),
        cmocka_unit_test(dense_rows_of_many_lengths_and_batches_have_the_bits_of_the_processor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
