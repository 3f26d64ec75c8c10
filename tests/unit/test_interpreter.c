#include "tests/unit/suites.h"
#include "tests/unit/shard_cluster.h"

enum {
    PAIRS = 3, /* slots 0, 1, 2; the last is the candidate */
    SCALARS = 4 * PAIRS + 4,
};

#define BIAS_SCALE 0.25

/* ---- the same with plain loops ---- */

/* Registers that every shard has and operations work on: those before the best point. */
enum { WORKED_ON = REGISTER_BEST };

struct naive {
    double *v[WORKED_ON];
    double *s[PAIRS], *y[PAIRS], *q[PAIRS];
};

static void naive_init(struct naive *naive) {
    for (size_t i = 0; i < WORKED_ON; i++)
        naive->v[i] = memory_new(N, sizeof(double));
    for (size_t i = 0; i < PAIRS; i++) {
        naive->s[i] = memory_new(N, sizeof(double));
        naive->y[i] = memory_new(N, sizeof(double));
        naive->q[i] = memory_new(N, sizeof(double));
    }
}

static void naive_release(struct naive *naive) {
    for (size_t i = 0; i < WORKED_ON; i++)
        free(naive->v[i]);
    for (size_t i = 0; i < PAIRS; i++) {
        free(naive->s[i]);
        free(naive->y[i]);
        free(naive->q[i]);
    }
}

static double stored(enum history_type type, double value) {
    return type == HISTORY_FLOAT ? (double)(float)value : value;
}

/* B's element. */
static double b_of(size_t i) {
    struct layout layout = layout_of_all();
    return layout_locate(&layout, i).tensor->regularized ? 1 : BIAS_SCALE;
}

static void naive_pair(struct naive *naive, enum history_type type, size_t slot) {
    double **v = naive->v;
    for (size_t i = 0; i < N; i++) {
        naive->s[slot][i] = stored(type, v[REGISTER_T][i] - v[REGISTER_X][i]);
        naive->y[slot][i] = stored(type, v[REGISTER_H][i] - v[REGISTER_G][i]);
        naive->q[slot][i] = b_of(i) * naive->y[slot][i];
    }
}

static void naive_swap(struct naive *naive, size_t a, size_t b) {
    double *held = naive->v[a];
    naive->v[a] = naive->v[b];
    naive->v[b] = held;
}

static void assert_dot(const struct exact *sum, size_t n, const double *a, const double *b) {
    double expected = 0, size = 0;
    for (size_t i = 0; i < n; i++) {
        expected += a[i] * b[i];
        size += fabs(a[i] * b[i]);
    }
    assert_true(fabs(exact_value(sum) - expected) <= 1e-12 * size);
}

/* ---- one round of every operation ---- */

static const struct operation pair = {.code = OPERATION_PAIR,
                                      .a = REGISTER_T,
                                      .b = REGISTER_X,
                                      .c = REGISTER_H,
                                      .d = REGISTER_G,
                                      .e = REGISTER_H,
                                      .f = REGISTER_G,
                                      .beta = BIAS_SCALE};

static void form_pair(struct cluster *cluster, struct naive *naive, enum history_type type,
                      struct random *random, uint32_t slot) {
    for (uint8_t i = 0; i < WORKED_ON; i++)
        fill_register(cluster, random, i, naive->v[i]);
    struct operation operation = pair;
    operation.slot = slot;
    run_everywhere(cluster, &operation, 1);
    naive_pair(naive, type, slot);
}

static void measure(struct cluster *cluster, struct naive *naive, enum history_type type,
                    struct yields *yields) {
    struct operation operations[] = {
        {.code = OPERATION_DOT, .a = REGISTER_H, .b = REGISTER_D},
        {.code = OPERATION_ADD, .a = REGISTER_T, .b = REGISTER_X, .c = REGISTER_D, .alpha = 0.37},
        {.code = OPERATION_REGULARIZE, .a = REGISTER_H, .b = REGISTER_T, .alpha = 0.01},
        {.code = OPERATION_DOT, .a = REGISTER_H, .b = REGISTER_D},
        {.code = OPERATION_DOT_REGULARIZED, .a = REGISTER_T, .b = REGISTER_T},
        {.code = OPERATION_MAX_ABS, .a = REGISTER_H},
        pair,
        {.code = OPERATION_HISTORY_DOTS,
         .a = REGISTER_H,
         .slot = 2,
         .count = 3,
         .slots = {1, 0, 2}},
        {.code = OPERATION_SWAP, .a = REGISTER_X, .b = REGISTER_T}, /* acts first */
    };
    operations[6].slot = 2;
    naive_swap(naive, REGISTER_X, REGISTER_T);
    double **v = naive->v, max = 0;
    double *h_before = memory_new(N, sizeof *h_before);
    double *t_regularized = memory_new(N, sizeof *t_regularized);
    struct layout layout = layout_of_all();
    memcpy(h_before, v[REGISTER_H], N * sizeof *h_before);
    for (size_t i = 0; i < N; i++) {
        v[REGISTER_T][i] = v[REGISTER_X][i] + 0.37 * v[REGISTER_D][i];
        if (layout_locate(&layout, i).tensor->regularized) {
            t_regularized[i] = v[REGISTER_T][i];
            v[REGISTER_H][i] += 0.01 * v[REGISTER_T][i];
        }
        max = fmax(max, fabs(v[REGISTER_H][i]));
    }
    naive_pair(naive, type, 2);
    run_everywhere(cluster, operations, sizeof operations / sizeof *operations);
    collect(cluster, SCALARS, 3, yields);
    assert_dot(&yields->sums[0], N, h_before, v[REGISTER_D]);
    assert_dot(&yields->sums[1], N, v[REGISTER_H], v[REGISTER_D]);
    assert_dot(&yields->sums[2], N, t_regularized, t_regularized);
    assert_true(yields->max == max);
    for (size_t i = 0; i < 3; i++) {
        const size_t slot = operations[7].slots[i];
        const struct exact *four = &yields->sums[4 + 4 * i];
        assert_dot(&four[0], N, naive->s[slot], v[REGISTER_H]);
        assert_dot(&four[1], N, naive->q[slot], v[REGISTER_H]);
        assert_dot(&four[2], N, naive->s[slot], naive->y[2]);
        assert_dot(&four[3], N, naive->q[slot], naive->y[2]);
    }
    free(h_before);
    free(t_regularized);
}

static void take_direction(struct cluster *cluster, struct naive *naive) {
    const struct operation operations[] = {
        {.code = OPERATION_SWAP, .a = REGISTER_G, .b = REGISTER_H},
        {.code = OPERATION_DIRECTION,
         .a = REGISTER_D,
         .b = REGISTER_G,
         .alpha = 0.8,
         .beta = BIAS_SCALE,
         .count = 2,
         .slots = {2, 0},
         .u = {0.3, -0.2},
         .w = {-0.6, 0.5}},
        {.code = OPERATION_ZERO, .a = REGISTER_H},
    };
    naive_swap(naive, REGISTER_G, REGISTER_H);
    for (size_t i = 0; i < N; i++) {
        naive->v[REGISTER_D][i] = -0.8 * b_of(i) * naive->v[REGISTER_G][i] - 0.3 * naive->s[2][i] +
                                  0.2 * naive->s[0][i] + 0.8 * -0.6 * naive->q[2][i] +
                                  0.8 * 0.5 * naive->q[0][i];
        naive->v[REGISTER_H][i] = 0;
    }
    run_everywhere(cluster, operations, sizeof operations / sizeof *operations);
}

static void play(size_t partition, enum history_type type, struct yields *yields) {
    struct cluster cluster;
    struct naive naive;
    struct random random;
    random_init(&random, 7);
    naive_init(&naive);
    cluster_init(&cluster, partition, type);
    form_pair(&cluster, &naive, type, &random, 0);
    form_pair(&cluster, &naive, type, &random, 1);
    measure(&cluster, &naive, type, yields);
    take_direction(&cluster, &naive);
    for (uint8_t i = 0; i < WORKED_ON; i++)
        assert_register(&cluster, i, naive.v[i]);
    cluster_release(&cluster);
    naive_release(&naive);
}

static void programs_compute_what_plain_loops_do(void **state) {
    (void)state;
    struct yields yields;
    play(0, HISTORY_DOUBLE, &yields);
    play(0, HISTORY_FLOAT, &yields);
}

static void scalars_of_1_2_and_4_shards_merge_to_the_same_bits(void **state) {
    (void)state;
    struct yields alone, several;
    play(0, HISTORY_FLOAT, &alone);
    for (size_t partition = 1; partition < 3; partition++) {
        play(partition, HISTORY_FLOAT, &several);
        assert_same_yields(&alone, &several, SCALARS);
    }
}

static void measure_tensors(size_t partition, struct yields *yields) {
    const struct operation operations[] = {
        {.code = OPERATION_TENSOR_SQUARES, .a = REGISTER_T, .tensors = 5},
        {.code = OPERATION_TENSOR_SQUARES, .a = REGISTER_H, .tensors = 5}};
    double *t = memory_new(N, sizeof *t), *h = memory_new(N, sizeof *h);
    struct layout layout = layout_of_all();
    struct cluster cluster;
    struct random random;
    random_init(&random, 5);
    cluster_init(&cluster, partition, HISTORY_FLOAT);
    fill_register(&cluster, &random, REGISTER_T, t);
    fill_register(&cluster, &random, REGISTER_H, h);
    run_everywhere(&cluster, operations, 2);
    collect(&cluster, 10, 10, yields);
    for (size_t i = 0; i < 5; i++) {
        const struct layout_tensor *tensor = &layout.tensor[i];
        size_t count = tensor->rows * tensor->columns;
        assert_dot(&yields->sums[i], count, t + tensor->first, t + tensor->first);
        assert_dot(&yields->sums[5 + i], count, h + tensor->first, h + tensor->first);
    }
    cluster_release(&cluster);
    free(t);
    free(h);
}

static void squares_are_summed_by_tensor_to_the_same_bits_on_any_shards(void **state) {
    (void)state;
    struct yields alone, several;
    measure_tensors(0, &alone);
    for (size_t partition = 1; partition < 3; partition++) {
        measure_tensors(partition, &several);
        assert_same_yields(&alone, &several, 10);
    }
}

/* As with a preconditioner: the second vector of the pair is P·y, and y itself is not stored. */
static void products_are_taken_with_the_y_that_the_pair_names(void **state) {
    (void)state;
    struct cluster cluster;
    struct naive naive;
    struct random random;
    struct yields yields;
    random_init(&random, 11);
    naive_init(&naive);
    cluster_init(&cluster, 1, HISTORY_FLOAT);
    for (uint8_t i = 0; i < WORKED_ON; i++)
        fill_register(&cluster, &random, i, naive.v[i]);
    struct operation operations[] = {
        pair,
        {.code = OPERATION_HISTORY_DOTS, .a = REGISTER_H, .slot = 0, .count = 1, .slots = {0}}};
    operations[0].beta = 1;
    operations[0].e = REGISTER_D;
    operations[0].f = REGISTER_X;
    run_everywhere(&cluster, operations, 2);
    collect(&cluster, 4, 4, &yields);
    naive_pair(&naive, HISTORY_FLOAT, 0);
    double *y = memory_new(N, sizeof *y);
    for (size_t i = 0; i < N; i++)
        y[i] = naive.v[REGISTER_D][i] - naive.v[REGISTER_X][i];
    assert_dot(&yields.sums[0], N, naive.s[0], naive.v[REGISTER_H]);
    assert_dot(&yields.sums[1], N, naive.y[0], naive.v[REGISTER_H]);
    assert_dot(&yields.sums[2], N, naive.s[0], y);
    assert_dot(&yields.sums[3], N, naive.y[0], y);
    free(y);
    cluster_release(&cluster);
    naive_release(&naive);
}

static void programs_cannot_name_registers_that_the_set_up_did_not_announce(void **state) {
    (void)state;
    struct bench bench;
    bench_init(&bench, setup(N, 0, N));
    const struct operation needing[] = {
        {.code = OPERATION_DOT, .a = REGISTER_X, .b = REGISTER_PG},
        {.code = OPERATION_PAIR, .f = REGISTER_PH},
        {.code = OPERATION_PSEUDO_GRADIENT, .a = REGISTER_QH, .b = REGISTER_T, .c = REGISTER_H},
        {.code = OPERATION_ALIGN, .a = REGISTER_D, .b = REGISTER_X, .c = REGISTER_QG},
        {.code = OPERATION_FACTOR, .serial = 1},
        {.code = OPERATION_PRECONDITION, .a = REGISTER_D, .b = REGISTER_G, .serial = 1},
    };
    for (size_t i = 0; i < sizeof needing / sizeof *needing; i++) {
        run_operations(&bench, &needing[i], 1);
        assert_answer(&bench, 0, COORDINATOR_LINK, MESSAGE_FAILED);
        bench.number--;
    }
    bench_release(&bench);
}

static void the_best_point_changes_places(void **state) {
    (void)state;
    struct bench bench;
    struct message message = setup(N, 0, N);
    message.shard_setup.keeps_best = 1;
    bench_init(&bench, message);
    const struct operation leave[] = {
        {.code = OPERATION_SWAP, .a = REGISTER_X, .b = REGISTER_T},
        {.code = OPERATION_SWAP, .a = REGISTER_T, .b = REGISTER_BEST}};
    const double *x = read_register(&bench, REGISTER_X, 0, N);
    const double *best = read_register(&bench, REGISTER_BEST, 0, N);
    run_operations(&bench, leave, 2);
    assert_ptr_equal(read_register(&bench, REGISTER_BEST, 0, N), x);
    assert_ptr_equal(read_register(&bench, REGISTER_T, 0, N), best);
    assert_non_null(answer(&bench, 0).bulk.segment); /* replicas of this host read t in place */
    bench_release(&bench);
}

static void without_a_place_for_the_best_point_there_is_none(void **state) {
    (void)state;
    struct bench bench;
    bench_init(&bench, setup(N, 0, N));
    const struct operation leave = {.code = OPERATION_SWAP, .a = REGISTER_T, .b = REGISTER_BEST};
    run_operations(&bench, &leave, 1);
    assert_answer(&bench, 0, COORDINATOR_LINK, MESSAGE_FAILED);
    tell(&bench, COORDINATOR_LINK,
         (struct message){.type = MESSAGE_READ,
                          .read = {.register_ = REGISTER_BEST, .first = 0, .count = N}});
    assert_answer(&bench, 0, COORDINATOR_LINK, MESSAGE_FAILED);
    bench_release(&bench);
}

SUITE(interpreter) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programs_compute_what_plain_loops_do),
        cmocka_unit_test(scalars_of_1_2_and_4_shards_merge_to_the_same_bits),
        cmocka_unit_test(squares_are_summed_by_tensor_to_the_same_bits_on_any_shards),
        cmocka_unit_test(products_are_taken_with_the_y_that_the_pair_names),
        cmocka_unit_test(programs_cannot_name_registers_that_the_set_up_did_not_announce),
        cmocka_unit_test(the_best_point_changes_places),
        cmocka_unit_test(without_a_place_for_the_best_point_there_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
