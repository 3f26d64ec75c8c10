#define _GNU_SOURCE
#include "coordinator/run/sets.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"

static void find_all(const char *state, const char *ending, glob_t *found) {
    char *pattern = memory_format("%s/packs/*%s", state, ending);
    *found = (glob_t){0};
    if (glob(pattern, 0, NULL, found))
        found->gl_pathc = 0;
    free(pattern);
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
    glob_t found;
    struct set *set = NULL;
    find_all(state, ".set", &found);
    for (size_t i = 0; !set && i < found.gl_pathc; i++) {
        set = open_quietly(found.gl_pathv[i]);
        if (set && !is_of(set, fingerprint)) {
            set_close(set);
            set = NULL;
        }
    }
    globfree(&found);
    return set;
}

void sets_prune(const char *state, const char *keep, const char *keep_too) {
    glob_t found;
    find_all(state, ".set", &found);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        struct set *set = open_quietly(found.gl_pathv[i]);
        bool kept = set && (is_of(set, keep) || is_of(set, keep_too));
        set_close(set);
        if (kept)
            continue;
        log_debug("removing %s: other data is trained on now", found.gl_pathv[i]);
        unlink(found.gl_pathv[i]);
    }
    globfree(&found);
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
    glob_t found;
    find_all(state, ".pack", &found);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        if (is_pack_of(found.gl_pathv[i], sources))
            continue;
        log_debug("removing %s: its file is not in the data any more", found.gl_pathv[i]);
        unlink(found.gl_pathv[i]);
    }
    globfree(&found);
}
