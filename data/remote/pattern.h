/* Patterns of paths over several folders: a component `**` stands for any number of folders, also
 * for none. Where it is the last, the pattern means all files of data below a folder. Wildcards
 * never stand for a name that begins with a dot, nor `**` and those beside it for one that begins
 * with an underscore, as programs name what is not data; but a folder _KEY=VALUE is data. Pure. */
#ifndef DML_DATA_REMOTE_PATTERN_H
#define DML_DATA_REMOTE_PATTERN_H

#include <stdbool.h>

/* Whether a component of the pattern is `**`. */
bool pattern_is_deep(const char *pattern);

/* Whether the last one is. */
bool pattern_is_whole(const char *pattern);

/* Whether a path fits a deep pattern; both are relative to the same folder. */
bool pattern_fits(const char *pattern, const char *path);

/* Whether a path below this folder may fit. */
bool pattern_leads(const char *pattern, const char *folder);

/* Whether a file of this path is one of data by its name: it ends as those of the formats that are
 * read do, or has no ending, as part-00000 has none. */
bool pattern_takes_name(const char *path);

/* For qsort() of an array of paths: by their bytes, whatever the locale. */
int compare_paths(const void *a, const void *b);

#endif
