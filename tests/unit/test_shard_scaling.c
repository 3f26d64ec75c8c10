/* Shards whose vectors are scaled: gradients, what l2 acts on, and the sums of biases that
 * every shard has. */
#include "tests/unit/suites.h"
#include "tests/unit/shard_bench.h"

#include <math.h>

#include "base/layout.h"
#include "base/clock.h"

/* A linear model of two outputs; its biases are on the last shard alone. */
enum {
    OUTPUTS = 2,
    COLUMNS = BLOCK_ELEMENTS + 50,
    WEIGHTS = COLUMNS * OUTPUTS,
    ALL = WEIGHTS + OUTPUTS,
    SHARDS = 3
};

static const uint64_t ends[] = {BLOCK_ELEMENTS, 2 * BLOCK_ELEMENTS, ALL};
static struct column_scaling columns[COLUMNS];
static int64_t sums[ALL];

static uint64_t first_of(unsigned shards, unsigned shard) {
    return shards == 1 || !shard ? 0 : ends[shard - 1];
}

static uint64_t end_of(unsigned shards, unsigned shard) {
    return shards == 1 ? ALL : ends[shard];
}

static struct message coordinates(uint64_t first, uint64_t count) {
    return (struct message){.type = MESSAGE_COORDINATES,
                            .coordinates = {.attempt = 1, .first = first, .count = count},
                            .bulk = {.data = columns + first, .length = count * sizeof *columns}};
}

static void draw(void) {
    for (unsigned j = 0; j < COLUMNS; j++) {
        columns[j] =
            (struct column_scaling){j % 7 - 3.0, ldexp(1.25, (int)(j % 5) - 2), 0.5 + j % 3, 1, 0};
        for (unsigned k = 0; k < OUTPUTS; k++)
            sums[j * OUTPUTS + k] = (int64_t)(j * 1000 + k * 77 + 1) << 10;
    }
    sums[WEIGHTS] = 5 << 20;
    sums[WEIGHTS + 1] = -(9 << 20);
}

static void set_up_as(struct bench *bench, unsigned shards, unsigned shard, bool orthants) {
    uint64_t first = first_of(shards, shard), count = end_of(shards, shard) - first;
    struct layout layout = layout_linear(COLUMNS, OUTPUTS, true);
    draw();
    struct message message = setup(ALL, first, count);
    message.shard_setup.layout = blob_of_layout(&layout);
    message.shard_setup.scaling.coordinates = 1;
    message.shard_setup.scaling.measured = 1;
    message.shard_setup.box.used = orthants;
    message.shard_setup.adagrad = 1;
    message.shard_setup.scaling.bias_exponent = 20;
    message.shard_setup.rows.directions = 1;
    message.shard_setup.rows.total = 1;
    message.shard_setup.rows.outputs = OUTPUTS;
    message.shard_setup.rows.objective = "softmax";
    message.shard_setup.rows.loss = loss_blob();
    bench_init(bench, message);
    assert_int_equal(bench->out.count, 0); /* not ready without the scaling */
    uint64_t from = first / OUTPUTS, to = (first + count + OUTPUTS - 1) / OUTPUTS;
    to = to < COLUMNS ? to : COLUMNS;
    tell(bench, COORDINATOR_LINK, coordinates(from, 10));
    assert_int_equal(bench->out.count, 0);
    tell(bench, COORDINATOR_LINK, coordinates(from + 10, to - from - 10));
    assert_answer(bench, 0, COORDINATOR_LINK, MESSAGE_READY);
}

static void set_up(struct bench *bench, unsigned shards, unsigned shard) {
    set_up_as(bench, shards, shard, false);
}

static void set_up_with_orthants(struct bench *bench) {
    set_up_as(bench, 1, 0, true);
}

static struct message slice(unsigned shards, unsigned shard, uint32_t sequence) {
    uint64_t first = first_of(shards, shard);
    struct message message = stage(flush(1, sequence), sums + first, end_of(shards, shard) - first);
    message.stage.biases = (struct u64_list){(const void *)(sums + WEIGHTS), OUTPUTS};
    return message;
}

/* Two flushes of the same sums, each told twice. */
static void fold_two(struct bench *bench, unsigned shards, unsigned shard) {
    begin(bench, 1);
    for (uint32_t sequence = 1; sequence <= 2; sequence++) {
        for (int again = 0; again < 2; again++)
            tell(bench, REPLICA_LINK, slice(shards, shard, sequence));
        for (int again = 0; again < 2; again++)
            tell(bench, COORDINATOR_LINK, fold(flush(1, sequence)));
    }
}

/* 2·sums/examples/2^20, scaled. */
static double expected_gradient(uint64_t element) {
    double by_weight = 2 * (double)sums[element] * 0x1p-20 / 10;
    if (element >= WEIGHTS)
        return by_weight;
    const struct column_scaling *column = &columns[element / OUTPUTS];
    double by_bias = 2 * (double)sums[WEIGHTS + element % OUTPUTS] * 0x1p-20 / 10;
    return column->scale * (by_weight - column->mean * by_bias);
}

static void a_gradient_is_scaled_on_any_number_of_shards(void **state) {
    (void)state;
    static double whole[ALL];
    for (unsigned shards = 1; shards <= SHARDS; shards += SHARDS - 1) {
        for (unsigned shard = 0; shard < shards; shard++) {
            struct bench bench;
            uint64_t first = first_of(shards, shard), count = end_of(shards, shard) - first;
            set_up(&bench, shards, shard);
            fold_two(&bench, shards, shard);
            run_one(&bench,
                    (struct operation){.code = OPERATION_GRADIENT, .a = REGISTER_H, .alpha = 10});
            const double *found = read_register(&bench, REGISTER_H, first, count);
            for (uint64_t i = 0; i < count; i++)
                assert_true(fabs(found[i] - expected_gradient(first + i)) <=
                            1e-14 * fabs(expected_gradient(first + i)));
            if (shards == 1)
                memcpy(whole, found, sizeof whole);
            else
                assert_memory_equal(found, whole + first, count * sizeof *found);
            bench_release(&bench);
        }
    }
}

static void l2_acts_on_each_column_by_its_penalty(void **state) {
    (void)state;
    struct bench bench;
    set_up(&bench, 1, 0);
    fold_two(&bench, 1, 0);
    const struct operation operations[] = {
        {.code = OPERATION_GRADIENT, .a = REGISTER_T, .alpha = 10},
        {.code = OPERATION_ZERO, .a = REGISTER_H},
        {.code = OPERATION_REGULARIZE, .a = REGISTER_H, .b = REGISTER_T, .alpha = 0.25},
        {.code = OPERATION_DOT_REGULARIZED, .a = REGISTER_T, .b = REGISTER_T}};
    run_operations(&bench, operations, 4);
    struct message result = answer(&bench, 0);
    struct cursor cursor = cursor_over(result.result.scalars.data, result.result.scalars.length);
    struct exact norm;
    assert_true(exact_decode(&norm, &cursor));
    const double *h = read_register(&bench, REGISTER_H, 0, ALL);
    double square = 0;
    for (uint64_t i = 0; i < ALL; i++) {
        double t = expected_gradient(i), penalty = i < WEIGHTS ? columns[i / OUTPUTS].penalty : 0;
        square += penalty * t * t;
        assert_true(fabs(h[i] - 0.25 * penalty * t) <= 1e-14 * fabs(t));
    }
    assert_true(fabs(exact_value(&norm) - square) <= 1e-10 * square);
    bench_release(&bench);
}

/* Each element by the curvature of its column; of biases it is the share that is told. */
static void a_gap_is_told_by_the_curvature_of_columns_and_of_biases(void **state) {
    (void)state;
    struct bench bench;
    struct exact found[2];
    const double second = 0.25, l2 = 0.5, share = 0.125;
    set_up(&bench, 1, 0);
    fold_two(&bench, 1, 0);
    const struct operation operations[] = {
        {.code = OPERATION_GRADIENT, .a = REGISTER_H, .alpha = 10},
        {.code = OPERATION_ZERO, .a = REGISTER_X},
        {.code = OPERATION_GAP, .a = REGISTER_H, .alpha = second, .beta = l2, .gamma = share},
        {.code = OPERATION_METRIC,
         .a = REGISTER_H,
         .b = REGISTER_X,
         .alpha = second,
         .beta = l2,
         .gamma = share}};
    run_operations(&bench, operations, 4);
    struct message result = answer(&bench, 0);
    struct cursor cursor = cursor_over(result.result.scalars.data, result.result.scalars.length);
    assert_true(exact_decode(&found[0], &cursor) && exact_decode(&found[1], &cursor));
    double gap = 0, metric = 0;
    for (uint64_t i = 0; i < ALL; i++) {
        double h = expected_gradient(i);
        double curvature =
            i < WEIGHTS ? second + l2 * columns[i / OUTPUTS].penalty : second * share;
        gap += h * h / curvature;
        metric += h * h * curvature;
    }
    assert_true(fabs(exact_value(&found[0]) - gap) <= 1e-10 * gap);
    assert_true(fabs(exact_value(&found[1]) - metric) <= 1e-10 * metric);
    bench_release(&bench);
}

/* With itself, as DOT_REGULARIZED measures it. */
static void a_direction_is_measured_by_each_columns_penalty(void **state) {
    (void)state;
    struct bench bench;
    struct exact found[2];
    set_up(&bench, 1, 0);
    fold_two(&bench, 1, 0);
    const struct operation operations[] = {
        {.code = OPERATION_GRADIENT, .a = REGISTER_T, .alpha = 10},
        {.code = OPERATION_KEEP, .a = REGISTER_T, .slot = 2},
        {.code = OPERATION_WINDOW_DOTS, .a = REGISTER_T, .count = 1, .slots = {2}},
        {.code = OPERATION_DOT_REGULARIZED, .a = REGISTER_T, .b = REGISTER_T}};
    run_operations(&bench, operations, 4);
    struct message result = answer(&bench, 0);
    struct cursor cursor = cursor_over(result.result.scalars.data, result.result.scalars.length);
    for (size_t i = 0; i < 2; i++)
        assert_true(exact_decode(&found[i], &cursor));
    double of_window = exact_value(&found[0]), square = exact_value(&found[1]);
    assert_true(square > 0 && fabs(of_window - square) <= 1e-12 * square);
    bench_release(&bench);
}

/* The pseudo-gradient where all weights are 0, and Σ √penalty·|a|. */
static void l1_acts_on_each_column_by_the_root_of_its_penalty(void **state) {
    (void)state;
    struct bench bench;
    const double l1 = 50;
    set_up_with_orthants(&bench);
    fold_two(&bench, 1, 0);
    const struct operation operations[] = {
        {.code = OPERATION_GRADIENT, .a = REGISTER_H, .alpha = 10},
        {.code = OPERATION_ZERO, .a = REGISTER_T},
        {.code = OPERATION_PSEUDO_GRADIENT,
         .a = REGISTER_D,
         .b = REGISTER_T,
         .c = REGISTER_H,
         .l1 = l1},
        {.code = OPERATION_NORM_1, .a = REGISTER_H}};
    run_operations(&bench, operations, 4);
    struct message result = answer(&bench, 0);
    struct cursor cursor = cursor_over(result.result.scalars.data, result.result.scalars.length);
    struct exact norm;
    assert_true(exact_decode(&norm, &cursor));
    const double *q = read_register(&bench, REGISTER_D, 0, ALL);
    double sum = 0;
    unsigned zeros = 0;
    for (uint64_t i = 0; i < WEIGHTS; i++) {
        double g = expected_gradient(i), least = l1 * sqrt(columns[i / OUTPUTS].penalty);
        double expected = fabs(g) <= least ? 0 : g - copysign(least, g);
        sum += sqrt(columns[i / OUTPUTS].penalty) * fabs(g);
        zeros += expected == 0;
        assert_true(fabs(q[i] - expected) <= 1e-14 * fabs(g));
    }
    assert_true(zeros > 0 && zeros < WEIGHTS);
    assert_true(q[WEIGHTS] == expected_gradient(WEIGHTS));
    assert_true(fabs(exact_value(&norm) - sum) <= 1e-11 * sum);
    bench_release(&bench);
}

static void sums_of_an_evaluation_without_flushes_are_zero(void **state) {
    (void)state;
    struct bench bench;
    set_up(&bench, 1, 0);
    fold_two(&bench, 1, 0);
    begin(&bench, 2);
    run_one(&bench, (struct operation){.code = OPERATION_GRADIENT, .a = REGISTER_H, .alpha = 10});
    const double *h = read_register(&bench, REGISTER_H, 0, ALL);
    for (uint64_t i = 0; i < ALL; i++)
        assert_true(h[i] == 0);
    bench_release(&bench);
}

static void a_slice_without_the_sums_of_the_biases_is_refused(void **state) {
    (void)state;
    struct bench bench;
    set_up(&bench, SHARDS, 0);
    begin(&bench, 1);
    struct message message = slice(SHARDS, 0, 1);
    message.stage.biases.length = 1;
    tell(&bench, REPLICA_LINK, message);
    assert_answer(&bench, 0, REPLICA_LINK, MESSAGE_REFUSED);
    message.stage.biases.length = 0;
    tell(&bench, REPLICA_LINK, message);
    assert_answer(&bench, 0, REPLICA_LINK, MESSAGE_REFUSED);
    message.stage.encoding = STAGE_NONE; /* a bound was exceeded: there are no sums */
    message.bulk = (struct bulk){0};
    tell(&bench, REPLICA_LINK, message);
    assert_answer(&bench, 0, REPLICA_LINK, MESSAGE_STAGED);
    bench_release(&bench);
}

static void scaling_that_nobody_announced_or_that_leaves_a_gap_is_refused(void **state) {
    (void)state;
    struct bench bench;
    draw();
    bench_init(&bench, setup(100, 0, 100));
    tell(&bench, COORDINATOR_LINK, coordinates(0, 1));
    assert_answer(&bench, 0, COORDINATOR_LINK, MESSAGE_FAILED);
    bench_release(&bench);
    struct layout layout = layout_linear(COLUMNS, OUTPUTS, true);
    struct message message = setup(ALL, 0, ALL);
    message.shard_setup.layout = blob_of_layout(&layout);
    message.shard_setup.scaling.coordinates = 1;
    bench_init(&bench, message);
    tell(&bench, COORDINATOR_LINK, coordinates(1, 5));
    assert_answer(&bench, 0, COORDINATOR_LINK, MESSAGE_FAILED);
    bench_release(&bench);
}

static void squares_come_alone_where_columns_are_not_scaled(void **state) {
    (void)state;
    enum { FEW = 4 };
    const double squares[FEW] = {1, 0, 4, 9};
    struct scaling scaling = {0};
    struct layout layout = layout_linear(FEW, 2, true);
    struct message_shard_setup setup = {.first = 2, .count = 2 * FEW, .scaling.measured = 1};
    scaling_set_up(&scaling, &setup, &layout);
    assert_int_equal(scaling_set_columns(&scaling, 0, columns, FEW), ERROR_INTERNAL);
    assert_int_equal(scaling_set_squares(&scaling, 2, squares + 2, 1), ERROR_INTERNAL);
    assert_int_equal(scaling_set_squares(&scaling, 1, squares + 1, 2), 0);
    assert_false(scaling_is_complete(&scaling));
    assert_int_equal(scaling_set_squares(&scaling, 3, squares + 3, 1), 0);
    assert_true(scaling_is_complete(&scaling));
    const double expected[] = {0, 0, 4, 4, 9, 9, 0, 0};
    assert_memory_equal(scaling.square, expected, sizeof expected);
    setup.scaling.coordinates = 1;
    scaling_set_up(&scaling, &setup, &layout);
    assert_int_equal(scaling_set_squares(&scaling, 0, squares, FEW), ERROR_INTERNAL);
    scaling_release(&scaling);
}

/* As in a model of ordered classes. A step and a gradient by weights have the same product as
 * the scaled ones. */
static void biases_that_share_a_weight_scale_its_gradient_together(void **state) {
    (void)state;
    enum { FEW = 3, BIASES = 4 };
    struct scaling scaling = {0};
    struct layout layout = layout_linear_of(FEW, 1, BIASES);
    const struct message_shard_setup setup = {
        .count = FEW + BIASES, .scaling.coordinates = 1, .scaling.bias_exponent = 20};
    draw();
    scaling_set_up(&scaling, &setup, &layout);
    assert_int_equal(scaling_set_columns(&scaling, 0, columns, FEW), 0);
    assert_true(scaling_is_complete(&scaling));
    for (int k = 0; k < BIASES; k++)
        scaling.bias_sum[k] = INT64_C(1) << (20 + k);
    scaling_read_biases(&scaling, &(struct bounds){.count = 1}, 1);
    double gradient[] = {1, 2, 3, 1, 2, 4, 8}, step[] = {5, -6, 7, -8, 9, 10, 11}, by = 0, to = 0;
    scaling_gradient_to_scaled(&scaling, 0, FEW + BIASES, gradient);
    for (int i = 0; i < FEW + BIASES; i++) {
        double scaled =
            i < FEW ? columns[i].scale * (i + 1 - columns[i].mean * 15) : 1 << (i - FEW);
        assert_true(fabs(gradient[i] - scaled) < 1e-14);
        to += gradient[i] * step[i];
    }
    scaling_gradient_from_scaled(&scaling, gradient);
    for (int i = 0; i < FEW + BIASES; i++)
        assert_true(fabs(gradient[i] - (i < FEW ? i + 1 : 1 << (i - FEW))) < 1e-14);
    double weights[FEW + BIASES];
    for (int i = 0; i < FEW + BIASES; i++)
        weights[i] = step[i] * (i < FEW ? columns[i].scale : 1);
    for (int i = 0; i < FEW; i++)
        for (int k = FEW; k < FEW + BIASES; k++)
            weights[k] -= columns[i].mean * weights[i];
    for (int i = 0; i < FEW + BIASES; i++)
        by += gradient[i] * weights[i];
    assert_true(fabs(by - to) < 1e-11);
    scaling_step_to_scaled(&scaling, weights);
    for (int i = 0; i < FEW + BIASES; i++)
        assert_true(fabs(weights[i] - step[i]) < 1e-12);
    scaling_release(&scaling);
}

/* A gradient of other rows than the whole set has, by biases too. */
static void a_scaled_gradient_goes_by_its_own_weight(void **state) {
    (void)state;
    struct bench bench;
    set_up(&bench, 1, 0);
    fold_two(&bench, 1, 0);
    run_one(&bench,
            (struct operation){.code = OPERATION_GRADIENT, .a = REGISTER_H, .alpha = 10 * 0x1p-3});
    const double *h = read_register(&bench, REGISTER_H, 0, ALL);
    for (uint64_t i = 0; i < ALL; i++)
        assert_true(fabs(h[i] - 8 * expected_gradient(i)) <= 1e-13 * fabs(expected_gradient(i)));
    bench_release(&bench);
}

/* Two steps from 0 by the same gradient, the second with l1. */
static void adagrad_takes_l1_by_the_root_of_each_columns_penalty(void **state) {
    (void)state;
    struct bench bench;
    const double rate = 0.25, l1 = 50;
    set_up(&bench, 1, 0);
    fold_two(&bench, 1, 0);
    struct operation step = {.code = OPERATION_ADAGRAD,
                             .a = REGISTER_X,
                             .b = REGISTER_A,
                             .c = REGISTER_G,
                             .alpha = rate,
                             .beta = 1e-10};
    run_one(&bench, (struct operation){.code = OPERATION_GRADIENT, .a = REGISTER_G, .alpha = 10});
    run_one(&bench, step);
    step.l1 = l1;
    run_one(&bench, step);
    const double *found = read_register(&bench, REGISTER_X, 0, ALL);
    unsigned zeros = 0;
    for (uint64_t i = 0; i < ALL; i++) {
        double g = expected_gradient(i), root = sqrt(2) * fabs(g) + 1e-10;
        double expected = -copysign(rate * (1 + 1 / sqrt(2)), g);
        if (i < WEIGHTS) {
            double less = rate * l1 * sqrt(columns[i / OUTPUTS].penalty) / root;
            expected = fabs(expected) > less ? expected - copysign(less, expected) : 0;
        }
        assert_true(fabs(found[i] - expected) <= 1e-9);
        zeros += expected == 0;
    }
    assert_true(zeros > 0 && zeros < WEIGHTS);
    bench_release(&bench);
}

static void count_beat(void *context) {
    ++*(unsigned *)context;
}

static void while_scaling_of_many_weights_is_taken_there_are_signs_of_life(void **state) {
    (void)state;
    const uint64_t many = 3 << 20;
    struct scaling scaling = {0};
    struct layout layout = layout_linear(1, many, false);
    const struct message_shard_setup setup = {.count = many, .scaling.coordinates = 1};
    unsigned beats = 0;
    scaling_set_up(&scaling, &setup, &layout);
    heartbeat_call(count_beat, &beats);
    assert_int_equal(
        scaling_set_columns(&scaling, 0, &(struct column_scaling){.scale = 1, .penalty = 1}, 1), 0);
    heartbeat_call(NULL, NULL);
    assert_true(scaling_is_complete(&scaling));
    assert_int_equal(beats, 3);
    scaling_release(&scaling);
}

SUITE(shard_scaling) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_scaled_gradient_goes_by_its_own_weight),
        cmocka_unit_test(while_scaling_of_many_weights_is_taken_there_are_signs_of_life),
        cmocka_unit_test(adagrad_takes_l1_by_the_root_of_each_columns_penalty),
        cmocka_unit_test(a_gradient_is_scaled_on_any_number_of_shards),
        cmocka_unit_test(l2_acts_on_each_column_by_its_penalty),
        cmocka_unit_test(a_gap_is_told_by_the_curvature_of_columns_and_of_biases),
        cmocka_unit_test(a_direction_is_measured_by_each_columns_penalty),
        cmocka_unit_test(l1_acts_on_each_column_by_the_root_of_its_penalty),
        cmocka_unit_test(sums_of_an_evaluation_without_flushes_are_zero),
        cmocka_unit_test(a_slice_without_the_sums_of_the_biases_is_refused),
        cmocka_unit_test(scaling_that_nobody_announced_or_that_leaves_a_gap_is_refused),
        cmocka_unit_test(squares_come_alone_where_columns_are_not_scaled),
        cmocka_unit_test(biases_that_share_a_weight_scale_its_gradient_together),
    };
    return cmocka_run_group_tests_name("shard scaling", tests, NULL, NULL);
}
