/* A replica that computes a network in tiles: the layers above the first at margins of rows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "replica/flush.h"
#include "tests/unit/layout_fixture.h"
#include "tests/unit/replica_bench.h"
#include "tests/unit/suites.h"

enum { COLUMNS = 10000, CHUNKS = 20, ROWS = 1000 };
/* W1 of two strips of 20 chunks, and 3 + 3·1 + 1 parameters above; chunks of 50 rows. A portion is
 * of two. */
enum { UNITS = 3, UPPER = 7, FIRST_LAYER = COLUMNS * UNITS };

static struct layout network_layout(void) {
    struct layout layout = {0};
    layout_add(&layout, &(struct layout_tensor){.name = "W1", .rows = COLUMNS, .columns = UNITS});
    layout_add(&layout, &(struct layout_tensor){.name = "W2", .rows = UNITS, .columns = 1});
    layout_add(&layout, &(struct layout_tensor){.name = "b1", .rows = 1, .columns = UNITS});
    layout_add(&layout, &(struct layout_tensor){.name = "b2", .rows = 1, .columns = 1});
    for (uint32_t t = 1; t < layout.count; t++)
        layout.tensor[t].exponents = LAYOUT_ONE_EXPONENT;
    return layout;
}

/* bench_new() comes before. */
static void network_ready(struct bench *bench, uint32_t strip_columns, bool knows_rows) {
    const struct layout layout = network_layout();
    uint64_t row[CHUNKS + 1];
    struct message_replica_setup setup = replica_setup_of(bench, blob_of_layout(&layout));
    setup.rows = ROWS;
    setup.strip_columns = strip_columns;
    give(bench, COORDINATOR,
         (struct message){.type = MESSAGE_REPLICA_SETUP, .replica_setup = setup});
    asked(bench, ACTION_OPEN_SET);
    for (uint32_t i = 0; i <= CHUNKS; i++)
        row[i] = i * 50;
    if (knows_rows)
        replica_rows_of_chunks(bench->replica, row, CHUNKS);
    replica_opened(bench->replica, 0, "", bench->now_ns, &bench->outbox);
    give(bench, COORDINATOR,
         (struct message){
             .type = MESSAGE_SHARD_AT,
             .shard_at = {ATTEMPT, 0, 100, 0, layout_parameters(&layout), bench->address, ""}});
    connect_shard(bench, 0);
    greeted(bench, 0);
    sent(bench, COORDINATOR, MESSAGE_READY);
}

static void ready_for_network(struct bench *bench, bool knows_rows) {
    bench_new(bench, 1);
    network_ready(bench, COLUMNS / 2, knows_rows);
}

static void evaluate_parts(struct bench *bench, uint32_t evaluation,
                           const struct evaluation_part *parts, uint32_t count) {
    give(bench, COORDINATOR,
         (struct message){
             .type = MESSAGE_EVALUATE,
             .evaluate = {ATTEMPT, evaluation, {4, {0}}, {parts, count}, 0, 1, 0, {0}}});
}

/* The one shard is asked for these elements, and gives them. */
static void fetch_part(struct bench *bench, uint32_t evaluation, enum fetch_vector vector,
                       uint64_t first, uint64_t count) {
    struct message_fetch fetch = sent(bench, FIRST_SHARD, MESSAGE_FETCH).fetch;
    assert_int_equal(fetch.vector, vector);
    assert_int_equal(fetch.first, first);
    assert_int_equal(fetch.count, count);
    give(bench, FIRST_SHARD,
         (struct message){.type = MESSAGE_PARAMETERS,
                          .parameters = {ATTEMPT, evaluation, first, count, (uint8_t)vector},
                          .bulk = {.data = bench->point, .length = count * 8}});
}

static const struct evaluation_part derivatives = {EVALUATION_DERIVATIVES, 0, CHUNKS};
static const struct evaluation_part both[] = {{EVALUATION_TRANSPOSE, 0, 2 * CHUNKS},
                                              {EVALUATION_UPPER, 2 * CHUNKS, CHUNKS}};

static void margins_of_a_portions_rows_are_fetched_behind_the_upper_layers(void **state) {
    (void)state;
    for (int knows = 0; knows < 2; knows++) {
        struct bench bench;
        ready_for_network(&bench, knows);
        for (uint32_t evaluation = 1; evaluation <= 2; evaluation++) {
            evaluate_parts(&bench, evaluation, &derivatives, 1);
            portion(&bench, evaluation, 4, 0);
            fetch_part(&bench, evaluation, FETCH_POINT, FIRST_LAYER, UPPER);
            fetch_part(&bench, evaluation, FETCH_MARGINS, knows ? 200 * UNITS : 0,
                       (knows ? 100 : ROWS) * UNITS);
            struct computation computation = started(&bench, 4);
            sent(&bench, COORDINATOR, MESSAGE_WANT);
            assert_int_equal(computation.first_number, knows ? 200 * UNITS : 0);
            assert_int_equal(computation.tiles_below, 0);
            assert_memory_equal(computation.upper, bench.point, UPPER * 8);
            end_portion(&bench, 200, FIRST_LAYER);
            portion(&bench, evaluation, 9, 0);
            if (knows)
                fetch_part(&bench, evaluation, FETCH_MARGINS, 450 * UNITS, 100 * UNITS);
            started(&bench, 9);
            sent(&bench, COORDINATOR, MESSAGE_WANT);
            end_portion(&bench, 450, FIRST_LAYER);
        }
        bench_free(&bench);
    }
}

static void losses_of_held_out_rows_are_at_margins_as_derivatives_of_others_are(void **state) {
    (void)state;
    enum { HELD = 3, TRAINED = CHUNKS - HELD };
    const struct evaluation_part parts[] = {{EVALUATION_DERIVATIVES, 0, TRAINED},
                                            {EVALUATION_LOSS, TRAINED, HELD}};
    struct bench bench;
    ready_for_network(&bench, true);
    evaluate_parts(&bench, 1, parts, 2);
    give(&bench, COORDINATOR,
         (struct message){.type = MESSAGE_PORTION,
                          .portion = {ATTEMPT, 1, TRAINED - 1, HELD + 1, PORTION_LAST}});
    fetch_part(&bench, 1, FETCH_POINT, FIRST_LAYER, UPPER);
    fetch_part(&bench, 1, FETCH_MARGINS, 50 * (TRAINED - 1) * UNITS, 50 * (HELD + 1) * UNITS);
    struct computation computation = asked(&bench, ACTION_COMPUTE).computation;
    assert_memory_equal(computation.upper, bench.point, UPPER * 8);
    assert_true(computation.strip == 0 && computation.count == HELD + 1);
    assert_null(computation.columns);
    bench_free(&bench);
}

/* On another host than the shard, in strips that are as long as the numbers of six chunks. */
static void a_network_asks_for_as_many_margins_again_up_to_the_length_of_a_strip(void **state) {
    (void)state;
    enum { CHUNK = 50 * UNITS, TILES = 14 };
    const uint32_t asked_for[] = {2, 2, 4, 0, 6}, first[] = {0, 2, 4, 0, 8};
    struct bench bench;
    bench_new(&bench, 1);
    bench.address = "10.0.0.2:7000";
    network_ready(&bench, 300, true); /* 900 numbers */
    evaluate_parts(&bench, 1, &derivatives, 1);
    for (uint32_t i = 0; 2 * i < TILES; i++) {
        portion(&bench, 1, 2 * i, 0);
        if (!i)
            fetch_part(&bench, 1, FETCH_POINT, FIRST_LAYER, UPPER);
        if (i < 5 && asked_for[i])
            fetch_part(&bench, 1, FETCH_MARGINS, first[i] * CHUNK, asked_for[i] * CHUNK);
        struct computation computation = started(&bench, 2 * i);
        sent(&bench, COORDINATOR, MESSAGE_WANT);
        assert_true(computation.first_number <= 2 * i * CHUNK);
        end_portion(&bench, 0, FIRST_LAYER);
    }
    nothing_more(&bench);
    bench_free(&bench);
}

static void a_transpose_and_the_upper_layers_are_flushes_of_their_own(void **state) {
    (void)state;
    struct bench bench;
    ready_for_network(&bench, true);
    evaluate_parts(&bench, 1, both, 2);
    portion(&bench, 1, CHUNKS + 2, 0);
    fetch_part(&bench, 1, FETCH_GIVEN, 100 * UNITS, 100 * UNITS);
    struct computation computation = started(&bench, CHUNKS + 2);
    sent(&bench, COORDINATOR, MESSAGE_WANT);
    assert_true(computation.strip == 1 && !computation.upper);
    portion(&bench, 1, 2 * CHUNKS + 2, 0);
    struct computed answer = {.values = FIRST_LAYER};
    totals_init(&answer.totals, 2);
    replica_computed(bench.replica, &answer, bench.now_ns, &bench.outbox);
    assert_int_equal(asked(&bench, ACTION_GATHER).sums, FIRST_LAYER / 2);
    gathered(&bench);
    assert_int_equal(sent(&bench, FIRST_SHARD, MESSAGE_STAGE).stage.first, FIRST_LAYER / 2);
    fetch_part(&bench, 1, FETCH_POINT, FIRST_LAYER, UPPER);
    fetch_part(&bench, 1, FETCH_MARGINS, 100 * UNITS, 100 * UNITS);
    computation = started(&bench, 2 * CHUNKS + 2);
    sent(&bench, COORDINATOR, MESSAGE_WANT);
    assert_true(computation.strip == 2 && computation.tiles_below == 2 * CHUNKS);
    rest(&bench, 1);
    replica_computed(bench.replica, &answer, bench.now_ns, &bench.outbox);
    assert_int_equal(asked(&bench, ACTION_GATHER).sums, UPPER);
    gathered(&bench);
    assert_int_equal(sent(&bench, FIRST_SHARD, MESSAGE_STAGE).stage.first, FIRST_LAYER);
    bench_free(&bench);
}

static void an_answer_of_another_vector_is_not_taken(void **state) {
    (void)state;
    struct bench bench;
    ready_for_network(&bench, false);
    evaluate_parts(&bench, 1, &derivatives, 1);
    portion(&bench, 1, 4, 0);
    sent(&bench, FIRST_SHARD, MESSAGE_FETCH);
    give(&bench, FIRST_SHARD,
         (struct message){.type = MESSAGE_PARAMETERS,
                          .parameters = {ATTEMPT, 1, FIRST_LAYER, UPPER, FETCH_MARGINS},
                          .bulk = {.data = bench.point, .length = UPPER * 8}});
    assert_int_equal(replica_counters(bench.replica)->stale, 1);
    nothing_more(&bench);
    bench_free(&bench);
}

static void parts_that_no_network_in_tiles_has_are_refused(void **state) {
    (void)state;
    static const struct evaluation_part wrong[][2] = {
        {{EVALUATION_TRANSPOSE, 0, 2 * CHUNKS}, {EVALUATION_UPPER, 2 * CHUNKS + 1, CHUNKS}},
        {{EVALUATION_TRANSPOSE, 0, 2 * CHUNKS}, {EVALUATION_UPPER, 2 * CHUNKS, CHUNKS + 1}},
        {{EVALUATION_TRANSPOSE, 0, 4 * CHUNKS}, {EVALUATION_UPPER, 4 * CHUNKS, CHUNKS}},
        {{EVALUATION_UPPER, 0, CHUNKS}, {EVALUATION_UPPER, CHUNKS, CHUNKS}},
        {{EVALUATION_DERIVATIVES, 0, CHUNKS - 3}, {EVALUATION_LOSS, CHUNKS - 2, 2}},
        {{EVALUATION_DERIVATIVES, 0, CHUNKS - 3}, {EVALUATION_LOSS, CHUNKS - 3, 4}},
        {{EVALUATION_LABELS, 0, CHUNKS - 3}, {EVALUATION_LOSS, CHUNKS - 3, 3}},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct bench bench;
        ready_for_network(&bench, true);
        evaluate_parts(&bench, 1, wrong[i], 2);
        assert_non_null(strstr(sent(&bench, COORDINATOR, MESSAGE_FAILED).failed.reason, "tiles"));
        bench_free(&bench);
    }
}

SUITE(replica_network) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(margins_of_a_portions_rows_are_fetched_behind_the_upper_layers),
        cmocka_unit_test(losses_of_held_out_rows_are_at_margins_as_derivatives_of_others_are),
        cmocka_unit_test(a_network_asks_for_as_many_margins_again_up_to_the_length_of_a_strip),
        cmocka_unit_test(a_transpose_and_the_upper_layers_are_flushes_of_their_own),
        cmocka_unit_test(an_answer_of_another_vector_is_not_taken),
        cmocka_unit_test(parts_that_no_network_in_tiles_has_are_refused),
    };
    return cmocka_run_group_tests_name("replica network", tests, NULL, NULL);
}
