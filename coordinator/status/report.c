#include "coordinator/status/report.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "coordinator/job/key.h"
#include "coordinator/status/run_folder.h"
#include "optimizer/row.h"
#include "coordinator/status/figures.h"
#include "coordinator/status/history.h"
#include "coordinator/status/invocations.h"
#include "coordinator/status/sweep_table.h"

static int report_take_wall_ms(void *context, const struct store_step *step) {
    *(int64_t *)context = step->wall_ms;
    return 0;
}

/* When a run ended; if it has not ended, when its last step or its start was recorded. */
static int last_ms(struct store *store, const struct store_run *run, int64_t *wall_ms) {
    *wall_ms = run->ended_ms ? run->ended_ms : run->started_ms;
    return run->ended_ms ? 0
                         : store_steps(store, run->run, run->steps, report_take_wall_ms, wall_ms);
}

/* If a run has no result, only its settings say what it trained. A network's objective is its
 * loss. */
static void add_settings(json_t *status, const json_t *settings) {
    json_t *loss = json_object_get(settings, "network.loss");
    json_t *objective = loss ? loss : json_object_get(settings, "objective");
    if (objective)
        json_object_set(status, "objective", objective);
    if (loss)
        json_object_set_new(status, "network",
                            json_pack("{s:O?, s:O?, s:O?}", "layers",
                                      json_object_get(settings, "network.layers"), "activation",
                                      json_object_get(settings, "network.activation"), "precision",
                                      json_object_get(settings, "network.precision")));
}

struct stored_epochs {
    struct store_epoch last;
    uint64_t minibatches;
};

static int report_take_epoch(void *context, const struct store_epoch *epoch) {
    struct stored_epochs *stored = context;
    stored->last = *epoch;
    stored->minibatches += epoch->minibatches;
    return 0;
}

/* Adds the epochs that the store has, if any, of a run without a result. */
static int add_epochs(struct store *store, const struct store_run *run, json_t *status) {
    struct stored_epochs stored = {0};
    int code = store_downpour_epochs(store, run->run, 0, report_take_epoch, &stored);
    if (code || !stored.last.epoch)
        return code;
    const json_t *settings = json_object_get(status, "settings");
    struct figure_source source = {
        .view.downpour = {.epochs = (uint64_t)member_count(settings, "downpour.epochs"),
                          .epoch = stored.last.epoch,
                          .done = stored.minibatches,
                          .loss = stored.last.loss,
                          .measures = true,
                          .holdout = {.loss = stored.last.holdout_loss,
                                      .accuracy = stored.last.holdout_accuracy}}};
    json_object_set_new(status, "downpour", figures_json(IN_EPOCHS, &source));
    return 0;
}

struct process_list {
    json_t *list;
    bool ended;
};

static int report_take_process(void *context, const struct store_process_row *process) {
    struct process_list *processes = context;
    const char *state = process->state;
    if (strcmp(state, "ended") && strcmp(state, "lost"))
        state = processes->ended ? "ended" : "unknown";
    json_array_append_new(processes->list,
                          json_pack("{s:s, s:I, s:i, s:o, s:s, s:I, s:o, s:n}", "role",
                                    process->role, "index", (json_int_t)process->index, "pid",
                                    process->pid, "host", text_to_json(process->host), "state",
                                    state, "portions", (json_int_t)process->portions, "device",
                                    text_or_null(process->device), "rate"));
    return 0;
}

static int report_take_host(void *context, const struct store_host *host) {
    json_array_append_new(context, figures_json(IN_HOST, &(struct figure_source){.host = host}));
    return 0;
}

/* ---- the sweeps ---- */

struct sweep_search {
    struct store *store;
    json_t *list;
};

static int report_take_sweep(void *context, const struct store_sweep *sweep) {
    const struct sweep_search *search = context;
    json_t *json;
    int code = sweep_read_json(search->store, sweep, &json);
    if (!code)
        json_array_append_new(search->list, json);
    return code;
}

static int take_winner(void *context, const struct store_sweep *sweep) {
    *(int64_t *)context = sweep->ended_ms ? sweep->winner : 0;
    return 0;
}

/* What is known of the sweep that the run is of. */
static int add_sweep(struct store *store, const struct store_run *run, json_t *status) {
    struct sweep_search search = {.store = store, .list = json_array()};
    int code = run->sweep ? store_sweep_find(store, run->sweep, report_take_sweep, &search) : 0;
    const json_t *sweep = json_array_get(search.list, 0);
    json_object_set_new(status, "sweep", sweep_of_run(sweep, run->member));
    json_object_set_new(status, "chosen", sweep_chosen(sweep));
    json_decref(search.list);
    return code;
}

/* ---- what became of models ---- */

/* "live" (what `current` points to), "pending" (it was decided that the run's model goes live, but
 * the command was cut off before it did), "published" (it was live once), "refused", "kept" (it was
 * not made live), or null if there is no decision. */
static json_t *publication_of(const struct history *history, int64_t current, int64_t run) {
    const struct history_item *item = history_of(history, run);
    if (run == current)
        return json_string("live");
    if (!item)
        return json_null();
    if (!decision_makes_live(item->decision))
        return json_string(decision_text(item->decision));
    return json_string(item == history_pending(history) ? "pending" : "published");
}

/* Why the gate refused the run's model, or why the last command that worked on the run failed; null
 * for any other run. */
static json_t *why_of(const struct history *history, const json_t *invocations, int64_t run) {
    const struct history_item *item = history_of(history, run);
    if (item && item->decision == DECISION_REFUSED)
        return text_to_json(item->text);
    const json_t *last = NULL, *invocation;
    size_t i;
    json_array_foreach(invocations, i, invocation) if (member_count(invocation, "run") == run)
        last = invocation;
    const char *reason = json_string_value(json_object_get(last, "reason"));
    return text_or_null(strcmp(member_text(last, "outcome"), "failed") == 0 ? reason : NULL);
}

/* The folder of a run's model: where the state folder is now, which may have been moved since, and
 * as it is named now. Null if there is none. */
static json_t *model_folder(struct store *store, int64_t run, bool exists) {
    char *state = store_folder(store);
    char *folder = run_model_folder(state, run);
    json_t *json = exists ? text_to_json(folder) : json_null();
    free(folder);
    free(state);
    return json;
}

static int add_publication(struct store *store, const json_t *invocations, int64_t run,
                           json_t *status) {
    struct history history;
    char *folder = store_folder(store);
    int code = history_read(store, &history);
    int64_t current = history_current(folder);
    json_t *path = json_object_get(json_object_get(status, "sweep"), "path"), *row;
    size_t i;
    if (!code)
        json_object_set_new(status, "publication", publication_of(&history, current, run));
    if (!code)
        json_object_set_new(status, "why", why_of(&history, invocations, run));
    if (!code)
        json_array_foreach(path, i, row) json_object_set_new(
            row, "publication", publication_of(&history, current, member_count(row, "run")));
    history_release(&history);
    free(folder);
    return code;
}

/* Reads the newest run, or, of a sweep that has ended, the one that was chosen. */
static int read_newest(struct store *store, const json_t *last, struct store_run *run) {
    bool found;
    int code = store_run_last(store, run, &found);
    if (!code && !found) { /* perhaps the last command says why */
        char *words = last ? invocation_words(last) : NULL, when[CLOCK_MINUTE];
        clock_minute(member_count(last, "began_ms"), when);
        code = words ? error_set(ERROR_UNAVAILABLE,
                                 "nothing was run there yet; last command: %s %s", when, words)
                     : error_set(ERROR_UNAVAILABLE, "nothing was run there yet");
        free(words);
    }
    const int64_t sweep = code ? 0 : run->sweep;
    int64_t winner = 0;
    if (sweep && run->ended_ms)
        code = store_sweep_find(store, sweep, take_winner, &winner);
    if (code || !winner || winner == run->run)
        return code;
    store_run_release(run);
    code = store_run_find(store, winner, run, &found);
    if (!code && !found)
        code = error_set(ERROR_IO, "there is no record of run %lld, which sweep %lld has chosen",
                         (long long)winner, (long long)sweep);
    return code;
}

int report_status(struct store *store, json_t **status) {
    struct store_run run = {0};
    int64_t wall_ms = 0;
    json_t *invocations;
    int code = invocations_read(store, &invocations);
    json_t *last = json_incref(invocations_last(invocations));
    if (!code)
        code = read_newest(store, last, &run);
    if (!code)
        code = last_ms(store, &run, &wall_ms);
    if (code) {
        json_decref(last);
        json_decref(invocations);
        store_run_release(&run);
        return code;
    }
    struct process_list processes = {.list = json_array(), .ended = run.ended_ms != 0};
    json_t *hosts = json_array(), *settings = json_loads(run.settings, 0, NULL);
    json_t *result = run.result ? json_loads(run.result, 0, NULL) : NULL;
    struct figure_source source = {.record = &run, .last_ms = wall_ms, .result = result};
    *status = figures_json(IN_RECORDED, &source);
    figures_add_result(*status, IN_RECORDED_RESULT, result);
    if (json_object_get(*status, "model"))
        json_object_set_new(*status, "model", model_folder(store, run.run, true));
    if (!result)
        add_settings(*status, settings);
    code = store_processes(store, run.run, report_take_process, &processes);
    if (!code)
        code = store_hosts(store, run.run, report_take_host, hosts);
    json_object_set_new(*status, "processes", processes.list);
    json_object_set_new(*status, "hosts", hosts);
    json_object_set_new(*status, "invocation", last ? last : json_null());
    json_object_set_new(*status, "not_default", key_names_not_default(settings));
    json_object_set_new(*status, "settings", settings ? settings : json_null());
    if (!code && !result)
        code = add_epochs(store, &run, *status);
    if (!code)
        code = add_sweep(store, &run, *status);
    if (!code)
        code = add_publication(store, invocations, run.run, *status);
    json_decref(invocations);
    json_decref(result);
    store_run_release(&run);
    return code;
}

json_t *report_live_status(const struct live *live) {
    struct figure_source source = figures_of_live(live);
    return figures_json(live->coordinator ? IN_STATUS : IN_EARLY, &source);
}

/* ---- the list of runs ---- */

/* The run that another one is compared with. Zeroed: there is none. */
struct changes {
    char *job, *settings, *data;
};

static void changes_release(struct changes *changes) {
    free(changes->job);
    free(changes->settings);
    free(changes->data);
    *changes = (struct changes){0};
}

static void changes_note(struct changes *changes, const struct store_run *run) {
    changes_release(changes);
    *changes = (struct changes){.job = memory_copy_string(run->job),
                                .settings = memory_copy_string(run->settings),
                                .data = memory_copy_string(run->data)};
}

/* How the run differs from the one that was noted. */
static json_t *changes_json(const struct changes *changes, const struct store_run *run) {
    bool comparable = changes->job && strcmp(changes->job, run->job) == 0;
    json_t *changed = comparable ? json_object() : json_null(), *value;
    json_t *old = comparable ? json_loads(changes->settings, 0, NULL) : NULL;
    json_t *new = comparable ? json_loads(run->settings, 0, NULL) : NULL;
    const char *key;
    json_object_foreach(new, key, value) {
        json_t *from = json_object_get(old, key);
        /* Where results are kept changes no result. */
        bool of_place = !strcmp(key, "name") || !strcmp(key, "state");
        if (from && !of_place && !json_equal(from, value))
            json_object_set_new(changed, key, json_pack("{s:O, s:O}", "from", from, "to", value));
    }
    json_decref(old);
    json_decref(new);
    if (comparable && strcmp(changes->data, run->data) && !json_object_get(changed, "data"))
        json_object_set_new(changed, "data",
                            json_pack("{s:s, s:s}", "from", changes->data, "to", run->data));
    return changed;
}

/* What `publish` made differs from the run whose model it is, wherever that stands in the list. */
static int note_origin(struct store *store, const struct store_run *run, struct changes *changes) {
    struct store_run origin = {0};
    bool found;
    if (strcmp(run->command, "publish") != 0)
        return 0;
    int code = store_run_find(store, run->start_run, &origin, &found);
    if (!code && found)
        changes_note(changes, &origin);
    store_run_release(&origin);
    return code;
}

struct runs_listed {
    struct store *store;
    struct history history;
    int64_t current;
    struct changes changes;
    json_t *list;
};

static int report_take_run(void *context, const struct store_run *run) {
    static const char *const over[] = {"holdout", "test"};
    struct runs_listed *runs = context;
    char *sha256 = NULL;
    int64_t wall_ms;
    int code = last_ms(runs->store, run, &wall_ms);
    if (!code)
        code = store_model_of(runs->store, run->run, NULL, &sha256);
    if (code) {
        free(sha256);
        return code;
    }
    json_t *result = run->result ? json_loads(run->result, 0, NULL) : NULL;
    struct figure_source source = {.record = run, .last_ms = wall_ms, .result = result};
    json_t *of_run = figures_json(IN_LISTED, &source);
    figures_add_result(of_run, IN_LISTED_RESULT, result);
    json_decref(result);
    json_object_set_new(of_run, "model", model_folder(runs->store, run->run, *sha256));
    json_object_set_new(of_run, "model_sha256", text_or_null(sha256));
    free(sha256);
    json_object_set_new(of_run, "publication",
                        publication_of(&runs->history, runs->current, run->run));
    if (run->sweep)
        json_object_set_new(of_run, "sweep",
                            json_pack("{s:I, s:I}", "number", (json_int_t)run->sweep, "member",
                                      (json_int_t)run->member));
    /* The list has no figures of single classes: they would be most of it. */
    for (size_t i = 0; i < sizeof over / sizeof over[0]; i++) {
        json_object_del(json_object_get(of_run, over[i]), "classes");
        json_object_del(json_object_get(of_run, over[i]), "confusion");
        json_object_del(json_object_get(of_run, over[i]), "curves");
    }
    code = note_origin(runs->store, run, &runs->changes);
    json_object_set_new(of_run, "changed", changes_json(&runs->changes, run));
    changes_note(&runs->changes, run);
    json_array_append_new(runs->list, of_run);
    return code;
}

static json_t *find_numbered(const json_t *list, const char *key, long long number) {
    size_t i;
    json_t *item;
    json_array_foreach(list, i, item) if (member_count(item, key) == number) return item;
    return NULL;
}

/* Adds to a run of a sweep which fold it left out, 0 for a full fit, and whether it was chosen; to
 * the row of its value in the sweep's table, what became of its model. The members are numbered
 * value by value, all full fits first (status/sweep_plan.h). */
static void add_place(json_t *run, const json_t *sweeps) {
    json_t *place = json_object_get(run, "sweep");
    const json_t *sweep = find_numbered(sweeps, "number", member_count(place, "number"));
    long long values = sweep ? member_count(sweep, "runs") / (member_count(sweep, "folds") + 1) : 0;
    if (!place || values < 1)
        return;
    long long number = member_count(run, "run");
    json_t *row = find_numbered(json_object_get(sweep, "path"), "run", number);
    bool chosen = member_count(json_object_get(sweep, "chosen"), "run") == number;
    json_object_set_new(place, "fold", json_integer(member_count(place, "member") / values));
    json_object_set_new(place, "chosen", json_boolean(chosen));
    if (row)
        json_object_set(row, "publication", json_object_get(run, "publication"));
}

/* Since when a model is live, and what the gate refused: since then, and in all. */
static json_t *decisions_json(const struct history *history) {
    struct history_refusals refusals = history_refusals(history);
    json_int_t since_ms = 0, refused = 0;
    for (size_t i = 0; i < history->count; i++) {
        if (decision_makes_live(history->items[i].decision))
            since_ms = history->items[i].wall_ms;
        refused += history->items[i].decision == DECISION_REFUSED;
    }
    return json_pack("{s:o, s:I, s:o, s:o, s:I}", "live_since_ms",
                     since_ms ? json_integer(since_ms) : json_null(), "refusals",
                     (json_int_t)refusals.count, "refusals_since_ms",
                     refusals.last ? json_integer(refusals.since_ms) : json_null(), "refusal",
                     refusals.last ? text_to_json(refusals.last->text) : json_null(), "refused",
                     refused);
}

int report_runs(struct store *store, json_t **runs) {
    char *folder = store_folder(store);
    struct runs_listed list = {
        .store = store, .current = history_current(folder), .list = json_array()};
    free(folder);
    int code = history_read(store, &list.history);
    if (!code)
        code = store_runs(store, report_take_run, &list);
    struct sweep_search sweeps = {.store = store, .list = json_array()};
    if (!code)
        code = store_sweeps(store, report_take_sweep, &sweeps);
    json_t *invocations;
    int read = invocations_read(store, &invocations);
    code = code ? code : read;
    size_t i;
    json_t *run;
    json_array_foreach(list.list, i, run) {
        add_place(run, sweeps.list);
        json_object_set_new(run, "why",
                            why_of(&list.history, invocations, member_count(run, "run")));
    }
    *runs = json_pack("{s:o, s:o, s:o, s:o, s:I}", "runs", list.list, "sweeps", sweeps.list,
                      "decisions", decisions_json(&list.history), "invocations", invocations,
                      "failures", (json_int_t)invocations_failures(invocations));
    history_release(&list.history);
    changes_release(&list.changes);
    if (code) {
        json_decref(*runs);
        *runs = NULL;
    }
    return code;
}

const json_t *report_live_model(const json_t *runs) {
    size_t i;
    json_t *run;
    json_array_foreach(json_object_get(runs, "runs"), i,
                       run) if (!strcmp(member_text(run, "publication"), "live")) return run;
    return NULL;
}

int report_live_runs(const struct live *live, struct store *store, json_t **runs) {
    size_t i;
    json_t *run;
    int code = report_runs(store, runs);
    if (code)
        return code;
    json_t *invocations = json_object_get(*runs, "invocations");
    if (live->job) {
        invocation_is_at_work(invocations_last(invocations), "running");
        json_object_set_new(*runs, "failures", json_integer(invocations_failures(invocations)));
    }
    json_array_foreach(json_object_get(*runs, "runs"), i, run) {
        if (!live->coordinator || member_count(run, "run") != live->run)
            continue;
        json_object_set_new(run, "state", json_string("running"));
        json_object_set_new(run, "seconds", json_real(live->seconds));
    }
    return 0;
}
