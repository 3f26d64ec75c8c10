/* Shards that hold one vector between them, and what they yield together. */
#ifndef DML_TESTS_SHARD_CLUSTER_H
#define DML_TESTS_SHARD_CLUSTER_H

#include "tests/unit/shard_bench.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/random.h"

enum {
    N = 3 * BLOCK_ELEMENTS + 1000,
    SHARDS = 4,
    SCALARS_NOTED = 24,
};

/* Ranges of 1, 2 and 4 shards; one of them is empty. */
static const uint64_t ends[][SHARDS] = {
    {N, N, N, N},
    {2 * BLOCK_ELEMENTS, N, N, N},
    {BLOCK_ELEMENTS, BLOCK_ELEMENTS, 3 * BLOCK_ELEMENTS, N},
};
static const size_t shard_counts[] = {1, 2, 4};

/* Regularised and others by turns, with borders within blocks and within ranges. */
static inline struct layout layout_of_all(void) {
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

static inline void cluster_init(struct cluster *cluster, size_t partition, enum history_type type) {
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
        message.shard_setup.box.used = 1;
        message.shard_setup.adagrad = 1;
        bench_init(&cluster->shards[i], message);
        assert_answer(&cluster->shards[i], 0, COORDINATOR_LINK, MESSAGE_READY);
    }
}

static inline void cluster_release(struct cluster *cluster) {
    for (size_t i = 0; i < cluster->shard_count; i++)
        bench_release(&cluster->shards[i]);
}

static inline void run_everywhere(struct cluster *cluster, const struct operation *operations,
                                  size_t count) {
    for (size_t i = 0; i < cluster->shard_count; i++) {
        run_operations(&cluster->shards[i], operations, count);
        assert_answer(&cluster->shards[i], 0, COORDINATOR_LINK, MESSAGE_RESULT);
    }
}

/* Gives a register the elements slice/(10·2²⁰), by way of the gradient sum, and notes them. */
static inline void put_register(struct cluster *cluster, uint8_t number, const int64_t *slice,
                                double *noted) {
    static uint32_t evaluation;
    struct layout layout = layout_of_all();
    struct bounds bounds = {.count = layout_bounds(&layout)};
    evaluation++;
    for (size_t i = 0; i < N; i++)
        noted[i] = (double)slice[i] * 0x1p-20 / 10;
    for (size_t i = 0; i < cluster->shard_count; i++) {
        struct bench *bench = &cluster->shards[i];
        begin_under(bench, evaluation, &bounds);
        tell(bench, REPLICA_LINK,
             stage(flush(evaluation, 1), slice + cluster->first[i], cluster->count[i]));
        tell(bench, COORDINATOR_LINK, fold(flush(evaluation, 1)));
        run_one(bench, (struct operation){.code = OPERATION_GRADIENT, .a = number, .alpha = 10});
    }
}

/* Random elements, of which one in `one_in` is not 0. */
static inline void fill_sparsely(struct cluster *cluster, struct random *random, uint8_t number,
                                 uint32_t one_in, double *noted) {
    int64_t *slice = memory_new(N, sizeof *slice);
    for (size_t i = 0; i < N; i++)
        if (random_below(random, one_in) == 0)
            slice[i] = (int64_t)random_below(random, 1 << 30) - (1 << 29);
    put_register(cluster, number, slice, noted);
    free(slice);
}

static inline void fill_register(struct cluster *cluster, struct random *random, uint8_t number,
                                 double *noted) {
    fill_sparsely(cluster, random, number, 1, noted);
}

static inline void assert_register(struct cluster *cluster, uint8_t number,
                                   const double *expected) {
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
    struct exact sums[SCALARS_NOTED];
    double max;
};

/* Scalar `max_at` is a maximum. */
static inline void collect(const struct cluster *cluster, size_t count, size_t max_at,
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

static inline void assert_same_yields(const struct yields *a, const struct yields *b,
                                      size_t count) {
    assert_memory_equal(&a->max, &b->max, sizeof a->max);
    for (size_t i = 0; i < count; i++) {
        struct bytes one, other;
        bytes_init(&one);
        bytes_init(&other);
        exact_encode(&a->sums[i], &one);
        exact_encode(&b->sums[i], &other);
        assert_int_equal(one.length, other.length);
        assert_memory_equal(one.data, other.data, one.length);
        bytes_release(&one);
        bytes_release(&other);
    }
}

#endif
