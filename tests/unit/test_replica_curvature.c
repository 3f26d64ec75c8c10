/* Curvature on a replica: the triangle travels to the first shard as a whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "tests/unit/suites.h"
#include "tests/unit/layout_fixture.h"
#include "tests/unit/replica_bench.h"

/* The first of two shards has all parameters. */
enum { N = 100, ELEMENTS = N * (N + 1) / 2 };

static void place_shard(struct bench *bench, uint32_t shard) {
    give(bench, COORDINATOR,
         (struct message){.type = MESSAGE_SHARD_AT,
                          .shard_at = {ATTEMPT, shard, 100 + shard, shard ? N : 0, shard ? 0 : N,
                                       "unix:/run/shard", ""}});
    connect_shard(bench, shard);
    nothing_more(bench);
}

static void ready(struct bench *bench, enum precondition precondition) {
    bench_new(bench, 2);
    struct message_replica_setup setup = replica_setup_of(bench, layout_blob(N, 1, 0));
    setup.hessian.precondition = (uint8_t)precondition;
    setup.hessian.block_columns = N;
    give(bench, COORDINATOR,
         (struct message){.type = MESSAGE_REPLICA_SETUP, .replica_setup = setup});
    assert_int_equal(asked(bench, ACTION_OPEN_SET).setup.precondition, precondition);
    replica_opened(bench->replica, 0, "", bench->now_ns, &bench->outbox);
    place_shard(bench, 0);
    place_shard(bench, 1);
    greeted(bench, 0);
    greeted(bench, 1);
    sent(bench, COORDINATOR, MESSAGE_READY);
    nothing_more(bench);
}

static void announce(struct bench *bench, uint32_t evaluation, enum evaluation_kind kind) {
    const struct evaluation_part all = {kind, 0, 1000};
    give(bench, COORDINATOR,
         (struct message){
             .type = MESSAGE_EVALUATE,
             .evaluate = {ATTEMPT, evaluation, {1, {4}}, {&all, 1}, 0.5, 0.25, evaluation, {0}}});
}

/* From an evaluation that can begin to the computation of its one portion. */
static struct computation compute(struct bench *bench, uint32_t evaluation) {
    for (uint32_t i = 0; i < 2; i++)
        sent(bench, FIRST_SHARD + i, MESSAGE_FETCH);
    for (uint32_t i = 0; i < 2; i++)
        give(
            bench, FIRST_SHARD + i,
            (struct message){.type = MESSAGE_PARAMETERS,
                             .parameters = {ATTEMPT, evaluation, i ? N : 0, i ? 0 : N, FETCH_GIVEN},
                             .bulk = {.data = bench->point, .length = i ? 0 : N * 8}});
    return take_up(bench, evaluation, 0, PORTION_LAST);
}

static int64_t *answer(struct bench *bench, uint64_t values) {
    struct computed answer = {.values = values};
    totals_init(&answer.totals, 4);
    exact_add(&answer.totals.sum[1], 12);
    replica_computed(bench->replica, &answer, bench->now_ns, &bench->outbox);
    struct action gather = asked(bench, ACTION_GATHER);
    assert_int_equal(gather.sums, ELEMENTS);
    return gather.into;
}

static void the_whole_triangle_goes_to_the_first_shard(void **state) {
    (void)state;
    struct bench bench;
    ready(&bench, PRECONDITION_FULL);
    announce(&bench, 1, EVALUATION_CURVATURE);
    struct computation computation = compute(&bench, 1);
    assert_true(computation.sums);
    assert_true(computation.sampling.rate == 0.5 && computation.sampling.floor == 0.25);
    assert_int_equal(computation.sampling.sample_seed, 1);
    assert_int_equal(computation.bounds.exponent[0], 4);
    int64_t *sums = answer(&bench, 1000);
    for (int64_t i = 0; i < ELEMENTS; i++)
        sums[i] = i + 1;
    gathered(&bench);
    struct message stage = sent(&bench, FIRST_SHARD, MESSAGE_STAGE);
    assert_int_equal(stage.stage.encoding, STAGE_DENSE);
    assert_int_equal(stage.bulk.length, ELEMENTS * 8);
    assert_ptr_equal(stage.bulk.data, sums);
    struct flush_id id = stage.stage.flush;
    stage = sent(&bench, FIRST_SHARD + 1, MESSAGE_STAGE);
    assert_true(flush_id_equal(&stage.stage.flush, &id));
    assert_int_equal(stage.bulk.length, 0);
    staged(&bench, 0, id);
    staged(&bench, 1, id);
    struct message flushed = sent(&bench, COORDINATOR, MESSAGE_FLUSHED);
    struct totals totals;
    assert_true(
        totals_decode(&totals, 4, flushed.flushed.totals.data, flushed.flushed.totals.length));
    assert_true(exact_value(&totals.sum[1]) == 12);
    verdict(&bench, id, true);
    bench_free(&bench);
}

static void a_triangle_of_mostly_zeros_travels_sparse(void **state) {
    (void)state;
    struct bench bench;
    ready(&bench, PRECONDITION_FULL);
    announce(&bench, 1, EVALUATION_CURVATURE);
    compute(&bench, 1);
    int64_t *sums = answer(&bench, 1000);
    memset(sums, 0, ELEMENTS * sizeof *sums);
    sums[4] = -3;
    sums[ELEMENTS - 1] = 7;
    gathered(&bench);
    struct message stage = sent(&bench, FIRST_SHARD, MESSAGE_STAGE);
    assert_int_equal(stage.stage.encoding, STAGE_SPARSE);
    assert_int_equal(stage.stage.entries, 2);
    assert_memory_equal(stage.bulk.data, ((uint32_t[]){4, ELEMENTS - 1}), 8);
    assert_memory_equal((const char *)stage.bulk.data + 8, ((int64_t[]){-3, 7}), 16);
    sent(&bench, FIRST_SHARD + 1, MESSAGE_STAGE);
    bench_free(&bench);
}

/* What is left in the threads' sums is of another layout, and must be cleared. */
static void an_abandoned_evaluation_leaves_sums_to_clear(void **state) {
    (void)state;
    const enum evaluation_kind order[][2] = {{EVALUATION_CURVATURE, EVALUATION_GRADIENT},
                                             {EVALUATION_GRADIENT, EVALUATION_CURVATURE}};
    for (int i = 0; i < 2; i++) {
        struct bench bench;
        ready(&bench, PRECONDITION_FULL);
        announce(&bench, 1, order[i][0]);
        assert_false(compute(&bench, 1).clear);
        announce(&bench, 2, order[i][1]);
        asked(&bench, ACTION_STOP);
        replica_computed(bench.replica, &(struct computed){.stopped = true}, bench.now_ns,
                         &bench.outbox);
        assert_true(compute(&bench, 2).clear);
        nothing_more(&bench);
        bench_free(&bench);
    }
}

static void curvature_without_the_set_up_for_it_is_refused(void **state) {
    (void)state;
    struct bench bench;
    ready(&bench, PRECONDITION_NONE);
    announce(&bench, 1, EVALUATION_CURVATURE);
    struct message failed = sent(&bench, COORDINATOR, MESSAGE_FAILED);
    assert_int_equal(failed.failed.status, 70);
    assert_non_null(strstr(failed.failed.reason, "preconditioner"));
    bench_free(&bench);
}

SUITE(replica_curvature) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_whole_triangle_goes_to_the_first_shard),
        cmocka_unit_test(a_triangle_of_mostly_zeros_travels_sparse),
        cmocka_unit_test(an_abandoned_evaluation_leaves_sums_to_clear),
        cmocka_unit_test(curvature_without_the_set_up_for_it_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
