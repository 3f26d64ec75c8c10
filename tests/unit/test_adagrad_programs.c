/* Programs with steps of Adagrad, on shards that hold one vector between them. */
#include "tests/unit/suites.h"
#include "tests/unit/shard_cluster.h"

#define RATE 0.125
#define L1 3.0
#define LEAST 0.01
#define DIAGONAL_LEAST 0.5

enum { STEPS = 3 };

/* What a cluster has after the steps, and what plain loops give. */
struct vectors {
    double x[N], sums[N], g[N], d[N];
};

static bool is_regularized(size_t i) {
    struct layout layout = layout_of_all();
    return layout_locate(&layout, i).tensor->regularized;
}

static void naive_step(struct vectors *v, double l1) {
    for (size_t i = 0; i < N; i++) {
        v->sums[i] += v->g[i] * v->g[i];
        double root = sqrt(v->sums[i]) + LEAST;
        v->x[i] -= RATE * v->g[i] / root;
        if (l1 > 0 && is_regularized(i)) {
            double size = fabs(v->x[i]) - RATE * l1 / root;
            v->x[i] = size > 0 ? copysign(size, v->x[i]) : 0;
        }
    }
}

static const struct operation step = {.code = OPERATION_ADAGRAD,
                                      .a = REGISTER_X,
                                      .b = REGISTER_A,
                                      .c = REGISTER_G,
                                      .alpha = RATE,
                                      .beta = LEAST};

/* Steps from the same point on clusters of any number of shards. */
static void make_steps(struct cluster *cluster, struct vectors *v, double l1) {
    struct random random;
    random_init(&random, 9);
    memset(v, 0, sizeof *v);
    fill_register(cluster, &random, REGISTER_X, v->x);
    for (int i = 0; i < STEPS; i++) {
        struct operation operation = step;
        operation.l1 = l1;
        fill_sparsely(cluster, &random, REGISTER_G, 2, v->g);
        run_everywhere(cluster, &operation, 1);
        naive_step(v, l1);
    }
}

static void assert_same(struct cluster *cluster, uint8_t number, const double *expected) {
    for (size_t i = 0; i < cluster->shard_count; i++) {
        uint64_t first = cluster->first[i], count = cluster->count[i];
        const double *found = read_register(&cluster->shards[i], number, first, count);
        if (count)
            assert_memory_equal(found, expected + first, count * sizeof *found);
    }
}

static void steps_are_the_same_on_any_number_of_shards(void **state) {
    (void)state;
    struct vectors *v = memory_new(1, sizeof *v);
    for (size_t partition = 0; partition < sizeof shard_counts / sizeof *shard_counts; partition++)
        for (int with_l1 = 0; with_l1 < 2; with_l1++) {
            struct cluster cluster;
            cluster_init(&cluster, partition, HISTORY_DOUBLE);
            make_steps(&cluster, v, with_l1 ? L1 : 0);
            assert_same(&cluster, REGISTER_X, v->x);
            assert_same(&cluster, REGISTER_A, v->sums);
            cluster_release(&cluster);
        }
    free(v);
}

static void l1_leaves_zeros_among_what_is_regularised_alone(void **state) {
    (void)state;
    struct vectors *v = memory_new(1, sizeof *v);
    struct cluster cluster;
    size_t zeros[2] = {0, 0};
    cluster_init(&cluster, 0, HISTORY_DOUBLE);
    make_steps(&cluster, v, 300);
    const double *x = read_register(&cluster.shards[0], REGISTER_X, 0, N);
    for (size_t i = 0; i < N; i++)
        zeros[is_regularized(i)] += x[i] == 0;
    assert_true(zeros[1] > N / 4 && zeros[0] == 0);
    cluster_release(&cluster);
    free(v);
}

/* ---- the diagonal of H₀ ---- */

static double stored(enum history_type type, double value) {
    return type == HISTORY_FLOAT ? (double)(float)value : value;
}

/* A pair and a direction, with the diagonal in place of B. */
static void a_diagonal_takes_the_place_of_b(void **state) {
    (void)state;
    struct vectors *v = memory_new(1, sizeof *v);
    const struct operation operations[] = {
        {.code = OPERATION_DIAGONAL, .a = REGISTER_A, .alpha = RATE, .beta = DIAGONAL_LEAST},
        {.code = OPERATION_ZERO, .a = REGISTER_D},
        {.code = OPERATION_PAIR,
         .a = REGISTER_X,
         .b = REGISTER_D,
         .c = REGISTER_G,
         .d = REGISTER_D,
         .e = REGISTER_G,
         .f = REGISTER_D,
         .beta = 1,
         .scaled = true},
        {.code = OPERATION_HISTORY_DOTS, .a = REGISTER_G, .count = 1},
        {.code = OPERATION_DIRECTION,
         .a = REGISTER_D,
         .b = REGISTER_G,
         .alpha = 0.75,
         .beta = 1,
         .count = 1,
         .u = {0.5},
         .w = {0.25},
         .scaled = true}};
    for (size_t partition = 0; partition < sizeof shard_counts / sizeof *shard_counts; partition++)
        for (enum history_type type = HISTORY_FLOAT; type <= HISTORY_DOUBLE; type++) {
            struct cluster cluster;
            struct yields yields;
            double square = 0;
            cluster_init(&cluster, partition, type);
            make_steps(&cluster, v, 0);
            run_everywhere(&cluster, operations, sizeof operations / sizeof *operations);
            collect(&cluster, 4, 4, &yields);
            for (size_t i = 0; i < N; i++) {
                double b = RATE / (sqrt(v->sums[i]) + DIAGONAL_LEAST);
                double y = stored(type, v->g[i]), q = stored(type, b * y);
                v->sums[i] = b;
                square += q * y;
                v->d[i] = -0.75 * b * v->g[i] - 0.5 * stored(type, v->x[i]) + 0.75 * 0.25 * q;
            }
            assert_same(&cluster, REGISTER_A, v->sums);
            assert_register(&cluster, REGISTER_D, v->d);
            assert_true(fabs(exact_value(&yields.sums[3]) - square) <= 1e-12 * square);
            cluster_release(&cluster);
        }
    free(v);
}

/* ---- what is refused ---- */

static void a_shard_without_adagrad_refuses_it_and_changes_nothing(void **state) {
    (void)state;
    const struct operation operations[] = {
        step,
        {.code = OPERATION_DIRECTION, .a = REGISTER_X, .b = REGISTER_G, .beta = 1, .scaled = true}};
    for (size_t i = 0; i < 2; i++) {
        struct bench bench;
        bench_init(&bench, setup(10, 0, 10));
        run_operations(&bench, &operations[i], 1);
        assert_answer(&bench, 0, COORDINATOR_LINK, MESSAGE_FAILED);
        bench_release(&bench);
    }
}

static void a_gradient_is_divided_by_the_weight_of_its_rows(void **state) {
    (void)state;
    const int64_t sums[] = {3 << 20, -(5 << 20)};
    struct bench bench;
    bench_init(&bench, setup(2, 0, 2)); /* of a weight of 10 */
    begin(&bench, 1);
    tell(&bench, REPLICA_LINK, stage(flush(1, 1), sums, 2));
    tell(&bench, COORDINATOR_LINK, fold(flush(1, 1)));
    run_one(&bench, (struct operation){.code = OPERATION_GRADIENT, .a = REGISTER_H, .alpha = 2.5});
    const double *found = read_register(&bench, REGISTER_H, 0, 2);
    assert_true(found[0] == 3 / 2.5 && found[1] == -5 / 2.5);
    bench_release(&bench);
}

/* As a step of Downpour does, which begins the evaluation of the next minibatch. */
static void a_program_reads_its_sum_before_it_begins_the_next_evaluation(void **state) {
    (void)state;
    const int64_t sums[] = {3 << 20, -(5 << 20)};
    const struct operation minibatch[] = {
        {.code = OPERATION_GRADIENT, .a = REGISTER_G, .alpha = 2},
        {.code = OPERATION_ADD, .a = REGISTER_T, .b = REGISTER_G, .c = REGISTER_G, .alpha = 1},
        {.code = OPERATION_BEGIN,
         .evaluation = 2,
         .sums = SUMS_PARAMETERS,
         .bounds = {.count = 1, .exponent = {7}}},
    };
    struct bench bench;
    bench_init(&bench, setup(2, 0, 2));
    begin(&bench, 1);
    tell(&bench, REPLICA_LINK, stage(flush(1, 1), sums, 2));
    tell(&bench, COORDINATOR_LINK, fold(flush(1, 1)));
    run_operations(&bench, minibatch, 3);
    assert_answer(&bench, 0, COORDINATOR_LINK, MESSAGE_RESULT);
    const double *found = read_register(&bench, REGISTER_T, 0, 2);
    assert_true(found[0] == 3 && found[1] == -5);
    bench_release(&bench);
}

SUITE(adagrad_programs) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_are_the_same_on_any_number_of_shards),
        cmocka_unit_test(l1_leaves_zeros_among_what_is_regularised_alone),
        cmocka_unit_test(a_diagonal_takes_the_place_of_b),
        cmocka_unit_test(a_shard_without_adagrad_refuses_it_and_changes_nothing),
        cmocka_unit_test(a_gradient_is_divided_by_the_weight_of_its_rows),
        cmocka_unit_test(a_program_reads_its_sum_before_it_begins_the_next_evaluation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
