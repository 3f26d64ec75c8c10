#include "coordinator/command/last_run.h"

#include <assert.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "coordinator/publish/publish.h"
#include "coordinator/status/history.h"
#include "coordinator/status/sweep_plan.h"
#include "optimizer/row.h"

static bool has_model(const struct store_run *run) {
    return reason_has_model(reason_of(run->reason));
}

/* ---- limits ---- */

/* The key of the limit that a run ended at; NULL: it ended at none. */
static const char *key_of_limit(enum reason reason) {
    switch ((int)reason) {
    case REASON_STEP_LIMIT:
        return "max_steps";
    case REASON_EPOCH_LIMIT:
        return "downpour.epochs";
    case REASON_TIME_LIMIT:
        return "max_seconds";
    }
    return NULL;
}

/* What the settings of a run say of its limit. JSON has no infinity: without a value there is none.
 */
static double read_limit(const char *settings, const char *key) {
    json_t *all = json_loads(settings, 0, NULL), *value = json_object_get(all, key);
    double limit = json_is_number(value) ? json_number_value(value) : INFINITY;
    json_decref(all);
    return limit;
}

static double limit_of_job(enum reason reason, const struct job *job) {
    return reason == REASON_STEP_LIMIT    ? (double)job->max_steps
           : reason == REASON_EPOCH_LIMIT ? job->downpour.epochs
                                          : job->max_seconds;
}

bool last_run_is_at_limit(const struct last_run *last, const struct job *job) {
    return last->concluded && key_of_limit(last->reason) &&
           limit_of_job(last->reason, job) <= last->limit;
}

/* ---- the last run ---- */

struct last_run_search {
    const char *identity;
    struct last_run *last;
};

static int take_run(void *context, const struct store_run *run) {
    const struct last_run_search *search = context;
    if (run->sweep || strcmp(run->identity, search->identity) != 0)
        return 0;
    enum reason reason = reason_of(run->reason);
    const char *key = key_of_limit(reason);
    last_run_release(search->last);
    *search->last =
        (struct last_run){.run = run->run,
                          .data = memory_copy_string(run->data),
                          .result = run->result ? memory_copy_string(run->result) : NULL,
                          .concluded = has_model(run),
                          .reason = reason,
                          .limit = key ? read_limit(run->settings, key) : NAN,
                          .over = run->reason && !reason_text_can_resume(run->reason)};
    return 0;
}

static int read_decision(struct store *store, const char *state, struct last_run *last) {
    struct history history;
    int code = history_read(store, &history);
    if (!code) {
        const struct history_item *item = history_of(&history, last->run);
        last->decided = item || history_current(state) == last->run;
        last->refused = item && item->decision == DECISION_REFUSED;
        last->kept = item && item->decision == DECISION_KEPT;
    }
    history_release(&history);
    return code;
}

static void take_record(const struct sweep_record *record, const struct sweep_shape *shape,
                        const struct sweep_runs *runs, struct last_run *last) {
    *last = (struct last_run){.run = record->winner,
                              .sweep = record->sweep,
                              .data = memory_copy_string(record->data),
                              .judged = memory_copy_string(record->judged),
                              .sources = memory_copy_string(record->sources),
                              .result = record->result ? memory_copy_string(record->result) : NULL,
                              .concluded = record->winner != 0,
                              .over = !sweep_is_open(record, shape, runs)};
    for (uint32_t i = 0; !record->winner && i < runs->count; i++)
        if (runs->members[i].run > last->run)
            last->run = runs->members[i].run;
}

static int read_sweep(struct store *store, const char *identity, const struct sweep_shape *shape,
                      struct last_run *last) {
    struct sweep_record record = {0};
    struct sweep_runs runs = {0};
    int code = sweep_record_read(store, identity, &record);
    if (!code && record.sweep)
        code = sweep_runs_read(store, record.sweep, shape, NULL, &runs);
    if (!code && record.sweep)
        take_record(&record, shape, &runs, last);
    sweep_runs_release(&runs);
    sweep_record_release(&record);
    return code;
}

int last_run_read(struct store *store, const char *state, const char *identity,
                  const struct sweep_shape *shape, struct last_run *last) {
    struct last_run_search search = {.identity = identity, .last = last};
    last_run_release(last);
    int code =
        shape ? read_sweep(store, identity, shape, last) : store_runs(store, take_run, &search);
    bool decidable = last->sweep ? last->concluded : last->run != 0;
    return code || !decidable ? code : read_decision(store, state, last);
}

void last_run_release(struct last_run *last) {
    free(last->judged);
    free(last->sources);
    free(last->data);
    free(last->result);
    *last = (struct last_run){0};
}

/* ---- what is to be done ---- */

/* A run that ended at a limit is not: it has a model, and what goes on from its end is another run,
 * which only `run` begins. */
bool last_run_is_open(const struct last_run *last) {
    return last->run && !last->concluded && !last->over && !last->decided;
}

enum task task_next(const struct last_run *last, const char *data) {
    assert(last->run || (!last->concluded && !last->decided));
    if (!last->run)
        return TASK_TRAIN;
    if (!last->concluded)
        return last_run_is_open(last) && last->has_data ? TASK_GO_ON : TASK_TRAIN;
    if (!last->decided)
        return TASK_DECIDE;
    return strcmp(last->data, data) ? TASK_TRAIN : TASK_NONE;
}

/* ---- the cost of a start from zero ---- */

struct cold_start {
    const char *identity;
    int64_t evaluations;
};

static int take_cold_start(void *context, const struct store_run *run) {
    struct cold_start *cold = context;
    if (has_model(run) && !*run->start_model && strcmp(run->identity, cold->identity) == 0)
        cold->evaluations = (int64_t)run->evaluations;
    return 0;
}

int past_cold_evaluations(struct store *store, const char *identity, int64_t *evaluations) {
    struct cold_start cold = {.identity = identity};
    int code = store_runs(store, take_cold_start, &cold);
    *evaluations = cold.evaluations;
    return code;
}
