#include "coordinator/publish/versions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/failpoint.h"
#include "base/log.h"
#include "base/memory.h"
#include "coordinator/publish/publish.h"
#include "coordinator/run/leftovers.h"

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

static int take_sweep(void *context, const struct store_run *run) {
    struct version_list *list = context;
    for (size_t i = 0; run->sweep && i < list->count; i++)
        if (list->items[i].run == run->run)
            list->items[i].sweep = run->sweep;
    if (run->sweep > list->newest)
        list->newest = run->sweep;
    return 0;
}

static void remove_version(const char *state, int64_t run) {
    failpoint(FAILPOINT_version_remove);
    char *folder = publish_folder(state, run);
    log_info("removing %s: later versions are enough", folder);
    folder_retire(folder);
    free(folder);
}

static bool was_refused(const struct history *history, int64_t run) {
    const struct history_item *item = history_of(history, run);
    return item && item->decision == DECISION_REFUSED;
}

/* The model of a sweep that another one was preferred to. It was never a candidate to go live. */
static bool was_passed_over(const struct history *history, const struct version *version) {
    return version->sweep && !history_of(history, version->run);
}

/* Keeps in `list` only the versions that are to be removed. */
static void select_superfluous(struct version_list *list, const struct history *history,
                               int64_t live, uint32_t keep) {
    int64_t before = history_before(history, live);
    uint32_t kept = (live ? 1u : 0) + (before ? 1u : 0);
    size_t first = list->count;
    bool refused_kept = false;
    for (size_t i = list->count; i; i--) {
        struct version version = list->items[i - 1];
        int64_t run = version.run;
        bool refused = was_refused(history, run);
        if (run == live || run == before)
            continue;
        if (was_passed_over(history, &version)) {
            if (version.sweep != list->newest)
                list->items[--first] = version;
            continue;
        }
        if (refused ? !refused_kept : kept < keep)
            kept += !refused;
        else
            list->items[--first] = version;
        refused_kept |= refused;
    }
    list->count -= first;
    memmove(list->items, list->items + first, list->count * sizeof *list->items);
}

/* A large folder takes long to remove, so the files are removed beside the loop. The store belongs
 * to the loop's thread and is told afterwards. If this process is killed in between, the store
 * still lists versions that are gone, and the next retrain selects and notes them again. */
struct removal {
    const char *state;
    const struct version_list *versions;
};

static int work_on_removal(void *context) {
    const struct removal *removal = context;
    for (size_t i = 0; i < removal->versions->count; i++)
        remove_version(removal->state, removal->versions->items[i].run);
    return 0;
}

static int remove_versions(struct loop *loop, struct store *store, const char *state,
                           const struct version_list *versions) {
    struct removal removal = {.state = state, .versions = versions};
    if (!versions->count)
        return 0;
    int code = loop_beside(loop, STAGE_ENDING, work_on_removal, &removal);
    for (size_t i = 0; i < versions->count && !code; i++)
        code = store_model_removed(store, versions->items[i].run);
    return code;
}

static int find_superfluous(struct store *store, const char *state, uint32_t keep,
                            struct version_list *list) {
    struct history history;
    *list = (struct version_list){0};
    int code = history_read(store, &history);
    if (!code)
        code = store_models(store, take_model, list);
    if (!code)
        code = store_runs(store, take_sweep, list);
    if (!code)
        select_superfluous(list, &history, history_current(state), keep);
    history_release(&history);
    return code;
}

int versions_prune(struct loop *loop, struct store *store, const char *state, uint32_t keep) {
    struct version_list list;
    int code = find_superfluous(store, state, keep, &list);
    if (!code)
        code = remove_versions(loop, store, state, &list);
    free(list.items);
    return code;
}

int versions_superfluous(struct store *store, const char *state, uint32_t keep, int64_t **runs,
                         size_t *count) {
    struct version_list list;
    int code = find_superfluous(store, state, keep, &list);
    *runs = memory_new(list.count, sizeof **runs);
    *count = list.count;
    for (size_t i = 0; i < list.count; i++)
        (*runs)[i] = list.items[i].run;
    free(list.items);
    return code;
}

/* ---- checkpoints ---- */

struct checkpoints {
    const char *state;
    int64_t keep;
    char **folders; /* to remove */
    size_t count;
};

static int take_run(void *context, const struct store_run *run) {
    struct checkpoints *checkpoints = context;
    if (!run->ended_ms || run->run == checkpoints->keep)
        return 0;
    char *folder = memory_format("%s/shards/%lld", checkpoints->state, (long long)run->run);
    if (access(folder, F_OK)) {
        free(folder);
        return 0;
    }
    checkpoints->folders =
        memory_resize(checkpoints->folders, checkpoints->count + 1, sizeof *checkpoints->folders);
    checkpoints->folders[checkpoints->count++] = folder;
    return 0;
}

static int work_on_checkpoints(void *context) {
    const struct checkpoints *checkpoints = context;
    for (size_t i = 0; i < checkpoints->count; i++)
        folder_remove(checkpoints->folders[i]);
    return 0;
}

int versions_prune_checkpoints(struct loop *loop, struct store *store, const char *state,
                               int64_t keep) {
    struct checkpoints checkpoints = {.state = state, .keep = keep};
    int code = store_runs(store, take_run, &checkpoints);
    if (!code && checkpoints.count)
        code = loop_beside(loop, STAGE_ENDING, work_on_checkpoints, &checkpoints);
    for (size_t i = 0; i < checkpoints.count; i++)
        free(checkpoints.folders[i]);
    free(checkpoints.folders);
    return code;
}
