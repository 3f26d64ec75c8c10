#include "tests/unit/suites.h"
#include "tests/unit/store_fixture.h"

static void save_and_journal(void) {
    struct store *store;
    if (store_open(folder, NULL, &store))
        _exit(1);
    int64_t run = begun(store, "one");
    if (store_attempt(store, run, 1) || store_attempt(store, run, 2) ||
        store_journal(store, run, "old", 3, true) || durable(store, run, 2, 5, 100) ||
        durable(store, run, 2, 6, 200) || durable(store, run, 2, 7, 300) ||
        store_journal(store, run, "state", 5, true) || store_journal(store, run, "", 0, false) ||
        store_journal(store, run, "verdict", 7, false) || store_flush(store) ||
        store_journal(store, run, "unflushed", 9, false))
        _exit(1);
}

static void what_was_saved_is_read_after_a_crash(void **state) {
    (void)state;
    in_a_process_that_dies(save_and_journal);
    struct store *store = opened();
    struct store_saved saved;
    assert_int_equal(store_saved_read(store, 1, &saved), 0);
    assert_int_equal(saved.attempt, 2);
    assert_int_equal(saved.step_count, 2);
    assert_int_equal(saved.steps[0].step, 7);
    assert_int_equal(saved.steps[0].attempt, 2);
    assert_int_equal(saved.steps[0].state.length, 300);
    assert_int_equal(((char *)saved.steps[0].state.data)[299], 'a' + 7);
    assert_int_equal(saved.steps[0].shards, 2);
    assert_int_equal(saved.steps[0].digests[1], 71);
    assert_int_equal(saved.steps[1].step, 6);
    assert_int_equal(saved.journal_count, 3);
    assert_memory_equal(saved.journal[0].data, "state", 5);
    assert_int_equal(saved.journal[1].length, 0);
    assert_memory_equal(saved.journal[2].data, "verdict", 7);
    store_saved_release(&saved);
    /* and a new process goes on with the journal */
    assert_int_equal(store_journal(store, 1, "more", 4, false), 0);
    assert_int_equal(store_saved_read(store, 1, &saved), 0);
    assert_int_equal(saved.journal_count, 4);
    store_saved_release(&saved);
    store_close(store);
}

static void a_run_without_anything_saved_has_nothing(void **state) {
    (void)state;
    struct store *store = opened();
    struct store_saved saved;
    assert_int_equal(store_saved_read(store, begun(store, "one"), &saved), 0);
    assert_int_equal(saved.attempt, 0);
    assert_int_equal(saved.step_count, 0);
    assert_int_equal(saved.journal_count, 0);
    store_saved_release(&saved);
    store_close(store);
}

static void a_durable_step_ends_the_journal_of_its_run_alone(void **state) {
    (void)state;
    struct store *store = opened();
    struct store_saved saved;
    int64_t one = begun(store, "one"), two = begun(store, "two");
    store_attempt(store, one, 1);
    store_journal(store, one, "1", 1, true);
    store_journal(store, two, "2", 1, true);
    assert_int_equal(durable(store, one, 1, 1, 10), 0);
    assert_int_equal(store_saved_read(store, one, &saved), 0);
    assert_int_equal(saved.journal_count, 0);
    store_saved_release(&saved);
    assert_int_equal(store_saved_read(store, two, &saved), 0);
    assert_int_equal(saved.journal_count, 1);
    store_saved_release(&saved);
    store_close(store);
}

static int count_step(void *context, const struct store_step *step) {
    (void)step;
    ++*(int *)context;
    return 0;
}

static int count_epoch(void *context, const struct store_epoch *epoch) {
    (void)epoch;
    ++*(int *)context;
    return 0;
}

static void rolling_back_deletes_later_epochs_and_steps(void **state) {
    (void)state;
    struct store *store = opened();
    int64_t run = begun(store, "one");
    store_attempt(store, run, 1);
    for (uint64_t i = 0; i < 6; i++) {
        struct store_step step = {.step = i, .note = ""};
        assert_int_equal(store_step(store, run, &step), 0);
    }
    durable(store, run, 1, 3, 10);
    durable(store, run, 1, 5, 10);
    for (uint64_t i = 1; i <= 4; i++) {
        struct store_epoch epoch = {.epoch = i};
        assert_int_equal(store_downpour_epoch(store, run, &epoch), 0);
    }
    assert_int_equal(store_roll_back(store, run, 2, 3, 4), 0);
    assert_int_equal(store_flush(store), 0);
    int steps = 0, epochs = 0;
    assert_int_equal(store_downpour_epochs(store, run, 1, count_epoch, &epochs), 0);
    assert_int_equal(epochs, 2);
    struct store_saved saved;
    assert_int_equal(store_steps(store, run, 0, count_step, &steps), 0);
    assert_int_equal(steps, 4);
    assert_int_equal(store_saved_read(store, run, &saved), 0);
    assert_int_equal(saved.step_count, 1);
    assert_int_equal(saved.steps[0].step, 3);
    store_saved_release(&saved);
    store_close(store);
}

static bool is_limit(const char *reason) {
    return !strcmp(reason, "step limit");
}

/* In place of what *run had been. */
static bool unfinished(struct store *store, struct store_run *run) {
    bool found;
    store_run_release(run);
    assert_int_equal(store_run_unfinished(store, "abc", "fingerprint", is_limit, run, &found), 0);
    assert_true(found == (run->run != 0));
    return found;
}

static void a_run_goes_on_if_it_was_stopped_where_it_can(void **state) {
    (void)state;
    struct store *store = opened();
    struct store_run run = {0}, other;
    bool found;
    assert_false(unfinished(store, &run));
    int64_t number = begun(store, "one");
    assert_true(unfinished(store, &run));
    assert_int_equal(run.run, number);
    store_run_unfinished(store, "abc", "other data", is_limit, &other, &found);
    assert_false(found);
    store_run_unfinished(store, "other job", "fingerprint", is_limit, &other, &found);
    assert_false(found);
    store_run_end(store, number, "step limit", NULL, 0, 1, 1, 1);
    assert_true(unfinished(store, &run)); /* from its start: no step is durable */
    store_attempt(store, number, 1);
    durable(store, number, 1, 1, 10);
    assert_true(unfinished(store, &run));
    store_run_end(store, number, "gradient tolerance", NULL, 1, 1, 1, 1);
    assert_false(unfinished(store, &run));
    store_run_release(&run);
    store_close(store);
}

static void a_resumed_run_has_no_end_and_its_figures(void **state) {
    (void)state;
    struct store *store = opened();
    struct store_run run;
    bool found;
    int64_t number = begun(store, "one");
    store_run_end(store, number, "cancelled", "{}", 1, 1, 1, 1);
    assert_int_equal(store_run_resume(store, number, "{\"a\":2}"), 0);
    assert_int_equal(store_run_progress(store, number, 12.5), 0);
    assert_int_equal(store_run_restarts(store, number, "coordinator"), 0);
    assert_int_equal(store_run_restarts(store, number, "shard"), 0);
    assert_int_equal(store_run_restarts(store, number, "shard"), 0);
    assert_int_equal(store_run_last(store, &run, &found), 0);
    assert_null(run.reason);
    assert_null(run.result);
    assert_int_equal(run.ended_ms, 0);
    assert_string_equal(run.settings, "{\"a\":2}");
    assert_true(run.seconds == 12.5);
    assert_int_equal(run.restarts, 1);
    assert_int_equal(run.restarts_coordinator, 1);
    assert_int_equal(run.restarts_shard, 2);
    assert_int_equal(run.restarts_replica, 0);
    store_run_release(&run);
    assert_int_equal(store_run_resume(store, 99, "{}"), ERROR_INTERNAL);
    store_close(store);
}

static int count_rows(void *context, const struct store_step *step) {
    (void)step;
    ++*(int *)context;
    return 0;
}

/* As of run `before`, whose uuid is "one"; answers its number. */
static int64_t continued(struct store *store, int64_t before) {
    struct store_saved saved, taken;
    struct store_run from = {0}, run = {.settings = "{\"a\":2}", .build = "other", .started_ms = 7};
    bool found;
    int steps = 0;
    store_run_end(store, before, "step limit", "{}", 2, 3, 1, 1);
    assert_true(unfinished(store, &from) && from.run == before);
    assert_int_equal(store_saved_read(store, before, &saved), 0);
    assert_int_equal(store_run_continue(store, &from, &saved, &run), 0);
    assert_int_equal(store_saved_read(store, run.run, &taken), 0);
    assert_true(taken.step_count == 2 && taken.attempt == saved.attempt);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(taken.steps[i].step, saved.steps[i].step);
        assert_int_equal(taken.steps[i].attempt, saved.steps[i].attempt);
        assert_memory_equal(taken.steps[i].state.data, saved.steps[i].state.data, 10);
        assert_memory_equal(taken.steps[i].digests, saved.steps[i].digests, 16);
    }
    store_saved_release(&saved);
    store_saved_release(&taken);
    assert_int_equal(store_saved_read(store, before, &saved), 0);
    assert_int_equal(saved.step_count, 0);
    store_saved_release(&saved);
    assert_int_equal(store_steps(store, run.run, 0, count_rows, &steps), 0);
    assert_int_equal(steps, 1);
    store_run_release(&from);
    assert_int_equal(store_run_find(store, before, &from, &found), 0);
    assert_string_equal(from.reason, "step limit");
    assert_string_equal(from.result, "{}");
    store_run_release(&from);
    return run.run;
}

static void what_goes_on_from_an_end_is_another_run_with_all_that_was_saved(void **state) {
    (void)state;
    struct store *store = opened();
    struct store_run run = {0};
    int64_t first = begun(store, "one");
    store_attempt(store, first, 1);
    store_attempt(store, first, 2);
    durable(store, first, 1, 1, 10);
    durable(store, first, 2, 2, 10);
    store_step(store, first, &(struct store_step){.step = 2, .note = ""});
    store_run_progress(store, first, 12.5);
    int64_t second = continued(store, first), third = continued(store, second);
    assert_true(unfinished(store, &run) && run.run == third);
    assert_true(third > second && run.continues == second && run.origin == first);
    assert_string_equal(run.uuid, "one");
    assert_string_equal(run.settings, "{\"a\":2}");
    assert_string_equal(run.identity, "abc");
    assert_string_equal(run.build, "other");
    assert_true(run.seconds == 12.5 && run.started_ms == 7 && run.restarts == 0 && !run.reason);
    store_run_release(&run);
    store_close(store);
}

static void a_label_stays_until_there_is_another(void **state) {
    (void)state;
    struct store *store = opened();
    struct store_run run;
    bool found;
    int64_t number = begun(store, "one");
    assert_int_equal(store_run_find(store, number, &run, &found), 0);
    assert_string_equal(run.tag, "");
    store_run_release(&run);
    assert_int_equal(store_run_label(store, number, "spring", "first"), 0);
    assert_int_equal(store_run_label(store, number, NULL, "second"), 0);
    assert_int_equal(store_run_label(store, number, NULL, NULL), 0);
    assert_int_equal(store_run_find(store, number, &run, &found), 0);
    assert_string_equal(run.tag, "spring");
    assert_string_equal(run.note, "second");
    store_run_release(&run);
    assert_int_equal(store_run_label(store, 99, "x", NULL), ERROR_INTERNAL);
    store_close(store);
}

static int take_event(void *context, const struct store_event_row *event) {
    assert_string_equal(event->kind, "loss");
    assert_string_equal(event->text, "second");
    *(int64_t *)context = event->event;
    return 0;
}

static void events_are_read_from_a_number_on(void **state) {
    (void)state;
    struct store *store = opened();
    int64_t run = begun(store, "one"), last = 0;
    store_event(store, run, "loss", "first", NULL);
    store_event(store, run, "loss", "second", NULL);
    assert_int_equal(store_events(store, run, 2, take_event, &last), 0);
    assert_int_equal(last, 2);
    store_close(store);
}

static int take_publication(void *context, const struct store_publication *publication) {
    int *count = context;
    assert_int_equal(publication->publication, ++*count);
    assert_string_equal(publication->kind, *count == 1 ? "published" : "refused");
    assert_int_equal(publication->previous_run, *count - 1);
    assert_string_equal(publication->text, "why");
    assert_true(publication->wall_ms > 0);
    return 0;
}

static int take_model(void *context, const struct store_model_row *model) {
    assert_int_equal(model->run, 1);
    assert_string_equal(model->sha256, "abc");
    assert_string_equal(model->figures, "{}");
    assert_true(model->removed_ms > 0);
    ++*(int *)context;
    return 0;
}

static void where_a_run_started_and_what_was_published_is_kept(void **state) {
    (void)state;
    struct store *store = opened();
    struct store_run run = {.uuid = "u",
                            .job = "j",
                            .identity = "abc",
                            .settings = "{}",
                            .data = "fingerprint",
                            .build = "b",
                            .command = "retrain",
                            .start_model = "0123",
                            .start_run = 5};
    int64_t next = 0;
    int publications = 0, models = 0;
    assert_int_equal(store_run_next(store, &next), 0);
    assert_int_equal(store_run_begin(store, &run), 0);
    assert_int_equal(run.run, next);
    store_model(store, 1, "models/1", "abc");
    store_model_figures(store, 1, "{}");
    store_model_removed(store, 1);
    store_publish(store, &(struct store_publication){.kind = "published", .run = 1, .text = "why"});
    store_publish(store, &(struct store_publication){
                             .kind = "refused", .run = 2, .previous_run = 1, .text = "why"});
    store_close(store);
    store = opened();
    assert_true(unfinished(store, &run));
    assert_string_equal(run.command, "retrain");
    assert_string_equal(run.start_model, "0123");
    assert_int_equal(run.start_run, 5);
    store_run_release(&run);
    assert_int_equal(store_publications(store, take_publication, &publications), 0);
    assert_int_equal(store_models(store, take_model, &models), 0);
    assert_int_equal(publications, 2);
    assert_int_equal(models, 1);
    store_close(store);
}

SUITE(store_saved) {
    const struct CMUnitTest tests[] = {
        TEST(what_was_saved_is_read_after_a_crash),
        TEST(a_run_without_anything_saved_has_nothing),
        TEST(a_durable_step_ends_the_journal_of_its_run_alone),
        TEST(rolling_back_deletes_later_epochs_and_steps),
        TEST(a_run_goes_on_if_it_was_stopped_where_it_can),
        TEST(a_resumed_run_has_no_end_and_its_figures),
        TEST(what_goes_on_from_an_end_is_another_run_with_all_that_was_saved),
        TEST(a_label_stays_until_there_is_another),
        TEST(events_are_read_from_a_number_on),
        TEST(where_a_run_started_and_what_was_published_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
