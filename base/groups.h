/* Control groups: the limits of containers, services and batch jobs. */
#ifndef DML_BASE_GROUPS_H
#define DML_BASE_GROUPS_H

#define GROUPS_ROOT "/sys/fs/cgroup"

/* The text of /proc/self/cgroup. Free it. */
char *groups_own(void);

/* A value of the group whose folder that is; 0: none. */
typedef double groups_value(const char *folder);

/* The least value above 0 of the groups that `groups` (groups_own()) names for a controller, and of
 * all groups above these; 0: there is none. Version 2 has one hierarchy at `root`, version 1 one a
 * controller below it. */
double groups_least(const char *root, const char *groups, const char *controller,
                    groups_value *value);

/* The first value above 0 upwards from the group itself. */
double groups_nearest(const char *root, const char *groups, const char *controller,
                      groups_value *value);

/* The text of a file of a group, "" if it cannot be read. Free it. */
char *groups_text(const char *folder, const char *name);

/* The number that it begins with, or 0. */
double groups_number(const char *folder, const char *name);

#endif
