#include "data/remote/folder_walk.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "data/remote/pattern.h"

struct walk {
    const char *pattern;
    size_t base;  /* bytes of a path before the part that the pattern is for */
    char **found; /* NULL-terminated; owned */
    size_t count;
    char *other; /* the first file that is passed over by its name; owned, or NULL */
    unsigned long long others;
};

/* A folder that the walk is in. */
struct place {
    const struct place *above;
    dev_t device;
    ino_t inode;
};

static bool is_within(const struct place *place, const struct stat *folder) {
    while (place && (place->device != folder->st_dev || place->inode != folder->st_ino))
        place = place->above;
    return place;
}

/* Whether a folder is the state of a job, which may lie beside its data: a first run, and any
 * other, must find the same files. */
static bool is_state(const char *folder) {
    struct stat status;
    char *record = path_join(folder, "dml.db");
    const bool is = stat(record, &status) == 0 && S_ISREG(status.st_mode);
    free(record);
    return is;
}

/* Takes ownership of the path. */
static void take_file(struct walk *walk, char *path) {
    if (name_ends(path, ".conf") && !name_ends(walk->pattern, ".conf")) { /* the job's own */
        free(path);
        return;
    }
    if (pattern_is_whole(walk->pattern) && !pattern_takes_name(path)) {
        if (walk->others++ && strcmp(path, walk->other) >= 0) {
            free(path);
            return;
        }
        free(walk->other);
        walk->other = path;
        return;
    }
    walk->found = memory_resize(walk->found, walk->count + 2, sizeof *walk->found);
    walk->found[walk->count++] = path;
    walk->found[walk->count] = NULL;
}

static int walk_into(struct walk *walk, const char *folder, const struct place *place);

/* Looks at one name. What was removed meanwhile is passed over. */
static int look_at(struct walk *walk, char *path, const struct place *place) {
    const char *part = path + walk->base;
    const bool fits = pattern_fits(walk->pattern, part);
    const bool leads = pattern_leads(walk->pattern, part);
    struct stat status;
    int code = 0;
    if (!fits && !leads) {
        free(path);
        return 0;
    }
    if (stat(path, &status)) {
        const bool lost = errno == ENOENT && (!fits || (lstat(path, &status) && errno == ENOENT));
        code = lost ? 0 : error_set_errno(ERROR_IO, "cannot look at %s", path);
    } else if (S_ISREG(status.st_mode) && fits) {
        take_file(walk, path);
        return 0;
    } else if (S_ISDIR(status.st_mode) && leads && !is_within(place, &status) && !is_state(path)) {
        char *folder = memory_format("%s/", path);
        const struct place within = {place, status.st_dev, status.st_ino};
        code = walk_into(walk, folder, &within);
        free(folder);
    }
    free(path);
    return code;
}

static int walk_into(struct walk *walk, const char *folder, const struct place *place) {
    DIR *stream = opendir(*folder ? folder : ".");
    if (!stream && errno == ENOENT)
        return 0;
    if (!stream)
        return error_set_errno(ERROR_IO, "cannot look into %s", folder);
    const struct dirent *entry;
    int code = 0;
    while (!code && (errno = 0, entry = readdir(stream)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            code = look_at(walk, memory_format("%s%s", folder, entry->d_name), place);
    if (!code && errno)
        code = error_set_errno(ERROR_IO, "cannot look into %s", folder);
    closedir(stream);
    return code;
}

void folder_warn_of_others(const char *pattern, const char *first, unsigned long long count) {
    if (count)
        log_warning("%s: %llu file%s passed over, since data has other names: %s%s; a pattern such "
                    "as **/*.ENDING takes files of any name",
                    pattern, count, count == 1 ? " is" : "s are", first, count > 1 ? ", ..." : "");
}

int folder_walk(const char *folder, const char *pattern, char ***paths) {
    struct walk walk = {
        .pattern = pattern, .base = strlen(folder), .found = memory_new(1, sizeof *walk.found)};
    struct stat status;
    struct place place = {0};
    if (!stat(*folder ? folder : ".", &status))
        place = (struct place){NULL, status.st_dev, status.st_ino};
    int code = walk_into(&walk, folder, &place);
    qsort(walk.found, walk.count, sizeof *walk.found, compare_paths);
    if (code) {
        names_free(walk.found);
        walk.found = NULL;
    } else {
        folder_warn_of_others(*folder ? folder : pattern, walk.other, walk.others);
    }
    *paths = walk.found;
    free(walk.other);
    return code;
}
