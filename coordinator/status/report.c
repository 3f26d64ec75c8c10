#include "coordinator/status/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "config.h"
#include "optimizer/reason.h"
#include "coordinator/status/figures.h"
#include "coordinator/status/history.h"
#include "coordinator/status/live.h"

/* Where results are kept says nothing about them. */
static bool is_told(const char *key) {
    return strcmp(key, "name") != 0 && strcmp(key, "state") != 0;
}

static json_t *compare(const char *before, const char *now) {
    json_t *old = json_loads(before, 0, NULL), *new = json_loads(now, 0, NULL);
    json_t *changed = json_object(), *value;
    const char *key;
    json_object_foreach(new, key, value) {
        json_t *from = json_object_get(old, key);
        if (from && is_told(key) && !json_equal(from, value))
            json_object_set_new(changed, key, json_pack("{s:O, s:O}", "from", from, "to", value));
    }
    json_decref(old);
    json_decref(new);
    return changed;
}

json_t *changes_note(struct changes *changes, const struct store_run *run) {
    bool comparable = changes->job && strcmp(changes->job, run->job) == 0;
    json_t *changed = comparable ? compare(changes->settings, run->settings) : json_null();
    if (comparable && strcmp(changes->data, run->data) && !json_object_get(changed, "data"))
        json_object_set_new(changed, "data",
                            json_pack("{s:s, s:s}", "from", changes->data, "to", run->data));
    changes_release(changes);
    *changes = (struct changes){.job = memory_copy_string(run->job),
                                .settings = memory_copy_string(run->settings),
                                .data = memory_copy_string(run->data)};
    return changed;
}

void changes_release(struct changes *changes) {
    free(changes->job);
    free(changes->settings);
    free(changes->data);
    *changes = (struct changes){0};
}

static json_t *text_or_null(const char *text) {
    return text && *text ? text_to_json(text) : json_null();
}

static int take_wall_ms(void *context, const struct store_step *step) {
    *(int64_t *)context = step->wall_ms;
    return 0;
}

/* When a run ended; if it has not ended, when its last step or its start was recorded. */
static int last_ms(struct store *store, const struct store_run *run, int64_t *wall_ms) {
    *wall_ms = run->ended_ms ? run->ended_ms : run->started_ms;
    return run->ended_ms ? 0 : store_steps(store, run->run, run->steps, take_wall_ms, wall_ms);
}

static const char *state_of(const struct store_run *run) {
    return run->ended_ms ? "ended" : "interrupted";
}

/* As the result says, or the reason if there is no result. Null until the run has ended. */
static json_t *converged_json(const char *reason, const json_t *result) {
    json_t *converged = json_object_get(result, "converged");
    if (!reason)
        return json_null();
    return converged ? json_incref(converged)
                     : json_boolean(reason_has_converged(reason_of(reason)));
}

/* Members of a run's result; null where it lacks them, or is NULL. */
static void add_members(json_t *to, const json_t *result, const char *const *names) {
    for (; *names; names++) {
        json_t *value = json_object_get(result, *names);
        json_object_set_new(to, *names, value ? json_incref(value) : json_null());
    }
}

void report_add_end(json_t *status, const json_t *result) {
    static const char *const members[] = {"reason", "converged", "shortfall",    "holdout",
                                          "test",   "model",     "model_sha256", NULL};
    add_members(status, result, members);
}

/* A run without a result is told by its settings alone. A network's objective is its loss. */
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

/* What else the result says of the run. */
static void add_result(json_t *status, const struct store_run *run) {
    static const char *const members[] = {
        "objective",     "network",    "examples",       "features", "parameters", "history",
        "backup_copies", "safeguards", "preconditioner", "l1",       "l2",         "nonzero",
        "gap_bound",     "tensors",    "downpour",       NULL};
    static const char *const of_best[] = {"holdout_loss", "holdout_accuracy", NULL};
    json_t *result = run->result ? json_loads(run->result, 0, NULL) : NULL;
    json_t *settings = json_loads(run->settings, 0, NULL);
    report_add_end(status, result);
    json_object_set_new(status, "reason", text_or_null(run->reason));
    json_object_set_new(status, "converged", converged_json(run->reason, result));
    add_members(status, result, members);
    add_members(status, json_object_get(result, "early_stopping"), of_best);
    if (!result)
        add_settings(status, settings);
    json_object_set_new(status, "settings", settings ? settings : json_null());
    json_decref(result);
}

/* Of a run without a result. */
static int add_epochs(struct store *store, const struct store_run *run, json_t *status) {
    json_t *downpour;
    int code = epochs_stored_json(store, run->run, json_object_get(status, "settings"), &downpour);
    json_object_set_new(status, "downpour", downpour);
    return code;
}

struct process_list {
    json_t *list;
    bool ended;
};

static int take_process(void *context, const struct store_process_row *process) {
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

static int take_host(void *context, const struct store_host *host) {
    json_array_append_new(context, host_json(host));
    return 0;
}

int report_status(struct store *store, json_t **status) {
    struct store_run run;
    bool found;
    int64_t wall_ms = 0;
    int code = store_run_last(store, &run, &found);
    if (!code && !found)
        code = error_set(ERROR_UNAVAILABLE, "nothing was run there yet");
    if (!code)
        code = last_ms(store, &run, &wall_ms);
    if (code)
        return code;
    struct process_list processes = {.list = json_array(), .ended = run.ended_ms != 0};
    code = store_processes(store, run.run, take_process, &processes);
    *status = json_pack(
        "{s:o, s:I, s:s, s:I, s:o, s:o, s:{s:I, s:n, s:n, s:n}, s:I, s:I, s:f, s:s, s:o, s:n}",
        "job", text_to_json(run.job), "run", (json_int_t)run.run, "state", state_of(&run), "step",
        (json_int_t)run.steps, "loss", number_json(run.loss), "gradient_max",
        number_json(run.gradient_max), "evaluation", "number", (json_int_t)run.evaluations,
        "chunks", "counted", "map", "evaluations", (json_int_t)run.evaluations, "started_ms",
        (json_int_t)run.started_ms, "seconds", (double)(wall_ms - run.started_ms) / 1e3, "version",
        PACKAGE_VERSION, "processes", processes.list, "waiting");
    json_t *hosts = json_array();
    if (!code)
        code = store_hosts(store, run.run, take_host, hosts);
    json_object_set_new(*status, "hosts", hosts);
    add_result(*status, &run);
    return code || run.result ? code : add_epochs(store, &run, *status);
}

struct runs_listed {
    struct store *store;
    struct history history;
    int64_t current;
    struct changes changes;
    json_t *list;
};

/* "live" (what `current` points to), "pending" (it was decided that the run's model goes live, but
 * the command was cut off before it did), "published" (it was live once), "refused", or null if
 * there is no decision. */
static json_t *publication_of(const struct runs_listed *runs, int64_t run) {
    const struct history_item *item = history_of(&runs->history, run);
    if (!item)
        return json_null();
    if (item->decision == DECISION_REFUSED)
        return json_string("refused");
    if (run == runs->current)
        return json_string("live");
    return json_string(item == history_pending(&runs->history) ? "pending" : "published");
}

/* The figures on the holdout and the test data, without what is for each class. */
static void drop_classes(json_t *run) {
    static const char *const over[] = {"holdout", "test"};
    for (size_t i = 0; i < sizeof over / sizeof over[0]; i++) {
        json_object_del(json_object_get(run, over[i]), "classes");
        json_object_del(json_object_get(run, over[i]), "confusion");
    }
}

static int take_run(void *context, const struct store_run *run) {
    struct runs_listed *runs = context;
    const char *folder, *sha256;
    int64_t wall_ms;
    int code = last_ms(runs->store, run, &wall_ms);
    if (!code)
        code = store_model_of(runs->store, run->run, &folder, &sha256);
    if (code)
        return code;
    static const char *const told[] = {"l1", "l2", "nonzero", "downpour", "holdout", "test", NULL};
    json_t *result = run->result ? json_loads(run->result, 0, NULL) : NULL;
    json_t *of_run = json_pack(
        "{s:I, s:o, s:s, s:o, s:o, s:I, s:o, s:f, s:I, s:I, s:o, s:o, s:o, s:o, s:o}", "run",
        (json_int_t)run->run, "job", text_to_json(run->job), "state", state_of(run), "reason",
        text_or_null(run->reason), "converged", converged_json(run->reason, result), "started_ms",
        (json_int_t)run->started_ms, "ended_ms",
        run->ended_ms ? json_integer(run->ended_ms) : json_null(), "seconds",
        (double)(wall_ms - run->started_ms) / 1e3, "steps", (json_int_t)run->steps, "evaluations",
        (json_int_t)run->evaluations, "loss", number_json(run->loss), "gradient_max",
        number_json(run->gradient_max), "model", text_or_null(folder), "model_sha256",
        text_or_null(sha256), "publication", publication_of(runs, run->run));
    if (run->sweep)
        json_object_set_new(of_run, "sweep",
                            json_pack("{s:I, s:I}", "number", (json_int_t)run->sweep, "member",
                                      (json_int_t)run->member));
    add_members(of_run, result, told);
    json_decref(result);
    drop_classes(of_run);
    json_object_set_new(of_run, "changed", changes_note(&runs->changes, run));
    json_array_append_new(runs->list, of_run);
    return 0;
}

int report_runs(struct store *store, json_t **runs) {
    char *folder = store_folder(store);
    struct runs_listed list = {
        .store = store, .current = history_current(folder), .list = json_array()};
    free(folder);
    int code = history_read(store, &list.history);
    if (!code)
        code = store_runs(store, take_run, &list);
    history_release(&list.history);
    changes_release(&list.changes);
    *runs = json_pack("{s:o}", "runs", list.list);
    if (code) {
        json_decref(*runs);
        *runs = NULL;
    }
    return code;
}
