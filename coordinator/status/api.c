#include "coordinator/status/api.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "coordinator/status/figures.h"
#include "coordinator/status/metrics.h"
#include "coordinator/status/page.h"
#include "coordinator/status/report.h"

#define STEPS_AT_ONCE 2000
#define EVENTS_AT_ONCE 500
#define TICK_LATE_NS (10 * NS_PER_S) /* the loop ticks ten times a second */

/* Gives up the reference to `value`. */
static void answer_json(struct http_answer *answer, int status, json_t *value) {
    char *text = json_dumps(value, JSON_COMPACT);
    json_decref(value);
    if (!text) { /* a text in it is not UTF-8 */
        text = memory_copy_string("{\"error\":\"the answer cannot be written as JSON\"}");
        status = 500;
    }
    answer->status = status;
    answer->type = "application/json";
    answer->body = answer->owned = text;
    answer->length = strlen(text);
}

static void answer_error(struct http_answer *answer, int status, const char *text) {
    answer_json(answer, status, json_pack("{s:o}", "error", text_to_json(text)));
}

static void answer_text(struct http_answer *answer, int status, const char *text) {
    answer->status = status;
    answer->type = "text/plain; charset=utf-8";
    answer->body = answer->owned = memory_format("%s\n", text);
    answer->length = strlen(text) + 1;
}

/* The store could not answer. The run goes on, so the error is cleared. */
static void answer_store_error(struct http_answer *answer) {
    assert(*error_text());
    answer_error(answer, 503, error_text());
    error_clear();
}

/* ---- lists ---- */

/* A part of a numbered list: at most `most` entries from number `since` on. */
struct list_page {
    json_t *list;
    size_t most;
    int64_t next;
    bool more;
    int64_t started_ms;
};

/* True once the list is full. */
static bool is_full(struct list_page *part) {
    assert(json_array_size(part->list) <= part->most);
    part->more = json_array_size(part->list) == part->most;
    return part->more;
}

static int api_take_step(void *context, const struct store_step *step) {
    struct list_page *part = context;
    if (is_full(part))
        return 1;
    struct figure_source source = {.step = step, .started_ms = part->started_ms};
    assert(part->next <= (int64_t)step->step); /* they rise */
    json_array_append_new(part->list, figures_json(IN_STEP, &source));
    part->next = (int64_t)step->step + 1;
    return 0;
}

static int api_take_epoch(void *context, const struct store_epoch *epoch) {
    struct list_page *part = context;
    if (is_full(part))
        return 1;
    struct figure_source source = {.epoch = epoch, .started_ms = part->started_ms};
    assert(part->next <= (int64_t)epoch->epoch);
    json_array_append_new(part->list, figures_json(IN_EPOCH, &source));
    part->next = (int64_t)epoch->epoch + 1;
    return 0;
}

static int api_take_event(void *context, const struct store_event_row *event) {
    struct list_page *part = context;
    if (is_full(part))
        return 1;
    assert(part->next <= event->event);
    json_array_append_new(part->list,
                          json_pack("{s:I, s:I, s:s, s:o}", "event", (json_int_t)event->event,
                                    "wall_ms", (json_int_t)event->wall_ms, "kind", event->kind,
                                    "text", text_to_json(event->text)));
    part->next = event->event + 1;
    return 0;
}

struct wanted_run {
    int64_t run, started_ms;
    bool found;
};

/* Sets `found` if the state folder has this run, and when its first step can have been: a run that
 * goes on from the end of another one has the steps of that, too. */
static int find_wanted_run(const struct api *api, struct wanted_run *wanted) {
    bool begun = false;
    struct store_run record, first = {0};
    int code = store_run_find(api->store, wanted->run, &record, &wanted->found);
    if (!code && wanted->found && record.origin != record.run)
        code = store_run_find(api->store, record.origin, &first, &begun);
    wanted->started_ms = begun           ? first.started_ms
                         : wanted->found ? record.started_ms
                                         : api->live.started_ms;
    wanted->found |= wanted->run == api->live.run;
    store_run_release(&record);
    store_run_release(&first);
    return code;
}

/* The steps, epochs or events of a run, as the end of the path says. */
static void answer_list(const struct api *api, const struct request *request,
                        struct http_answer *answer) {
    static const char *const parameters[] = {"since", "run", NULL};
    const char *name = strrchr(request->path, '/') + 1;
    bool steps = !strcmp(name, "steps"), epochs = !strcmp(name, "epochs");
    struct wanted_run wanted = {0};
    struct list_page part = {.most = steps || epochs ? STEPS_AT_ONCE : EVENTS_AT_ONCE};
    int64_t since;
    if (!request_has_only(request, parameters) || !request_number(request, "since", 0, &since) ||
        !request_number(request, "run", api->live.run, &wanted.run)) {
        answer_error(answer, 400, "the query may have since=N and run=N with whole numbers");
        return;
    }
    int code = api->store ? find_wanted_run(api, &wanted) : 0;
    if (!code && api->store && !wanted.found) {
        answer_error(answer, 404, "there is no such run in this state folder");
        return;
    }
    part.list = json_array();
    part.next = since;
    part.started_ms = wanted.started_ms;
    if (!code && api->store)
        code = steps    ? store_steps(api->store, wanted.run, (uint64_t)since, api_take_step, &part)
               : epochs ? store_downpour_epochs(api->store, wanted.run, (uint64_t)since,
                                                api_take_epoch, &part)
                        : store_events(api->store, wanted.run, since, api_take_event, &part);
    if (code < 0) {
        json_decref(part.list);
        answer_store_error(answer);
        return;
    }
    answer_json(answer, 200,
                json_pack("{s:I, s:o, s:I, s:b}", "run", (json_int_t)wanted.run, name, part.list,
                          "next", (json_int_t)part.next, "more", part.more));
}

static void answer_runs(const struct api *api, const struct request *request,
                        struct http_answer *answer) {
    json_t *runs;
    (void)request;
    if (api->runs)
        answer_json(answer, 200, json_deep_copy(api->runs));
    else if (report_live_runs(&api->live, api->store, &runs))
        answer_store_error(answer);
    else
        answer_json(answer, 200, runs);
}

/* ---- the rest ---- */

static void answer_status(const struct api *api, const struct request *request,
                          struct http_answer *answer) {
    (void)request;
    answer_json(answer, 200,
                api->status ? json_deep_copy(api->status) : report_live_status(&api->live));
}

static void answer_metrics(const struct api *api, const struct request *request,
                           struct http_answer *answer) {
    (void)request;
    if (!api->live.counters) {
        answer_error(answer, 404, "no run is alive here");
        return;
    }
    char *text = metrics_text(&api->live, api->counts, &answer->length);
    answer->status = 200;
    answer->type = METRICS_TYPE;
    answer->body = answer->owned = text;
}

static void answer_weights(const struct api *api, const struct request *request,
                           struct http_answer *answer) {
    (void)request;
    answer_json(answer, 200,
                api->heaviest ? json_pack("{s:o}", "outputs", json_deep_copy(api->heaviest))
                              : json_object());
}

static void answer_summary(const struct api *api, const struct request *request,
                           struct http_answer *answer) {
    (void)request;
    answer_json(answer, 200, api->summary ? json_deep_copy(api->summary) : json_object());
}

static void answer_importance(const struct api *api, const struct request *request,
                              struct http_answer *answer) {
    (void)request;
    answer_json(answer, 200, api->importance ? json_deep_copy(api->importance) : json_object());
}

static void answer_page(const struct api *api, const struct request *request,
                        struct http_answer *answer) {
    (void)api;
    (void)request;
    *answer = (struct http_answer){.status = 200,
                                   .type = "text/html; charset=utf-8",
                                   .fields = PAGE_POLICY,
                                   .body = page_html,
                                   .length = page_html_length};
}

static void answer_live(const struct api *api, const struct request *request,
                        struct http_answer *answer) {
    const struct live *live = &api->live;
    bool ticks = live->coordinator && live->stage == STAGE_TRAINING;
    (void)request;
    if (ticks &&
        clock_monotonic_ns() - coordinator_view(live->coordinator).ticked_ns > TICK_LATE_NS)
        answer_text(answer, 503, "the coordinator has not looked at its clock for over 10 s");
    else
        answer_text(answer, 200, "ok");
}

/* Why no training is under way with all shards; NULL if it is. Free it. */
static char *unready(const struct api *api) {
    const struct coordinator *c = api->live.coordinator;
    if (!api->store)
        return memory_copy_string("the store is closed");
    if (api->status)
        return memory_copy_string("no run is alive here");
    if (!c || api->live.stage != STAGE_TRAINING)
        return memory_format("no training is under way: %s", live_state(&api->live));
    enum coordinator_phase phase = coordinator_phase(c);
    if (phase == PHASE_FAILED)
        return memory_copy_string("the run has failed");
    for (uint32_t i = 0; i < coordinator_settings(c)->shards; i++)
        if (!coordinator_worker(c, i).ready)
            return memory_format("shard %u is not set up", i);
    if (phase == PHASE_REJOINING || phase == PHASE_SETTING_UP)
        return memory_format("the run is %s", live_phase(phase));
    return NULL;
}

static void answer_ready(const struct api *api, const struct request *request,
                         struct http_answer *answer) {
    char *why = unready(api);
    (void)request;
    answer_text(answer, why ? 503 : 200, why ? why : "ok");
    free(why);
}

static const struct {
    const char *path;
    bool needs_store;
    void (*answer)(const struct api *api, const struct request *request,
                   struct http_answer *answer);
} paths[] = {
    {"/", false, answer_page},
    {"/api/v1/status", false, answer_status},
    {"/api/v1/steps", true, answer_list},
    {"/api/v1/epochs", true, answer_list},
    {"/api/v1/events", true, answer_list},
    {"/api/v1/runs", true, answer_runs},
    {"/api/v1/weights", false, answer_weights},
    {"/api/v1/summary", false, answer_summary},
    {"/api/v1/importance", false, answer_importance},
    {"/metrics", false, answer_metrics},
    {"/livez", false, answer_live},
    {"/readyz", false, answer_ready},
};

bool api_is_about_model(const char *path) {
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        if (strcmp(path, paths[i].path) == 0)
            return paths[i].answer == answer_weights || paths[i].answer == answer_summary ||
                   paths[i].answer == answer_importance;
    return false;
}

void api_answer(const struct api *api, const struct request *request, struct http_answer *answer) {
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        if (strcmp(request->path, paths[i].path) != 0)
            continue;
        if (paths[i].needs_store && !api->store && !api->status)
            answer_error(answer, 503, "the store is closed");
        else
            paths[i].answer(api, request, answer);
        return;
    }
    answer_error(answer, 404, "no such path; dml-status(7) lists the paths");
}
