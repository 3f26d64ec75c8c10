/* Shards of a network in tiles: they keep what its first layer adds up, and the derivatives by it,
 * and know no loss. */
#include "tests/unit/suites.h"
#include "tests/unit/row_cluster.h"

#include "numeric/fixed.h"

enum { UNITS = 3 };

static struct message network_setup(void) {
    struct message message = row_setup("", UNITS, false, 0);
    message.shard_setup.rows.directions = 0;
    message.shard_setup.rows.tiles = 1;
    return message;
}

/* One shard, with all rows. */
static void init(struct row_cluster *cluster) {
    *cluster = (struct row_cluster){.count = 1, .outputs = UNITS, .ranges = {{0, ROWS}}};
    bench_init(&cluster->shards[0], network_setup());
    assert_answer(&cluster->shards[0], 0, COORDINATOR_LINK, MESSAGE_READY);
}

static const double *given(struct row_cluster *cluster, enum fetch_vector vector, uint64_t first,
                           uint64_t count) {
    struct bench *bench = &cluster->shards[0];
    struct message message = fetch_all(cluster->evaluation);
    message.fetch.first = first;
    message.fetch.count = count;
    message.fetch.vector = (uint8_t)vector;
    tell(bench, REPLICA_LINK, message);
    assert_answer(bench, 0, REPLICA_LINK, MESSAGE_PARAMETERS);
    struct message found = answer(bench, 0);
    assert_int_equal(found.parameters.vector, vector);
    assert_int_equal(found.parameters.first, first);
    assert_int_equal(found.parameters.count, count);
    return found.bulk.data;
}

/* Integers as the bits of doubles, as tiles add up margins. */
static void put_margins(struct row_cluster *cluster, double *numbers) {
    for (int64_t i = 0; i < ROWS * UNITS; i++) {
        int64_t sum = (i - 7) * (INT64_C(1) << 40);
        memcpy(&numbers[i], &sum, sizeof sum);
    }
    put_rows(cluster, ROWS_MARGINS, 0, numbers);
    for (int64_t i = 0; i < ROWS * UNITS; i++)
        numbers[i] = ldexp((double)((i - 7) * (INT64_C(1) << 40)), fixed_tile_exponent(0, 0));
}

static void one_evaluation_gives_out_the_point_margins_and_derivatives(void **state) {
    (void)state;
    struct row_cluster cluster;
    double *margins = memory_new(ROWS * UNITS, sizeof *margins);
    double *derivatives = memory_new(ROWS * UNITS, sizeof *derivatives);
    for (int i = 0; i < ROWS * UNITS; i++)
        derivatives[i] = i / 8.0 - 3;
    init(&cluster);
    put_margins(&cluster, margins);
    put_rows(&cluster, ROWS_GIVEN, 0, derivatives);
    run_one(&cluster.shards[0], begin_rows(++cluster.evaluation, true));
    const uint64_t first = 17 * UNITS, count = 100 * UNITS;
    assert_memory_equal(given(&cluster, FETCH_GIVEN, first, count), derivatives + first,
                        count * sizeof *derivatives);
    assert_memory_equal(given(&cluster, FETCH_MARGINS, first, count), margins + first,
                        count * sizeof *margins);
    const double *t = read_register(&cluster.shards[0], REGISTER_T, 0, ROW_PARAMETERS);
    double *point = memory_new(ROW_PARAMETERS, sizeof *point);
    memcpy(point, t, ROW_PARAMETERS * sizeof *point);
    assert_memory_equal(given(&cluster, FETCH_POINT, 5, 40), point + 5, 40 * sizeof *point);
    row_cluster_release(&cluster);
    free(point);
    free(margins);
    free(derivatives);
}

static void losses_of_rows_are_not_measured_where_there_is_no_objective(void **state) {
    (void)state;
    static const struct operation operations[] = {{.code = OPERATION_ROWS_LOSS},
                                                  {.code = OPERATION_ROWS_DERIVATIVE},
                                                  {.code = OPERATION_ROWS_ADVANCE},
                                                  {.code = OPERATION_ROWS_HELD}};
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        struct row_cluster cluster;
        const struct operation program[] = {{.code = OPERATION_ROWS_AT}, operations[i]};
        init(&cluster);
        run_operations(&cluster.shards[0], program, 2);
        assert_answer(&cluster.shards[0], 0, COORDINATOR_LINK, MESSAGE_FAILED);
        assert_non_null(strstr(answer(&cluster.shards[0], 0).failed.reason, "objective"));
        row_cluster_release(&cluster);
    }
}

static void labels_are_not_taken_where_there_is_no_objective(void **state) {
    (void)state;
    struct row_cluster cluster;
    init(&cluster);
    run_one(&cluster.shards[0], begin_rows(++cluster.evaluation, false));
    const struct operation take = {.code = OPERATION_ROWS_TAKE, .vector = ROWS_LABELS};
    run_operations(&cluster.shards[0], &take, 1);
    assert_answer(&cluster.shards[0], 0, COORDINATOR_LINK, MESSAGE_FAILED);
    row_cluster_release(&cluster);
}

SUITE(network_rows) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_evaluation_gives_out_the_point_margins_and_derivatives),
        cmocka_unit_test(losses_of_rows_are_not_measured_where_there_is_no_objective),
        cmocka_unit_test(labels_are_not_taken_where_there_is_no_objective),
    };
    return cmocka_run_group_tests_name("network rows", tests, NULL, NULL);
}
