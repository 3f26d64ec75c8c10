/* What the status server answers, of a coordinator on the bench and a store. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/suites.h"
#include "base/clock.h"
#include "base/error.h"
#include "coordinator/status/eta.h"
#include "coordinator/status/figures.h"
#include "coordinator/status/http_limits.h"
#include "coordinator/status/api.h"
#include "coordinator/status/live.h"
#include "coordinator/status/metrics.h"
#include "tests/unit/coordinator_bench.h"

static char folder[64];
static char job_path[96];
static struct fixture *bench;
static struct job *job;
static struct store *store;
static struct http_counts counts;
static struct counters counters;
static struct api api;

static int set_up(void **state) {
    snprintf(folder, sizeof folder, "/tmp/test_api.XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(job_path, sizeof job_path, "%s/job.conf", folder);
    FILE *file = fopen(job_path, "w");
    fputs("data = a\n", file);
    fclose(file);
    assert_int_equal(job_read(job_path, NULL, 0, NULL, &job), 0);
    assert_int_equal(store_open(folder, NULL, &store), 0);
    struct store_run run = {.uuid = "u",
                            .job = "job",
                            .identity = "i",
                            .settings = "{}",
                            .data = "d",
                            .build = "b",
                            .started_ms = 1000};
    assert_int_equal(store_run_begin(store, &run), 0);
    bench_set_up(state);
    bench = *state;
    counts = (struct http_counts){.requests = 3};
    counters = (struct counters){0};
    api = (struct api){.live = {.coordinator = bench->coordinator,
                                .job = job,
                                .run = run.run,
                                .started_ms = 1000,
                                .seconds = 2,
                                .seconds_left = NAN,
                                .counters = &counters,
                                .http = "http://here:1/"},
                       .store = store,
                       .counts = &counts};
    return 0;
}

static int tear_down(void **state) {
    static const char *const names[] = {"job.conf", "dml.db", "dml.db-wal"};
    bench_tear_down(state);
    job_free(job);
    store_close(store);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[96];
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    return rmdir(folder);
}

static struct http_answer answer_to(const char *path, const char *query) {
    struct request request = {.path = path, .query = query};
    struct http_answer answer = {0};
    api_answer(&api, &request, &answer);
    return answer;
}

static int status_of(const char *path, const char *query) {
    struct http_answer answer = answer_to(path, query);
    free(answer.owned);
    return answer.status;
}

static json_t *json_of(const char *path, const char *query) {
    struct http_answer answer = answer_to(path, query);
    assert_int_equal(answer.status, 200);
    json_t *value = json_loadb(answer.body, answer.length, 0, NULL);
    assert_non_null(value);
    free(answer.owned);
    return value;
}

static json_int_t number(const json_t *object, const char *name) {
    assert_true(json_is_integer(json_object_get(object, name)));
    return json_integer_value(json_object_get(object, name));
}

static void add_steps(uint64_t first, uint64_t count) {
    for (uint64_t i = first; i < first + count; i++) {
        struct store_step step = {.step = i,
                                  .loss = i % 2 ? 0.5 : NAN,
                                  .gradient_max = 0.25,
                                  .step_length = 1,
                                  .trials = 2,
                                  .history = 3,
                                  .note = "note",
                                  .wall_ms = 3500};
        assert_int_equal(store_step(store, api.live.run, &step), 0);
    }
}

/* Its steps begin with those of the other one. */
static void steps_of_what_goes_on_from_an_end_count_from_the_beginning(void **state) {
    (void)state;
    const uint64_t digest = 1;
    struct store_run from, run = {.settings = "{}", .build = "b", .started_ms = 9000};
    struct store_saved saved;
    bool found;
    add_steps(0, 2);
    assert_int_equal(store_attempt(store, 1, 1), 0);
    assert_int_equal(store_durable_step(store, 1, 1, 1, "state", 5, &digest, 1), 0);
    assert_int_equal(store_run_end(store, 1, "step limit", "{}", 1, 2, 0.5, 0.25), 0);
    assert_int_equal(store_run_find(store, 1, &from, &found), 0);
    assert_int_equal(store_saved_read(store, 1, &saved), 0);
    assert_int_equal(store_run_continue(store, &from, &saved, &run), 0);
    store_saved_release(&saved);
    store_run_release(&from);
    for (int live = 0; live < 2; live++) {
        api.live.run = live ? run.run : 1;
        api.live.started_ms = live ? 9000 : 1000;
        json_t *answer = json_of("/api/v1/steps", "since=0&run=2");
        json_t *steps = json_object_get(answer, "steps");
        assert_int_equal(json_array_size(steps), 2);
        const json_t *seconds = json_object_get(json_array_get(steps, 0), "seconds");
        assert_true(json_real_value(seconds) == 2.5);
        json_decref(answer);
    }
}

static void steps_are_given_from_a_number_on(void **state) {
    (void)state;
    add_steps(0, 5);
    json_t *answer = json_of("/api/v1/steps", "since=3");
    json_t *steps = json_object_get(answer, "steps");
    assert_int_equal(json_array_size(steps), 2);
    assert_int_equal(number(answer, "run"), 1);
    assert_int_equal(number(answer, "next"), 5);
    assert_true(json_is_false(json_object_get(answer, "more")));
    const json_t *step = json_array_get(steps, 0);
    assert_int_equal(number(step, "step"), 3);
    assert_true(json_real_value(json_object_get(step, "loss")) == 0.5);
    assert_true(json_real_value(json_object_get(step, "seconds")) == 2.5);
    assert_true(json_is_null(json_object_get(json_array_get(steps, 1), "loss")));
    json_decref(answer);
    answer = json_of("/api/v1/steps", "since=5");
    assert_int_equal(json_array_size(json_object_get(answer, "steps")), 0);
    assert_int_equal(number(answer, "next"), 5);
    json_decref(answer);
}

static void many_steps_are_given_in_parts(void **state) {
    (void)state;
    add_steps(0, 4500);
    int64_t next = 0;
    size_t sizes[] = {2000, 2000, 500};
    for (size_t i = 0; i < 3; i++) {
        char query[40];
        snprintf(query, sizeof query, "run=1&since=%lld", (long long)next);
        json_t *answer = json_of("/api/v1/steps", query);
        assert_int_equal(json_array_size(json_object_get(answer, "steps")), sizes[i]);
        assert_int_equal(json_is_true(json_object_get(answer, "more")), i < 2);
        next = number(answer, "next");
        json_decref(answer);
    }
    assert_int_equal(next, 4500);
}

static void events_are_given_from_a_number_on(void **state) {
    (void)state;
    for (int i = 0; i < 502; i++)
        assert_int_equal(store_event(store, api.live.run, "lost", "replica 1 was lost", NULL), 0);
    json_t *answer = json_of("/api/v1/events", "");
    assert_int_equal(json_array_size(json_object_get(answer, "events")), 500);
    assert_true(json_is_true(json_object_get(answer, "more")));
    assert_int_equal(number(answer, "next"), 501);
    const json_t *event = json_array_get(json_object_get(answer, "events"), 0);
    assert_string_equal(json_string_value(json_object_get(event, "kind")), "lost");
    json_decref(answer);
    answer = json_of("/api/v1/events", "since=501");
    assert_int_equal(json_array_size(json_object_get(answer, "events")), 2);
    json_decref(answer);
}

static void what_is_not_there_or_not_understood_has_its_status(void **state) {
    (void)state;
    assert_int_equal(status_of("/nothing", ""), 404);
    assert_int_equal(status_of("/api/v1/steps", "run=7"), 404);
    assert_int_equal(status_of("/api/v1/steps", "since=x"), 400);
    assert_int_equal(status_of("/api/v1/events", "sinc=1"), 400);
    assert_int_equal(status_of("/", ""), 200);
}

static void a_store_that_cannot_answer_gives_503_and_no_error_stays(void **state) {
    (void)state;
    api.store = NULL;
    assert_int_equal(status_of("/api/v1/steps", ""), 503);
    assert_int_equal(status_of("/api/v1/runs", ""), 503);
    assert_int_equal(status_of("/api/v1/status", ""), 200);
    assert_int_equal(status_of("/readyz", ""), 503);
    assert_string_equal(error_text(), "");
}

static void runs_say_which_goes_on(void **state) {
    (void)state;
    json_t *answer = json_of("/api/v1/runs", "");
    const json_t *run = json_array_get(json_object_get(answer, "runs"), 0);
    assert_string_equal(json_string_value(json_object_get(run, "state")), "running");
    assert_true(json_real_value(json_object_get(run, "seconds")) == 2);
    json_decref(answer);
}

static void it_is_ready_when_all_shards_are_set_up(void **state) {
    (void)state;
    assert_int_equal(status_of("/readyz", ""), 503);
    bench_welcome_all(bench);
    struct http_answer answer = answer_to("/readyz", "");
    assert_int_equal(answer.status, 503);
    assert_non_null(strstr(answer.body, "shard 0 is not set up"));
    free(answer.owned);
    bench_ready_all(bench);
    assert_int_equal(status_of("/readyz", ""), 200);
    struct message failed = {.type = MESSAGE_FAILED};
    failed.failed = (struct message_failed){.status = 65, .reason = "damaged"};
    bench_feed(bench, SHARD_0, failed);
    error_clear();
    assert_int_equal(status_of("/readyz", ""), 503);
}

static void it_lives_while_it_ticks(void **state) {
    (void)state;
    coordinator_tick(bench->coordinator, clock_monotonic_ns(), &bench->out);
    assert_int_equal(status_of("/livez", ""), 200);
    coordinator_tick(bench->coordinator, clock_monotonic_ns() - 11 * NS_PER_S, &bench->out);
    assert_int_equal(status_of("/livez", ""), 503);
}

/* ---- status ---- */

static char *map_text(void) {
    json_t *map = chunks_json(bench->coordinator);
    char *text = json_dumps(map, JSON_COMPACT);
    json_decref(map);
    return text;
}

static void expect_map(const char *expected) {
    char *text = map_text();
    assert_string_equal(text, expected);
    free(text);
}

static void the_map_tells_who_has_and_who_counted_each_chunk(void **state) {
    (void)state;
    expect_map("[[8,0,-1]]");
    bench_start(bench); /* each has two chunks of its half */
    expect_map("[[2,1,0],[2,0,-1],[2,1,1],[2,0,-1]]");
    bench_flush(bench, REPLICA_1, 0, 4, 2);
    expect_map("[[2,1,0],[2,0,-1],[2,3,1],[2,0,-1]]");
    bench_back_up(bench, REPLICA_0);
    expect_map("[[2,2,0],[2,0,-1],[2,3,1],[2,0,-1]]");
    bench_flush(bench, REPLICA_1, 1, 0, 2); /* the copy was faster */
    expect_map("[[2,3,1],[2,0,-1],[2,3,1],[2,0,-1]]");
}

static const char *const status_members[] = {
    "job",
    "run",
    "pid",
    "state",
    "reason",
    "step",
    "loss",
    "gradient_max",
    "evaluation",
    "evaluations",
    "attempt",
    "started_ms",
    "time_ms",
    "seconds",
    "seconds_left",
    "processes",
    "objective",
    "network",
    "examples",
    "weights",
    "offsets",
    "features",
    "parameters",
    "history",
    "directions",
    "strips",
    "safeguards",
    "settings",
    "backup_copies",
    "gradient_tolerance",
    "http",
    "version",
    "holdout_loss",
    "holdout_accuracy",
    "loss_tolerance",
    "converged",
    "shortfall",
    "preconditioner",
    "l1",
    "l2",
    "nonzero",
    "gap_bound",
    "gap_estimate",
    "tensors",
    "holdout",
    "test",
    "model",
    "model_sha256",
    "waiting",
    "hosts",
    "downpour",
    "sweep",
    "chosen",
    "not_default",
};

static void the_status_has_every_member(void **state) {
    (void)state;
    bench_finish_first(bench, 4, 1);
    json_t *status = json_of("/api/v1/status", "");
    for (size_t i = 0; i < sizeof status_members / sizeof status_members[0]; i++)
        if (!json_object_get(status, status_members[i]))
            fail_msg("no %s", status_members[i]);
    assert_int_equal(json_object_size(status), sizeof status_members / sizeof status_members[0]);
    assert_true(json_is_null(json_object_get(status, "seconds_left")));
    assert_string_equal(json_string_value(json_object_get(status, "state")), "running");
    assert_true(json_real_value(json_object_get(status, "gradient_max")) == 1);
    const json_t *replica = json_array_get(json_object_get(status, "processes"), REPLICA_0);
    assert_int_equal(number(replica, "chunks"), CHUNKS);
    assert_int_equal(number(replica, "pid"), 100 + REPLICA_0);
    assert_string_equal(json_string_value(json_object_get(replica, "device")), "cpu");
    assert_non_null(json_object_get(json_object_get(status, "settings"), "l2"));
    json_decref(status);
}

static void the_status_says_how_the_training_ended(void **state) {
    (void)state;
    static const char *const members[] = {"reason", "converged", "shortfall"};
    json_t *result = json_pack("{s:s, s:b, s:[s]}", "reason", "step limit", "converged", 0,
                               "shortfall", "raise max_steps");
    for (int ended = 0; ended < 2; ended++) {
        api.live.result = ended ? result : NULL;
        json_t *status = json_of("/api/v1/status", "");
        for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
            const json_t *value = json_object_get(status, members[i]);
            assert_true(ended ? json_equal(value, json_object_get(result, members[i]))
                              : json_is_null(value));
        }
        json_decref(status);
    }
    json_decref(result);
}

/* ---- metrics ---- */

static char *metrics(void) {
    size_t length;
    char *text = metrics_text(&api.live, &counts, &length);
    assert_int_equal(strlen(text), length);
    return text;
}

static void expect_line(const char *text, const char *line) {
    const char *found = strstr(text, line);
    while (found && (found[-1] != '\n' || found[strlen(line)] != '\n'))
        found = strstr(found + 1, line);
    if (!found)
        fail_msg("no line %s in\n%s", line, text);
}

static void metrics_are_those_of_the_coordinator(void **state) {
    (void)state;
    bench_finish_first(bench, 4, 1);
    counts.dropped.counts[HTTP_SLOW] = 2;
    api.live.durable_ms = 5500;
    for (int i = 0; i < 9; i++) {
        struct message old = {.type = MESSAGE_PONG, .term = TERM - 1};
        coordinator_step(bench->coordinator, SHARD_0, &old, 0, &bench->out);
    }
    char *text = metrics();
    expect_line(text, "dml_gradient_max 1");
    expect_line(text, "dml_run_number 1");
    expect_line(text, "dml_run_remaining_seconds NaN");
    expect_line(text, "dml_run_state{state=\"running\"} 1");
    expect_line(text, "dml_run_state{state=\"setting up\"} 0");
    expect_line(text, "dml_process_up{role=\"shard\",index=\"1\"} 1");
    expect_line(text, "dml_process_device{role=\"shard\",index=\"1\",device=\"cpu\"} 1");
    expect_line(text, "dml_process_chunks_total{role=\"replica\",index=\"0\"} 8");
    expect_line(text, "dml_http_refused_total{reason=\"slow\"} 2");
    expect_line(text, "dml_http_requests_total 3");
    expect_line(text, "dml_stale_messages_total 9");
    expect_line(text, "dml_checkpoint_timestamp_seconds 5.5");
    free(text);
}

static void a_metric_that_is_not_known_is_left_out(void **state) {
    (void)state;
    char *text = metrics();
    assert_null(strstr(text, "dml_loss"));
    assert_null(strstr(text, "dml_checkpoint_timestamp_seconds"));
    free(text);
}

static void counters_do_not_fall_when_the_run_goes_back(void **state) {
    (void)state;
    struct coordinator_view view = {.evaluations = 100}; /* of processes before this one */
    counters_note(&counters, &view);
    view.evaluations = 105;
    view.safeguards[SAFEGUARD_PAIR_SKIPPED] = 1;
    counters_note(&counters, &view);
    view.evaluations = 102;
    view.safeguards[SAFEGUARD_PAIR_SKIPPED] = 0;
    counters_note(&counters, &view);
    view.evaluations = 103;
    counters_note(&counters, &view);
    char *text = metrics();
    expect_line(text, "dml_evaluations_total 6");
    expect_line(text, "dml_safeguards_total{safeguard=\"pair skipped: too little curvature\"} 1");
    free(text);
}

static void labels_are_quoted(void **state) {
    (void)state;
    free(job->name);
    job->name = strdup("a\"b\\c\nd");
    char *text = metrics();
    expect_line(text, "dml_run_info{job=\"a\\\"b\\\\c\\nd\",objective=\"logistic\"} 1");
    free(text);
}

/* ---- answers given again ---- */

static void an_answer_is_good_for_as_long_as_its_making_was_worth(void **state) {
    (void)state;
    struct response_cache cache = {0};
    struct request request = {.path = "/a", .query = ""}, other = {.path = "/a", .query = "b=1"};
    struct http_answer answer = {.status = 200, .body = strdup("x"), .length = 1};
    answer.owned = (void *)answer.body;
    assert_null(response_cache_find(&cache, &request, 0));
    response_cache_put(&cache, &request, &answer, 0, 4 * NS_PER_MS);
    assert_null(response_cache_find(&cache, &other, 5 * NS_PER_MS));
    const struct cached_response *found = response_cache_find(&cache, &request, 203 * NS_PER_MS);
    assert_non_null(found);
    assert_ptr_equal(found->answer.body, answer.body);
    assert_null(response_cache_find(&cache, &request, 204 * NS_PER_MS));
    struct http_answer quick = {.status = 200, .body = "y", .length = 1};
    response_cache_put(&cache, &request, &quick, 0, 0);
    assert_non_null(response_cache_find(&cache, &request, 100 * NS_PER_MS - 1));
    assert_null(response_cache_find(&cache, &request, 100 * NS_PER_MS));
    response_cache_put(&cache, &request, &quick, 0, NS_PER_S);
    assert_non_null(response_cache_find(&cache, &request, 2 * NS_PER_S - 1));
    assert_null(response_cache_find(&cache, &request, 2 * NS_PER_S));
    response_cache_release(&cache);
}

static void an_answer_stays_while_somebody_sends_it(void **state) {
    (void)state;
    struct response_cache cache = {0};
    struct request request = {.path = "/a", .query = ""};
    struct http_answer answer = {.status = 200, .body = strdup("x"), .length = 1};
    answer.owned = (void *)answer.body;
    struct cached_response *sent = response_cache_put(&cache, &request, &answer, 0, 0);
    cached_response_hold(sent);
    struct http_answer next = {.status = 200, .body = "y", .length = 1};
    response_cache_put(&cache, &request, &next, 0, 1);
    response_cache_release(&cache);
    assert_string_equal(sent->answer.body, "x");
    cached_response_drop(sent);
}

static void more_than_is_allowed_waits_for_time_to_pass(void **state) {
    (void)state;
    struct rate_limit limit = {.per_second = 10, .at_once_most = 2};
    int64_t now_ns = 100 * NS_PER_S;
    assert_true(rate_limit_take(&limit, now_ns));
    assert_true(rate_limit_take(&limit, now_ns));
    assert_false(rate_limit_take(&limit, now_ns));
    assert_false(rate_limit_take(&limit, now_ns + 99 * NS_PER_MS));
    assert_true(rate_limit_take(&limit, now_ns + 101 * NS_PER_MS));
    assert_false(rate_limit_take(&limit, now_ns + 102 * NS_PER_MS));
}

SUITE(api) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(steps_are_given_from_a_number_on),
        TEST(steps_of_what_goes_on_from_an_end_count_from_the_beginning),
        TEST(many_steps_are_given_in_parts),
        TEST(events_are_given_from_a_number_on),
        TEST(what_is_not_there_or_not_understood_has_its_status),
        TEST(a_store_that_cannot_answer_gives_503_and_no_error_stays),
        TEST(runs_say_which_goes_on),
        TEST(it_is_ready_when_all_shards_are_set_up),
        TEST(it_lives_while_it_ticks),
        TEST(the_map_tells_who_has_and_who_counted_each_chunk),
        TEST(the_status_has_every_member),
        TEST(the_status_says_how_the_training_ended),
        TEST(metrics_are_those_of_the_coordinator),
        TEST(a_metric_that_is_not_known_is_left_out),
        TEST(counters_do_not_fall_when_the_run_goes_back),
        TEST(labels_are_quoted),
        TEST(an_answer_stays_while_somebody_sends_it),
        TEST(more_than_is_allowed_waits_for_time_to_pass),
        TEST(an_answer_is_good_for_as_long_as_its_making_was_worth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
