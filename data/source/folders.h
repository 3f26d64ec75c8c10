/* Columns that the folders KEY=VALUE of a file's path give. */
#ifndef DML_DATA_SOURCE_FOLDERS_H
#define DML_DATA_SOURCE_FOLDERS_H

#include <stdbool.h>

struct source_options;
struct source_beside;

/* A column that a folder gives: all rows of the file have this cell. */
struct source_folder {
    char *name, *value; /* the value is "" where it is missing */
    bool texts;         /* of some file of the list it is neither a number nor missing */
};

/* Which folders are columns. AUTO: those whose values differ among the files that are trained on,
 * and those that other options name or `order` has. ALL: also those of one value. */
enum csv_folders { CSV_FOLDERS_AUTO, CSV_FOLDERS_ALL, CSV_FOLDERS_NONE, CSV_FOLDERS };

struct folder_options {
    enum csv_folders which;             /* for source_find_folders() */
    const struct source_folder *column; /* after those of the file, in the order of the path; the
                                           last has no name. NULL: none. Those that neither the
                                           known table nor `carried` has do not count */
    const char *differ;                 /* why there are none, and the file is refused; or NULL */
};

/* Finds the columns that the folders of files give: of each path from the end of `base` on, if it
 * begins so. Names and values are percent-decoded; __HIVE_DEFAULT_PARTITION__ is a missing value.
 * `trained`: the files are those that are trained on, and decide together which folders are
 * columns; each of them must have all, unless the options say that columns may be missing. Of other
 * files all folders are found. */
void source_find_folders(const char *base, char *const *paths, const struct source_options *options,
                         bool trained, struct source_beside *beside);

/* Whether a folder gives a column of this name. */
bool source_has_folder(const struct folder_options *folders, const char *name);

#endif
