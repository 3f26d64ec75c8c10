#include "data/remote/pattern.h"

#include <fnmatch.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "base/memory.h"

/* The first component of a path. */
static size_t component(const char *path) {
    return strcspn(path, "/");
}

/* The components after the first one. */
static const char *behind(const char *path) {
    path += component(path);
    return path + strspn(path, "/");
}

static bool is_deep(const char *pattern) {
    return component(pattern) == 2 && !memcmp(pattern, "**", 2);
}

bool pattern_is_deep(const char *pattern) {
    bool deep = false;
    for (; *pattern && !deep; pattern = behind(pattern))
        deep = is_deep(pattern);
    return deep;
}

bool pattern_is_whole(const char *pattern) {
    const char *slash = strrchr(pattern, '/');
    return is_deep(slash ? slash + 1 : pattern);
}

/* Whether the first component of a path is a name that is not passed over. */
static bool is_visible(const char *path, bool folder) {
    const size_t length = component(path);
    const bool named = (folder || path[length]) && memchr(path, '=', length);
    return length && *path != '.' && (*path != '_' || named);
}

/* Whether the first component of a path fits that of a pattern. */
static bool name_fits(const char *pattern, const char *path, bool folder) {
    if (*pattern != '_' && *path == '_' && !is_visible(path, folder))
        return false;
    char *glob = memory_format("%.*s", (int)component(pattern), pattern);
    char *name = memory_format("%.*s", (int)component(path), path);
    const bool fits = !fnmatch(glob, name, FNM_PERIOD);
    free(glob);
    free(name);
    return fits;
}

/* `folder`: whether something below the path may fit. */
static bool fits(const char *pattern, const char *path, bool folder) {
    if (!*path || !*pattern)
        return folder ? *pattern : !*path && !*pattern;
    if (!is_deep(pattern))
        return name_fits(pattern, path, folder) && fits(behind(pattern), behind(path), folder);
    if (*behind(pattern) && fits(behind(pattern), path, folder))
        return true;
    if (!is_visible(path, folder))
        return false;
    const bool last = !*behind(path);
    return last && !folder ? !*behind(pattern) : fits(pattern, behind(path), folder);
}

bool pattern_fits(const char *pattern, const char *path) {
    return fits(pattern, path, false);
}

bool pattern_leads(const char *pattern, const char *folder) {
    return fits(pattern, folder, true);
}

bool pattern_takes_name(const char *path) {
    static const char *const endings[] = {".csv",    ".tsv",  ".tab",    ".txt",     ".data",
                                          ".jsonl",  ".json", ".ndjson", ".parquet", ".pq",
                                          ".libsvm", ".svm",  ".npy",    ".npz"};
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const size_t length = name_plain_length(name);
    bool takes = !memchr(name, '.', length);
    for (size_t i = 0; i < sizeof endings / sizeof *endings && !takes; i++) {
        const size_t own = strlen(endings[i]);
        takes = length > own && !strncasecmp(name + length - own, endings[i], own);
    }
    return takes;
}

int compare_paths(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}
