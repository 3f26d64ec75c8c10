/* The files of some data: their paths, and the files beside them. */
#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/memory.h"
#include "data/remote/address.h"
#include "data/remote/folder_walk.h"
#include "data/remote/pattern.h"
#include "data/remote/remote.h"
#include "data/source/input.h"
#include "data/source/paths.h"
#include "data/source/source.h"

struct path_list {
    char **path; /* NULL-terminated */
    size_t count;
};

static void add_path(struct path_list *list, const char *path) {
    list->path = memory_resize(list->path, list->count + 2, sizeof *list->path);
    list->path[list->count++] = memory_copy_string(path);
    list->path[list->count] = NULL;
}

static bool is_regular(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

/* Takes a match if it is a regular file. One that was removed meanwhile is none, but a link that
 * leads nowhere may stand for rows: without them the model would be another one. */
static int add_match(struct path_list *list, const char *path) {
    struct stat status;
    if (stat(path, &status) == 0) {
        if (S_ISREG(status.st_mode))
            add_path(list, path);
        return 0;
    }
    if (errno == ENOENT && lstat(path, &status) && errno == ENOENT)
        return 0;
    return error_set_errno(ERROR_IO, "cannot look at %s", path);
}

static bool is_folder(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* glob() would sort by the locale. *folder: some match that is one; NULL: there is none. */
static int add_matches(struct path_list *list, const glob_t *matches, const char **folder) {
    size_t first = list->count;
    int code = 0;
    *folder = NULL;
    for (size_t i = 0; i < matches->gl_pathc && !code; i++) {
        code = add_match(list, matches->gl_pathv[i]);
        *folder = is_folder(matches->gl_pathv[i]) ? matches->gl_pathv[i] : *folder;
    }
    if (list->count > first)
        qsort(list->path + first, list->count - first, sizeof *list->path, compare_paths);
    return code;
}

static int refuse_matches(const char *pattern, const glob_t *matches) {
    if (matches->gl_pathc)
        return error_set(ERROR_DATA, "%s is not a regular file", matches->gl_pathv[0]);
    return error_set(ERROR_DATA, "no file matches %s%s", pattern, file_suggestion(pattern, NULL));
}

/* Expands the address of objects. Only a list is asked for here; single objects are asked for when
 * they are read. */
static int expand_address(struct path_list *list, const char *pattern) {
    char **paths = NULL, *shown = address_shown(pattern);
    int code = remote_is_pattern(shown) ? remote_list(shown, &paths) : 0;
    for (char **path = paths; path && *path; path++)
        add_path(list, *path);
    if (!code && !paths)
        add_path(list, shown);
    names_free(paths);
    free(shown);
    return code;
}

/* For glob(), which else leaves out the files of a folder that it cannot read. Leaves the number of
 * the error for error_set_errno(). */
static int stop_at(const char *folder, int error) {
    if (error == ENOENT)
        return 0;
    errno = error;
    (void)error_set_errno(ERROR_IO, "cannot look into %s", folder);
    errno = error;
    return 1;
}

/* The length of the longest beginning of a pattern that is a folder by this very name. */
static size_t folder_length(const char *pattern) {
    size_t length = 0, end = 0;
    struct stat status;
    bool is_folder = true;
    while (is_folder && pattern[end]) {
        end += strcspn(pattern + end, "/");
        end += pattern[end] == '/';
        char *folder = memory_format("%.*s", (int)end, pattern);
        is_folder = stat(folder, &status) == 0 && S_ISDIR(status.st_mode);
        length = is_folder ? end : length;
        free(folder);
    }
    return length;
}

/* What glob() is asked for. Characters in the folder that is there stand for themselves: that of
 * the job may have any name, and `v[1]` read as a pattern means the folder `v1`. Free it. */
static char *glob_of(const char *pattern) {
    const size_t folder = folder_length(pattern);
    char *glob = memory_new(strlen(pattern) + folder + 1, 1), *to = glob;
    for (size_t i = 0; pattern[i]; i++) {
        if (i < folder && strchr("*?[]\\", pattern[i]))
            *to++ = '\\';
        *to++ = pattern[i];
    }
    return glob;
}

/* Finds the files below `base` of a deep pattern, and of one that matches folders alone those below
 * them, as if their names were written. */
static int find_below(const char *base, const char *pattern, char ***found) {
    int code = folder_walk(base, pattern, found);
    if (code || **found || pattern_is_whole(pattern))
        return code;
    names_free(*found);
    char *deep = memory_format("%s/**", pattern);
    code = folder_walk(base, deep, found);
    free(deep);
    return code;
}

/* Adds the files below a folder: all of them if there is no pattern after it. */
static int expand_below(struct path_list *list, const char *pattern, size_t folder) {
    char *base = memory_format("%.*s%s", (int)folder, pattern,
                               folder && pattern[folder - 1] != '/' ? "/" : ""),
         *behind = memory_format("%s%s", pattern + folder,
                                 !pattern[folder] || name_ends(pattern, "/") ? "**" : ""),
         **found;
    int code = find_below(base, behind, &found);
    for (char **path = found; !code && *path; path++)
        add_path(list, *path);
    if (!code && !*found)
        code = error_set(ERROR_DATA,
                         pattern[folder] ? "no file matches %s"
                                         : "%s is a folder, and no file of data is below it",
                         pattern);
    names_free(found);
    free(base);
    free(behind);
    return code;
}

static bool is_named_by_key(const char *folder) {
    const char *slash = strrchr(folder, '/');
    return strchr(slash ? slash : folder, '=');
}

/* Adds the files that a pattern for glob() means. Where it matches files, those alone: `*` has
 * always stood for them beside folders of other things. */
static int expand_glob(struct path_list *list, const char *pattern, size_t folder) {
    const size_t first = list->count;
    const char *matched = NULL;
    glob_t matches = {0};
    char *asked = glob_of(pattern);
    int answer = glob(asked, GLOB_NOSORT, stop_at, &matches);
    int code = answer && answer != GLOB_NOMATCH
                   ? error_set_errno(ERROR_IO, "cannot look for %s", pattern)
                   : add_matches(list, &matches, &matched);
    if (!code && list->count == first)
        code = matched ? expand_below(list, pattern, folder) : refuse_matches(pattern, &matches);
    else if (!code && matched && is_named_by_key(matched))
        log_warning("%s: files match, so folders that match are passed over, such as %s; to take "
                    "both add the entry %s/**",
                    pattern, matched, pattern);
    globfree(&matches);
    free(asked);
    return code;
}

static int expand(struct path_list *list, const char *pattern) {
    if (is_regular(pattern)) { /* whatever is in its name */
        add_path(list, pattern);
        return 0;
    }
    const size_t folder = folder_length(pattern);
    return !pattern[folder] || pattern_is_deep(pattern + folder)
               ? expand_below(list, pattern, folder)
               : expand_glob(list, pattern, folder);
}

/* Which file a path leads to: links and other spellings lead to the same. */
struct identity {
    dev_t device;
    ino_t inode; /* 0: it is not there */
};

static struct identity *identify(char *const *path, size_t count) {
    struct identity *identity = memory_new(count, sizeof *identity);
    for (size_t i = 0; i < count; i++) {
        struct stat status;
        if (address_is(path[i]))
            identity[i] = (struct identity){.inode = hash64(path[i], strlen(path[i]))};
        else if (stat(path[i], &status) == 0)
            identity[i] = (struct identity){status.st_dev, status.st_ino};
    }
    return identity;
}

/* The first of `count` files that is this one; `count` if there is none. */
static size_t find_identity(const struct identity *files, size_t count, struct identity one) {
    size_t i = 0;
    while (i < count &&
           (!one.inode || files[i].device != one.device || files[i].inode != one.inode))
        i++;
    return i;
}

static void leave_out_repeated(struct path_list *list) {
    struct identity *identity = identify(list->path, list->count);
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++) {
        size_t same = find_identity(identity, kept, identity[i]);
        if (same < kept) {
            log_warning("%s is the file %s again: it counts once", list->path[i], list->path[same]);
            free(list->path[i]);
            continue;
        }
        identity[kept] = identity[i];
        list->path[kept++] = list->path[i];
    }
    list->count = kept;
    list->path[kept] = NULL;
    free(identity);
}

const char *source_paths_shared(char *const *paths, char *const *others, const char **other) {
    size_t count = names_count(paths), other_count = names_count(others);
    struct identity *mine = identify(paths, count), *theirs = identify(others, other_count);
    const char *shared = NULL;
    for (size_t i = 0; i < count && !shared; i++) {
        size_t same = find_identity(theirs, other_count, mine[i]);
        if (same == other_count)
            continue;
        shared = paths[i];
        *other = others[same];
    }
    free(mine);
    free(theirs);
    return shared;
}

static int expand_all(const char *folder, const char *const *patterns, bool repeated,
                      char ***paths) {
    struct path_list list = {.path = memory_new(1, sizeof *list.path)};
    int code = 0;
    for (; *patterns && !code; patterns++) {
        code = foreign_check_path(*patterns);
        if (code)
            break;
        if (address_is(*patterns)) {
            code = expand_address(&list, *patterns);
            continue;
        }
        bool input = source_is_input(*patterns) && !repeated;
        char *pattern = input ? memory_copy_string(*patterns) : path_join(folder, *patterns);
        if (!repeated && source_is_stream(pattern))
            add_path(&list, pattern);
        else
            code = expand(&list, pattern);
        free(pattern);
    }
    if (code) {
        names_free(list.path);
        return code;
    }
    if (!repeated)
        leave_out_repeated(&list);
    *paths = list.path;
    return 0;
}

int source_paths(const char *folder, const char *const *patterns, char ***paths) {
    return expand_all(folder, patterns, false, paths);
}

int source_paths_all(const char *folder, const char *const *patterns, char ***paths) {
    return expand_all(folder, patterns, true, paths);
}

int source_paths_given(const char *const *given, size_t count, char ***paths) {
    struct path_list list = {.path = memory_new(1, sizeof *list.path)};
    int code = 0;
    for (size_t i = 0; i < count && !code; i++)
        if (address_is(given[i]))
            code = expand_address(&list, given[i]);
        else if (is_folder(given[i]))
            code = expand(&list, given[i]);
        else
            add_path(&list, given[i]);
    *paths = list.path;
    return code;
}

void source_beside_release(struct source_beside *beside) {
    for (int i = 0; i < ROW_PROPERTIES; i++)
        names_free(beside->property[i]);
    names_free(beside->labels);
    for (struct source_folder **of = beside->folder; of && *of; of++) {
        for (struct source_folder *folder = *of; folder->name; folder++) {
            free(folder->name);
            free(folder->value);
        }
        free(*of);
    }
    free(beside->folder);
    free(beside->folders_differ);
    *beside = (struct source_beside){0};
}

static const char *path_at(char *const *paths, uint32_t number) {
    return paths && *paths ? paths[number] : NULL;
}

void source_beside_name(const struct source_beside *beside, uint32_t number,
                        struct source_options *options) {
    options->property.file[ROW_WEIGHT] = path_at(beside->property[ROW_WEIGHT], number);
    options->property.file[ROW_OFFSET] = path_at(beside->property[ROW_OFFSET], number);
    options->property.file[ROW_EXPOSURE] = path_at(beside->property[ROW_EXPOSURE], number);
    options->label.file = path_at(beside->labels, number);
    options->folders.column = beside->folder ? beside->folder[number] : NULL;
    options->folders.differ = beside->folders_differ;
}
