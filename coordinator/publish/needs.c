/* What is still needed, for prune.h: runs with their data, versions of the model, checkpoints. */
#include "coordinator/publish/prune.h"

#include <assert.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "coordinator/machine/coordinator.h"
#include "coordinator/run/model_removal.h"
#include "coordinator/run/state_folder.h"
#include "coordinator/status/history.h"
#include "coordinator/status/run_folder.h"
#include "optimizer/row.h"

#define KEEP_MODELS 5 /* if no run says how many */

/* ---- numbers in their order ---- */

static int compare_numbers(const void *a, const void *b) {
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static void sort_numbers(int64_t *numbers, size_t count) {
    if (count)
        qsort(numbers, count, sizeof *numbers, compare_numbers);
}

static bool has_number(const int64_t *numbers, size_t count, int64_t number) {
    return count && bsearch(&number, numbers, count, sizeof *numbers, compare_numbers);
}

/* ---- what runs need ---- */

/* What runs have in common: the job, or settings and data. */
enum aspect { OF_JOB, OF_DATA, ASPECTS };

struct need {
    int64_t run; /* first, for compare_numbers() */
    int64_t start_run, sweep, origin;
    char *job, *identity, *data;
    bool open;                      /* it can go on and has no model yet */
    bool replaced[ASPECTS], needed; /* replaced: a later run is of the same */
};

struct need_pack {
    char *fingerprint;
    bool needed;
};

static int needs_take_run(void *context, const struct store_run *run) {
    struct needs *needs = context;
    bool has_model = reason_has_model(reason_of(run->reason));
    MEMORY_ROOM(needs->runs, needs->count, needs->capacity);
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

static int read_keep_models(struct store *store, struct needs *needs) {
    struct store_run last;
    bool found;
    int code = store_run_last(store, &last, &found);
    json_t *settings = found ? json_loads(last.settings, 0, NULL) : NULL;
    json_int_t keep = json_integer_value(json_object_get(settings, "keep_models"));
    needs->keep_models = keep > 0 ? (uint32_t)keep : KEEP_MODELS;
    json_decref(settings);
    store_run_release(&last);
    return code;
}

/* For taking the sources of one run. */
struct source_search {
    struct needs *needs;
    bool needed; /* the run is */
};

static int needs_take_source(void *context, const struct store_source *source) {
    const struct source_search *search = context;
    struct needs *needs = search->needs;
    MEMORY_ROOM(needs->packs, needs->pack_count, needs->pack_capacity);
    needs->packs[needs->pack_count++] = (struct need_pack){
        .fingerprint = memory_copy_string(source->fingerprint), .needed = search->needed};
    return 0;
}

static int needs_take_sweep(void *context, const struct store_sweep *sweep) {
    struct needs *needs = context;
    needs->unfinished |= !sweep->ended_ms;
    return 0;
}

/* ---- later runs of the same ---- */

static int compare_aspect(enum aspect aspect, const struct need *x, const struct need *y) {
    if (aspect == OF_JOB)
        return strcmp(x->job, y->job);
    int order = strcmp(x->identity, y->identity);
    return order ? order : strcmp(x->data, y->data);
}

/* Those that are alike side by side, the newest first. */
static int compare_needs(enum aspect aspect, const void *a, const void *b) {
    const struct need *x = *(struct need *const *)a, *y = *(struct need *const *)b;
    int order = compare_aspect(aspect, x, y);
    return order ? order : (x->run < y->run) - (x->run > y->run);
}

static int compare_by_job(const void *a, const void *b) {
    return compare_needs(OF_JOB, a, b);
}

static int compare_by_data(const void *a, const void *b) {
    return compare_needs(OF_DATA, a, b);
}

/* Members of one sweep do not replace each other. Of the later runs it is enough to know the sweep
 * of the newest, and whether others are of another. */
static void find_replaced(struct needs *needs, enum aspect aspect) {
    struct need **sorted = memory_new(needs->count, sizeof(struct need *));
    bool several = false;
    size_t newest = 0;
    for (size_t i = 0; i < needs->count; i++)
        sorted[i] = &needs->runs[i];
    if (needs->count)
        qsort(sorted, needs->count, sizeof *sorted,
              aspect == OF_JOB ? compare_by_job : compare_by_data);
    for (size_t i = 0; i < needs->count; i++) {
        struct need *run = sorted[i];
        bool first = i == 0 || compare_aspect(aspect, sorted[i - 1], run) != 0;
        newest = first ? i : newest;
        assert(newest <= i && sorted[newest]->run >= run->run);
        several = !first && (several || run->sweep != sorted[newest]->sweep);
        run->replaced[aspect] = !first && (!run->sweep || several);
    }
    free(sorted);
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
        const bool newest = !run->replaced[OF_JOB];
        if (run->open)
            code = check_open(store, run, newest);
        if (code)
            break;
        run->needed = newest || (run->open && !run->replaced[OF_DATA]) || run->run > needs->decided;
        needs->unfinished |= run->needed && run->open;
        code = store_sources(store, run->run, needs_take_source,
                             &(struct source_search){needs, run->needed});
    }
    return code;
}

/* By which a model or a checkpoint is looked for. */
static void list_needed(struct needs *needs) {
    assert(!needs->starts && !needs->origins && !needs->needed);
    needs->starts = memory_new(needs->count, sizeof *needs->starts);
    needs->origins = memory_new(needs->count, sizeof *needs->origins);
    for (size_t i = 0; i < needs->count; i++)
        if (needs->runs[i].needed) {
            needs->starts[needs->needed] = needs->runs[i].start_run;
            needs->origins[needs->needed++] = needs->runs[i].origin;
        }
    assert(needs->needed <= needs->count);
    sort_numbers(needs->starts, needs->needed);
    sort_numbers(needs->origins, needs->needed);
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
    if (!code)
        code = read_keep_models(store, needs);
    if (code)
        return code;
    find_replaced(needs, OF_JOB);
    find_replaced(needs, OF_DATA);
    code = find_needed(store, needs);
    list_needed(needs);
    return code;
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
    free(needs->starts);
    free(needs->origins);
    *needs = (struct needs){0};
}

/* A run by its number, in whose order they are; NULL: there is none. */
static const struct need *find_need(const struct needs *needs, int64_t run) {
    return needs->count
               ? bsearch(&run, needs->runs, needs->count, sizeof *needs->runs, compare_numbers)
               : NULL;
}

bool needs_run(const struct needs *needs, int64_t run) {
    const struct need *need = find_need(needs, run);
    return need && need->needed;
}

bool needs_checkpoints(const struct needs *needs, int64_t origin) {
    return has_number(needs->origins, needs->needed, origin);
}

bool needs_failed(const struct needs *needs, int64_t run) {
    const struct need *need = find_need(needs, run);
    return need && need->needed && need->open;
}

bool needs_model(const struct needs *needs, int64_t run) {
    return run == needs->live || run == needs->before || needs_run(needs, run) ||
           has_number(needs->starts, needs->needed, run);
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
    size_t count, capacity;
    int64_t newest; /* sweep */
};

static int take_version(void *context, int64_t run, int64_t sweep) {
    struct version_list *list = context;
    MEMORY_ROOM(list->items, list->count, list->capacity);
    list->items[list->count++] = (struct version){.run = run, .sweep = sweep};
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
    assert(first <= list->count);
    list->count -= first;
    if (list->count)
        memmove(list->items, list->items + first, list->count * sizeof *list->items);
}

int versions_superfluous(struct store *store, const char *state, uint32_t keep, int64_t **runs,
                         size_t *count) {
    struct version_list list = {0};
    struct history history;
    int code = history_read(store, &history);
    if (!code)
        code = store_models_kept(store, take_version, &list);
    if (!code)
        code = store_sweep_run_last(store, &list.newest);
    if (!code)
        select_superfluous(&list, &history, history_current(state), keep);
    assert(list.count <= list.capacity);
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

struct origins {
    int64_t *items;
    size_t count, capacity;
};

static int take_origin(void *context, int64_t origin) {
    struct origins *origins = context;
    MEMORY_ROOM(origins->items, origins->count, origins->capacity);
    origins->items[origins->count++] = origin;
    return 0;
}

/* Which checkpoints nothing needs, by the folders: after thousands of nights runs are many, and
 * folders few. A folder of a run that is not recorded stays. */
static int find_needless(struct store *store, const char *place, const struct origins *needed,
                         struct origins *needless) {
    char **names = NULL;
    int code = 0;
    if (folder_names(place, &names))
        error_clear(); /* there are none */
    for (char **name = names; names && *name && !code; name++) {
        struct store_run run;
        bool found = false;
        int64_t origin = run_of_folder(*name);
        if (!origin || has_number(needed->items, needed->count, origin))
            continue;
        code = store_run_find(store, origin, &run, &found);
        store_run_release(&run);
        if (found)
            take_origin(needless, origin);
    }
    names_free(names);
    return code;
}

struct checkpoint_removal {
    const char *place;
    struct origins origins;
};

static int work_on_checkpoints(void *context) {
    const struct checkpoint_removal *removal = context;
    for (size_t i = 0; i < removal->origins.count; i++) {
        char *folder =
            memory_format("%s/%lld", removal->place, (long long)removal->origins.items[i]);
        folder_remove(folder);
        free(folder);
    }
    return 0;
}

int versions_prune_checkpoints(struct loop *loop, struct store *store, const char *state,
                               int64_t keep) {
    struct origins needed = {0};
    char *place = path_join(state, "shards");
    struct checkpoint_removal removal = {.place = place};
    int code = store_origins_open(store, keep, take_origin, &needed);
    sort_numbers(needed.items, needed.count);
    if (!code)
        code = find_needless(store, place, &needed, &removal.origins);
    if (!code)
        code = loop_beside(loop, STAGE_ENDING, work_on_checkpoints, &removal);
    free(removal.origins.items);
    free(needed.items);
    free(place);
    return code;
}
