/* What is still needed, for prune.h: runs with their data, versions of the model, checkpoints. */
#include "coordinator/publish/prune.h"

#include <assert.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "coordinator/machine/coordinator.h"
#include "coordinator/run/model_removal.h"
#include "coordinator/run/state_folder.h"
#include "coordinator/status/history.h"
#include "optimizer/row.h"

#define KEEP_MODELS 5 /* if no run says how many */

struct need {
    int64_t run, start_run, sweep, origin;
    char *job, *identity, *data;
    bool open; /* it can go on and has no model yet */
    bool needed;
};

struct need_pack {
    char *fingerprint;
    bool needed;
};

static int needs_take_run(void *context, const struct store_run *run) {
    struct needs *needs = context;
    bool has_model = reason_has_model(reason_of(run->reason));
    json_t *settings = json_loads(run->settings, 0, NULL);
    json_int_t keep = json_integer_value(json_object_get(settings, "keep_models"));
    json_decref(settings);
    needs->keep_models = keep > 0 ? (uint32_t)keep : KEEP_MODELS;
    needs->runs = memory_resize(needs->runs, needs->count + 1, sizeof *needs->runs);
    needs->runs[needs->count++] =
        (struct need){.run = run->run,
                      .start_run = run->start_run,
                      .sweep = run->sweep,
                      .origin = run->origin,
                      .job = memory_copy_string(run->job),
                      .identity = memory_copy_string(run->identity),
                      .data = memory_copy_string(run->data),
                      .open = !run->reason || (reason_text_can_resume(run->reason) && !has_model)};
    return 0;
}

/* For taking the sources of one run. */
struct source_search {
    struct needs *needs;
    bool needed; /* the run is */
};

static int needs_take_source(void *context, const struct store_source *source) {
    const struct source_search *search = context;
    struct needs *needs = search->needs;
    needs->packs = memory_resize(needs->packs, needs->pack_count + 1, sizeof *needs->packs);
    needs->packs[needs->pack_count++] = (struct need_pack){
        .fingerprint = memory_copy_string(source->fingerprint), .needed = search->needed};
    return 0;
}

static int needs_take_sweep(void *context, const struct store_sweep *sweep) {
    struct needs *needs = context;
    needs->unfinished |= !sweep->ended_ms;
    return 0;
}

/* Whether no later run is of the same job, or of the same settings and data. Members of one sweep
 * do not replace each other. */
static void look_ahead(const struct needs *needs, size_t i, bool *newest, bool *unreplaced) {
    const struct need *run = &needs->runs[i];
    *newest = *unreplaced = true;
    for (size_t j = i + 1; j < needs->count; j++) {
        const struct need *later = &needs->runs[j];
        if (run->sweep && later->sweep == run->sweep)
            continue;
        if (strcmp(later->job, run->job) == 0)
            *newest = false;
        if (strcmp(later->identity, run->identity) == 0 && strcmp(later->data, run->data) == 0)
            *unreplaced = false;
    }
}

/* The run may have been saved by another version of this program, which alone can go on with it. It
 * is needed until a later run of its job has begun: then nobody means to finish it. */
static int check_open(struct store *store, struct need *run, bool newest) {
    struct store_saved saved;
    int code = store_saved_read(store, run->run, &saved);
    if (!code && coordinator_check_saved(&saved, run->run)) {
        run->open = newest;
        if (newest)
            log_info("%s; prune removes what it needs once a later run of its job has begun",
                     error_text());
        error_clear();
    }
    if (!code)
        store_saved_release(&saved);
    return code;
}

static int find_needed(struct store *store, struct needs *needs) {
    int code = 0;
    for (size_t i = 0; i < needs->count && !code; i++) {
        struct need *run = &needs->runs[i];
        bool newest, unreplaced;
        look_ahead(needs, i, &newest, &unreplaced);
        if (run->open)
            code = check_open(store, run, newest);
        if (code)
            break;
        run->needed = newest || (run->open && unreplaced) || run->run > needs->decided;
        needs->unfinished |= run->needed && run->open;
        code = store_sources(store, run->run, needs_take_source,
                             &(struct source_search){needs, run->needed});
    }
    return code;
}

int needs_read(struct store *store, struct needs *needs) {
    *needs = (struct needs){.keep_models = KEEP_MODELS};
    struct history history;
    int code = history_read(store, &history);
    if (!code && history.count) {
        /* A decision that is not settled may not be in force yet, so the model that was live before
         * counts as well. */
        const struct history_item *last = &history.items[history.count - 1];
        needs->decided = last->run;
        needs->live = history_live(&history);
        needs->before = last->previous_run;
    }
    history_release(&history);
    if (!code)
        code = store_runs(store, needs_take_run, needs);
    if (!code)
        code = store_sweeps(store, needs_take_sweep, needs);
    return code ? code : find_needed(store, needs);
}

void needs_release(struct needs *needs) {
    for (size_t i = 0; i < needs->count; i++) {
        free(needs->runs[i].job);
        free(needs->runs[i].identity);
        free(needs->runs[i].data);
    }
    for (size_t i = 0; i < needs->pack_count; i++)
        free(needs->packs[i].fingerprint);
    free(needs->runs);
    free(needs->packs);
    *needs = (struct needs){0};
}

bool needs_run(const struct needs *needs, int64_t run) {
    for (size_t i = 0; i < needs->count; i++)
        if (needs->runs[i].needed && needs->runs[i].run == run)
            return true;
    return false;
}

bool needs_checkpoints(const struct needs *needs, int64_t origin) {
    for (size_t i = 0; i < needs->count; i++)
        if (needs->runs[i].needed && needs->runs[i].origin == origin)
            return true;
    return false;
}

bool needs_failed(const struct needs *needs, int64_t run) {
    for (size_t i = 0; i < needs->count; i++)
        if (needs->runs[i].needed && needs->runs[i].open && needs->runs[i].run == run)
            return true;
    return false;
}

bool needs_model(const struct needs *needs, int64_t run) {
    for (size_t i = 0; i < needs->count; i++)
        if (needs->runs[i].needed && needs->runs[i].start_run == run)
            return true;
    return run == needs->live || run == needs->before || needs_run(needs, run);
}

bool needs_set(const struct needs *needs, const char *fingerprint) {
    for (size_t i = 0; i < needs->count; i++)
        if (needs->runs[i].needed && strcmp(needs->runs[i].data, fingerprint) == 0)
            return true;
    return false;
}

enum need_for_pack needs_pack(const struct needs *needs, const char *name) {
    enum need_for_pack answer = PACK_UNKNOWN;
    for (size_t i = 0; i < needs->pack_count && answer != PACK_NEEDED; i++) {
        const struct need_pack *pack = &needs->packs[i];
        if (strncmp(name, pack->fingerprint, strlen(pack->fingerprint)) == 0)
            answer = pack->needed ? PACK_NEEDED : PACK_NOT_NEEDED;
    }
    return answer;
}

/* ---- versions of the model ---- */

struct version {
    int64_t run, sweep; /* sweep: 0: none */
};

struct version_list {
    struct version *items; /* oldest first, each once */
    size_t count;
    int64_t newest; /* sweep */
};

static int take_model(void *context, const struct store_model_row *model) {
    struct version_list *list = context;
    if (model->removed_ms)
        return 0;
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].run == model->run)
            return 0;
    list->items = memory_resize(list->items, list->count + 1, sizeof *list->items);
    list->items[list->count++] = (struct version){.run = model->run};
    return 0;
}

static int versions_take_sweep(void *context, const struct store_run *run) {
    struct version_list *list = context;
    for (size_t i = 0; run->sweep && i < list->count; i++)
        if (list->items[i].run == run->run)
            list->items[i].sweep = run->sweep;
    if (run->sweep > list->newest)
        list->newest = run->sweep;
    return 0;
}

/* Keeps in `list` only the versions that are to be removed. A version of a sweep about which there
 * is no decision was passed over for another one of that sweep, and was never to go live. */
static void select_superfluous(struct version_list *list, const struct history *history,
                               int64_t live, uint32_t keep) {
    int64_t before = history_before(history, live);
    uint32_t kept = (live ? 1u : 0) + (before ? 1u : 0);
    size_t first = list->count;
    bool refused_kept = false;
    for (size_t i = list->count; i; i--) {
        struct version version = list->items[i - 1];
        const struct history_item *decided = history_of(history, version.run);
        bool refused = decided && decided->decision == DECISION_REFUSED, stays;
        if (version.run == live || version.run == before)
            continue;
        if (version.sweep && !decided) {
            stays = version.sweep == list->newest;
        } else {
            stays = refused ? !refused_kept : kept < keep;
            kept += stays && !refused;
            refused_kept |= refused;
        }
        assert(first >= i);
        if (!stays)
            list->items[--first] = version;
    }
    list->count -= first;
    memmove(list->items, list->items + first, list->count * sizeof *list->items);
}

int versions_superfluous(struct store *store, const char *state, uint32_t keep, int64_t **runs,
                         size_t *count) {
    struct version_list list = {0};
    struct history history;
    int code = history_read(store, &history);
    if (!code)
        code = store_models(store, take_model, &list);
    if (!code)
        code = store_runs(store, versions_take_sweep, &list);
    if (!code)
        select_superfluous(&list, &history, history_current(state), keep);
    *runs = memory_new(list.count, sizeof **runs);
    *count = code ? 0 : list.count;
    for (size_t i = 0; i < *count; i++)
        (*runs)[i] = list.items[i].run;
    history_release(&history);
    free(list.items);
    return code;
}

int versions_prune(struct loop *loop, struct store *store, const char *state, uint32_t keep) {
    int64_t *runs;
    size_t count;
    int code = versions_superfluous(store, state, keep, &runs, &count);
    if (!code)
        code = models_remove(loop, store, state, runs, count, "later versions are enough");
    free(runs);
    return code;
}

/* ---- checkpoints ---- */

/* Of a run that began anew, and of all that went on from its end. */
struct checkpoints {
    int64_t origin;
    bool needed;
};

struct checkpoint_list {
    const char *state;
    int64_t keep;
    struct checkpoints *items;
    size_t count;
};

static int checkpoints_take_run(void *context, const struct store_run *run) {
    struct checkpoint_list *list = context;
    size_t i = 0;
    while (i < list->count && list->items[i].origin != run->origin)
        i++;
    if (i == list->count) {
        list->items = memory_resize(list->items, ++list->count, sizeof *list->items);
        list->items[i] = (struct checkpoints){.origin = run->origin};
    }
    list->items[i].needed |= !run->ended_ms || run->run == list->keep;
    return 0;
}

static int work_on_checkpoints(void *context) {
    const struct checkpoint_list *list = context;
    for (size_t i = 0; i < list->count; i++) {
        char *folder =
            memory_format("%s/shards/%lld", list->state, (long long)list->items[i].origin);
        if (!list->items[i].needed && access(folder, F_OK) == 0)
            folder_remove(folder);
        free(folder);
    }
    return 0;
}

int versions_prune_checkpoints(struct loop *loop, struct store *store, const char *state,
                               int64_t keep) {
    struct checkpoint_list list = {.state = state, .keep = keep};
    int code = store_runs(store, checkpoints_take_run, &list);
    if (!code)
        code = loop_beside(loop, STAGE_ENDING, work_on_checkpoints, &list);
    free(list.items);
    return code;
}
