#include "coordinator/command/last_run.h"

#include <assert.h>
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

/* ---- the last run ---- */

static int read_run(struct store *store, const char *identity, struct last_run *last) {
    struct store_run run;
    bool found;
    int code = store_run_last_of(store, identity, &run, &found);
    if (found)
        *last = (struct last_run){.run = run.run,
                                  .data = memory_copy_string(run.data),
                                  .start_model = memory_copy_string(run.start_model),
                                  .result = run.result ? memory_copy_string(run.result) : NULL,
                                  .concluded = has_model(&run),
                                  .reason = reason_of(run.reason),
                                  .settings = json_loads(run.settings, 0, NULL),
                                  .over = run.reason && !reason_text_can_resume(run.reason)};
    store_run_release(&run);
    return code;
}

static int read_sweep(struct store *store, const char *identity, const struct sweep_shape *shape,
                      struct last_run *last) {
    struct sweep_record record = {0};
    struct sweep_runs runs = {0};
    int code = sweep_record_read(store, identity, &record);
    if (!code && record.sweep)
        code = sweep_runs_read(store, record.sweep, shape, NULL, &runs);
    if (!code && record.sweep)
        *last =
            (struct last_run){.run = record.winner,
                              .sweep = record.sweep,
                              .data = memory_copy_string(record.data),
                              .start_model = memory_copy_string(record.start_model),
                              .evaluated_on = memory_copy_string(record.evaluated_on),
                              .sources = memory_copy_string(record.sources),
                              .result = record.result ? memory_copy_string(record.result) : NULL,
                              .concluded = record.winner != 0,
                              .over = !sweep_is_open(&record, shape, &runs)};
    assert(code || last->sweep == record.sweep);
    for (uint32_t i = 0; !code && !record.winner && i < runs.count; i++)
        if (runs.members[i].run > last->run)
            last->run = runs.members[i].run;
    sweep_runs_release(&runs);
    sweep_record_release(&record);
    return code;
}

int last_run_read(struct store *store, const char *state, const char *identity,
                  const struct sweep_shape *shape, struct last_run *last) {
    last_run_release(last);
    int code = shape ? read_sweep(store, identity, shape, last) : read_run(store, identity, last);
    bool decidable = last->sweep ? last->concluded : last->run != 0;
    if (code || !decidable)
        return code;
    struct history history;
    code = history_read(store, &history);
    if (!code) {
        const struct history_item *item = history_of(&history, last->run);
        last->decided = item || history_current(state) == last->run;
        last->refused = item && item->decision == DECISION_REFUSED;
        last->kept = item && item->decision == DECISION_KEPT;
    }
    history_release(&history);
    assert(!(last->refused && last->kept));
    return code;
}

void last_run_release(struct last_run *last) {
    free(last->evaluated_on);
    free(last->sources);
    free(last->data);
    free(last->start_model);
    free(last->result);
    json_decref(last->settings);
    *last = (struct last_run){0};
}

/* ---- what is to be done ---- */

/* A run that ended at a limit is not: it has a model, and what goes on from its end is another run,
 * which only `run` begins. */
bool last_run_is_open(const struct last_run *last) {
    return last->run && !last->concluded && !last->over && !last->decided;
}

/* Some settings change the model although they change no training. A setting that an earlier run
 * did not record had its default. */
bool last_run_is_at_limit(const struct last_run *last, const struct job *job) {
    static const char *const keys[] = {"calibrate", "prior_correction", "threshold",
                                       "cost.false_positive", "cost.false_negative"};
    json_t *now = job_settings(job);
    bool at_limit = last->concluded && limit_key(last->reason) &&
                    !limit_is_raised(last->reason, last->settings, now);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const json_t *before = json_object_get(last->settings, keys[i]);
        at_limit &= !before || json_equal(before, json_object_get(now, keys[i]));
    }
    json_decref(now);
    return at_limit;
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

static int take_cold_start(void *context, const struct store_run *run) {
    int64_t *evaluations = context;
    if (!*evaluations && has_model(run))
        *evaluations = (int64_t)run->evaluations;
    return 0;
}

int past_cold_evaluations(struct store *store, const char *identity, int64_t *evaluations) {
    *evaluations = 0;
    return store_runs_cold(store, identity, take_cold_start, evaluations);
}
