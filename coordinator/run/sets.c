#include "coordinator/run/sets.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "model/model.h"

/* The paths of the files in STATE/packs with that ending, NULL last; free with names_free(). None
 * if the folder cannot be listed. */
static char **find_all(const char *state, const char *ending) {
    char **names, *folder = path_join(state, "packs");
    size_t count = 0;
    if (folder_names(folder, &names)) {
        error_clear();
        names = memory_new(1, sizeof *names);
    }
    for (char **at = names; *at; at++) {
        char *name = *at;
        if (name_ends(name, ending))
            names[count++] = path_join(folder, name);
        free(name);
    }
    names[count] = NULL;
    free(folder);
    return names;
}

/* NULL for a file that is damaged or of another version: such a set is made again when it is
 * needed. */
static struct set *open_quietly(const char *path) {
    struct set *set = NULL;
    if (set_open(path, &set)) {
        error_clear();
        return NULL;
    }
    return set;
}

static bool is_of(struct set *set, const char *fingerprint) {
    return fingerprint && strcmp(set_info(set)->fingerprint, fingerprint) == 0;
}

struct set *sets_find(const char *state, const char *fingerprint) {
    struct set *set = NULL;
    char **found = find_all(state, ".set");
    for (char **path = found; !set && *path; path++) {
        set = open_quietly(*path);
        if (set && !is_of(set, fingerprint)) {
            set_close(set);
            set = NULL;
        }
    }
    names_free(found);
    return set;
}

/* The next command makes the file again, from its packs. */
void sets_drop_damaged(struct set *set, int code) {
    char *before = memory_copy_string(error_text());
    error_clear();
    if (set_verify(set) && guard_holds() && unlink(set_path(set)) == 0)
        log_warning("removed %s, which is damaged: the same command makes it again and goes on",
                    set_path(set));
    error_clear();
    error_set(code, "%s", before);
    free(before);
}

/* The files of one kind, and which of them are kept. */
struct pruning {
    const char *state, *ending;
    const char *keep, *keep_too;           /* sets: fingerprints of their data */
    uint32_t count;                        /* sets: how many */
    const struct dataset_sources *sources; /* packs: those of these files */
    bool (*is_kept)(const struct pruning *pruning, const char *path);
    const char *why; /* the others are removed */
};

static int work_on_pruning(void *context) {
    const struct pruning *pruning = context;
    assert(pruning->is_kept && pruning->why);
    char **found = find_all(pruning->state, pruning->ending);
    for (char **path = found; *path; path++)
        if (!pruning->is_kept(pruning, *path)) {
            log_debug("removing %s: %s", *path, pruning->why);
            if (guard_holds())
                unlink(*path);
        }
    names_free(found);
    return 0;
}

static bool is_kept_set(const struct pruning *pruning, const char *path) {
    struct set *set = open_quietly(path);
    bool kept = set && (is_of(set, pruning->keep) || is_of(set, pruning->keep_too));
    set_close(set);
    return kept;
}

int sets_prune(struct loop *loop, const char *state, const char *keep, const char *keep_too) {
    struct pruning pruning = {.state = state,
                              .ending = ".set",
                              .keep = keep,
                              .keep_too = keep_too,
                              .is_kept = is_kept_set,
                              .why = "other data is trained on now"};
    return loop_beside(loop, loop->stage, work_on_pruning, &pruning);
}

static int64_t made_ns(const char *path) {
    struct stat status = {0};
    (void)stat(path, &status);
    return status.st_mtim.tv_sec * NS_PER_S + status.st_mtim.tv_nsec;
}

/* The state folder that the model is in, or NULL. Free it. */
static char *state_of_model(const struct model *model) {
    char *folder = realpath(model->folder, NULL);
    char *models = folder ? path_folder(folder) : NULL;
    char *state = models ? path_folder(models) : NULL;
    free(models);
    free(folder);
    return state;
}

struct set *sets_find_of_model(const struct model *model) {
    const char *data = json_string_value(json_object_get(model->details, "data_fingerprint"));
    char *state = data ? state_of_model(model) : NULL;
    struct set *set = state ? sets_find(state, data) : NULL;
    free(state);
    return set;
}

int sets_check_access(const struct model *model) {
    char *state = state_of_model(model), *packs = state ? path_join(state, "packs") : NULL;
    int code = 0;
    if (packs && access(packs, R_OK | X_OK) && errno == EACCES)
        code = error_set_errno(ERROR_PERMISSION, "cannot read %s, which has the rows", packs);
    free(packs);
    free(state);
    return code;
}

struct set *sets_newest(const char *state) {
    const char *newest = NULL;
    char **found = find_all(state, ".set");
    for (char **path = found; *path; path++)
        if (!newest || made_ns(*path) > made_ns(newest))
            newest = *path;
    struct set *set = newest ? open_quietly(newest) : NULL;
    names_free(found);
    return set;
}

/* Whether a set is the one to keep, or of the others so new that there is room for it. */
static bool is_recent_set(const struct pruning *pruning, const char *path) {
    struct set *set = open_quietly(path);
    bool kept = set && is_of(set, pruning->keep);
    set_close(set);
    if (kept || !set)
        return kept;
    assert(pruning->count > 0); /* the set to keep is one of them */
    uint32_t newer = 0;
    char **found = find_all(pruning->state, ".set");
    for (char **other = found; *other; other++) {
        struct set *of_other = made_ns(*other) > made_ns(path) ? open_quietly(*other) : NULL;
        newer += of_other && !is_of(of_other, pruning->keep);
        set_close(of_other);
    }
    names_free(found);
    return newer + 1 < pruning->count;
}

int sets_keep(struct loop *loop, const char *state, const char *keep, uint32_t count) {
    struct pruning pruning = {.state = state,
                              .ending = ".set",
                              .keep = keep,
                              .count = count,
                              .is_kept = is_recent_set,
                              .why = "newer ones take its place (keep_sets)"};
    return loop_beside(loop, loop->stage, work_on_pruning, &pruning);
}

static bool is_of_no_fold(const struct pruning *pruning, const char *path) {
    (void)pruning;
    struct set *set = open_quietly(path);
    bool kept = !set || !set_info(set)->fold;
    set_close(set);
    return kept;
}

int sets_prune_folds(struct loop *loop, const char *state) {
    struct pruning pruning = {.state = state,
                              .ending = ".set",
                              .is_kept = is_of_no_fold,
                              .why = "its cross-validation has ended"};
    return loop_beside(loop, loop->stage, work_on_pruning, &pruning);
}

static bool is_kept_pack(const struct pruning *pruning, const char *path) {
    const struct dataset_sources *sources = pruning->sources;
    const char *name = strrchr(path, '/') + 1;
    for (uint32_t i = 0; i < sources->count; i++) {
        const char *fingerprint = sources->items[i].fingerprint;
        if (strncmp(name, fingerprint, strlen(fingerprint)) == 0)
            return true;
    }
    return false;
}

int packs_prune(struct loop *loop, const char *state, const struct dataset_sources *sources) {
    struct pruning pruning = {.state = state,
                              .ending = ".pack",
                              .sources = sources,
                              .is_kept = is_kept_pack,
                              .why = "its file is not in the data any more"};
    return loop_beside(loop, loop->stage, work_on_pruning, &pruning);
}
