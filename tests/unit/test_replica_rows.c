/* Vectors of rows on a replica: which are fetched in place of the point, and where sums by rows go.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "tests/unit/suites.h"
#include "replica/flush.h"
#include "tests/unit/layout_fixture.h"
#include "tests/unit/replica_bench.h"

/* Of the four blocks of rows the first shard has three: its parameters are 8,192 of 10,002. */
enum { COLUMNS = 5000, OUTPUTS = 2, ALL = (COLUMNS + 1) * OUTPUTS, BORDER = 2 * BLOCK_ELEMENTS };
enum { ROWS = 1000, NUMBERS = ROWS * OUTPUTS, ROWS_BORDER = 3 * ROW_BLOCK * OUTPUTS };

static struct column_scaling columns[COLUMNS];

static struct range parameters_at(const struct bench *bench, uint32_t shard) {
    return bench->shards == 1 ? (struct range){0, ALL}
           : shard            ? (struct range){BORDER, ALL - BORDER}
                              : (struct range){0, BORDER};
}

static struct range rows_at(const struct bench *bench, uint32_t shard) {
    return bench->shards == 1 ? (struct range){0, NUMBERS}
           : shard            ? (struct range){ROWS_BORDER, NUMBERS - ROWS_BORDER}
                              : (struct range){0, ROWS_BORDER};
}

/* What comes for a kind that needs no point. */
static struct range nothing_at(const struct bench *bench, uint32_t shard) {
    (void)bench;
    (void)shard;
    return (struct range){0, 0};
}

static void set_up_rows(struct bench *bench, uint64_t rows) {
    struct layout layout = layout_linear(COLUMNS, OUTPUTS, true);
    struct message_replica_setup setup = replica_setup_of(bench, blob_of_layout(&layout));
    setup.objective = "softmax";
    setup.rows = rows;
    setup.coordinates = 1;
    give(bench, COORDINATOR,
         (struct message){.type = MESSAGE_REPLICA_SETUP, .replica_setup = setup});
}

static void ready(struct bench *bench, uint32_t shards, uint64_t rows) {
    bench_new(bench, shards);
    for (unsigned j = 0; j < COLUMNS; j++)
        columns[j] = (struct column_scaling){0, 2, 1, 0, 0};
    set_up_rows(bench, rows);
    assert_int_equal(asked(bench, ACTION_OPEN_SET).setup.rows, rows);
    replica_opened(bench->replica, 0, "", bench->now_ns, &bench->outbox);
    for (uint32_t i = 0; i < shards; i++) {
        struct range range = parameters_at(bench, i);
        give(bench, COORDINATOR,
             (struct message){.type = MESSAGE_SHARD_AT,
                              .shard_at = {ATTEMPT, i, 100 + i, range.first, range.count,
                                           "unix:/run/shard", ""}});
        connect_shard(bench, i);
        greeted(bench, i);
    }
    give(bench, COORDINATOR,
         (struct message){.type = MESSAGE_COORDINATES,
                          .coordinates = {ATTEMPT, 0, COLUMNS},
                          .bulk = {.data = columns, .length = sizeof columns}});
    sent(bench, COORDINATOR, MESSAGE_READY);
    nothing_more(bench);
}

static void announce_parts(struct bench *bench, uint32_t evaluation,
                           const struct evaluation_part *parts, uint32_t count) {
    give(bench, COORDINATOR,
         (struct message){
             .type = MESSAGE_EVALUATE,
             .evaluate = {ATTEMPT, evaluation, {1, {0}}, {parts, count}, 0, 1, 0, {0}}});
}

static void announce(struct bench *bench, uint32_t evaluation, enum evaluation_kind kind) {
    announce_parts(bench, evaluation, &(struct evaluation_part){kind, 0, 1000}, 1);
}

static void send_point(struct bench *bench, uint32_t evaluation, uint32_t shard,
                       struct range range) {
    give(
        bench, FIRST_SHARD + shard,
        (struct message){.type = MESSAGE_PARAMETERS,
                         .parameters = {ATTEMPT, evaluation, range.first, range.count, FETCH_GIVEN},
                         .bulk = {.data = bench->point + range.first, .length = range.count * 8}});
}

/* From an evaluation that can begin to the computation of its one portion. */
static struct computation compute(struct bench *bench, uint32_t evaluation,
                                  struct range range_at(const struct bench *, uint32_t)) {
    for (uint32_t i = 0; i < bench->shards; i++)
        sent(bench, FIRST_SHARD + i, MESSAGE_FETCH);
    for (uint32_t i = 0; i < bench->shards; i++)
        send_point(bench, evaluation, i, range_at(bench, i));
    return take_up(bench, evaluation, 0, PORTION_LAST);
}

/* Of sums by rows those of the rows; otherwise all. */
static int64_t *answer(struct bench *bench, struct row_range rows) {
    struct computed answer = {.values = 10, .rows = rows};
    totals_init(&answer.totals, 1);
    exact_add(&answer.totals.sum[0], 10);
    replica_computed(bench->replica, &answer, bench->now_ns, &bench->outbox);
    struct action gather = asked(bench, ACTION_GATHER);
    assert_int_equal(gather.first, rows.first * OUTPUTS);
    assert_int_equal(gather.sums, rows.end ? (rows.end - rows.first) * OUTPUTS : ALL);
    memset(gather.into, 0, gather.sums * sizeof *gather.into);
    return gather.into;
}

static const struct row_range all_rows = {0, ROWS};

/* ---- the point ---- */

static void a_transpose_takes_the_vector_of_rows_as_it_is(void **state) {
    (void)state;
    for (uint32_t shards = 1; shards <= 2; shards++) {
        struct bench bench;
        ready(&bench, shards, ROWS);
        announce(&bench, 1, EVALUATION_TRANSPOSE);
        struct computation computation = compute(&bench, 1, rows_at);
        assert_memory_equal(computation.parameters, bench.point, NUMBERS * sizeof(double));
        bench_free(&bench);
    }
}

static void a_product_takes_weights_which_the_scaled_point_stands_for(void **state) {
    (void)state;
    for (uint32_t shards = 1; shards <= 2; shards++) {
        struct bench bench;
        ready(&bench, shards, ROWS);
        announce(&bench, 1, EVALUATION_PRODUCT);
        struct computation computation = compute(&bench, 1, parameters_at);
        for (unsigned i = 0; i < COLUMNS * OUTPUTS; i++)
            assert_true(computation.parameters[i] == 2 * bench.point[i]);
        bench_free(&bench);
    }
}

/* Both lie in the same memory, and another evaluation begins where the last one ended. */
static void points_and_vectors_of_rows_take_turns(void **state) {
    (void)state;
    struct bench bench;
    ready(&bench, 2, ROWS);
    for (uint32_t evaluation = 1; evaluation <= 4; evaluation++) {
        bool transposed = evaluation % 2 == 0;
        announce(&bench, evaluation, transposed ? EVALUATION_TRANSPOSE : EVALUATION_PRODUCT);
        struct computation computation =
            compute(&bench, evaluation, transposed ? rows_at : parameters_at);
        assert_true(computation.parameters[7] == (transposed ? 1 : 2) * bench.point[7]);
        int64_t *sums = answer(&bench, transposed ? (struct row_range){0} : all_rows);
        sums[0] = 1;
        gathered(&bench);
        struct flush_id id = sent(&bench, FIRST_SHARD, MESSAGE_STAGE).stage.flush;
        sent(&bench, FIRST_SHARD + 1, MESSAGE_STAGE);
        verdict(&bench, id, true);
    }
    bench_free(&bench);
}

static void a_shard_that_sends_parameters_for_a_transpose_is_an_error(void **state) {
    (void)state;
    struct bench bench;
    ready(&bench, 1, ROWS);
    announce(&bench, 1, EVALUATION_TRANSPOSE);
    sent(&bench, FIRST_SHARD, MESSAGE_FETCH);
    send_point(&bench, 1, 0, parameters_at(&bench, 0));
    assert_non_null(strstr(sent(&bench, COORDINATOR, MESSAGE_FAILED).failed.reason, "range"));
    bench_free(&bench);
}

/* ---- the sums ---- */

/* Ten rows of the second shard: nobody gets other rows. */
static void a_flush_of_a_few_rows_has_these_alone(void **state) {
    (void)state;
    enum { FIRST = ROWS_BORDER / OUTPUTS + 50 };
    struct bench bench;
    ready(&bench, 2, ROWS);
    announce(&bench, 1, EVALUATION_PRODUCT);
    compute(&bench, 1, parameters_at);
    int64_t *sums = answer(&bench, (struct row_range){FIRST, FIRST + 10});
    for (int i = 0; i < 10 * OUTPUTS; i++)
        sums[i] = i + 1;
    gathered(&bench);
    struct message first = sent(&bench, FIRST_SHARD, MESSAGE_STAGE);
    struct message second = sent(&bench, FIRST_SHARD + 1, MESSAGE_STAGE);
    assert_int_equal(first.stage.encoding, STAGE_NONE);
    assert_int_equal(second.stage.encoding, STAGE_DENSE);
    assert_int_equal(second.stage.first, 100);
    assert_int_equal(second.stage.entries, 10 * OUTPUTS);
    assert_memory_equal(second.bulk.data, sums, 10 * OUTPUTS * 8);
    assert_int_equal(second.stage.biases.length, 0);
    bench_free(&bench);
}

/* Two portions, the later rows first, that lie on both sides of the border between the shards. */
static void rows_of_several_portions_go_to_the_shards_that_have_them(void **state) {
    (void)state;
    enum { BEFORE = ROWS_BORDER / OUTPUTS - 3, COUNT = 8 * OUTPUTS };
    struct bench bench;
    ready(&bench, 2, ROWS);
    announce(&bench, 1, EVALUATION_PRODUCT);
    for (uint32_t i = 0; i < 2; i++)
        sent(&bench, FIRST_SHARD + i, MESSAGE_FETCH);
    for (uint32_t i = 0; i < 2; i++)
        send_point(&bench, 1, i, parameters_at(&bench, i));
    take_up(&bench, 1, 4, 0);
    struct computed first = {.rows = {BEFORE + 6, BEFORE + 8}};
    totals_init(&first.totals, 1);
    replica_computed(bench.replica, &first, bench.now_ns, &bench.outbox);
    take_up(&bench, 1, 0, PORTION_LAST);
    struct computed second = {.rows = {BEFORE, BEFORE + 4}};
    totals_init(&second.totals, 1);
    replica_computed(bench.replica, &second, bench.now_ns, &bench.outbox);
    struct action gather = asked(&bench, ACTION_GATHER);
    assert_int_equal(gather.first, BEFORE * OUTPUTS);
    assert_int_equal(gather.sums, COUNT);
    for (int i = 0; i < COUNT; i++)
        gather.into[i] = i + 1;
    gathered(&bench);
    for (uint32_t i = 0; i < 2; i++) {
        struct message stage = sent(&bench, FIRST_SHARD + i, MESSAGE_STAGE);
        assert_int_equal(stage.stage.encoding, STAGE_DENSE);
        assert_int_equal(stage.stage.first, i ? 0 : BEFORE * OUTPUTS);
        assert_int_equal(stage.stage.entries, i ? COUNT - 3 * OUTPUTS : 3 * OUTPUTS);
        assert_int_equal(((const int64_t *)stage.bulk.data)[0], i ? 3 * OUTPUTS + 1 : 1);
    }
    bench_free(&bench);
}

static void each_shard_gets_its_rows_and_no_others(void **state) {
    (void)state;
    struct bench bench;
    ready(&bench, 2, ROWS);
    announce(&bench, 1, EVALUATION_LABELS);
    compute(&bench, 1, nothing_at);
    int64_t *sums = answer(&bench, all_rows);
    for (int i = 0; i < NUMBERS; i++)
        sums[i] = i + 1;
    gathered(&bench);
    for (uint32_t i = 0; i < 2; i++) {
        struct message stage = sent(&bench, FIRST_SHARD + i, MESSAGE_STAGE);
        struct range range = rows_at(&bench, i);
        assert_int_equal(stage.stage.encoding, STAGE_DENSE);
        assert_int_equal(stage.bulk.length, range.count * 8);
        assert_memory_equal(stage.bulk.data, sums + range.first, range.count * 8);
    }
    bench_free(&bench);
}

/* ---- what is refused ---- */

static void assert_refused(struct bench *bench, const char *word) {
    struct message_failed failed = sent(bench, COORDINATOR, MESSAGE_FAILED).failed;
    assert_int_equal(failed.status, 70);
    assert_non_null(strstr(failed.reason, word));
    bench_free(bench);
}

static void vectors_of_rows_without_the_set_up_for_them_are_refused(void **state) {
    (void)state;
    struct bench bench;
    for (int kind = EVALUATION_LABELS; kind <= EVALUATION_TRANSPOSE; kind++) {
        ready(&bench, 1, 0);
        announce(&bench, 1, (enum evaluation_kind)kind);
        assert_refused(&bench, "set up");
    }
}

static void a_transpose_beside_what_needs_a_point_is_refused(void **state) {
    (void)state;
    struct bench bench;
    ready(&bench, 1, ROWS);
    const struct evaluation_part mixed[] = {{EVALUATION_TRANSPOSE, 0, 5}, {EVALUATION_LOSS, 5, 5}};
    announce_parts(&bench, 1, mixed, 2);
    assert_refused(&bench, "at a vector of rows");
}

static void another_number_of_rows_opens_the_set_anew(void **state) {
    (void)state;
    struct bench bench;
    ready(&bench, 1, ROWS);
    set_up_rows(&bench, ROWS);
    nothing_more(&bench);
    set_up_rows(&bench, ROWS + 1);
    asked(&bench, ACTION_CLOSE);
    assert_int_equal(asked(&bench, ACTION_OPEN_SET).setup.rows, ROWS + 1);
    bench_free(&bench);
}

SUITE(replica_rows) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_transpose_takes_the_vector_of_rows_as_it_is),
        cmocka_unit_test(a_product_takes_weights_which_the_scaled_point_stands_for),
        cmocka_unit_test(points_and_vectors_of_rows_take_turns),
        cmocka_unit_test(a_shard_that_sends_parameters_for_a_transpose_is_an_error),
        cmocka_unit_test(a_flush_of_a_few_rows_has_these_alone),
        cmocka_unit_test(rows_of_several_portions_go_to_the_shards_that_have_them),
        cmocka_unit_test(each_shard_gets_its_rows_and_no_others),
        cmocka_unit_test(vectors_of_rows_without_the_set_up_for_them_are_refused),
        cmocka_unit_test(a_transpose_beside_what_needs_a_point_is_refused),
        cmocka_unit_test(another_number_of_rows_opens_the_set_anew),
    };
    return cmocka_run_group_tests_name("replica rows", tests, NULL, NULL);
}
