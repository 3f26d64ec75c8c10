#include "coordinator/publish/needs.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "coordinator/coordinator.h"
#include "optimizer/reason.h"
#include "coordinator/status/history.h"

#define KEEP_MODELS 5 /* if no run says how many */

struct need {
    int64_t run, start_run, sweep;
    char *job, *identity, *data;
    bool open; /* it can go on and has no model yet */
    bool needed;
};

struct need_pack {
    char *fingerprint;
    bool needed;
};

static uint32_t keep_models_of(const struct store_run *run) {
    json_t *settings = json_loads(run->settings, 0, NULL);
    json_int_t keep = json_integer_value(json_object_get(settings, "keep_models"));
    json_decref(settings);
    return keep > 0 ? (uint32_t)keep : KEEP_MODELS;
}

static bool is_open(const struct store_run *run) {
    if (!run->reason)
        return true;
    return reason_text_can_resume(run->reason) && !reason_has_model(reason_of(run->reason));
}

static int take_run(void *context, const struct store_run *run) {
    struct needs *needs = context;
    needs->runs = memory_resize(needs->runs, needs->count + 1, sizeof *needs->runs);
    needs->runs[needs->count++] = (struct need){.run = run->run,
                                                .start_run = run->start_run,
                                                .sweep = run->sweep,
                                                .job = memory_copy_string(run->job),
                                                .identity = memory_copy_string(run->identity),
                                                .data = memory_copy_string(run->data),
                                                .open = is_open(run)};
    needs->keep_models = keep_models_of(run);
    return 0;
}

struct taking {
    struct needs *needs;
    bool needed; /* the run whose sources are taken */
};

static int take_source(void *context, const struct store_source *source) {
    const struct taking *taking = context;
    struct needs *needs = taking->needs;
    needs->packs = memory_resize(needs->packs, needs->pack_count + 1, sizeof *needs->packs);
    needs->packs[needs->pack_count++] = (struct need_pack){
        .fingerprint = memory_copy_string(source->fingerprint), .needed = taking->needed};
    return 0;
}

static int take_sweep(void *context, const struct store_sweep *sweep) {
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

/* A run whose state is of another version can go on with another program alone. It is needed until
 * a later run of its job began: then nobody means to end it. */
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
        code = store_sources(store, run->run, take_source, &(struct taking){needs, run->needed});
    }
    return code;
}

/* A decision that is not settled may not be in force yet, so the model that was live before counts
 * as well. */
static void take_history(const struct history *history, struct needs *needs) {
    if (!history->count)
        return;
    const struct history_item *last = &history->items[history->count - 1];
    needs->decided = last->run;
    needs->live = history_live(history);
    needs->before = last->previous_run;
}

int needs_read(struct store *store, struct needs *needs) {
    *needs = (struct needs){.keep_models = KEEP_MODELS};
    struct history history;
    int code = history_read(store, &history);
    if (!code) {
        take_history(&history, needs);
        code = store_runs(store, take_run, needs);
    }
    history_release(&history);
    if (!code)
        code = store_sweeps(store, take_sweep, needs);
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
