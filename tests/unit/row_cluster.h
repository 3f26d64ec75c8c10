/* Shards that hold vectors of rows between them, and what they yield together. */
#ifndef DML_TESTS_ROW_CLUSTER_H
#define DML_TESTS_ROW_CLUSTER_H

#include "tests/unit/shard_bench.h"

#include <math.h>

#include "base/memory.h"
#include "base/random.h"

enum {
    ROWS = 5 * ROW_BLOCK + 77,
    ROW_PARAMETERS = 3 * BLOCK_ELEMENTS,
    DIRECTIONS = 9,
    ROW_SHARDS = 3,
    ROW_SCALARS = 80,
};

struct row_cluster {
    struct bench shards[ROW_SHARDS];
    struct sums_range ranges[ROW_SHARDS]; /* of rows */
    size_t count;
    uint32_t outputs;
    uint32_t evaluation;
    uint64_t program; /* of all shards */
};

static inline struct message row_setup(const char *objective, uint32_t outputs, bool weighted,
                                       uint64_t held) {
    struct message message = setup(ROW_PARAMETERS, 0, ROW_PARAMETERS);
    struct message_shard_setup *body = &message.shard_setup;
    uint32_t rest = ROW_PARAMETERS % outputs;
    body->layout = layout_blob(ROW_PARAMETERS - rest, outputs, rest);
    body->rows.directions = DIRECTIONS;
    body->rows.total = ROWS;
    body->rows.held = held;
    body->rows.outputs = outputs;
    body->rows.weighted = weighted;
    body->rows.objective = objective;
    body->rows.loss = loss_blob();
    return message;
}

/* `shards` of them, each with a block of parameters, the last with the rest. The last `held` rows
 * are held out. */
static inline void row_cluster_init_held(struct row_cluster *cluster, size_t shards,
                                         const char *objective, uint32_t outputs, bool weighted,
                                         uint64_t held) {
    *cluster = (struct row_cluster){.count = shards, .outputs = outputs};
    const struct sums_sizes sizes = {
        .parameters = ROW_PARAMETERS, .rows = ROWS, .outputs = outputs};
    for (size_t i = 0; i < shards; i++) {
        struct message message = row_setup(objective, outputs, weighted, held);
        uint64_t first = i * BLOCK_ELEMENTS;
        uint64_t end = i + 1 == shards ? ROW_PARAMETERS : first + BLOCK_ELEMENTS;
        message.shard_setup.first = first;
        message.shard_setup.count = end - first;
        message.shard_setup.machine.threads = (uint32_t)i + 1; /* of which nothing may show */
        cluster->ranges[i] = evaluation_rows(&sizes, first, end - first);
        bench_init(&cluster->shards[i], message);
        assert_answer(&cluster->shards[i], 0, COORDINATOR_LINK, MESSAGE_READY);
    }
}

static inline void row_cluster_init(struct row_cluster *cluster, size_t shards,
                                    const char *objective, uint32_t outputs, bool weighted) {
    row_cluster_init_held(cluster, shards, objective, outputs, weighted, 0);
}

static inline void row_cluster_release(struct row_cluster *cluster) {
    for (size_t i = 0; i < cluster->count; i++)
        bench_release(&cluster->shards[i]);
}

static inline struct operation begin_rows(uint32_t evaluation, bool gives_rows) {
    return (struct operation){.code = OPERATION_BEGIN,
                              .evaluation = evaluation,
                              .sums = gives_rows ? SUMS_PARAMETERS : SUMS_ROWS,
                              .bounds = {.count = 1},
                              .rows = gives_rows};
}

/* Numbers of the rows from `first` on as they travel, but 0 for those of the other half. */
static inline void stage_half(struct bench *bench, uint32_t evaluation, uint32_t half,
                              const double *numbers, size_t count) {
    int64_t *slice = memory_new(count, sizeof *slice);
    size_t middle = count / 2;
    if (half)
        memcpy(slice + middle, numbers + middle, (count - middle) * sizeof *slice);
    else
        memcpy(slice, numbers, middle * sizeof *slice);
    tell(bench, REPLICA_LINK, stage(flush(evaluation, half + 1), slice, count));
    assert_answer(bench, 0, REPLICA_LINK, MESSAGE_STAGED);
    tell(bench, COORDINATOR_LINK, fold(flush(evaluation, half + 1)));
    free(slice);
}

/* What an evaluation adds up is taken: ROWS·K numbers. */
static inline void put_rows(struct row_cluster *cluster, enum row_vector vector, uint32_t slot,
                            const double *numbers) {
    uint32_t evaluation = ++cluster->evaluation;
    for (size_t i = 0; i < cluster->count; i++) {
        struct bench *bench = &cluster->shards[i];
        const struct sums_range range = cluster->ranges[i];
        run_one(bench, begin_rows(evaluation, false));
        for (uint32_t half = 0; half < 2; half++)
            stage_half(bench, evaluation, half, numbers + range.first * cluster->outputs,
                       range.count * cluster->outputs);
        run_one(bench,
                (struct operation){.code = OPERATION_ROWS_TAKE, .vector = vector, .slot = slot});
    }
}

/* What operations yield over all shards. */
struct row_yields {
    size_t count; /* of sums */
    struct exact sums[ROW_SCALARS];
    double max;
};

static inline void yields_init(struct row_yields *yields) {
    *yields = (struct row_yields){0};
    for (size_t i = 0; i < ROW_SCALARS; i++)
        exact_init(&yields->sums[i]);
}

static inline void add_yields(const struct bench *bench, const struct operation *operations,
                              size_t count, struct row_yields *yields) {
    struct message result = answer(bench, 0);
    struct cursor cursor = cursor_over(result.result.scalars.data, result.result.scalars.length);
    yields->count = 0;
    for (size_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < operation_scalars(&operations[i]); k++) {
            struct exact part;
            if (operation_yields_max(&operations[i])) {
                yields->max = fmax(yields->max, cursor_f64(&cursor));
                continue;
            }
            assert_true(exact_decode(&part, &cursor));
            assert_true(yields->count < ROW_SCALARS);
            exact_merge(&yields->sums[yields->count++], &part);
        }
    assert_int_equal(cursor_left(&cursor), 0);
}

static inline void run_rows(struct row_cluster *cluster, const struct operation *operations,
                            size_t count, struct row_yields *yields) {
    yields_init(yields);
    for (size_t i = 0; i < cluster->count; i++) {
        run_operations(&cluster->shards[i], operations, count);
        assert_answer(&cluster->shards[i], 0, COORDINATOR_LINK, MESSAGE_RESULT);
        add_yields(&cluster->shards[i], operations, count, yields);
    }
}

#endif
