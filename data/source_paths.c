#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "data/source.h"

struct path_list {
    char **path; /* NULL-terminated */
    size_t count;
};

static void add_path(struct path_list *list, const char *path) {
    list->path = memory_resize(list->path, list->count + 2, sizeof *list->path);
    list->path[list->count++] = memory_copy_string(path);
    list->path[list->count] = NULL;
}

static int compare_bytewise(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_regular(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

/* Takes the regular files among the matches; glob() would sort by the locale. */
static int add_matches(struct path_list *list, const char *pattern, const glob_t *matches) {
    size_t first = list->count;
    for (size_t i = 0; i < matches->gl_pathc; i++)
        if (is_regular(matches->gl_pathv[i]))
            add_path(list, matches->gl_pathv[i]);
    if (list->count > first) {
        qsort(list->path + first, list->count - first, sizeof *list->path, compare_bytewise);
        return 0;
    }
    if (matches->gl_pathc)
        return error_set(ERROR_DATA,
                         "%s is not a regular file; for all files of a folder write %s/*",
                         matches->gl_pathv[0], matches->gl_pathv[0]);
    return error_set(ERROR_DATA, "no file matches %s", pattern);
}

static int expand(struct path_list *list, const char *pattern) {
    struct stat status;
    if (stat(pattern, &status) == 0 && S_ISREG(status.st_mode)) { /* whatever is in its name */
        add_path(list, pattern);
        return 0;
    }
    glob_t matches = {0};
    int answer = glob(pattern, GLOB_NOSORT, NULL, &matches);
    int code = answer && answer != GLOB_NOMATCH
                   ? error_set_errno(ERROR_IO, "cannot look for %s", pattern)
                   : add_matches(list, pattern, &matches);
    globfree(&matches);
    return code;
}

int source_paths(const char *folder, const char *const *patterns, char ***paths) {
    struct path_list list = {.path = memory_new(1, sizeof *list.path)};
    int code = 0;
    for (; *patterns && !code; patterns++) {
        char *pattern = path_join(folder, *patterns);
        code = expand(&list, pattern);
        free(pattern);
    }
    if (code) {
        source_paths_free(list.path);
        return code;
    }
    *paths = list.path;
    return 0;
}

void source_paths_free(char **paths) {
    for (char **path = paths; path && *path; path++)
        free(*path);
    free(paths);
}
