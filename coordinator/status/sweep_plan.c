#include "coordinator/status/sweep_plan.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"

const char *sweep_choose_text(bool one_se) {
    return one_se ? "one_se" : "best";
}

static uint32_t stored_values(const json_t *settings, const char *key) {
    size_t count = json_array_size(json_object_get(settings, key));
    return count ? (uint32_t)count : 1;
}

struct sweep_shape sweep_shape_stored(const json_t *settings) {
    uint32_t inner = stored_values(settings, "l2");
    const struct score_figure *by = score_figure_find(member_text(settings, "choose_by"));
    return (struct sweep_shape){
        .values = inner * stored_values(settings, "l1"),
        .inner = inner,
        .folds = (uint32_t)member_count(settings, "folds"),
        .rule = {.by = by ? by : score_figure_find("loss"),
                 .one_se = !strcmp(member_text(settings, "choose"), sweep_choose_text(true))}};
}

uint32_t sweep_members(const struct sweep_shape *shape) {
    assert(shape->inner > 0 && shape->values % shape->inner == 0);
    return shape->values * (1 + shape->folds);
}

struct sweep_place sweep_place(const struct sweep_shape *shape, uint32_t member) {
    assert(member < sweep_members(shape));
    return (struct sweep_place){.value = member % shape->values, .fold = member / shape->values};
}

uint32_t sweep_member_at(const struct sweep_shape *shape, uint32_t value, uint32_t fold) {
    assert(value < shape->values && fold <= shape->folds);
    const uint32_t member = fold * shape->values + value;
    assert(member < sweep_members(shape));
    return member;
}

uint32_t sweep_start_of(const struct sweep_shape *shape, uint32_t member) {
    struct sweep_place place = sweep_place(shape, member);
    if (shape->independent)
        return SWEEP_NO_MEMBER;
    if (place.fold)
        return sweep_member_at(shape, place.value, 0);
    if (place.value % shape->inner)
        return member - 1;
    return place.value ? member - shape->inner : SWEEP_NO_MEMBER;
}

enum sweep_task sweep_next(const struct sweep_shape *shape, const struct sweep_member *members,
                           uint32_t *member) {
    uint32_t count = sweep_members(shape);
    assert(count > 0);
    for (*member = 0; *member < count; (*member)++) {
        if (members[*member].state == MEMBER_OPEN)
            return SWEEP_TRAIN;
        if (members[*member].state == MEMBER_FAILED)
            return SWEEP_GIVE_UP;
    }
    return SWEEP_CHOOSE;
}

/* ---- the sweep ---- */

static char *copy(const char *text) {
    return text ? memory_copy_string(text) : NULL;
}

static int take_sweep(void *context, const struct store_sweep *sweep) {
    struct sweep_record *record = context;
    *record = (struct sweep_record){.sweep = sweep->sweep,
                                    .settings = copy(sweep->settings),
                                    .data = copy(sweep->data),
                                    .evaluated_on = copy(sweep->evaluated_on),
                                    .sources = copy(sweep->sources),
                                    .start_model = copy(sweep->start_model),
                                    .result = copy(sweep->result),
                                    .ended_ms = sweep->ended_ms,
                                    .winner = sweep->winner,
                                    .decided = sweep->decided};
    return 0;
}

int sweep_record_read(struct store *store, const char *identity, struct sweep_record *record) {
    sweep_record_release(record);
    return store_sweep_last_of(store, identity, take_sweep, record);
}

void sweep_record_release(struct sweep_record *record) {
    free(record->settings);
    free(record->data);
    free(record->evaluated_on);
    free(record->sources);
    free(record->start_model);
    free(record->result);
    *record = (struct sweep_record){0};
}

/* ---- limits ---- */

const char *limit_key(enum reason reason) {
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

/* JSON has no infinity: without a value there is no limit. */
static double limit_in_settings(const json_t *settings, const char *key) {
    const json_t *value = json_object_get(settings, key);
    return json_is_number(value) ? json_number_value(value) : INFINITY;
}

bool limit_is_raised(enum reason reason, const json_t *before, const json_t *now) {
    const char *key = limit_key(reason);
    return key && limit_in_settings(now, key) > limit_in_settings(before, key);
}

bool limit_has_checkpoints(const char *state, int64_t origin) {
    char *folder = memory_format("%s/shards/%lld", state, (long long)origin);
    bool has = access(folder, F_OK) == 0;
    free(folder);
    return has;
}

/* ---- its members ---- */

struct member_read {
    uint32_t values;                   /* the full fits */
    const struct sweep_limits *limits; /* NULL: none was raised */
    struct sweep_runs *runs;
};

/* Runs come oldest first, so the newest run of a member counts. */
static int take_run(void *context, const struct store_run *run) {
    const struct member_read *reading = context;
    struct sweep_runs *runs = reading->runs;
    if (run->member >= runs->count)
        return 0;
    uint32_t at = run->member;
    const struct sweep_member *member = &runs->members[at];
    if (member->run >= run->run && member->state == MEMBER_DONE)
        return 0;
    json_decref(runs->results[at]);
    json_t *settings = json_loads(run->settings, 0, NULL);
    runs->results[at] = run->result ? json_loads(run->result, 0, NULL) : NULL;
    const enum reason reason = reason_of(run->reason);
    const struct sweep_limits *limits = reading->limits;
    enum member_state state = MEMBER_DONE;
    if (!reason_has_model(reason))
        state = !run->reason || reason_can_resume(reason) ? MEMBER_OPEN : MEMBER_FAILED;
    else if (limits && limit_is_raised(reason, settings, limits->settings) &&
             limit_has_checkpoints(limits->state, run->origin))
        state = MEMBER_OPEN; /* it goes on beyond its limit */
    runs->members[at] = (struct sweep_member){.state = state, .run = run->run};
    json_decref(settings);
    return 0;
}

/* A member whose model was removed has failed if it is a full fit: others cannot start from it.
 * Models come oldest first, and a run that went on has a later one. */
static int take_model(void *context, const struct store_model_row *model) {
    const struct member_read *reading = context;
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
                                .removed = memory_new(count, sizeof(bool))};
    return sweep ? sweep_runs_refresh(store, sweep, shape, limits, runs) : 0;
}

int sweep_runs_refresh(struct store *store, int64_t sweep, const struct sweep_shape *shape,
                       const struct sweep_limits *limits, struct sweep_runs *runs) {
    assert(sweep && runs->count == sweep_members(shape));
    struct member_read reading = {.values = shape->values, .limits = limits, .runs = runs};
    int code = store_runs_of_sweep(store, sweep, take_run, &reading);
    return code ? code : store_models_of_sweep(store, sweep, take_model, &reading);
}

void sweep_runs_release(struct sweep_runs *runs) {
    for (uint32_t i = 0; i < runs->count; i++)
        json_decref(runs->results[i]);
    free(runs->members);
    free(runs->results);
    free(runs->removed);
    *runs = (struct sweep_runs){0};
}

/* Whether the sweep, which has ended, chose by this rule. */
static bool has_chosen_by(const struct sweep_record *record, const struct sweep_rule *rule) {
    json_t *result = json_loads(record->result, 0, NULL);
    const json_t *sweep = json_object_get(result, "sweep");
    const char *by = json_string_value(json_object_get(sweep, "choose_by"));
    const char *choose = json_string_value(json_object_get(sweep, "choose"));
    bool same =
        !strcmp(by ? by : "loss", rule->by->name) &&
        !strcmp(choose ? choose : sweep_choose_text(false), sweep_choose_text(rule->one_se));
    json_decref(result);
    return same;
}

bool sweep_is_open(const struct sweep_record *record, const struct sweep_shape *shape,
                   const struct sweep_runs *runs) {
    uint32_t member;
    if (!record->sweep || !runs->members[0].run)
        return false;
    for (uint32_t i = 0; i < runs->count; i++)
        if (runs->members[i].state == MEMBER_FAILED)
            return false;
    return !record->ended_ms || !has_chosen_by(record, &shape->rule) ||
           sweep_next(shape, runs->members, &member) == SWEEP_TRAIN;
}
