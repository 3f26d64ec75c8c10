/* Operations with l1 on several shards, against plain loops over the whole vector. */
#include "tests/unit/suites.h"
#include "shard/state.h"
#include "tests/unit/shard_cluster.h"

#define L1 30.0

static const uint8_t used[] = {REGISTER_X, REGISTER_T,  REGISTER_G,
                               REGISTER_D, REGISTER_QG, REGISTER_H};
enum { USED = sizeof used / sizeof *used, SCALARS = 1 + 2 + 3 + 1 + 4 };

struct naive {
    double *v[REGISTERS];
    bool *regularized;
};

static void naive_init(struct naive *naive) {
    struct layout layout = layout_of_all();
    naive->regularized = memory_new(N, sizeof *naive->regularized);
    for (size_t i = 0; i < N; i++)
        naive->regularized[i] = layout_locate(&layout, i).tensor->regularized;
    for (size_t i = 0; i < REGISTERS; i++)
        naive->v[i] = memory_new(N, sizeof(double));
}

static void naive_release(struct naive *naive) {
    free(naive->regularized);
    for (size_t i = 0; i < REGISTERS; i++)
        free(naive->v[i]);
}

static double sign(double a) {
    return (a > 0) - (a < 0);
}

static double pseudo(double x, double g) {
    return x != 0 ? g + L1 * sign(x) : sign(g) * fmax(fabs(g) - L1, 0);
}

static double side(double x, double q) {
    return x != 0 ? sign(x) : -sign(q);
}

/* q of g, a trial that is projected, q of h, the direction aligned. */
static void play_vectors(struct naive *naive) {
    double **v = naive->v;
    for (size_t i = 0; i < N; i++) {
        bool is = naive->regularized[i];
        double x = v[REGISTER_X][i], *t = &v[REGISTER_T][i], *d = &v[REGISTER_D][i];
        double *q = &v[REGISTER_QG][i];
        *q = is ? pseudo(x, v[REGISTER_G][i]) : v[REGISTER_G][i];
        if (is && *t * side(x, *q) <= 0)
            *t = 0;
        v[REGISTER_QH][i] = is ? pseudo(*t, v[REGISTER_H][i]) : v[REGISTER_H][i];
        if (is && x == 0 && *d * *q >= 0)
            *d = 0;
    }
}

static void assert_scalar(const struct exact *sum, long double expected, long double size) {
    assert_true(fabsl(exact_value(sum) - expected) <= 1e-12L * size);
}

static void assert_scalars(const struct naive *naive, const struct yields *yields) {
    long double norm = 0, nonzeros = 0, lin = 0, end = 0, square = 0, excess = 0, size = 0;
    long double sh = 0, yh = 0, sy = 0, yy = 0;
    for (size_t i = 0; i < N; i++) {
        bool is = naive->regularized[i];
        double x = naive->v[REGISTER_X][i], t = naive->v[REGISTER_T][i];
        double h = naive->v[REGISTER_H][i], g = naive->v[REGISTER_G][i];
        double q = naive->v[REGISTER_QG][i], p = naive->v[REGISTER_QH][i];
        long double s = (long double)t - x, y = is && x == 0 && t == 0 ? 0 : (long double)h - g;
        long double beyond = fmaxl(fabsl(h - 0.5L * t) - L1, 0);
        norm += is ? fabs(t) : 0;
        nonzeros += is && t != 0;
        lin += q * s;
        end += (h + (is ? L1 * side(x, q) : 0)) * s;
        square += s * s;
        excess += is ? beyond * beyond : 0;
        sh += s * p, yh += y * p, sy += s * y, yy += y * y;
        size += s * s + y * y + h * h + g * g + q * q + L1;
    }
    assert_scalar(&yields->sums[1], norm, norm);
    assert_true(exact_value(&yields->sums[2]) == (double)nonzeros);
    assert_scalar(&yields->sums[3], lin, size);
    assert_scalar(&yields->sums[4], end, size);
    assert_scalar(&yields->sums[5], square, size);
    assert_scalar(&yields->sums[6], excess, excess);
    assert_scalar(&yields->sums[7], sh, size);
    assert_scalar(&yields->sums[8], yh, size);
    assert_scalar(&yields->sums[9], sy, size);
    assert_scalar(&yields->sums[10], yy, size);
}

static const struct operation operations[] = {
    {.code = OPERATION_PSEUDO_GRADIENT,
     .a = REGISTER_QG,
     .b = REGISTER_X,
     .c = REGISTER_G,
     .l1 = L1},
    {.code = OPERATION_PROJECT, .a = REGISTER_T, .b = REGISTER_X, .c = REGISTER_QG},
    {.code = OPERATION_PSEUDO_GRADIENT,
     .a = REGISTER_QH,
     .b = REGISTER_T,
     .c = REGISTER_H,
     .l1 = L1},
    {.code = OPERATION_ALIGN, .a = REGISTER_D, .b = REGISTER_X, .c = REGISTER_QG},
    {.code = OPERATION_MAX_ABS, .a = REGISTER_QH},
    {.code = OPERATION_NORM_1, .a = REGISTER_T},
    {.code = OPERATION_DESCENT,
     .a = REGISTER_T,
     .b = REGISTER_X,
     .c = REGISTER_QG,
     .d = REGISTER_H,
     .l1 = L1},
    {.code = OPERATION_EXCESS, .a = REGISTER_H, .b = REGISTER_T, .alpha = 0.5, .l1 = L1},
    {.code = OPERATION_PAIR,
     .slot = 1,
     .a = REGISTER_T,
     .b = REGISTER_X,
     .c = REGISTER_H,
     .d = REGISTER_G,
     .e = REGISTER_H,
     .f = REGISTER_G,
     .beta = 1},
    {.code = OPERATION_MASK, .slot = 1, .a = REGISTER_T, .b = REGISTER_X},
    {.code = OPERATION_HISTORY_DOTS, .a = REGISTER_QH, .slot = 1, .count = 1, .slots = {1}},
};

static void play(size_t partition, struct yields *yields) {
    struct cluster cluster;
    struct naive naive;
    struct random random;
    random_init(&random, 3);
    naive_init(&naive);
    cluster_init(&cluster, partition, HISTORY_DOUBLE);
    for (size_t i = 0; i < USED; i++)
        fill_sparsely(&cluster, &random, used[i], i < 2 ? 3 : 1, naive.v[used[i]]);
    run_everywhere(&cluster, operations, sizeof operations / sizeof *operations);
    collect(&cluster, SCALARS, 0, yields);
    play_vectors(&naive);
    assert_scalars(&naive, yields);
    for (size_t i = 0; i < USED; i++)
        assert_register(&cluster, used[i], naive.v[used[i]]);
    assert_register(&cluster, REGISTER_QH, naive.v[REGISTER_QH]);
    cluster_release(&cluster);
    naive_release(&naive);
}

static void programs_with_l1_compute_what_plain_loops_do(void **state) {
    (void)state;
    struct yields yields;
    play(0, &yields);
}

static void their_scalars_merge_to_the_same_bits_from_1_2_and_4_shards(void **state) {
    (void)state;
    struct yields alone, several;
    play(0, &alone);
    for (size_t partition = 1; partition < 3; partition++) {
        play(partition, &several);
        assert_same_yields(&alone, &several, SCALARS);
    }
}

/* Later products with the pair must be those with the masked y as well. */
static void what_is_masked_is_masked_in_the_history(void **state) {
    (void)state;
    struct bench bench;
    struct message message = setup(N, 0, N);
    message.shard_setup.box.used = 1;
    bench_init(&bench, message);
    struct operation form[] = {operations[8], operations[9]};
    double *h = bench.shard->registers.vector[REGISTER_H].elements;
    for (size_t i = 0; i < N; i++)
        h[i] = 1; /* x and t are zero everywhere */
    bench_push(&bench.shard->registers, REGISTER_H);
    run_operations(&bench, form, 2);
    bench_pull(&bench.shard->registers);
    const double *q = registers_q(&bench.shard->registers, 1);
    for (size_t i = 0; i < BLOCK_ELEMENTS; i++)
        assert_true(q[i] == 0);
    bench_release(&bench);
}

SUITE(orthant_programs) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programs_with_l1_compute_what_plain_loops_do),
        cmocka_unit_test(their_scalars_merge_to_the_same_bits_from_1_2_and_4_shards),
        cmocka_unit_test(what_is_masked_is_masked_in_the_history),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
