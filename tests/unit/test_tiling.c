/* Which jobs are trained in tiles, and what follows from that. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/suites.h"
#include "coordinator/job/family.h"
#include "coordinator/job/scaling.h"
#include "coordinator/job/sizing.h"
#include "coordinator/job/tiling.h"

static const struct job plain = {.directions = DIRECTIONS_AUTO,
                                 .strip_columns = STRIP_COLUMNS_AUTO,
                                 .precondition_block = 1024,
                                 .intercept = true};

static void wide_data_is_in_tiles_by_itself_and_narrower_data_where_a_job_says_so(void **state) {
    (void)state;
    struct set_options options;
    struct job job = plain;
    tiling_of(&job, &options);
    assert_int_equal(options.strip_columns, 1 << 21);
    assert_int_equal(options.whole_columns, 1 << 22);
    job.strip_columns = 300;
    tiling_of(&job, &options);
    assert_int_equal(options.strip_columns, 300);
    assert_int_equal(options.whole_columns, 300);
    job.strip_columns = 0;
    tiling_of(&job, &options);
    assert_int_equal(options.strip_columns, 0);
}

static void assert_refused(const struct job *job, const char *why) {
    struct set_options options;
    const struct set_info wide = {.features = 5000000}, narrow = {.features = 4000000};
    tiling_of(job, &options);
    assert_int_equal(options.strip_columns, 0);
    assert_non_null(strstr(tiling_cannot(job), why));
    assert_non_null(strstr(tiling_refused(job, &wide), why));
    assert_null(tiling_refused(job, &narrow));
}

static void what_needs_whole_rows_is_not_in_tiles_and_has_a_reason(void **state) {
    (void)state;
    struct job job = plain;
    job.start = JOB_START_DOWNPOUR;
    assert_refused(&job, "minibatches");
    job = plain;
    job.standardise = true;
    assert_refused(&job, "standardise");
    job = plain;
    job.precondition = PRECONDITION_BLOCK;
    assert_refused(&job, "preconditioner");
    job = plain;
    job.trains = TRAINS_PLUGIN;
    assert_refused(&job, "linear");
    job = plain;
    job.trains = job.objective = OBJECTIVE_MULTILABEL;
    assert_refused(&job, "several labels");
}

/* These need products alone. */
static void l1_a_line_search_and_early_stopping_are_in_tiles(void **state) {
    (void)state;
    struct job job = plain;
    job.l1.value = 1e-3;
    assert_null(tiling_cannot(&job));
    job = plain;
    job.directions = 0;
    assert_null(tiling_cannot(&job));
    job.early_stopping = 3;
    assert_null(tiling_cannot(&job));
}

static void networks_are_in_strips_of_as_many_weights(void **state) {
    (void)state;
    struct job job = plain;
    struct set_info data = {.features = 50000000};
    const uint32_t linear = tiling_columns(&job, &data);
    job.trains = TRAINS_NETWORK;
    job.layers = (struct counts){.count = 1, .value = {64}};
    assert_int_equal(tiling_columns(&job, &data), linear / 64);
    job.layers.value[0] = 60000;
    assert_int_equal(tiling_columns(&job, &data), 4096);
    job.early_stopping = 3;
    job.l1.value = 1e-3; /* there is no working set that whole rows would allow */
    assert_int_equal(tiling_columns(&job, &data), 4096);
    job.precondition = PRECONDITION_KRONECKER;
    assert_refused(&job, "preconditioner");
}

/* Working sets save passes, and take whole rows. */
static void l1_is_in_tiles_by_itself_where_the_data_is_far_wider(void **state) {
    (void)state;
    struct job job = plain;
    struct set_info data = {.features = 50000000};
    assert_int_not_equal(tiling_columns(&job, &data), 0);
    job.l1.value = 1e-3;
    assert_int_equal(tiling_columns(&job, &data), 0);
    assert_null(tiling_refused(&job, &data));
    job.strip_columns = 1000000;
    assert_int_equal(tiling_columns(&job, &data), 1000000);
    job.strip_columns = STRIP_COLUMNS_AUTO;
    data.features = 100000000;
    assert_int_not_equal(tiling_columns(&job, &data), 0);
}

/* The set at hand may be of other settings. */
static void strips_are_those_of_the_job_and_not_of_the_set_at_hand(void **state) {
    (void)state;
    struct job job = plain;
    struct set_info data = {.features = 1000};
    assert_int_equal(tiling_columns(&job, &data), 0);
    job.strip_columns = 300;
    assert_int_equal(tiling_columns(&job, &data), 300);
    data.strip_columns = 200;
    assert_int_equal(tiling_columns(&job, &data), 300);
    job.strip_columns = 1000;
    assert_int_equal(tiling_columns(&job, &data), 0);
    job.strip_columns = 300;
    job.standardise = true;
    assert_int_equal(tiling_columns(&job, &data), 0);
}

static void dense_rows_and_whole_ones_are_reasons_of_the_data(void **state) {
    (void)state;
    const struct set_info dense = {.features = 5000000, .dense = true};
    const struct set_info whole = {.features = 5000000};
    assert_int_equal(tiling_columns(&plain, &dense), 0);
    assert_non_null(strstr(tiling_refused(&plain, &dense), "dense"));
    assert_non_null(strstr(tiling_refused(&plain, &whole), "whole"));
}

/* A table so small that neither would have directions, and a block would have room for all. */
static void data_in_tiles_has_directions_and_no_preconditioner(void **state) {
    (void)state;
    int16_t exponent[101] = {0};
    const struct set_info whole = {
        .rows = 1000, .values = 100000, .features = 100, .weight_sum = 1000, .exponent = exponent};
    struct set_info tiles = whole;
    tiles.strip_columns = 30;
    const struct objective_shape shape = {.features = 100, .outputs = 1, .intercept = true};
    struct preconditioner_settings form;
    struct sizing sizing = {.history = 20, .shards = 1, .replicas = 1};
    assert_int_equal(sizing_precondition(&plain, &whole, &shape, &form), 0);
    assert_int_equal(form.form, PRECONDITION_FULL);
    assert_true(scaling_needs_moments(&plain, &whole, PRECONDITION_NONE));
    assert_int_equal(sizing_precondition(&plain, &tiles, &shape, &form), 0);
    assert_int_equal(form.form, PRECONDITION_NONE);
    assert_false(scaling_needs_moments(&plain, &tiles, PRECONDITION_NONE));
    sizing_directions(&plain, &tiles, &shape, form.form, &sizing);
    assert_true(sizing.directions > 0);
    assert_true(sizing.held < 101);
    sizing_directions(&plain, &whole, &shape, PRECONDITION_NONE, &sizing);
    assert_int_equal(sizing.directions, 0);
    assert_true(sizing.held == 101);
}

/* Nor steps over a working set; its shards have vectors of rows without a window. */
static void l1_in_tiles_has_neither_directions_nor_a_working_set(void **state) {
    (void)state;
    int16_t exponent[101] = {0};
    const struct set_info tiles = {.rows = 1000,
                                   .values = 100000,
                                   .features = 100,
                                   .weight_sum = 1000,
                                   .exponent = exponent,
                                   .strip_columns = 30};
    const struct objective_shape shape = {.features = 100, .outputs = 1, .intercept = true};
    struct preconditioner_settings form;
    struct sizing sizing = {.history = 20, .shards = 1, .replicas = 1};
    struct job job = plain;
    job.l1.value = 1e-3;
    assert_int_equal(sizing_precondition(&job, &tiles, &shape, &form), 0);
    assert_int_equal(form.form, PRECONDITION_NONE);
    sizing_directions(&job, &tiles, &shape, form.form, &sizing);
    assert_int_equal(sizing.directions, 0);
    assert_true(sizing.row_numbers == 1000);
}

static void a_replica_needs_memory_for_a_strip_alone(void **state) {
    (void)state;
    struct sizing sizing = {.history = 10, .shards = 4, .replicas = 1, .threads = 2};
    struct memory_need whole = memory_need_of(&plain, 100000000, &sizing, 0);
    sizing.held = 2097152;
    struct memory_need tiles = memory_need_of(&plain, 100000000, &sizing, 0);
    assert_true(tiles.replica < 200e6 && whole.replica > 4e9);
    assert_true(tiles.shard == whole.shard);
}

/* Of the first layer; those that are held out to stop early are in vectors of rows as others are.
 * Shards keep the best point. */
static void
a_network_that_stops_early_needs_memory_for_held_out_rows_and_its_best_point(void **state) {
    (void)state;
    enum { UNITS = 16, ROWS = 1000, HELD = 200, COLUMNS = 100, SHARDS = 4 };
    int16_t exponent[COLUMNS + 1] = {0};
    const struct set_info data = {.rows = ROWS,
                                  .values = 100000,
                                  .features = COLUMNS,
                                  .weight_sum = ROWS,
                                  .exponent = exponent,
                                  .chunks = 10,
                                  .holdout_chunks = 2,
                                  .holdout_rows = HELD,
                                  .strip_columns = 30};
    const struct objective_shape shape = {.features = COLUMNS,
                                          .outputs = 1,
                                          .intercept = true,
                                          .network = {.layers = 1, .units = {UNITS}}};
    const uint64_t parameters = objective_parameters(&shape);
    struct sizing sizing = {.history = 10, .shards = SHARDS, .replicas = 1, .threads = 2};
    struct job job = plain;
    job.trains = TRAINS_NETWORK;
    sizing_directions(&job, &data, &shape, PRECONDITION_NONE, &sizing);
    assert_true(sizing.upper && !sizing.directions && sizing.held >= 30 * UNITS);
    assert_true(sizing.row_numbers == (ROWS + HELD) * UNITS);
    double without = memory_need_of(&job, parameters, &sizing, 0).shard;
    job.early_stopping = 3;
    double with = memory_need_of(&job, parameters, &sizing, 0).shard;
    assert_true(fabs(with - without - 8.0 * (double)parameters / SHARDS) < 1);
}

static void
a_coordinator_needs_memory_for_squares_of_columns_that_in_tiles_wait_on_disk(void **state) {
    (void)state;
    struct sizing sizing = {.history = 10, .shards = 4, .replicas = 1, .threads = 2};
    for (uint32_t tiles = 0; tiles <= 1; tiles++) {
        sizing.held = tiles ? 2097152 : 0;
        double few = memory_need_of(&plain, 50000000, &sizing, 0).coordinator;
        double many = memory_need_of(&plain, 100000000, &sizing, 0).coordinator;
        assert_true(many - few == (tiles ? 16 : 24) * 50e6);
    }
}

/* What is started elsewhere does not count here. */
static void workers_with_addresses_need_no_memory_here(void **state) {
    (void)state;
    char *addresses[] = {"unix:/run/worker", NULL};
    struct sizing sizing = {.history = 10, .shards = 1, .replicas = 1, .threads = 2};
    struct job by_hand = plain;
    assert_true(memory_need_of(&by_hand, 100000000, &sizing, 0).here ==
                memory_need_of(&by_hand, 100000000, &sizing, 0).all);
    by_hand.shard_addresses = by_hand.replica_addresses = addresses;
    struct memory_need need = memory_need_of(&by_hand, 100000000, &sizing, 0);
    assert_true(need.here == need.coordinator && need.all > need.here);
}

/* Shards have what they have of each parameter; a replica has a strip. */
static void a_job_of_as_many_columns_as_may_be_is_in_strips_and_says_what_it_needs(void **state) {
    (void)state;
    const struct set_info data = {.rows = 1000000,
                                  .values = UINT64_C(1) << 34,
                                  .features = COLUMNS_MAX,
                                  .weight_sum = 1000000,
                                  .chunks = 131072,
                                  .strip_columns = 1 << 21};
    const struct objective_shape shape = {
        .kind = OBJECTIVE_LOGISTIC, .features = COLUMNS_MAX, .outputs = 1, .intercept = true};
    const uint64_t parameters = objective_parameters(&shape);
    struct job job = plain;
    struct sizing sizing = {0};
    struct preconditioner_settings form;
    assert_int_equal(tiling_columns(&job, &data), 1 << 21);
    assert_true(parameters == COLUMNS_MAX + 1);
    assert_int_equal(sizing_precondition(&job, &data, &shape, &form), 0);
    assert_int_equal(form.form, PRECONDITION_NONE);
    sizing = (struct sizing){.history = 10, .shards = 256, .replicas = 4, .threads = 2};
    sizing_directions(&job, &data, &shape, form.form, &sizing);
    struct memory_need need = memory_need_of(&job, parameters, &sizing, 0);
    assert_true(sizing.held == (1 << 21) + 1);
    assert_true(need.shard * 256 > 120 * (double)COLUMNS_MAX);
    assert_true(need.shard * 256 < 400 * (double)COLUMNS_MAX);
    assert_true(need.replica < 1e9);
    assert_true(need.coordinator >= 16 * (double)COLUMNS_MAX);
}

static void a_network_of_more_columns_than_a_network_may_have_is_refused_by_name(void **state) {
    (void)state;
    struct job job = plain;
    job.trains = TRAINS_NETWORK;
    job.file = "wide.conf";
    job.layers = (struct counts){.count = 1, .value = {2}};
    struct objective_shape shape = {.features = FEATURES_MAX,
                                    .outputs = 1,
                                    .intercept = true,
                                    .network = {.layers = 1, .units = {2}}};
    assert_true(objective_parameters(&shape) > UINT64_C(1) << 32);
    shape.features++;
    assert_int_equal(objective_parameters(&shape), 0);
    char *why = job_family(&job)->too_large(&job, &shape);
    assert_non_null(strstr(why, "2147483648 features, and a network may have 2147483647"));
    free(why);
}

SUITE(tiling) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wide_data_is_in_tiles_by_itself_and_narrower_data_where_a_job_says_so),
        cmocka_unit_test(what_needs_whole_rows_is_not_in_tiles_and_has_a_reason),
        cmocka_unit_test(l1_a_line_search_and_early_stopping_are_in_tiles),
        cmocka_unit_test(networks_are_in_strips_of_as_many_weights),
        cmocka_unit_test(l1_is_in_tiles_by_itself_where_the_data_is_far_wider),
        cmocka_unit_test(strips_are_those_of_the_job_and_not_of_the_set_at_hand),
        cmocka_unit_test(dense_rows_and_whole_ones_are_reasons_of_the_data),
        cmocka_unit_test(data_in_tiles_has_directions_and_no_preconditioner),
        cmocka_unit_test(l1_in_tiles_has_neither_directions_nor_a_working_set),
        cmocka_unit_test(a_replica_needs_memory_for_a_strip_alone),
        cmocka_unit_test(
            a_network_that_stops_early_needs_memory_for_held_out_rows_and_its_best_point),
        cmocka_unit_test(
            a_coordinator_needs_memory_for_squares_of_columns_that_in_tiles_wait_on_disk),
        cmocka_unit_test(workers_with_addresses_need_no_memory_here),
        cmocka_unit_test(a_job_of_as_many_columns_as_may_be_is_in_strips_and_says_what_it_needs),
        cmocka_unit_test(a_network_of_more_columns_than_a_network_may_have_is_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
