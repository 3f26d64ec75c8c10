/* The files below a folder. */
#ifndef DML_DATA_REMOTE_FOLDER_WALK_H
#define DML_DATA_REMOTE_FOLDER_WALK_H

/* The files below `folder` (which ends with a slash, or is "": the current one) whose paths from
 * there fit the pattern (data/remote/pattern.h), sorted bytewise; *paths is NULL-terminated and may
 * have none, free with names_free(). A whole pattern takes files of data alone by their names, and
 * warns of others. Job files (*.conf), unless the pattern ends so, and the state folders of jobs
 * below `folder` are passed over. Links are followed, but not into a folder that the walk is in.
 * ERROR_IO or ERROR_PERMISSION for a folder that cannot be looked into, and for a link that leads
 * nowhere and fits. */
int folder_walk(const char *folder, const char *pattern, char ***paths);

/* Warns of files that a whole pattern passes over by their names; none: says nothing. */
void folder_warn_of_others(const char *pattern, const char *first, unsigned long long count);

#endif
