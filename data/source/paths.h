/* The paths of the files of some data, and of the files beside them. */
#ifndef DML_DATA_SOURCE_PATHS_H
#define DML_DATA_SOURCE_PATHS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/source/properties.h"

struct source_options;

/* Expands globs (each sorted bytewise) relative to `folder`; every entry must match at least one
 * regular file, or lead to a pipe, or be "-". The name of a file that is there, and the folders at
 * the beginning of an entry that are there under their very names, with `folder`, are no patterns.
 * A folder means the files of data below it, and `**` any number of folders: data/remote/pattern.h.
 * What a glob cannot look at is ERROR_IO or ERROR_PERMISSION. A file that is met again, under
 * whatever name, is left out with a warning. The list is NULL-terminated; free with names_free().
 */
int source_paths(const char *folder, const char *const *patterns, char ***paths);

/* The paths of files alone, with those that are met again. */
int source_paths_all(const char *folder, const char *const *patterns, char ***paths);

/* The `count` paths of a command line, as such a list: patterns of objects are expanded, but
 * paths of files stand as they are, as the shell has expanded its patterns, and folders mean the
 * files below them. Nothing is left out. */
int source_paths_given(const char *const *given, size_t count, char ***paths);

/* Files beside those of some data: a list has one for each of them, in their order, or none. NULL
 * is none, too. */
struct source_beside {
    char **property[ROW_PROPERTIES]; /* files of them as in struct property_options,
                                        NULL-terminated, as `labels` is */
    char **labels;
    struct source_folder **folder; /* the columns of struct folder_options; owned */
    char *folders_differ;          /* `differ` there; owned */
};
void source_beside_release(struct source_beside *beside);

/* Names in `options` the files beside file `number` of the data, from 0. */
void source_beside_name(const struct source_beside *beside, uint32_t number,
                        struct source_options *options);

/* The first of `paths` that is a file of `others`, under whatever name: *other is that; or NULL. */
const char *source_paths_shared(char *const *paths, char *const *others, const char **other);

#endif
