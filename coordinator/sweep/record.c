#include "coordinator/sweep/record.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "coordinator/reason.h"
#include "coordinator/status/members.h"

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
                                            .ended = sweep->ended_ms != 0,
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
    uint32_t values; /* the full fits */
    struct sweep_runs *runs;
};

static enum member_state state_of(const struct store_run *run) {
    if (reason_has_model(reason_of(run->reason)))
        return MEMBER_DONE;
    return !run->reason || reason_text_can_resume(run->reason) ? MEMBER_OPEN : MEMBER_FAILED;
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
    runs->members[at] = (struct sweep_member){
        .state = state_of(run), .run = run->run, .loss = member_number(judged, "loss")};
    return 0;
}

/* Others cannot start from a full fit that was removed. */
static int take_model(void *context, const struct store_model_row *model) {
    const struct reading *reading = context;
    struct sweep_runs *runs = reading->runs;
    for (uint32_t i = 0; model->removed_ms && i < runs->count; i++) {
        if (runs->members[i].run != model->run)
            continue;
        runs->removed[i] = true;
        if (i < reading->values)
            runs->members[i].state = MEMBER_FAILED;
    }
    return 0;
}

int sweep_runs_read(struct store *store, int64_t sweep, const struct sweep_shape *shape,
                    struct sweep_runs *runs) {
    uint32_t count = sweep_members(shape);
    *runs = (struct sweep_runs){.count = count,
                                .members = memory_new(count, sizeof *runs->members),
                                .results = memory_new(count, sizeof(json_t *)),
                                .settings = memory_new(count, sizeof(json_t *)),
                                .removed = memory_new(count, sizeof(bool))};
    for (uint32_t i = 0; i < count; i++)
        runs->members[i].loss = NAN;
    struct reading reading = {.sweep = sweep, .values = shape->values, .runs = runs};
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

bool sweep_is_open(const struct sweep_record *record, const struct sweep_shape *shape,
                   const struct sweep_runs *runs) {
    uint32_t member;
    return record->sweep && !record->ended && runs->members[0].run &&
           sweep_next(shape, runs->members, &member) != SWEEP_GIVE_UP;
}
