/* `serve`: the pages of state folders in which no run needs to be alive. */
#define _GNU_SOURCE
#include <assert.h>
#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/notify.h"
#include "base/text.h"
#include "coordinator/command/ask.h"
#include "coordinator/command/command.h"
#include "coordinator/command/print.h"
#include "coordinator/command/recorded.h"
#include "coordinator/run/loop.h"
#include "coordinator/run/row_explainer.h"
#include "coordinator/status/api.h"
#include "coordinator/status/page.h"
#include "coordinator/status/past_metrics.h"
#include "coordinator/status/report.h"

#define ADDRESS "127.0.0.1:0"
#define A_DAY_MS 86400000
#define STEPS_MOST 20000 /* of a curve in the list of folders */

struct serving {
    struct loop loop;
    struct http *http;
    struct row_explainer *row_explainer;
    char **states;
    struct recorded *records; /* one a folder */
    uint32_t count;
    bool stopped;
};

static void refuse_request(struct http_answer *answer, int status, const char *text) {
    answer->status = status;
    answer->type = "text/plain; charset=utf-8";
    answer->body = answer->owned = memory_format("%s\n", text);
    answer->length = strlen(answer->body);
}

/* The folder that a path is about: /2/… is the second of several. What is left of the path begins
 * with a slash. NULL if there is no such folder. */
static struct recorded *folder_of(const struct serving *serving, const char **path) {
    assert(serving->count > 0);
    if (serving->count == 1)
        return &serving->records[0];
    char *after;
    unsigned long number = strtoul(*path + 1, &after, 10);
    if (after == *path + 1 || *after != '/' || number < 1 || number > serving->count)
        return NULL;
    *path = after;
    return &serving->records[number - 1];
}

/* The runs of a folder, as a live coordinator says or the record does; NULL if neither can. */
static json_t *runs_of(struct recorded *record) {
    json_t *runs = NULL;
    if (!recorded_refresh(record) && record->runs)
        runs = json_incref(record->runs);
    else if (record->store && report_runs(record->store, &runs))
        runs = NULL;
    error_clear();
    return runs;
}

static void ask_record(void *context, uint32_t i) {
    const struct serving *serving = context;
    recorded_ask(&serving->records[i]);
}

static void ask_all(struct serving *serving) {
    ask_each(serving->count, ask_record, serving);
}

struct loss_list {
    double *losses;
    size_t count;
};

static int add_loss(struct loss_list *list, double loss) {
    assert(list->count <= STEPS_MOST);
    if (list->count == STEPS_MOST)
        return 0;
    list->losses = memory_resize(list->losses, list->count + 1, sizeof *list->losses);
    list->losses[list->count++] = loss;
    return 0;
}

static int take_loss(void *context, const struct store_step *step) {
    return add_loss(context, step->loss);
}

static int take_epoch_loss(void *context, const struct store_epoch *epoch) {
    return add_loss(context, epoch->loss);
}

/* What the list of folders says of one; its curve is that of the record. */
static struct index_entry entry_of(struct recorded *record) {
    struct index_entry entry = {.folder = record->state};
    if (recorded_refresh(record))
        entry.trouble = memory_copy_string(error_text());
    error_clear();
    entry.status = record->status;
    entry.runs = runs_of(record);
    if (!record->store || !record->status)
        return entry;
    /* The losses of steps, or those of epochs where there is no step beyond the first. */
    struct loss_list list = {0};
    const int64_t run = member_count(record->status, "run");
    int code = store_steps(record->store, run, 0, take_loss, &list);
    entry.epochs = list.count < 2;
    if (!code && entry.epochs) {
        list.count = 0;
        code = store_downpour_epochs(record->store, run, 0, take_epoch_loss, &list);
    }
    if (code < 0)
        error_clear(); /* then there is no curve */
    entry.losses = list.losses;
    entry.steps = list.count;
    return entry;
}

static void answer_index(struct serving *serving, struct http_answer *answer) {
    struct index_entry *entries = memory_new(serving->count, sizeof *entries);
    ask_all(serving);
    for (uint32_t i = 0; i < serving->count; i++)
        entries[i] = entry_of(&serving->records[i]);
    index_answer(entries, serving->count, answer);
    for (uint32_t i = 0; i < serving->count; i++) {
        free(entries[i].trouble);
        free((double *)(uintptr_t)entries[i].losses);
        json_decref((json_t *)(uintptr_t)entries[i].runs);
    }
    free(entries);
}

static void answer_metrics(struct serving *serving, struct http_answer *answer) {
    struct past_folder *folders = memory_new(serving->count, sizeof *folders);
    json_t *all = json_array(); /* keeps them */
    ask_all(serving);
    for (uint32_t i = 0; i < serving->count; i++) {
        struct recorded *record = &serving->records[i];
        json_t *runs = runs_of(record);
        if (runs)
            json_array_append_new(all, runs);
        folders[i] = (struct past_folder){.path = record->state,
                                          .runs = record->code && !record->empty ? NULL : runs};
    }
    answer->status = 200;
    answer->type = METRICS_TYPE;
    answer->body = answer->owned = past_metrics_text(folders, serving->count, &answer->length);
    json_decref(all);
    free(folders);
}

static void answer_about(struct serving *serving, struct recorded *record,
                         const struct request *request, struct http_answer *answer) {
    int code = recorded_refresh(record);
    if (code && !record->status)
        refuse_request(answer, 503, error_text());
    else {
        if (api_is_about_model(request->path))
            recorded_read_model(record);
        struct api api = recorded_api(record, http_counts(serving->http));
        api_answer(&api, request, answer);
    }
    error_clear(); /* what was recorded before is shown, and looked for again with the next request
                    */
}

static void on_request(void *context, const struct request *request, struct http_answer *answer) {
    struct serving *serving = context;
    struct request within = *request;
    bool metrics = strcmp(request->path, "/metrics") == 0;
    struct recorded *record = metrics ? NULL : folder_of(serving, &within.path);
    if (metrics)
        answer_metrics(serving, answer);
    else if (record)
        answer_about(serving, record, &within, answer);
    else if (strcmp(request->path, "/") == 0)
        answer_index(serving, answer);
    else
        refuse_request(answer, 404, "there is no such page; / lists the state folders");
}

static bool on_post(void *context, const struct request *request, uint64_t ticket,
                    struct http_answer *answer) {
    const struct serving *serving = context;
    struct request within = *request;
    const struct recorded *record = folder_of(serving, &within.path);
    if (record)
        return row_explainer_post(serving->row_explainer, record->state, &within, ticket, answer);
    refuse_request(answer, 404, "there is no such page; / lists the state folders");
    return true;
}

static void on_stop(void *context) {
    ((struct serving *)context)->stopped = true;
}

static bool has_stopped(const void *context) {
    return ((const struct serving *)context)->stopped;
}

static int serve_folders(struct serving *serving, const char *address) {
    struct http_callbacks callbacks = {.answer = on_request, .post = on_post, .context = serving};
    assert(serving->count > 0 && serving->records && !serving->http);
    int code = loop_open(&serving->loop);
    serving->loop.stop = on_stop;
    serving->loop.context = serving;
    if (!code)
        code = http_new(address ? address : ADDRESS, &serving->http);
    if (!code)
        code = http_serve(serving->http, serving->loop.base, &callbacks);
    if (code)
        return code;
    serving->row_explainer = row_explainer_new(serving->loop.base, serving->http);
    printf("serving %u state folder%s at %s until Ctrl-C\n", serving->count,
           serving->count == 1 ? "" : "s", http_url(serving->http));
    if (fflush(stdout))
        return error_set_errno(ERROR_IO, "cannot write standard output");
    const uint64_t watched_ms = notify_interval_ms();
    const int wait_ms = watched_ms && watched_ms < A_DAY_MS ? (int)watched_ms : A_DAY_MS;
    notify_ready();
    while (!serving->stopped) {
        loop_until(serving->loop.base, wait_ms, has_stopped, serving);
        notify_alive();
    }
    notify_stopping();
    return 0;
}

int command_serve(const struct options *options) {
    struct serving serving = {0};
    int code = places_of(options, &serving.states);
    if (code)
        return code;
    serving.count = names_count(serving.states);
    serving.records = memory_new(serving.count, sizeof *serving.records);
    for (uint32_t i = 0; i < serving.count; i++)
        serving.records[i] = (struct recorded){.state = serving.states[i]};
    code = serve_folders(&serving, options->http);
    row_explainer_free(serving.row_explainer);
    http_free(serving.http);
    loop_close(&serving.loop);
    for (uint32_t i = 0; i < serving.count; i++)
        recorded_release(&serving.records[i]);
    free(serving.records);
    names_free(serving.states);
    return code;
}
