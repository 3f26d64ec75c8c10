#include <math.h>

#include "optimizer/row.h"
#include "base/text.h"
#include "coordinator/status/sweep_table.h"
#include "tests/unit/suites.h"
#include "tests/unit/store_fixture.h"

static const struct score_figure cost = {.name = "loss", .better = SCORE_LOWER},
                                 gain = {.name = "auc", .better = SCORE_HIGHER};
static const struct sweep_shape plain = {.values = 4, .inner = 4, .rule = {.by = &cost}},
                                folded = {
                                    .values = 3, .inner = 3, .folds = 2, .rule = {.by = &cost}};

/* ---- the plan ---- */

static void a_path_goes_from_strong_to_weak_each_from_the_one_before(void **state) {
    (void)state;
    assert_int_equal(sweep_members(&plain), 4);
    assert_int_equal(sweep_start_of(&plain, 0), SWEEP_NO_MEMBER);
    for (uint32_t i = 1; i < 4; i++)
        assert_int_equal(sweep_start_of(&plain, i), i - 1);
}

static void folds_follow_the_full_fits_and_start_from_that_of_their_value(void **state) {
    (void)state;
    assert_int_equal(sweep_members(&folded), 9);
    for (uint32_t i = 0; i < 9; i++) {
        struct sweep_place place = sweep_place(&folded, i);
        assert_int_equal(sweep_member_at(&folded, place.value, place.fold), i);
        assert_int_equal(place.fold, i / 3);
        if (place.fold)
            assert_int_equal(sweep_start_of(&folded, i), place.value);
    }
}

static void members_that_are_apart_start_from_no_other(void **state) {
    (void)state;
    const struct sweep_shape independent = {
        .values = 2, .inner = 2, .folds = 2, .independent = true};
    for (uint32_t i = 0; i < sweep_members(&independent); i++)
        assert_int_equal(sweep_start_of(&independent, i), SWEEP_NO_MEMBER);
}

static void a_member_that_failed_ends_the_sweep(void **state) {
    (void)state;
    uint32_t member;
    struct sweep_member members[4] = {{.state = MEMBER_DONE}, {.state = MEMBER_FAILED}};
    assert_int_equal(sweep_next(&plain, members, &member), SWEEP_GIVE_UP);
}

/* Three values of l1, each with two of l2. */
static void a_grid_goes_by_l1_and_each_l1_starts_from_the_one_before(void **state) {
    (void)state;
    const struct sweep_shape grid = {.values = 6, .inner = 2, .folds = 2};
    const uint32_t starts[] = {SWEEP_NO_MEMBER, 0, 0, 2, 2, 4};
    for (uint32_t i = 0; i < sweep_members(&grid); i++)
        assert_int_equal(sweep_start_of(&grid, i), i < 6 ? starts[i] : i % 6);
}

/* ---- the choice ---- */

static struct sweep_choice chosen(const struct score_figure *by, bool one_se, const double *means,
                                  double error) {
    struct sweep_score scores[4];
    struct sweep_choice choice;
    for (int i = 0; i < 4; i++)
        scores[i] = (struct sweep_score){.mean = means[i], .error = error};
    struct sweep_rule rule = {.by = by, .one_se = one_se};
    assert_true(sweep_choose(&rule, 4, scores, &choice));
    return choice;
}

static void the_best_wins_and_among_equals_the_strongest(void **state) {
    (void)state;
    assert_int_equal(chosen(&cost, false, (double[]){3, 1, 1, 2}, NAN).value, 1);
    assert_int_equal(chosen(&cost, false, (double[]){3, NAN, 1, 2}, NAN).value, 2);
    assert_int_equal(chosen(&cost, false, (double[]){3, NAN, 1, -1}, 5).value, 3);
    assert_int_equal(chosen(&gain, false, (double[]){3, 4, 4, INFINITY}, 5).value, 1);
}

static void one_standard_error_takes_the_strongest_that_is_so_near(void **state) {
    (void)state;
    struct sweep_choice choice = chosen(&cost, true, (double[]){4, 2.5, 2.25, 2}, 0.5);
    assert_int_equal(choice.value, 1); /* just as far is near enough */
    assert_int_equal(choice.best, 3);
    assert_int_equal(chosen(&cost, true, (double[]){4, 2.625, 2.25, 2}, 0.5).value, 2);
    assert_int_equal(chosen(&cost, true, (double[]){4, 2, 2.25, 2}, 0).value, 1);
    assert_int_equal(chosen(&cost, true, (double[]){4, 2, 1.75, 2}, NAN).value, 2);
    assert_int_equal(chosen(&gain, true, (double[]){0.5, 0.75, 0.875, 0.75}, 0.125).value, 1);
    assert_int_equal(chosen(&gain, true, (double[]){NAN, 0.75, 0.875, 0.75}, 0.5).value, 1);
}

static void without_a_finite_mean_nothing_is_chosen(void **state) {
    (void)state;
    struct sweep_choice choice;
    const struct sweep_score scores[2] = {{.mean = NAN}, {.mean = INFINITY}};
    assert_false(sweep_choose(&plain.rule, 2, scores, &choice));
    assert_int_equal(choice.value, 0);
}

static void deviations_are_those_of_a_sample(void **state) {
    (void)state;
    const double numbers[] = {1, 2, 3, 6};
    struct sweep_score score = sweep_score(numbers, 4);
    assert_true(score.mean == 3);
    assert_true(fabs(score.deviation - sqrt(14.0 / 3)) < 1e-15);
    assert_true(fabs(score.error - sqrt(14.0 / 12)) < 1e-15);
    score = sweep_score(numbers, 1);
    assert_true(score.deviation == 0 && isnan(score.error));
}

/* ---- what the store says ---- */

static int64_t begun_sweep(struct store *store) {
    struct store_sweep sweep = {.identity = "abc",
                                .settings = "{}",
                                .data = "fingerprint",
                                .evaluated_on = "",
                                .sources = "[]",
                                .start_model = "",
                                .started_ms = 1};
    assert_int_equal(store_sweep_begin(store, &sweep), 0);
    return sweep.sweep;
}

static int64_t begun_member(struct store *store, int64_t sweep, uint32_t member, const char *uuid) {
    struct store_run run = {.uuid = uuid,
                            .job = "j",
                            .identity = "abc",
                            .settings = "{\"l2\": \"auto\"}",
                            .data = "fingerprint",
                            .build = "b",
                            .sweep = sweep,
                            .member = member};
    assert_int_equal(store_run_begin(store, &run), 0);
    return run.run;
}

static void end_member(struct store *store, int64_t run, enum reason reason, double loss) {
    char result[128];
    snprintf(result, sizeof result,
             "{\"run\": %d, \"l2\": 0.5, \"evaluations\": 5, \"holdout\": {\"examples\": 7, "
             "\"loss\": %.17g}}",
             (int)run, loss);
    assert_int_equal(store_run_end(store, run, reason_text(reason), result, 3, 5, 1, 0), 0);
}

static enum sweep_task next(struct store *store, int64_t sweep, const struct sweep_shape *shape,
                            uint32_t *member) {
    struct sweep_runs runs;
    assert_int_equal(sweep_runs_read(store, sweep, shape, NULL, &runs), 0);
    enum sweep_task task = sweep_next(shape, runs.members, member);
    sweep_runs_release(&runs);
    return task;
}

/* After a crash at any place only the store is left, so it is closed and opened after each change.
 * Each member is first cancelled, which leaves it open. */
static void what_is_next_follows_from_the_store_alone(void **state) {
    (void)state;
    struct store *store = opened();
    int64_t sweep = begun_sweep(store);
    for (uint32_t i = 0, member; i < 9; i++) {
        char uuid[8];
        snprintf(uuid, sizeof uuid, "%u", i);
        assert_int_equal(next(store, sweep, &folded, &member), SWEEP_TRAIN);
        assert_int_equal(member, i);
        int64_t run = begun_member(store, sweep, member, uuid);
        end_member(store, run, REASON_CANCELLED, 1);
        store_close(store);
        store = opened();
        assert_int_equal(next(store, sweep, &folded, &member), SWEEP_TRAIN);
        assert_int_equal(member, i);
        end_member(store, run, REASON_STEP_LIMIT, 1.0 / (1 + i % 3));
        store_close(store);
        store = opened();
    }
    uint32_t member;
    assert_int_equal(next(store, sweep, &folded, &member), SWEEP_CHOOSE);
    store_close(store);
}

static void the_table_has_a_row_for_each_value_and_the_result_is_the_winners(void **state) {
    (void)state;
    struct store *store = opened();
    int64_t sweep = begun_sweep(store);
    for (uint32_t i = 0; i < 9; i++) {
        char uuid[8];
        snprintf(uuid, sizeof uuid, "%u", i);
        end_member(store, begun_member(store, sweep, i, uuid), REASON_GRADIENT_TOLERANCE,
                   i % 3 == 1 ? 0.25 + i : 8 + i);
    }
    struct sweep_runs runs;
    assert_int_equal(sweep_runs_read(store, sweep, &folded, NULL, &runs), 0);
    json_t *result = sweep_result(sweep, &folded, &runs);
    const json_t *table = json_object_get(result, "path");
    assert_int_equal(member_count(result, "run"), 2);
    assert_int_equal(json_array_size(table), 3);
    assert_int_equal(member_count(json_object_get(result, "sweep"), "evaluations"), 45);
    const json_t *row = json_array_get(table, 1), *folds = json_object_get(row, "folds");
    assert_true(json_is_true(json_object_get(row, "chosen")));
    assert_true(member_number(row, "l2") == 0.5);
    assert_true(member_number(row, "holdout_loss") == 1.25);
    assert_true(member_number(folds, "mean") == (4.25 + 7.25) / 2);
    assert_true(json_real_value(json_array_get(json_object_get(folds, "losses"), 1)) == 7.25);
    json_decref(result);
    sweep_runs_release(&runs);
    store_close(store);
}

static void a_sweep_none_of_whose_members_began_is_not_gone_on_with(void **state) {
    (void)state;
    struct store *store = opened();
    struct sweep_record record = {0};
    struct sweep_runs runs;
    int64_t sweep = begun_sweep(store);
    assert_int_equal(sweep_record_read(store, "other", &record), 0);
    assert_int_equal(record.sweep, 0);
    assert_int_equal(sweep_record_read(store, "abc", &record), 0);
    assert_int_equal(record.sweep, sweep);
    assert_int_equal(sweep_runs_read(store, sweep, &plain, NULL, &runs), 0);
    assert_false(sweep_is_open(&record, &plain, &runs));
    sweep_runs_release(&runs);
    begun_member(store, sweep, 0, "a");
    assert_int_equal(sweep_runs_read(store, sweep, &plain, NULL, &runs), 0);
    assert_true(sweep_is_open(&record, &plain, &runs));
    sweep_runs_release(&runs);
    sweep_record_release(&record);
    store_close(store);
}

static void a_sweep_whose_model_was_removed_is_not_gone_on_with(void **state) {
    (void)state;
    struct store *store = opened();
    struct sweep_record record = {0};
    struct sweep_runs runs;
    int64_t sweep = begun_sweep(store), run = begun_member(store, sweep, 0, "a");
    end_member(store, run, REASON_GRADIENT_TOLERANCE, 1);
    store_model(store, run, "models/1", "abc");
    store_model_removed(store, run);
    assert_int_equal(sweep_record_read(store, "abc", &record), 0);
    assert_int_equal(sweep_runs_read(store, sweep, &plain, NULL, &runs), 0);
    assert_false(sweep_is_open(&record, &plain, &runs));
    sweep_runs_release(&runs);
    sweep_record_release(&record);
    store_close(store);
}

static int take_none(void *context, const struct store_sweep *sweep) {
    (void)context;
    (void)sweep;
    return 0;
}

static void a_damaged_record_is_noticed(void **state) {
    (void)state;
    struct store *store = opened();
    begun_sweep(store);
    assert_int_equal(store_sweep_end(store, 1, 3, "{}"), 0);
    assert_int_equal(store_sweeps(store, take_none, NULL), 0);
    assert_int_equal(
        sqlite3_exec(store->database, "UPDATE sweeps SET judged = 'x'", NULL, NULL, NULL),
        SQLITE_OK);
    assert_int_equal(store_sweeps(store, take_none, NULL), ERROR_IO);
    assert_non_null(strstr(error_text(), "the record of sweep 1"));
    error_clear();
    store_close(store);
}

#define KEPT(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

SUITE(sweep) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path_goes_from_strong_to_weak_each_from_the_one_before),
        cmocka_unit_test(folds_follow_the_full_fits_and_start_from_that_of_their_value),
        cmocka_unit_test(members_that_are_apart_start_from_no_other),
        cmocka_unit_test(a_member_that_failed_ends_the_sweep),
        cmocka_unit_test(a_grid_goes_by_l1_and_each_l1_starts_from_the_one_before),
        cmocka_unit_test(the_best_wins_and_among_equals_the_strongest),
        cmocka_unit_test(one_standard_error_takes_the_strongest_that_is_so_near),
        cmocka_unit_test(without_a_finite_mean_nothing_is_chosen),
        cmocka_unit_test(deviations_are_those_of_a_sample),
        KEPT(what_is_next_follows_from_the_store_alone),
        KEPT(the_table_has_a_row_for_each_value_and_the_result_is_the_winners),
        KEPT(a_sweep_none_of_whose_members_began_is_not_gone_on_with),
        KEPT(a_sweep_whose_model_was_removed_is_not_gone_on_with),
        KEPT(a_damaged_record_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
