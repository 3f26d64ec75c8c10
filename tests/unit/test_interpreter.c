#include "tests/unit/shard_bench.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/random.h"

enum {
    N = 3 * BLOCK_ELEMENTS + 1000,
    SHARDS = 4,
    PAIRS = 3, /* slots 0, 1, 2; the last is the candidate */
    SCALARS = 4 * PAIRS + 4,
};

#define BIAS_SCALE 0.25

/* Ranges of 1, 2 and 4 shards; one of them is empty. */
static const uint64_t ends[][SHARDS] = {
    {N, N, N, N},
    {2 * BLOCK_ELEMENTS, N, N, N},
    {BLOCK_ELEMENTS, BLOCK_ELEMENTS, 3 * BLOCK_ELEMENTS, N},
};
static const size_t shard_counts[] = {1, 2, 4};

/* Regularised and others by turns, with borders within blocks and within ranges. */
static struct layout layout_of_all(void) {
    const struct layout_tensor tensors[] = {
        {.name = "W1", .rows = 37, .columns = 123, .regularized = true},
        {.name = "b1", .rows = 1, .columns = 101},
        {.name = "b2", .rows = 1, .columns = 9},
        {.name = "W2", .rows = N - 37 * 123 - 110 - 500, .columns = 1, .regularized = true},
        {.name = "b3", .rows = 1, .columns = 500},
    };
    struct layout layout = {0};
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++)
        assert_true(layout_add(&layout, &tensors[i]));
    assert_int_equal(layout_parameters(&layout), N);
    return layout;
}

struct cluster {
    struct bench shards[SHARDS];
    uint64_t first[SHARDS], count[SHARDS];
    size_t shard_count;
};

static void cluster_init(struct cluster *cluster, size_t partition, enum history_type type) {
    uint64_t first = 0;
    cluster->shard_count = shard_counts[partition];
    struct layout layout = layout_of_all();
    for (size_t i = 0; i < cluster->shard_count; i++) {
        cluster->first[i] = first;
        cluster->count[i] = ends[partition][i] - first;
        first = ends[partition][i];
        struct message message = setup(N, cluster->first[i], cluster->count[i]);
        message.shard_setup.layout = blob_of_layout(&layout);
        message.shard_setup.history_type = (uint8_t)type;
        bench_init(&cluster->shards[i], message);
        assert_answer(&cluster->shards[i], 0, COORDINATOR_LINK, MESSAGE_READY);
    }
}

static void cluster_release(struct cluster *cluster) {
    for (size_t i = 0; i < cluster->shard_count; i++)
        bench_release(&cluster->shards[i]);
}

static void run_everywhere(struct cluster *cluster, const struct operation *operations,
                           size_t count) {
    for (size_t i = 0; i < cluster->shard_count; i++) {
        run_operations(&cluster->shards[i], operations, count);
        assert_answer(&cluster->shards[i], 0, COORDINATOR_LINK, MESSAGE_RESULT);
    }
}

/* Gives a register random elements, by way of the gradient sum, and notes them. */
static void fill_register(struct cluster *cluster, struct random *random, uint8_t number,
                          double *noted) {
    static uint32_t evaluation;
    int64_t *slice = memory_new(N, sizeof *slice);
    evaluation++;
    for (size_t i = 0; i < N; i++) {
        slice[i] = (int64_t)random_below(random, 1 << 30) - (1 << 29);
        noted[i] = (double)slice[i] * 0x1p-20 / 10;
    }
    for (size_t i = 0; i < cluster->shard_count; i++) {
        struct bench *bench = &cluster->shards[i];
        begin(bench, evaluation);
        tell(bench, REPLICA_LINK,
             stage(flush(evaluation, 1), slice + cluster->first[i], cluster->count[i]));
        tell(bench, COORDINATOR_LINK, fold(flush(evaluation, 1)));
        run_one(bench, (struct operation){.code = OPERATION_GRADIENT, .a = number});
    }
    free(slice);
}

static void assert_register(struct cluster *cluster, uint8_t number, const double *expected) {
    for (size_t i = 0; i < cluster->shard_count; i++) {
        const double *found =
            read_register(&cluster->shards[i], number, cluster->first[i], cluster->count[i]);
        for (size_t j = 0; j < cluster->count[i]; j++)
            assert_true(fabs(found[j] - expected[cluster->first[i] + j]) <=
                        1e-12 * (1 + fabs(expected[cluster->first[i] + j])));
    }
}

/* What a cluster yields: exact sums merged over the shards, in their canonical bytes. */
struct yields {
    struct exact sums[SCALARS];
    double max;
};

/* Scalar `max_at` is a maximum. */
static void collect(const struct cluster *cluster, size_t count, size_t max_at,
                    struct yields *yields) {
    yields->max = 0;
    for (size_t i = 0; i < count; i++)
        exact_init(&yields->sums[i]);
    for (size_t i = 0; i < cluster->shard_count; i++) {
        struct message result = answer(&cluster->shards[i], 0);
        struct cursor cursor =
            cursor_over(result.result.scalars.data, result.result.scalars.length);
        for (size_t j = 0; j < count; j++) {
            struct exact part;
            if (j == max_at) {
                yields->max = fmax(yields->max, cursor_f64(&cursor));
                continue;
            }
            assert_true(exact_decode(&part, &cursor));
            exact_merge(&yields->sums[j], &part);
        }
        assert_int_equal(cursor_left(&cursor), 0);
        assert_false(cursor.failed);
    }
}

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
        assert_memory_equal(&alone.max, &several.max, sizeof alone.max);
        for (size_t i = 0; i < SCALARS; i++) {
            struct bytes one, other;
            bytes_init(&one);
            bytes_init(&other);
            exact_encode(&alone.sums[i], &one);
            exact_encode(&several.sums[i], &other);
            assert_int_equal(one.length, other.length);
            assert_memory_equal(one.data, other.data, one.length);
            bytes_release(&one);
            bytes_release(&other);
        }
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

static void without_a_preconditioner_programs_cannot_name_what_it_makes(void **state) {
    (void)state;
    struct bench bench;
    bench_init(&bench, setup(N, 0, N));
    const struct operation needing[] = {
        {.code = OPERATION_DOT, .a = REGISTER_X, .b = REGISTER_PG},
        {.code = OPERATION_PAIR, .f = REGISTER_PH},
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programs_compute_what_plain_loops_do),
        cmocka_unit_test(scalars_of_1_2_and_4_shards_merge_to_the_same_bits),
        cmocka_unit_test(products_are_taken_with_the_y_that_the_pair_names),
        cmocka_unit_test(without_a_preconditioner_programs_cannot_name_what_it_makes),
        cmocka_unit_test(the_best_point_changes_places),
        cmocka_unit_test(without_a_place_for_the_best_point_there_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
