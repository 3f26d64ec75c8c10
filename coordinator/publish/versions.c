#include "coordinator/publish/versions.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/failpoint.h"
#include "base/log.h"
#include "base/memory.h"
#include "coordinator/publish/publish.h"
#include "coordinator/run/sweep.h"

/* ---- versions of the model ---- */

struct version_list {
    int64_t *runs; /* oldest first, each once */
    size_t count;
};

static int take_model(void *context, const struct store_model_row *model) {
    struct version_list *list = context;
    if (model->removed_ms)
        return 0;
    for (size_t i = 0; i < list->count; i++)
        if (list->runs[i] == model->run)
            return 0;
    list->runs = memory_resize(list->runs, list->count + 1, sizeof *list->runs);
    list->runs[list->count++] = model->run;
    return 0;
}

/* A reader that opens the folder finds it whole or not at all. */
static int remove_version(struct store *store, const char *state, int64_t run) {
    failpoint(FAILPOINT_version_remove);
    char *folder = publish_folder(state, run);
    char *aside = memory_format("%s.tmp.%d", folder, (int)getpid());
    log_info("removing %s: later versions are enough", folder);
    if (rename(folder, aside) == 0)
        folder_remove(aside);
    free(aside);
    free(folder);
    return store_model_removed(store, run);
}

static bool was_refused(const struct history *history, int64_t run) {
    const struct history_item *item = history_of(history, run);
    return item && item->decision == DECISION_REFUSED;
}

int versions_prune(struct store *store, const char *state, uint32_t keep) {
    struct version_list list = {0};
    struct history history;
    int64_t live = publish_live(state);
    bool refused_kept = false;
    int code = history_read(store, &history);
    if (!code)
        code = store_models(store, take_model, &list);
    int64_t before = history_before(&history, live);
    uint32_t kept = (live ? 1u : 0) + (before ? 1u : 0);
    for (size_t i = list.count; !code && i; i--) {
        int64_t run = list.runs[i - 1];
        bool refused = was_refused(&history, run);
        if (run == live || run == before)
            continue;
        if (refused ? !refused_kept : kept < keep)
            kept += !refused;
        else
            code = remove_version(store, state, run);
        refused_kept |= refused;
    }
    free(list.runs);
    history_release(&history);
    return code;
}

/* ---- checkpoints ---- */

struct checkpoints {
    const char *state;
    int64_t keep;
};

static int take_run(void *context, const struct store_run *run) {
    const struct checkpoints *checkpoints = context;
    if (!run->ended_ms || run->run == checkpoints->keep)
        return 0;
    char *folder = memory_format("%s/shards/%lld", checkpoints->state, (long long)run->run);
    folder_remove(folder);
    free(folder);
    return 0;
}

int versions_prune_checkpoints(struct store *store, const char *state, int64_t keep) {
    return store_runs(store, take_run, &(struct checkpoints){.state = state, .keep = keep});
}
