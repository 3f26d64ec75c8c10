/* A replica whose shards hold a scaled point: it computes with weights, and tells every
 * shard the sums of the biases. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "objective/kronecker.h"
#include "tests/unit/suites.h"
#include "base/layout.h"
#include "tests/unit/layout_fixture.h"
#include "tests/unit/replica_bench.h"

enum { COLUMNS = BLOCK_ELEMENTS + 10, ALL = COLUMNS + 1, BORDER = BLOCK_ELEMENTS };

static struct column_scaling columns[COLUMNS];

static uint64_t first_at(uint32_t shard) {
    return shard ? BORDER : 0;
}

static uint64_t count_at(const struct bench *bench, uint32_t shard) {
    return bench->shards == 1 ? ALL : shard ? ALL - BORDER : BORDER;
}

static void send_columns(struct bench *bench, uint64_t first, uint64_t count) {
    give(bench, COORDINATOR,
         (struct message){.type = MESSAGE_COORDINATES,
                          .coordinates = {ATTEMPT, first, count},
                          .bulk = {.data = columns + first, .length = count * sizeof *columns}});
}

/* `chunk_values`: of sparse rows, or 0. */
static void ready_with(struct bench *bench, uint32_t shards, uint64_t chunk_values) {
    struct layout layout = layout_linear(COLUMNS, 1, true);
    bench_new(bench, shards);
    for (unsigned j = 0; j < COLUMNS; j++) {
        columns[j] = (struct column_scaling){j % 3 - 1.0, 1.0 + j % 4, 1, 0, 0};
        bench->point[j] = j % 5;
    }
    bench->point[COLUMNS] = 100;
    struct message_replica_setup setup = replica_setup_of(bench, blob_of_layout(&layout));
    setup.coordinates = 1;
    give(bench, COORDINATOR,
         (struct message){.type = MESSAGE_REPLICA_SETUP, .replica_setup = setup});
    assert_true(asked(bench, ACTION_OPEN_SET).setup.scaled);
    replica_rows_are_sparse(bench->replica, chunk_values, 1000);
    replica_opened(bench->replica, 0, "", bench->now_ns, &bench->outbox);
    for (uint32_t i = 0; i < shards; i++) {
        give(bench, COORDINATOR,
             (struct message){.type = MESSAGE_SHARD_AT,
                              .shard_at = {ATTEMPT, i, 100 + i, first_at(i), count_at(bench, i),
                                           "unix:/run/shard", ""}});
        connect_shard(bench, i);
        greeted(bench, i);
    }
    nothing_more(bench); /* not ready without the scaling */
    send_columns(bench, 0, 100);
    nothing_more(bench);
    send_columns(bench, 100, COLUMNS - 100);
    sent(bench, COORDINATOR, MESSAGE_READY);
    nothing_more(bench);
}

static void ready(struct bench *bench, uint32_t shards) {
    ready_with(bench, shards, 0);
}

static struct computation compute(struct bench *bench) {
    evaluate(bench, 1);
    for (uint32_t i = 0; i < bench->shards; i++)
        sent(bench, FIRST_SHARD + i, MESSAGE_FETCH);
    for (uint32_t i = 0; i < bench->shards; i++)
        give(bench, FIRST_SHARD + i,
             (struct message){
                 .type = MESSAGE_PARAMETERS,
                 .parameters = {ATTEMPT, 1, first_at(i), count_at(bench, i), FETCH_GIVEN},
                 .bulk = {.data = bench->point + first_at(i),
                          .length = count_at(bench, i) * sizeof(double)}});
    return take_up(bench, 1, 0, PORTION_LAST);
}

static void rows_are_computed_with_weights_and_biases(void **state) {
    (void)state;
    for (uint32_t shards = 1; shards <= 2; shards++) {
        struct bench bench;
        ready(&bench, shards);
        struct computation work = compute(&bench);
        double bias = 100;
        for (unsigned j = 0; j < COLUMNS; j++) {
            double weight = (1.0 + j % 4) * (j % 5);
            bias -= (j % 3 - 1.0) * weight;
            assert_true(work.parameters[j] == weight);
        }
        assert_true(work.parameters[COLUMNS] == bias); /* of small whole numbers: exact */
        bench_free(&bench);
    }
}

static void for_few_values_the_point_stays_scaled(void **state) {
    (void)state;
    for (uint32_t shards = 1; shards <= 2; shards++) {
        struct bench bench;
        ready_with(&bench, shards, 1);
        struct computation work = compute(&bench);
        double bias = 100;
        for (unsigned j = 0; j < COLUMNS; j++) {
            bias -= (j % 3 - 1.0) * (1.0 + j % 4) * (j % 5);
            assert_true(work.parameters[j] == j % 5);
            assert_true(work.scaled.columns[j].scale == 1.0 + j % 4);
        }
        assert_true(work.scaled.bias[0] == bias);
        bench_free(&bench);
        ready_with(&bench, shards, ALL); /* and not for many */
        work = compute(&bench);
        assert_null(work.scaled.columns);
        assert_true(work.parameters[COLUMNS] == bias);
        bench_free(&bench);
    }
}

static void every_shard_is_told_the_sums_of_the_biases(void **state) {
    (void)state;
    struct bench bench;
    ready(&bench, 2);
    compute(&bench);
    struct computed answer = {.values = 1000000};
    totals_init(&answer.totals, 1);
    replica_computed(bench.replica, &answer, bench.now_ns, &bench.outbox);
    struct action gather = asked(&bench, ACTION_GATHER);
    for (unsigned i = 0; i < ALL; i++)
        gather.into[i] = i + 1;
    replica_gathered(bench.replica, NULL, bench.now_ns, &bench.outbox);
    for (uint32_t i = 0; i < 2; i++) {
        struct message message = sent(&bench, FIRST_SHARD + i, MESSAGE_STAGE);
        assert_int_equal(message.stage.biases.length, 1);
        assert_int_equal(message.stage.biases.items[0], ALL);
        assert_int_equal(message.bulk.length, count_at(&bench, i) * sizeof(int64_t));
    }
    bench_free(&bench);
}

/* Of two threads; both have an element of the second column, and the bias. */
static void shards_get_the_lists_of_threads_alone(void **state) {
    uint32_t element[2][3] = {{9, BORDER + 3, COLUMNS}, {9, COLUMNS}};
    int64_t value[2][3] = {{1, 2, 30}, {5, 10}};
    struct sum_list one = {.count = 3, .element = element[0], .value = value[0]};
    struct sum_list other = {.count = 2, .element = element[1], .value = value[1]};
    const struct sum_list *items[] = {&one, &other};
    (void)state;
    for (uint32_t shards = 1; shards <= 2; shards++) {
        struct bench bench;
        ready(&bench, shards);
        compute(&bench);
        struct computed answer = {.values = 3};
        totals_init(&answer.totals, 1);
        replica_computed(bench.replica, &answer, bench.now_ns, &bench.outbox);
        struct action gather = asked(&bench, ACTION_GATHER);
        memset(gather.into, 0x55, ALL * sizeof *gather.into);
        replica_gathered(bench.replica, &(struct sum_lists){.items = items, .count = 2},
                         bench.now_ns, &bench.outbox);
        int64_t sums[ALL] = {0};
        for (uint32_t i = 0; i < shards; i++) {
            struct message message = sent(&bench, FIRST_SHARD + i, MESSAGE_STAGE);
            uint64_t entries = message.stage.entries;
            const uint32_t *offset = message.bulk.data;
            const int64_t *of_slice =
                (const int64_t *)(const void *)((const char *)message.bulk.data +
                                                stage_sparse_values_at(entries));
            assert_int_equal(message.stage.encoding, STAGE_SPARSE);
            assert_int_equal(message.stage.biases.items[0], 40);
            assert_int_equal(entries, shards == 1 ? 5 : i ? 3 : 2);
            for (uint64_t k = 0; k < entries; k++)
                sums[first_at(i) + offset[k]] += of_slice[k];
        }
        for (unsigned i = 0; i < ALL; i++)
            assert_int_equal(sums[i], i == 9 ? 6 : i == BORDER + 3 ? 2 : i == COLUMNS ? 40 : 0);
        bench_free(&bench);
    }
}

static void scaling_of_columns_that_are_not_there_is_an_error(void **state) {
    (void)state;
    struct bench bench;
    ready(&bench, 1);
    send_columns(&bench, 0, 10); /* again: ignored */
    nothing_more(&bench);
    send_columns(&bench, COLUMNS, 1);
    sent(&bench, COORDINATOR, MESSAGE_FAILED);
    bench_free(&bench);
}

/* ---- what comes again while threads compute ---- */

/* Freed memory no longer has what was in it. */
static void spoil_what_is_freed(void) {
    mallopt(M_PERTURB, 0x5a);
}

static void threads_keep_what_they_compute_with_when_another_set_up_comes(void **state) {
    (void)state;
    const struct layout layout = layout_linear(COLUMNS, 1, true);
    struct bench bench;
    spoil_what_is_freed();
    ready_with(&bench, 1, 1);
    struct computation work = compute(&bench);
    struct message_replica_setup setup = replica_setup_of(&bench, blob_of_layout(&layout));
    setup.attempt++;
    setup.machine.threads = 3;
    give(&bench, COORDINATOR,
         (struct message){.type = MESSAGE_REPLICA_SETUP, .replica_setup = setup});
    asked(&bench, ACTION_STOP);
    for (unsigned j = 0; j < COLUMNS; j++)
        assert_true(work.scaled.columns[j].scale == 1.0 + j % 4);
    assert_true(work.scaled.bias[0] < 100);
    asked(&bench, ACTION_CLOSE);
    asked(&bench, ACTION_OPEN_SET); /* whoever opens it has stopped them */
    replica_opened(bench.replica, 0, "", bench.now_ns, &bench.outbox);
    bench_free(&bench);
}

enum { FEATURES = 3 };

static struct layout kronecker_layout(void) {
    struct layout layout = {0};
    const struct layout_tensor tensors[] = {
        {.name = "W1", .rows = FEATURES, .columns = 2, .regularized = true},
        {.name = "W2", .rows = 2, .columns = 1, .regularized = true},
        {.name = "b1", .rows = 1, .columns = 2},
        {.name = "b2", .rows = 1, .columns = 1}};
    for (size_t t = 0; t < sizeof tensors / sizeof *tensors; t++) {
        struct layout_tensor tensor = tensors[t];
        tensor.exponents = LAYOUT_ONE_EXPONENT;
        assert_true(layout_add(&layout, &tensor));
    }
    return layout;
}

/* The coordinator of the bench's term sets the replica up for a network with these factors. */
static void set_up_kronecker(struct bench *bench, bool anew, const double *factors) {
    const struct layout layout = kronecker_layout();
    struct message_replica_setup setup = replica_setup_of(bench, blob_of_layout(&layout));
    setup.coordinates = 1;
    give(bench, COORDINATOR,
         (struct message){.type = MESSAGE_REPLICA_SETUP, .replica_setup = setup});
    if (anew) {
        asked(bench, ACTION_OPEN_SET);
        replica_opened(bench->replica, 0, "", bench->now_ns, &bench->outbox);
    }
    send_columns(bench, 0, FEATURES);
    give(bench, COORDINATOR,
         (struct message){
             .type = MESSAGE_FACTORS,
             .factors = {ATTEMPT},
             .bulk = {.data = factors, .length = kronecker_size(&layout) * sizeof *factors}});
    give(bench, COORDINATOR,
         (struct message){
             .type = MESSAGE_SHARD_AT,
             .shard_at = {ATTEMPT, 0, 100, 0, layout_parameters(&layout), "unix:/run/shard", ""}});
    if (anew) {
        connect_shard(bench, 0);
        greeted(bench, 0);
    }
}

/* Ready for the network, and asking for the point of evaluation 1. Free the factors. */
static double *ask_in_kronecker(struct bench *bench) {
    const struct layout layout = kronecker_layout();
    const uint64_t size = kronecker_size(&layout);
    double *factors = calloc(size, sizeof *factors);
    spoil_what_is_freed();
    for (uint64_t i = 0; i < size; i++)
        factors[i] = 1;
    for (unsigned j = 0; j < FEATURES; j++)
        columns[j] = (struct column_scaling){0.5, 2, 1, 0, 0};
    bench_new(bench, 1);
    set_up_kronecker(bench, true, factors);
    sent(bench, COORDINATOR, MESSAGE_READY);
    give(bench, COORDINATOR,
         (struct message){.type = MESSAGE_EVALUATE,
                          .evaluate = {ATTEMPT, 1, {4, {0}}, gradient_parts, 0, 1, 0, {0}}});
    sent(bench, FIRST_SHARD, MESSAGE_FETCH);
    return factors;
}

static void give_point_of_network(struct bench *bench) {
    const struct layout layout = kronecker_layout();
    const uint64_t n = layout_parameters(&layout);
    give(bench, FIRST_SHARD,
         (struct message){.type = MESSAGE_PARAMETERS,
                          .parameters = {ATTEMPT, 1, 0, n, FETCH_GIVEN},
                          .bulk = {.data = bench->point, .length = n * sizeof(double)}});
}

/* A later coordinator greets the replica, and has not set it up yet. */
static void take_over(struct bench *bench) {
    hello(bench, ++bench->term, "run 1");
    sent(bench, COORDINATOR, MESSAGE_WELCOME);
}

static void a_later_coordinator_leaves_an_evaluation_its_factors(void **state) {
    (void)state;
    struct bench bench;
    double *factors = ask_in_kronecker(&bench);
    give_point_of_network(&bench);
    struct objective_change before = take_up(&bench, 1, 0, 0).change;
    assert_non_null(before.kronecker);
    take_over(&bench);
    set_up_kronecker(&bench, false, factors);
    sent(&bench, COORDINATOR, MESSAGE_READY);
    assert_true(kronecker_is_of(before.kronecker, factors));
    assert_true(before.pull[0] == 0 && before.columns[0].scale == 2);
    struct computed answer = {.values = PARAMETERS};
    totals_init(&answer.totals, 1);
    replica_computed(bench.replica, &answer, bench.now_ns, &bench.outbox);
    asked(&bench, ACTION_GATHER); /* what is accrued is a flush of its own */
    gathered(&bench);
    sent(&bench, FIRST_SHARD, MESSAGE_STAGE);
    struct objective_change after = take_up(&bench, 1, 4, PORTION_LAST).change;
    assert_true(after.kronecker && after.columns && after.pull);
    factors[0] = 2; /* of another network */
    set_up_kronecker(&bench, false, factors);
    sent(&bench, COORDINATOR, MESSAGE_FAILED);
    bench_free(&bench);
    free(factors);
}

/* Shards answer what they were asked for again, whatever the coordinator has come to. */
static void a_point_that_comes_before_the_factors_come_again_is_turned_into_weights(void **state) {
    (void)state;
    const struct layout layout = kronecker_layout();
    struct bench bench;
    double *factors = ask_in_kronecker(&bench);
    take_over(&bench);
    sent(&bench, FIRST_SHARD, MESSAGE_FETCH);
    struct message_replica_setup setup = replica_setup_of(&bench, blob_of_layout(&layout));
    setup.coordinates = 1;
    give(&bench, COORDINATOR,
         (struct message){.type = MESSAGE_REPLICA_SETUP, .replica_setup = setup});
    give_point_of_network(&bench);
    set_up_kronecker(&bench, false, factors);
    sent(&bench, COORDINATOR, MESSAGE_READY);
    sent(&bench, COORDINATOR, MESSAGE_WANT);
    assert_non_null(take_up(&bench, 1, 0, PORTION_LAST).change.kronecker);
    bench_free(&bench);
    free(factors);
}

SUITE(replica_scaling) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_computed_with_weights_and_biases),
        cmocka_unit_test(for_few_values_the_point_stays_scaled),
        cmocka_unit_test(every_shard_is_told_the_sums_of_the_biases),
        cmocka_unit_test(shards_get_the_lists_of_threads_alone),
        cmocka_unit_test(scaling_of_columns_that_are_not_there_is_an_error),
        cmocka_unit_test(threads_keep_what_they_compute_with_when_another_set_up_comes),
        cmocka_unit_test(a_later_coordinator_leaves_an_evaluation_its_factors),
        cmocka_unit_test(a_point_that_comes_before_the_factors_come_again_is_turned_into_weights),
    };
    return cmocka_run_group_tests_name("replica scaling", tests, NULL, NULL);
}
