#include "coordinator/sweep/record.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "optimizer/reason.h"
#include "coordinator/status/members.h"
#include "coordinator/reason.h"
#include "coordinator/status/figures.h"

/* ---- the sweep ---- */

struct search {
    const char *identity;
    struct sweep_record *record;
};

static char *copy(const char *text) {
    return text ? memory_copy_string(text) : NULL;
}

static int take_sweep(void *context, const struct store_sweep *sweep) {
    const struct search *search = context;
    if (strcmp(sweep->identity, search->identity) != 0)
        return 0;
    sweep_record_release(search->record);
    *search->record = (struct sweep_record){.sweep = sweep->sweep,
                                            .settings = copy(sweep->settings),
                                            .data = copy(sweep->data),
                                            .judged = copy(sweep->judged),
                                            .sources = copy(sweep->sources),
                                            .start_model = copy(sweep->start_model),
                                            .result = copy(sweep->result),
                                            .ended_ms = sweep->ended_ms,
                                            .winner = sweep->winner};
    return 0;
}

int sweep_record_read(struct store *store, const char *identity, struct sweep_record *record) {
    sweep_record_release(record);
    return store_sweeps(store, take_sweep, &(struct search){identity, record});
}

void sweep_record_release(struct sweep_record *record) {
    free(record->settings);
    free(record->data);
    free(record->judged);
    free(record->sources);
    free(record->start_model);
    free(record->result);
    *record = (struct sweep_record){0};
}

/* ---- its members ---- */

struct reading {
    int64_t sweep;
    uint32_t values;                   /* the full fits */
    const struct sweep_limits *limits; /* NULL: none was raised */
    struct sweep_runs *runs;
};

static double limit_of(const json_t *settings, const char *key) {
    const json_t *value = json_object_get(settings, key);
    return json_is_number(value) ? json_number_value(value) : INFINITY;
}

/* Whether the run ended at a limit that is higher now. */
static bool limit_is_raised(enum reason reason, const json_t *before, const json_t *now) {
    static const struct {
        enum reason reason;
        const char *key;
    } limits[] = {{REASON_STEP_LIMIT, "max_steps"},
                  {REASON_EPOCH_LIMIT, "downpour.epochs"},
                  {REASON_TIME_LIMIT, "max_seconds"}};
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++)
        if (limits[i].reason == reason)
            return limit_of(now, limits[i].key) > limit_of(before, limits[i].key);
    return false;
}

/* A command that makes room may have removed them. */
static bool has_checkpoints(const char *state, int64_t run) {
    char *folder = memory_format("%s/shards/%lld", state, (long long)run);
    bool has = access(folder, F_OK) == 0;
    free(folder);
    return has;
}

static enum member_state state_of(const struct reading *reading, const struct store_run *run,
                                  const json_t *settings) {
    enum reason reason = reason_of(run->reason);
    if (!reason_has_model(reason))
        return !run->reason || reason_can_resume(reason) ? MEMBER_OPEN : MEMBER_FAILED;
    const struct sweep_limits *limits = reading->limits;
    bool goes_on = limits && limit_is_raised(reason, settings, limits->settings) &&
                   has_checkpoints(limits->state, run->run);
    return goes_on ? MEMBER_OPEN : MEMBER_DONE;
}

/* Runs come oldest first, so the newest run of a member counts. */
static int take_run(void *context, const struct store_run *run) {
    const struct reading *reading = context;
    struct sweep_runs *runs = reading->runs;
    if (run->sweep != reading->sweep || run->member >= runs->count)
        return 0;
    uint32_t at = run->member;
    json_decref(runs->results[at]);
    json_decref(runs->settings[at]);
    runs->results[at] = run->result ? json_loads(run->result, 0, NULL) : NULL;
    runs->settings[at] = json_loads(run->settings, 0, NULL);
    const json_t *judged = json_object_get(runs->results[at], "holdout");
    runs->members[at] = (struct sweep_member){.state = state_of(reading, run, runs->settings[at]),
                                              .run = run->run,
                                              .loss = member_number(judged, "loss")};
    return 0;
}

/* Others cannot start from a full fit that was removed. Models come oldest first; a run that went
 * on has another one. */
static int take_model(void *context, const struct store_model_row *model) {
    const struct reading *reading = context;
    struct sweep_runs *runs = reading->runs;
    for (uint32_t i = 0; i < runs->count; i++) {
        if (runs->members[i].run != model->run)
            continue;
        runs->removed[i] = model->removed_ms != 0;
        if (runs->removed[i] && i < reading->values)
            runs->members[i].state = MEMBER_FAILED;
    }
    return 0;
}

int sweep_runs_read(struct store *store, int64_t sweep, const struct sweep_shape *shape,
                    const struct sweep_limits *limits, struct sweep_runs *runs) {
    uint32_t count = sweep_members(shape);
    *runs = (struct sweep_runs){.count = count,
                                .members = memory_new(count, sizeof *runs->members),
                                .results = memory_new(count, sizeof(json_t *)),
                                .settings = memory_new(count, sizeof(json_t *)),
                                .removed = memory_new(count, sizeof(bool))};
    for (uint32_t i = 0; i < count; i++)
        runs->members[i].loss = NAN;
    struct reading reading = {
        .sweep = sweep, .values = shape->values, .limits = limits, .runs = runs};
    int code = sweep ? store_runs(store, take_run, &reading) : 0;
    if (!code && sweep)
        code = store_models(store, take_model, &reading);
    return code;
}

void sweep_runs_release(struct sweep_runs *runs) {
    for (uint32_t i = 0; i < runs->count; i++) {
        json_decref(runs->results[i]);
        json_decref(runs->settings[i]);
    }
    free(runs->members);
    free(runs->results);
    free(runs->settings);
    free(runs->removed);
    *runs = (struct sweep_runs){0};
}

static bool any_failed(const struct sweep_runs *runs) {
    for (uint32_t i = 0; i < runs->count; i++)
        if (runs->members[i].state == MEMBER_FAILED)
            return true;
    return false;
}

bool sweep_is_open(const struct sweep_record *record, const struct sweep_shape *shape,
                   const struct sweep_runs *runs) {
    uint32_t member;
    enum sweep_task next = sweep_next(shape, runs->members, &member);
    if (!record->sweep || !runs->members[0].run || any_failed(runs))
        return false;
    return next == SWEEP_TRAIN || !record->ended_ms;
}
