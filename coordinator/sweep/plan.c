#include "coordinator/sweep/plan.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "optimizer/row.h"

uint32_t sweep_members(const struct sweep_shape *shape) {
    return shape->values * (1 + shape->folds);
}

struct sweep_place sweep_place(const struct sweep_shape *shape, uint32_t member) {
    assert(member < sweep_members(shape));
    return (struct sweep_place){.value = member % shape->values, .fold = member / shape->values};
}

uint32_t sweep_member_at(const struct sweep_shape *shape, uint32_t value, uint32_t fold) {
    assert(value < shape->values && fold <= shape->folds);
    return fold * shape->values + value;
}

uint32_t sweep_start_of(const struct sweep_shape *shape, uint32_t member) {
    struct sweep_place place = sweep_place(shape, member);
    if (shape->apart)
        return SWEEP_NO_MEMBER;
    if (place.fold)
        return sweep_member_at(shape, place.value, 0);
    return place.value ? member - 1 : SWEEP_NO_MEMBER;
}

enum sweep_task sweep_next(const struct sweep_shape *shape, const struct sweep_member *members,
                           uint32_t *member) {
    uint32_t count = sweep_members(shape);
    for (*member = 0; *member < count; (*member)++) {
        if (members[*member].state == MEMBER_OPEN)
            return SWEEP_TRAIN;
        if (members[*member].state == MEMBER_FAILED)
            return SWEEP_GIVE_UP;
    }
    return SWEEP_CHOOSE;
}

struct sweep_spread sweep_spread(const double *numbers, uint32_t count) {
    double sum = 0, squares = 0;
    assert(count > 0);
    for (uint32_t i = 0; i < count; i++)
        sum += numbers[i];
    double mean = sum / count;
    for (uint32_t i = 0; i < count; i++)
        squares += (numbers[i] - mean) * (numbers[i] - mean);
    return (struct sweep_spread){mean, count > 1 ? sqrt(squares / (count - 1)) : 0};
}

/* The losses of a value's members over the folds, [folds]. */
static void sweep_fold_losses(const struct sweep_shape *shape, const struct sweep_member *members,
                              uint32_t value, double *losses) {
    for (uint32_t fold = 1; fold <= shape->folds; fold++)
        losses[fold - 1] = members[sweep_member_at(shape, value, fold)].loss;
}

static double loss_of(const struct sweep_shape *shape, const struct sweep_member *members,
                      uint32_t value) {
    if (!shape->folds)
        return members[value].loss;
    double *losses = memory_new(shape->folds, sizeof *losses);
    sweep_fold_losses(shape, members, value, losses);
    double mean = sweep_spread(losses, shape->folds).mean;
    free(losses);
    return mean;
}

uint32_t sweep_winner(const struct sweep_shape *shape, const struct sweep_member *members) {
    double least = INFINITY;
    uint32_t winner = 0;
    assert(shape->values > 0);
    for (uint32_t value = 0; value < shape->values; value++) {
        double loss = loss_of(shape, members, value);
        if (loss < least) {
            least = loss;
            winner = value;
        }
    }
    return winner;
}

/* ---- the sweep ---- */

struct sweep_search {
    const char *identity;
    struct sweep_record *record;
};

static char *copy(const char *text) {
    return text ? memory_copy_string(text) : NULL;
}

static int take_sweep(void *context, const struct store_sweep *sweep) {
    const struct sweep_search *search = context;
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
    return store_sweeps(store, take_sweep, &(struct sweep_search){identity, record});
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

struct member_read {
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

/* `prune` may have removed them. */
static bool has_checkpoints(const char *state, int64_t run) {
    char *folder = memory_format("%s/shards/%lld", state, (long long)run);
    bool has = access(folder, F_OK) == 0;
    free(folder);
    return has;
}

static enum member_state state_of(const struct member_read *reading, const struct store_run *run,
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
    const struct member_read *reading = context;
    struct sweep_runs *runs = reading->runs;
    if (run->sweep != reading->sweep || run->member >= runs->count)
        return 0;
    uint32_t at = run->member;
    json_decref(runs->results[at]);
    json_t *settings = json_loads(run->settings, 0, NULL);
    runs->results[at] = run->result ? json_loads(run->result, 0, NULL) : NULL;
    const json_t *judged = json_object_get(runs->results[at], "holdout");
    runs->members[at] = (struct sweep_member){.state = state_of(reading, run, settings),
                                              .run = run->run,
                                              .loss = member_number(judged, "loss")};
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
    for (uint32_t i = 0; i < count; i++)
        runs->members[i].loss = NAN;
    struct member_read reading = {
        .sweep = sweep, .values = shape->values, .limits = limits, .runs = runs};
    int code = sweep ? store_runs(store, take_run, &reading) : 0;
    if (!code && sweep)
        code = store_models(store, take_model, &reading);
    return code;
}

void sweep_runs_release(struct sweep_runs *runs) {
    for (uint32_t i = 0; i < runs->count; i++)
        json_decref(runs->results[i]);
    free(runs->members);
    free(runs->results);
    free(runs->removed);
    *runs = (struct sweep_runs){0};
}

bool sweep_is_open(const struct sweep_record *record, const struct sweep_shape *shape,
                   const struct sweep_runs *runs) {
    uint32_t member;
    if (!record->sweep || !runs->members[0].run)
        return false;
    for (uint32_t i = 0; i < runs->count; i++)
        if (runs->members[i].state == MEMBER_FAILED)
            return false;
    return !record->ended_ms || sweep_next(shape, runs->members, &member) == SWEEP_TRAIN;
}

/* What a row of the table has from the result of its full fit. */
static const char *const from_result[] = {"l2",      "l1",          "run",    "loss",
                                          "steps",   "evaluations", "reason", "converged",
                                          "nonzero", "holdout",     "test",   "model_sha256"};

static void copy_member(json_t *row, const json_t *from, const char *name) {
    json_t *value = json_object_get(from, name);
    if (value)
        json_object_set(row, name, value);
}

static json_t *spread_json(const double *numbers, uint32_t count) {
    struct sweep_spread spread = sweep_spread(numbers, count);
    return json_pack("{s:o, s:o}", "mean", number_json(spread.mean), "deviation",
                     number_json(spread.deviation));
}

/* A figure over all folds, if each fold has it. */
static void add_figure(json_t *figures, const struct sweep_shape *shape,
                       const struct sweep_runs *runs, uint32_t value, const char *name) {
    double *numbers = memory_new(shape->folds, sizeof *numbers);
    bool all = true;
    for (uint32_t i = 0; i < shape->folds; i++) {
        const json_t *result = runs->results[sweep_member_at(shape, value, i + 1)];
        const json_t *number = json_object_get(json_object_get(result, "holdout"), name);
        numbers[i] = json_number_value(number);
        all &= json_is_real(number);
    }
    if (all)
        json_object_set_new(figures, name, spread_json(numbers, shape->folds));
    free(numbers);
}

/* What the folds say of a value: its loss, and each other figure that is no count. */
static json_t *folds_json(const struct sweep_shape *shape, const struct sweep_runs *runs,
                          uint32_t value) {
    double *losses = memory_new(shape->folds, sizeof *losses);
    sweep_fold_losses(shape, runs->members, value, losses);
    json_t *folds = spread_json(losses, shape->folds);
    json_t *list = json_array(), *figures = json_object();
    for (uint32_t i = 0; i < shape->folds; i++)
        json_array_append_new(list, number_json(losses[i]));
    const char *name;
    json_t *unused;
    json_t *first = json_object_get(runs->results[sweep_member_at(shape, value, 1)], "holdout");
    json_object_foreach(first, name, unused) if (strcmp(name, "loss") != 0)
        add_figure(figures, shape, runs, value, name);
    json_object_set_new(folds, "losses", list);
    json_object_set_new(folds, "figures", figures);
    free(losses);
    return folds;
}

static json_t *row_json(const struct sweep_shape *shape, const struct sweep_runs *runs,
                        uint32_t value, bool chosen) {
    json_t *row = json_object();
    for (size_t i = 0; i < sizeof from_result / sizeof from_result[0]; i++)
        copy_member(row, runs->results[value], from_result[i]);
    const json_t *loss = json_object_get(json_object_get(row, "holdout"), "loss");
    if (loss)
        json_object_set(row, "holdout_loss", (json_t *)(uintptr_t)loss);
    if (shape->folds)
        json_object_set_new(row, "folds", folds_json(shape, runs, value));
    json_object_set_new(row, "chosen", json_boolean(chosen));
    return row;
}

json_t *sweep_result(int64_t sweep, const struct sweep_shape *shape,
                     const struct sweep_runs *runs) {
    uint32_t winner = sweep_winner(shape, runs->members);
    assert(runs->count == sweep_members(shape) && runs->members[winner].state == MEMBER_DONE);
    json_t *path = json_array();
    json_int_t evaluations = 0;
    for (uint32_t i = 0; i < runs->count; i++)
        evaluations += member_count(runs->results[i], "evaluations");
    for (uint32_t value = 0; value < shape->values; value++)
        json_array_append_new(path, row_json(shape, runs, value, value == winner));
    json_t *result = json_deep_copy(runs->results[winner]);
    json_object_set_new(result, "sweep",
                        json_pack("{s:I, s:i, s:i, s:I}", "number", (json_int_t)sweep, "runs",
                                  (int)runs->count, "folds", (int)shape->folds, "evaluations",
                                  evaluations));
    json_object_set_new(result, "path", path);
    return result;
}
