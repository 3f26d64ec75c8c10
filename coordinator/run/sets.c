#include "coordinator/run/sets.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"

/* Paths of what lies in STATE/packs with that ending, NULL last; free with names_free(). None if
 * the folder cannot be listed. */
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

/* NULL for a file that is no whole set of this version: it is made again where it is needed. */
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

void sets_prune(const char *state, const char *keep, const char *keep_too) {
    char **found = find_all(state, ".set");
    for (char **path = found; *path; path++) {
        struct set *set = open_quietly(*path);
        bool kept = set && (is_of(set, keep) || is_of(set, keep_too));
        set_close(set);
        if (kept)
            continue;
        log_debug("removing %s: other data is trained on now", *path);
        unlink(*path);
    }
    names_free(found);
}

static bool is_pack_of(const char *path, const struct dataset_sources *sources) {
    const char *name = strrchr(path, '/') + 1;
    for (uint32_t i = 0; i < sources->count; i++) {
        const char *fingerprint = sources->items[i].fingerprint;
        if (strncmp(name, fingerprint, strlen(fingerprint)) == 0)
            return true;
    }
    return false;
}

void packs_prune(const char *state, const struct dataset_sources *sources) {
    char **found = find_all(state, ".pack");
    for (char **path = found; *path; path++) {
        if (is_pack_of(*path, sources))
            continue;
        log_debug("removing %s: its file is not in the data any more", *path);
        unlink(*path);
    }
    names_free(found);
}
