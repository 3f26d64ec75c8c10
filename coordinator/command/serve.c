/* `serve` and `report`: the pages of state folders in which no run needs to be alive, from a server
 * or as a file. */
#define _GNU_SOURCE
#include <assert.h>
#include <jansson.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/notify.h"
#include "coordinator/command/about_model.h"
#include "coordinator/command/ask.h"
#include "coordinator/command/command.h"
#include "coordinator/command/print.h"
#include "coordinator/run/loop.h"
#include "coordinator/status/api.h"
#include "coordinator/status/page.h"
#include "coordinator/status/past_metrics.h"
#include "coordinator/status/report.h"

/* What a state folder has recorded. The database is copied into memory and its lock let go, so that
 * a run can begin at any time. */
struct recorded {
    const char *state;        /* the folder; the caller's */
    struct store *store;      /* a copy in memory; NULL: nothing could be read yet */
    json_t *status;           /* of the newest run */
    struct about_model about; /* its model, once somebody has asked for that */
    bool has_about;
    json_t *runs;     /* while a coordinator is alive: the runs as it tells them; else NULL */
    int64_t stamp[4]; /* of the files that were copied */
    int code;         /* of the last look at the folder; what was read before stays */
    char *trouble;    /* why it is not 0; owned */
    bool asked;       /* the coordinator was asked, and the look is to be completed */
    int64_t begun_ns; /* when it was */
    int64_t again_ns; /* the folder is not looked at before this */
};

#define PAUSE_NS (NS_PER_S / 2)
#define PAUSE_SHARE 10 /* a coordinator that answers slowly is asked a tenth of the time */

static void note_file(const char *state, const char *name, int64_t stamp[2]) {
    struct stat status = {0};
    char *path = path_join(state, name);
    (void)stat(path, &status);
    free(path);
    stamp[0] = status.st_mtim.tv_sec * NS_PER_S + status.st_mtim.tv_nsec;
    stamp[1] = status.st_size;
}

static void note_files(const char *state, int64_t stamp[4]) {
    note_file(state, "dml.db", stamp);
    note_file(state, "dml.db-wal", stamp + 2);
}

static void take_status(struct recorded *record, json_t *status, json_t *runs) {
    json_decref(record->status);
    json_decref(record->runs);
    about_model_release(&record->about);
    record->has_about = false;
    record->status = status;
    record->runs = runs;
}

static int ask_coordinator(struct recorded *record) {
    json_t *status = NULL, *runs = NULL;
    int code = ask_live(record->state, QUESTION_STATUS, &status);
    if (!code)
        code = ask_live(record->state, QUESTION_RUNS, &runs);
    if (code)
        json_decref(status);
    else
        take_status(record, status, runs);
    return code;
}

/* What is recorded, in memory, and the status of its newest run. */
static int read_record(const char *state, struct store **made, json_t **status) {
    struct record_reader reader;
    int code = record_reader_open(state, &reader);
    if (!code)
        code = store_copy(reader.store, made);
    if (!code)
        code = report_status(*made, status);
    if (!code)
        record_reader_mark(&reader, *status);
    record_reader_close(&reader);
    return code;
}

/* What is shown of the newest run's model. It may take a while, so it is read when it is asked for.
 */
static void read_model(struct recorded *record) {
    if (record->has_about || record->runs ||
        !json_is_string(json_object_get(record->status, "model_sha256")))
        return;
    char *path =
        memory_format("%s/models/%lld", record->state, member_count(record->status, "run"));
    about_model_read(path, &record->about);
    record->has_about = true;
    free(path);
}

static int read_store(struct recorded *record) {
    struct store *made = NULL;
    json_t *status = NULL;
    int code = read_record(record->state, &made, &status);
    if (code) {
        store_close(made);
        return code;
    }
    store_close(record->store);
    record->store = made;
    take_status(record, status, NULL);
    note_files(record->state, record->stamp);
    return 0;
}

static void note_outcome(struct recorded *record, int code) {
    free(record->trouble);
    record->code = code;
    record->trouble = code ? memory_copy_string(error_text()) : NULL;
    error_clear();
}

/* The first half of a look at the folder, which may wait for a coordinator and touches nothing but
 * the record: it may run beside those of other folders. Nobody is asked if the folder's files are
 * as they were, or a look would come too early. */
static void recorded_ask(struct recorded *record) {
    int64_t stamp[4];
    record->begun_ns = clock_monotonic_ns();
    if (record->asked || record->begun_ns < record->again_ns)
        return;
    note_files(record->state, stamp);
    if (record->status && !record->runs && memcmp(stamp, record->stamp, sizeof stamp) == 0)
        return;
    note_outcome(record, ask_coordinator(record));
    record->asked = true;
}

/* Reads the record again if the folder's files have changed. While a coordinator is alive, it is
 * asked for status and runs. ERROR_UNAVAILABLE if nothing was run there, ERROR_AGAIN if the
 * coordinator does not answer; what was read before stays. */
static int recorded_refresh(struct recorded *record) {
    recorded_ask(record);
    if (record->asked && (record->code == ERROR_UNAVAILABLE || record->code == ERROR_PERMISSION))
        note_outcome(record, read_store(record));
    if (record->asked) {
        int64_t now_ns = clock_monotonic_ns(), slow_ns = PAUSE_SHARE * (now_ns - record->begun_ns);
        bool pauses = record->status || slow_ns > PAUSE_NS; /* a first run is shown at once */
        record->again_ns = pauses ? now_ns + (slow_ns > PAUSE_NS ? slow_ns : PAUSE_NS) : 0;
        record->asked = false;
    }
    return record->code ? error_set(record->code, "%s", record->trouble) : 0;
}

static void recorded_release(struct recorded *record) {
    store_close(record->store);
    take_status(record, NULL, NULL);
    record->store = NULL;
    free(record->trouble);
    record->trouble = NULL;
}

/* What the status server's answers are made from. */
static struct api recorded_api(const struct recorded *record, const struct http_counts *counts) {
    return (struct api){.live = {.run = (int64_t)member_count(record->status, "run"),
                                 .started_ms = (int64_t)member_count(record->status, "started_ms")},
                        .status = record->status,
                        .heaviest = record->about.heaviest,
                        .summary = record->about.summary,
                        .importance = record->about.importance,
                        .runs = record->runs,
                        .store = record->store,
                        .counts = counts};
}

/* ---- `serve` ---- */

#define ADDRESS "127.0.0.1:0"
#define A_DAY_MS 86400000
#define STEPS_MOST 20000 /* of a curve in the list of folders */

struct serving {
    struct loop loop;
    struct http *http;
    char **states;
    struct recorded *records; /* one a folder */
    uint32_t count;
    bool stopped;
};

static void refuse(struct http_answer *answer, int status, const char *text) {
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
    char *behind;
    unsigned long number = strtoul(*path + 1, &behind, 10);
    if (behind == *path + 1 || *behind != '/' || number < 1 || number > serving->count)
        return NULL;
    *path = behind;
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

/* Of steps, or where there is none beyond the first, of epochs. */
static void find_losses(const struct recorded *record, struct index_entry *entry) {
    struct loss_list list = {0};
    int64_t run = member_count(record->status, "run");
    int code = store_steps(record->store, run, 0, take_loss, &list);
    entry->epochs = list.count < 2;
    if (!code && entry->epochs) {
        list.count = 0;
        code = store_downpour_epochs(record->store, run, 0, take_epoch_loss, &list);
    }
    if (code < 0)
        error_clear(); /* then there is no curve */
    entry->losses = list.losses;
    entry->steps = list.count;
}

/* What the list of folders says of one; its curve is that of the record. */
static struct index_entry entry_of(struct recorded *record) {
    struct index_entry entry = {.folder = record->state};
    if (recorded_refresh(record))
        entry.trouble = memory_copy_string(error_text());
    error_clear();
    entry.status = record->status;
    entry.runs = runs_of(record);
    if (record->store && record->status)
        find_losses(record, &entry);
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
        json_t *runs = runs_of(&serving->records[i]);
        if (runs)
            json_array_append_new(all, runs);
        folders[i] = (struct past_folder){.path = serving->records[i].state,
                                          .runs = serving->records[i].code ? NULL : runs};
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
        refuse(answer, 503, error_text());
    else {
        if (api_is_about_model(request->path))
            read_model(record);
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
        refuse(answer, 404, "there is no such page; / lists the state folders");
}

static void on_stop(void *context) {
    ((struct serving *)context)->stopped = true;
}

static bool has_stopped(const void *context) {
    return ((const struct serving *)context)->stopped;
}

static int serve(struct serving *serving, const char *address) {
    struct http_callbacks callbacks = {.answer = on_request, .context = serving};
    int code = loop_open(&serving->loop);
    serving->loop.stop = on_stop;
    serving->loop.context = serving;
    if (!code)
        code = http_new(address ? address : ADDRESS, &serving->http);
    if (!code)
        code = http_serve(serving->http, serving->loop.base, &callbacks);
    if (code)
        return code;
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
    while (serving.states[serving.count])
        serving.count++;
    serving.records = memory_new(serving.count, sizeof *serving.records);
    for (uint32_t i = 0; i < serving.count; i++)
        serving.records[i] = (struct recorded){.state = serving.states[i]};
    code = serve(&serving, options->http);
    http_free(serving.http);
    loop_close(&serving.loop);
    for (uint32_t i = 0; i < serving.count; i++)
        recorded_release(&serving.records[i]);
    free(serving.records);
    names_free(serving.states);
    return code;
}

/* ---- `report` ----
 *
 * The status page of a state folder as one file that needs no server. The page finds in
 * it the answers that a server would have given. */

#define RUNS_MAX 20 /* the newest that are no folds, whose steps are in the file */

static const char policy[] =
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
    "style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'\">\n";

/* JSON within a script element: "<" is in its strings alone, and written as an escape it cannot end
 * the element. */
static void put_json(const char *text, size_t length, FILE *out) {
    for (size_t i = 0; i < length; i++)
        if (text[i] == '<')
            fputs("\\u003c", out);
        else
            putc(text[i], out);
}

/* Writes `"path?query": answer`. Returns the answer as JSON. */
static json_t *put_answer(const struct api *api, const char *path, const char *query, FILE *out) {
    struct request request = {.path = path, .query = query};
    struct http_answer answer = {0};
    api_answer(api, &request, &answer);
    fprintf(out, "\"%s%s%s\": ", path + 1, *query ? "?" : "", query);
    put_json(answer.body, answer.length, out);
    json_t *json = json_loadb(answer.body, answer.length, 0, NULL);
    free(answer.owned);
    return json;
}

/* Writes a list part by part, as the page asks for it. `more` goes behind the number in the query:
 * "&run=3". */
static void put_list(const struct api *api, const char *path, const char *more, FILE *out) {
    json_int_t since = 0, next = -1;
    while (next != since) {
        char query[64];
        since = next < 0 ? 0 : next;
        snprintf(query, sizeof query, "since=%lld%s", (long long)since, more);
        fputs(",\n", out);
        json_t *answer = put_answer(api, path, query, out);
        bool goes_on = json_is_true(json_object_get(answer, "more"));
        next = goes_on ? json_integer_value(json_object_get(answer, "next")) : since;
        json_decref(answer);
    }
}

static void put_answers(const struct api *api, FILE *out) {
    json_decref(put_answer(api, "/api/v1/status", "", out));
    fputs(",\n", out);
    json_t *answer = put_answer(api, "/api/v1/runs", "", out);
    const json_t *runs = json_object_get(answer, "runs");
    size_t count = json_array_size(runs);
    if (api->heaviest) {
        fputs(",\n", out);
        json_decref(put_answer(api, "/api/v1/weights", "", out));
    }
    if (api->summary) {
        fputs(",\n", out);
        json_decref(put_answer(api, "/api/v1/summary", "", out));
    }
    if (api->importance) {
        fputs(",\n", out);
        json_decref(put_answer(api, "/api/v1/importance", "", out));
    }
    put_list(api, "/api/v1/steps", "", out);
    put_list(api, "/api/v1/epochs", "", out);
    put_list(api, "/api/v1/events", "", out);
    size_t written = 0;
    for (size_t i = count; i && written < RUNS_MAX; i--) {
        const json_t *run = json_array_get(runs, i - 1);
        char more[32];
        if (member_count(json_object_get(run, "sweep"), "fold"))
            continue;
        written++;
        snprintf(more, sizeof more, "&run=%lld", member_count(run, "run"));
        put_list(api, "/api/v1/steps", more, out);
    }
    json_decref(answer);
}

/* The page, with the answers where it has the mark. */
static int put_page(void *context, FILE *out) {
    static const char mark[] = "<!--record-->";
    struct api api = recorded_api(context, NULL);
    const char *page = (const char *)page_html;
    const char *at = memmem(page, page_html_length, mark, sizeof mark - 1);
    if (!at)
        return error_set(ERROR_INTERNAL, "the page has no place for a record");
    fwrite(page, 1, (size_t)(at - page), out);
    fputs(policy, out);
    fputs("<script type=\"application/json\" id=\"record\">{\n", out);
    put_answers(&api, out);
    fputs("}</script>", out);
    at += sizeof mark - 1;
    fwrite(at, 1, (size_t)(page + page_html_length - at), out);
    return 0;
}

int command_report(const struct options *options) {
    char *state;
    int code = place_of(options, &state);
    if (code)
        return code;
    struct recorded record = {.state = state};
    code = recorded_refresh(&record);
    if (!code) {
        read_model(&record);
        code = output_file_write(options->output, put_page, &record);
    }
    recorded_release(&record);
    free(state);
    return code;
}
