#include "coordinator/publish/prune.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/failpoint.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "coordinator/run/state_folder.h"
#include "coordinator/status/run_folder.h"
#include "data/pack/pack.h"
#include "data/set/set.h"

/* The names in a folder of the state; none if it cannot be listed, but for want of permission: what
 * the caller may not see is not known to be needless. */
static int names_in(const char *folder, char ***names) {
    int code = folder_names(folder, names);
    if (!code || code == ERROR_PERMISSION)
        return code;
    error_clear();
    *names = memory_new(1, sizeof **names);
    return 0;
}

static void list_add(struct prune_list *list, const char *kind, const char *path, int64_t run) {
    assert(kind && path && run >= 0);
    list->items = memory_resize(list->items, list->count + 1, sizeof *list->items);
    list->items[list->count++] = (struct prune_item){
        .kind = kind, .path = memory_copy_string(path), .bytes = file_bytes(path), .run = run};
    list->bytes += list->items[list->count - 1].bytes;
}

/* ---- what is not needed ---- */

static int find_models(struct store *store, const char *state, const struct needs *needs,
                       struct prune_list *list) {
    int64_t *runs;
    size_t count;
    int code = versions_superfluous(store, state, needs->keep_models, &runs, &count);
    for (size_t i = 0; !code && i < count; i++) {
        char *path = run_model_folder(state, runs[i]);
        if (!needs_model(needs, runs[i])) /* also if it is gone and not noted */
            list_add(list, "model", path, runs[i]);
        free(path);
    }
    free(runs);
    return code;
}

/* The file from which a pack was made, and when it was made. */
struct origin {
    char *source; /* NULL: the pack cannot be read */
    int64_t written_ns;
};

static struct origin origin_of(const char *path) {
    struct origin origin = {0};
    struct stat status;
    struct pack *pack;
    if (stat(path, &status))
        return origin;
    origin.written_ns = status.st_mtim.tv_sec * NS_PER_S + status.st_mtim.tv_nsec;
    if (pack_open(path, &pack)) {
        error_clear();
        return origin;
    }
    origin.source = memory_copy_string(pack_source(pack));
    pack_close(pack);
    return origin;
}

/* Whether a newer pack of the same file is among the names of its folder. Runs do not record the
 * files of a holdout and of test data: of those the newest pack is kept. */
static bool is_replaced(const char *path, char *const *names) {
    struct origin own = origin_of(path);
    char *folder = path_folder(path);
    bool replaced = !own.source;
    for (char *const *name = names; *name && !replaced; name++) {
        if (!name_ends(*name, ".pack"))
            continue;
        char *other_path = path_join(folder, *name);
        struct origin other = origin_of(other_path);
        replaced = other.source && strcmp(other.source, own.source) == 0 &&
                   other.written_ns > own.written_ns;
        free(other.source);
        free(other_path);
    }
    free(folder);
    free(own.source);
    return replaced;
}

/* What kind of thing a name, one of `names`, is if it is not needed; NULL if it is. */
typedef const char *check_name(const struct needs *needs, const char *name, const char *path,
                               char *const *names);

static const char *check_pack(const struct needs *needs, const char *name, const char *path,
                              char *const *names) {
    if (name_ends(name, ".set")) {
        struct set *set = NULL;
        bool needed = !set_open(path, &set) && needs_set(needs, set_info(set)->fingerprint);
        set_close(set);
        error_clear(); /* a set that cannot be read is made again when it is needed */
        return needed ? NULL : "set";
    }
    if (!name_ends(name, ".pack"))
        return NULL;
    enum need_for_pack need = needs_pack(needs, name);
    if (need == PACK_UNKNOWN && !needs->unfinished && is_replaced(path, names))
        need = PACK_NOT_NEEDED;
    return need == PACK_NOT_NEEDED ? "pack" : NULL;
}

static const char *check_checkpoint(const struct needs *needs, const char *name, const char *path,
                                    char *const *names) {
    (void)path, (void)names;
    int64_t run = run_of_folder(name);
    return run && !needs_checkpoints(needs, run) ? "checkpoint" : NULL;
}

/* Only of a model that was read back wrongly, which is kept while its run can go on: find_models()
 * finds the others. */
static const char *check_model(const struct needs *needs, const char *name, const char *path,
                               char *const *names) {
    (void)path, (void)names;
    char *end;
    long long run = strtoll(name, &end, 10);
    return run > 0 && !strcmp(end, ".failed") && !needs_failed(needs, run) ? "leftover" : NULL;
}

static int find_in(const char *state, const char *folder, check_name *check,
                   const struct needs *needs, struct prune_list *list) {
    char *place = path_join(state, folder), **names = NULL;
    int code = names_in(place, &names);
    for (char **name = names; !code && *name; name++) {
        char *path = path_join(place, *name);
        const char *kind = NULL;
        if (access(path, R_OK) && errno == EACCES)
            code = error_set_errno(ERROR_PERMISSION, "cannot read %s", path);
        else
            kind = name_is_temporary(*name) ? "leftover" : check(needs, *name, path, names);
        if (kind)
            list_add(list, kind, path, 0);
        free(path);
    }
    names_free(names);
    free(place);
    return code;
}

int prune_find(struct store *store, const char *state, struct prune_list *list) {
    struct needs needs;
    *list = (struct prune_list){0};
    int code = needs_read(store, &needs);
    if (!code)
        code = find_models(store, state, &needs, list);
    if (!code)
        code = find_in(state, "models", check_model, &needs, list);
    if (!code)
        code = find_in(state, "shards", check_checkpoint, &needs, list);
    if (!code)
        code = find_in(state, "packs", check_pack, &needs, list);
    if (!code)
        list->bytes_kept = file_bytes(state) - list->bytes;
    needs_release(&needs);
    return code;
}

void prune_release(struct prune_list *list) {
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i].path);
    free(list->items);
    *list = (struct prune_list){0};
}

/* ---- removing it ---- */

/* What cannot be removed is counted. The store is told after the file is gone: what it lists and is
 * gone, is listed and noted again by the next prune. */
int prune_remove(struct store *store, const struct prune_list *list) {
    size_t left = 0;
    int code = 0, why = 0;
    for (size_t i = 0; i < list->count && !code; i++) {
        const struct prune_item *item = &list->items[i];
        failpoint(FAILPOINT_prune_remove);
        code = guard_check();
        if (code)
            break;
        bool gone = folder_retire(item->path);
        left += !gone;
        if (!gone && errno)
            why = errno;
        if (gone && item->run)
            code = store_model_removed(store, item->run);
        if (!code)
            code = store_flush(store);
    }
    assert(left <= list->count && (left || !why));
    errno = why;
    if (!code && left && why)
        code = error_set_errno(ERROR_IO, "%zu of %zu could not be removed", left, list->count);
    else if (!code && left)
        code = error_set(ERROR_IO, "%zu of %zu could not be removed", left, list->count);
    return code;
}
