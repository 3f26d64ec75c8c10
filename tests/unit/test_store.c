/* The store's rows: what goes in comes out, and what is broken is named. */
#include <math.h>
#include <sys/stat.h>

#include "tests/unit/suites.h"
#include "base/memory.h"
#include "tests/unit/store_fixture.h"

static struct store_step step_numbered(uint64_t number) {
    return (struct store_step){.step = number,
                               .loss = 1.0 / (1.0 + (double)number),
                               .gradient_max = 0.5,
                               .step_length = 1,
                               .trials = 1,
                               .history = 3,
                               .holdout_accuracy = 0.875,
                               .note = "reset",
                               .wall_ms = 2000};
}

static int count_step(void *context, const struct store_step *step) {
    uint64_t *next = context;
    assert_int_equal(step->step, *next);
    assert_string_equal(step->note, "reset");
    assert_true(step->loss == 1.0 / (1.0 + (double)step->step));
    assert_true(step->holdout_accuracy == 0.875);
    ++*next;
    return 0;
}

static int take_epoch(void *context, const struct store_epoch *epoch) {
    *(struct store_epoch *)context = *epoch;
    return 0;
}

static void an_epoch_that_is_redone_replaces_its_row(void **state) {
    (void)state;
    struct store *store = opened();
    int64_t run = begun(store, "one");
    struct store_epoch epoch = {.epoch = 1,
                                .minibatches = 9,
                                .rows = 1100,
                                .loss = 0.5,
                                .holdout_loss = NAN,
                                .holdout_accuracy = NAN,
                                .wall_ms = 4};
    struct store_epoch redone = epoch, found = {0};
    redone.holdout_loss = 0.625;
    redone.seconds = 1.5;
    assert_int_equal(store_downpour_epoch(store, run, &epoch), 0);
    assert_int_equal(store_downpour_epochs(store, run, 1, take_epoch, &found), 0);
    assert_true(isnan(found.holdout_loss) && isnan(found.holdout_accuracy));
    assert_int_equal(store_downpour_epoch(store, run, &redone), 0);
    assert_int_equal(store_downpour_epochs(store, run, 1, take_epoch, &found), 0);
    assert_true(found.loss == 0.5 && found.holdout_loss == 0.625 && found.seconds == 1.5);
    assert_int_equal(found.epoch, 1);
    assert_int_equal(found.minibatches, 9);
    assert_int_equal(found.rows, 1100);
    assert_int_equal(found.wall_ms, 4);
    found.epoch = 0;
    assert_int_equal(store_downpour_epochs(store, run, 2, take_epoch, &found), 0);
    assert_int_equal(found.epoch, 0);
    store_close(store);
}

static int take_number(void *context, const struct store_step *step) {
    ((uint64_t *)context)[step->step] = step->evaluation;
    return 0;
}

static void put_evaluation(struct store *store, int64_t run, uint64_t number, uint64_t step,
                           const char *outcome) {
    const struct store_evaluation evaluation = {
        .evaluation = number, .attempt = 1, .step = step, .outcome = outcome};
    assert_int_equal(store_evaluation(store, run, &evaluation), 0);
}

static void a_step_has_the_number_of_its_accepted_evaluation(void **state) {
    (void)state;
    struct store *store = opened();
    int64_t other = begun(store, "one"), run = begun(store, "two");
    uint64_t numbers[3] = {9, 9, 9};
    for (uint64_t i = 0; i < 3; i++) {
        struct store_step step = step_numbered(i);
        assert_int_equal(store_step(store, run, &step), 0);
    }
    put_evaluation(store, other, 7, 1, "accepted");
    put_evaluation(store, run, 1, 0, "accepted");
    put_evaluation(store, run, 2, 0, "curvature");
    put_evaluation(store, run, 3, 1, "rejected");
    put_evaluation(store, run, 4, 1, "accepted");
    assert_int_equal(store_steps(store, run, 0, take_number, numbers), 0);
    assert_true(numbers[0] == 1 && numbers[1] == 4 && numbers[2] == 0);
    store_close(store);
}

static void terms_rise_across_openings(void **state) {
    (void)state;
    for (uint64_t expected = 1; expected <= 3; expected++) {
        struct store *store = opened();
        uint64_t term = 0;
        assert_int_equal(store_term_next(store, &term), 0);
        assert_int_equal(term, expected);
        assert_int_equal(store_close(store), 0);
    }
}

static void take_a_term_and_begin_a_run(void) {
    struct store *store;
    uint64_t term;
    struct store_step step = step_numbered(0);
    if (store_open(folder, NULL, &store) || store_term_next(store, &term))
        _exit(1);
    int64_t run = begun(store, "one");
    if (store_step(store, run, &step) || store_flush(store))
        _exit(1);
    step = step_numbered(1);
    if (store_step(store, run, &step))
        _exit(1);
}

static void a_copy_in_memory_stays_as_it_was(void **state) {
    (void)state;
    struct store *store = opened(), *copy;
    int64_t run = begun(store, "one");
    struct store_step step = step_numbered(0);
    uint64_t next = 0;
    assert_int_equal(store_step(store, run, &step), 0);
    assert_int_equal(store_flush(store), 0);
    assert_int_equal(store_copy(store, &copy), 0);
    step = step_numbered(1);
    assert_int_equal(store_step(store, run, &step), 0);
    assert_int_equal(store_close(store), 0);
    assert_int_equal(store_steps(copy, run, 0, count_step, &next), 0);
    assert_int_equal(next, 1);
    assert_int_equal(store_close(copy), 0);
}

static void a_crash_loses_only_what_was_not_flushed(void **state) {
    (void)state;
    in_a_process_that_dies(take_a_term_and_begin_a_run);
    struct store *store = opened();
    uint64_t term = 0, next = 0;
    assert_int_equal(store_term_next(store, &term), 0);
    assert_int_equal(term, 2);
    assert_int_equal(store_steps(store, 1, 0, count_step, &next), 0);
    assert_int_equal(next, 1);
    store_close(store);
}

static void a_run_has_its_figures_from_its_steps_until_it_ends(void **state) {
    (void)state;
    struct store *store = opened();
    int64_t number = begun(store, "one");
    struct store_step step = step_numbered(0);
    assert_int_equal(store_step(store, number, &step), 0);
    step = step_numbered(1);
    assert_int_equal(store_step(store, number, &step), 0);
    struct store_evaluation evaluation = {
        .evaluation = 1, .attempt = 1, .loss = NAN, .outcome = "not finite"};
    assert_int_equal(store_evaluation(store, number, &evaluation), 0);

    struct store_run run;
    bool found;
    assert_int_equal(store_run_last(store, &run, &found), 0);
    assert_true(found);
    assert_int_equal(run.steps, 1);
    assert_int_equal(run.evaluations, 1);
    assert_true(run.loss == 0.5);
    assert_int_equal(run.ended_ms, 0);
    assert_null(run.reason);
    store_run_release(&run);

    assert_int_equal(
        store_run_end(store, number, "gradient tolerance", "{\"a\":1}", 7, 9, 0.25, 1e-6), 0);
    assert_int_equal(store_run_last(store, &run, &found), 0);
    assert_string_equal(run.uuid, "one");
    assert_string_equal(run.job, "adult");
    assert_string_equal(run.reason, "gradient tolerance");
    assert_string_equal(run.result, "{\"a\":1}");
    assert_int_equal(run.steps, 7);
    assert_int_equal(run.evaluations, 9);
    assert_true(run.loss == 0.25 && run.gradient_max == 1e-6);
    assert_true(run.ended_ms > 0);
    store_run_release(&run);
    store_close(store);
}

/* Others ask for runs while whoever has this one turns the loop. */
static void a_run_that_was_found_stays_what_it_was(void **state) {
    (void)state;
    struct store *store = opened();
    struct store_run run, other;
    bool found;
    int64_t number = begun(store, "one");
    begun(store, "two");
    assert_int_equal(store_run_find(store, number, &run, &found), 0);
    assert_int_equal(store_run_last(store, &other, &found), 0);
    assert_string_equal(other.uuid, "two");
    store_run_release(&other);
    store_close(store);
    assert_string_equal(run.uuid, "one");
    assert_string_equal(run.job, "adult");
    store_run_release(&run);
    assert_null(run.uuid);
}

static void a_run_that_ends_without_a_finite_loss_is_read_as_not_a_number(void **state) {
    (void)state;
    struct store *store = opened();
    struct store_run run;
    bool found;
    store_run_end(store, begun(store, "one"), "stalled", NULL, 1, 1, NAN, INFINITY);
    assert_int_equal(store_run_last(store, &run, &found), 0);
    assert_true(isnan(run.loss));
    assert_true(isinf(run.gradient_max));
    assert_null(run.result);
    store_run_release(&run);
    store_close(store);
}

static int take_run(void *context, const struct store_run *run) {
    int64_t *last = context;
    assert_int_equal(run->run, *last + 1);
    *last = run->run;
    return run->run == 2 ? 42 : 0;
}

static void runs_are_read_oldest_first_until_the_reader_has_enough(void **state) {
    (void)state;
    struct store *store = opened();
    int64_t last = 0;
    begun(store, "one");
    begun(store, "two");
    begun(store, "three");
    assert_int_equal(store_runs(store, take_run, &last), 42);
    assert_int_equal(last, 2);
    store_close(store);
}

static void an_empty_store_has_no_last_run(void **state) {
    (void)state;
    struct store *store = opened();
    struct store_run run;
    bool found = true;
    assert_int_equal(store_run_last(store, &run, &found), 0);
    assert_false(found);
    store_close(store);
}

static void steps_are_read_from_a_number_on(void **state) {
    (void)state;
    struct store *store = opened();
    int64_t run = begun(store, "one");
    for (uint64_t i = 0; i < 10; i++) {
        struct store_step step = step_numbered(i);
        assert_int_equal(store_step(store, run, &step), 0);
    }
    uint64_t next = 4;
    assert_int_equal(store_steps(store, run, 4, count_step, &next), 0);
    assert_int_equal(next, 10);
    store_close(store);
}

static void a_chunk_cannot_be_counted_twice_in_an_evaluation(void **state) {
    (void)state;
    struct store *store = opened();
    int64_t run = begun(store, "one");
    assert_int_equal(store_portion(store, run, 1, 1, 5, 1, 0, 4), 0);
    assert_int_equal(store_portion(store, run, 1, 2, 5, 1, 0, 4), 0);
    assert_int_equal(store_portion(store, run, 1, 1, 6, 1, 0, 4), ERROR_INTERNAL);
    store_close(store);
}

struct seen_processes {
    int count;
    struct store_process_row rows[4];
};

static int take_process(void *context, const struct store_process_row *process) {
    struct seen_processes *seen = context;
    seen->rows[seen->count++] = *process;
    assert_string_equal(process->host, "here");
    assert_string_equal(process->address, "unix:x");
    assert_string_equal(process->device, "cpu");
    assert_string_equal(process->state, process->pid == 10 ? "ended" : "running");
    return 0;
}

static void put_process(struct store *store, int64_t run, const char *role, uint32_t index,
                        uint64_t incarnation, int pid, const char *address, const char *device,
                        const char *state) {
    const struct store_process_row process = {role,    index,  incarnation, pid, "here",
                                              address, device, state,       0};
    assert_int_equal(store_process(store, run, &process), 0);
}

static void processes_have_their_last_state_and_the_portions_they_counted(void **state) {
    (void)state;
    struct store *store = opened();
    int64_t run = begun(store, "one");
    struct seen_processes seen = {0};
    put_process(store, run, "replica", 0, 5, 10, "unix:x", "", "running");
    put_process(store, run, "replica", 0, 5, 10, "unix:x", "cpu", "running");
    put_process(store, run, "replica", 1, 6, 11, "unix:x", "cpu", "running");
    put_process(store, run, "shard", 0, 7, 12, "unix:x", "cpu", "running");
    put_process(store, run, "replica", 0, 5, 10, "", "", "ended");
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(store_portion(store, run, 1, 1, 6, i, i, 1), 0);
    assert_int_equal(store_processes(store, run, take_process, &seen), 0);
    assert_int_equal(seen.count, 3);
    assert_int_equal(seen.rows[0].portions, 0);
    assert_int_equal(seen.rows[1].portions, 3);
    assert_int_equal(seen.rows[1].index, 1);
    assert_int_equal(seen.rows[1].incarnation, 6);
    assert_int_equal(seen.rows[2].pid, 12);
    store_close(store);
}

static void the_newest_model_of_a_run_is_found_after_a_crash(void **state) {
    (void)state;
    char *model, *sha256;
    struct store *store = opened();
    int64_t run = begun(store, "one");
    assert_int_equal(store_model_of(store, run, &model, NULL), 0);
    assert_string_equal(model, "");
    free(model);
    assert_int_equal(store_model(store, run, "models/1", "aa"), 0);
    assert_int_equal(store_model(store, run, "models/2", "bb"), 0);
    assert_int_equal(store_event(store, run, "model", "written", NULL), 0);
    assert_int_equal(store_model_of(store, run, &model, &sha256), 0);
    store_close(store);
    assert_string_equal(model, "models/2"); /* they are the caller's */
    assert_string_equal(sha256, "bb");
    free(model);
    free(sha256);
}

static void what_is_of_no_run_is_refused(void **state) {
    (void)state;
    struct store *store = opened();
    struct store_step step = step_numbered(0);
    assert_int_equal(store_step(store, 99, &step), ERROR_INTERNAL);
    error_clear();
    assert_int_equal(store_run_end(store, 99, "stalled", NULL, 0, 0, 0, 0), ERROR_INTERNAL);
    store_close(store);
}

static void a_second_opening_is_told_that_the_first_holds_it(void **state) {
    (void)state;
    struct store *first = opened(), *second = NULL;
    assert_int_equal(store_open(folder, NULL, &second), ERROR_AGAIN);
    assert_non_null(strstr(error_text(), "dml.db is in use by another process"));
    store_close(first);
}

static void a_missing_database_is_unavailable_and_not_made(void **state) {
    (void)state;
    struct store *store = NULL;
    assert_int_equal(store_open_existing(folder, NULL, &store), ERROR_UNAVAILABLE);
    assert_non_null(strstr(error_text(), path));
    assert_int_not_equal(access(path, F_OK), 0);
}

/* What a process that was killed left of its making, and the log of one that was moved away. */
static void a_new_database_has_nothing_of_what_lies_beside_it(void **state) {
    (void)state;
    static const char *const left[] = {"dml.db.new", "dml.db.new-journal", "dml.db.new-wal"};
    char *log = memory_format("%s/dml.db-wal", folder), *kept = memory_format("%s.kept", log);
    struct store *store = opened();
    begun(store, "one");
    assert_int_equal(link(log, kept), 0);
    store_close(store);
    assert_int_equal(unlink(path) || rename(kept, log), 0);
    for (int i = 0; i < 3; i++) {
        char *name = memory_format("%s/%s", folder, left[i]);
        FILE *file = fopen(name, "w");
        fputs("a part of something\n", file);
        fclose(file);
        free(name);
    }
    store = opened();
    assert_int_equal(begun(store, "one"), 1);
    store_close(store);
    for (int i = 0; i < 3; i++) {
        char *name = memory_format("%s/%s", folder, left[i]);
        assert_int_not_equal(access(name, F_OK), 0);
        free(name);
    }
    free(log);
    free(kept);
}

static void a_file_that_is_no_database_is_named_with_what_to_do(void **state) {
    (void)state;
    struct store *store = NULL;
    FILE *file = fopen(path, "w");
    for (int i = 0; i < 1000; i++)
        fputs("this is not a database\n", file);
    fclose(file);
    assert_int_equal(store_open(folder, NULL, &store), ERROR_IO);
    assert_non_null(strstr(error_text(), path));
    assert_non_null(strstr(error_text(), "damaged"));
    assert_non_null(strstr(error_text(), "move it away"));
}

static void a_truncated_database_is_named_with_what_to_do(void **state) {
    (void)state;
    struct store *store = opened();
    int64_t run = begun(store, "one");
    for (uint64_t i = 0; i < 2000; i++) {
        struct store_step step = step_numbered(i);
        store_step(store, run, &step);
    }
    assert_int_equal(store_close(store), 0);
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(truncate(path, status.st_size / 2), 0);
    assert_int_equal(store_open(folder, NULL, &store), ERROR_IO);
    assert_non_null(strstr(error_text(), path));
    assert_non_null(strstr(error_text(), "damaged"));
}

static void a_full_disk_is_named_and_what_was_flushed_stays(void **state) {
    (void)state;
    struct store *store = opened();
    int64_t run = begun(store, "one");
    struct store_step step = step_numbered(0);
    assert_int_equal(store_step(store, run, &step), 0);
    assert_int_equal(store_flush(store), 0);
    sqlite3_exec(store->database, "PRAGMA max_page_count = 1", NULL, NULL, NULL);
    int code = 0;
    for (uint64_t i = 1; !code && i < 10000; i++) {
        step = step_numbered(i);
        code = store_step(store, run, &step);
    }
    assert_int_equal(code, ERROR_IO);
    assert_non_null(strstr(error_text(), "disk full"));
    assert_non_null(strstr(error_text(), path));
    store_close(store);

    uint64_t next = 0;
    store = opened();
    assert_int_equal(store_steps(store, run, 0, count_step, &next), 0);
    assert_true(next >= 1);
    store_close(store);
}

static void a_folder_that_is_missing_is_named(void **state) {
    (void)state;
    struct store *store = NULL;
    assert_int_equal(store_open("/tmp/test_store.none/none", NULL, &store), ERROR_CREATE);
    assert_non_null(strstr(error_text(), "/tmp/test_store.none/none/dml.db"));
}

/* Steps of the plan of a statement that read a table, or all of an index, from end to end. */
static int take_scan(void *context, int columns, char **values, char **names) {
    (void)names;
    assert_int_equal(columns, 4);
    *(bool *)context |= strncmp(values[3], "SCAN", 4) == 0;
    return 0;
}

static void only_what_wants_all_rows_reads_a_table_from_end_to_end(void **state) {
    (void)state;
    static const struct {
        const char *name, *sql;
    } statements[] = {
#define X(name, sql) {#name, sql},
        STATEMENT_TABLE(X)
#undef X
    };
    /* Lists; the last run; few reasons of an index; and the journal, which is short: of a run that
     * goes on it would be looked at for rows that refer to it, if such were known. */
    static const char wanted[] =
        " SWEEPS MODELS MODELS_KEPT PUBLICATIONS RUNS RUNS_NEWEST RUN_LAST REASONS "
        "JOURNAL JOURNAL_DELETE JOURNAL_LAST RUN_CONTINUE INVOCATIONS INVOCATIONS_DELETE ";
    struct store *store = opened();
    for (size_t i = 3; i < sizeof statements / sizeof statements[0]; i++) { /* behind ROLLBACK */
        bool scans = false;
        char *plan = memory_format("EXPLAIN QUERY PLAN %s", statements[i].sql);
        char *name = memory_format(" %s ", statements[i].name);
        assert_int_equal(sqlite3_exec(store->database, plan, take_scan, &scans, NULL), SQLITE_OK);
        if (scans && !strstr(wanted, name))
            fail_msg("%s reads a whole table", statements[i].name);
        free(name);
        free(plan);
    }
    store_close(store);
}

static int take_number_of(void *context, const struct store_run *run) {
    *(int64_t *)context = 10 * *(int64_t *)context + run->run;
    return 0;
}

static int64_t begun_as(struct store *store, const char *uuid, const char *start, int64_t sweep) {
    struct store_run run = {.uuid = uuid,
                            .job = "j",
                            .identity = "abc",
                            .settings = "{}",
                            .data = "d",
                            .build = "b",
                            .start_model = start,
                            .sweep = sweep};
    assert_int_equal(store_run_begin(store, &run), 0);
    return run.run;
}

static void a_few_of_many_runs_are_found_by_what_they_are(void **state) {
    (void)state;
    struct store *store = opened();
    struct store_run last;
    bool found;
    int64_t cold = 0, members = 0, run;
    begun_as(store, "a", NULL, 0);
    begun_as(store, "b", NULL, 0);
    begun_as(store, "c", "sha", 0);
    begun_as(store, "d", NULL, 7);
    begun_as(store, "e", NULL, 7);
    assert_int_equal(store_run_last_of(store, "abc", &last, &found), 0);
    assert_true(found && last.run == 3);
    store_run_release(&last);
    assert_int_equal(store_run_last_of(store, "other", &last, &found), 0);
    assert_false(found);
    assert_int_equal(store_runs_cold(store, "abc", take_number_of, &cold), 0);
    assert_int_equal(cold, 21);
    assert_int_equal(store_runs_of_sweep(store, 7, take_number_of, &members), 0);
    assert_int_equal(members, 45);
    assert_int_equal(store_runs_of_sweep(store, 0, take_number_of, &members), 0);
    assert_int_equal(members, 45);
    assert_int_equal(store_run_label(store, 2, "best", NULL), 0);
    assert_int_equal(store_run_tagged(store, "best", &run), 0);
    assert_int_equal(run, 2);
    assert_int_equal(store_run_tagged(store, "", &run), 0);
    assert_int_equal(run, 0);
    store_close(store);
}

SUITE(store) {
    const struct CMUnitTest tests[] = {
        TEST(terms_rise_across_openings),
        TEST(a_copy_in_memory_stays_as_it_was),
        TEST(a_crash_loses_only_what_was_not_flushed),
        TEST(a_run_has_its_figures_from_its_steps_until_it_ends),
        TEST(a_run_that_was_found_stays_what_it_was),
        TEST(a_run_that_ends_without_a_finite_loss_is_read_as_not_a_number),
        TEST(runs_are_read_oldest_first_until_the_reader_has_enough),
        TEST(an_empty_store_has_no_last_run),
        TEST(an_epoch_that_is_redone_replaces_its_row),
        TEST(a_step_has_the_number_of_its_accepted_evaluation),
        TEST(steps_are_read_from_a_number_on),
        TEST(a_chunk_cannot_be_counted_twice_in_an_evaluation),
        TEST(processes_have_their_last_state_and_the_portions_they_counted),
        TEST(the_newest_model_of_a_run_is_found_after_a_crash),
        TEST(what_is_of_no_run_is_refused),
        TEST(a_second_opening_is_told_that_the_first_holds_it),
        TEST(a_missing_database_is_unavailable_and_not_made),
        TEST(a_new_database_has_nothing_of_what_lies_beside_it),
        TEST(a_file_that_is_no_database_is_named_with_what_to_do),
        TEST(a_truncated_database_is_named_with_what_to_do),
        TEST(a_full_disk_is_named_and_what_was_flushed_stays),
        TEST(a_folder_that_is_missing_is_named),
        TEST(only_what_wants_all_rows_reads_a_table_from_end_to_end),
        TEST(a_few_of_many_runs_are_found_by_what_they_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
