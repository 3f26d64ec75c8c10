/* How many CPUs this process may use: the only place that counts them. */
#ifndef DML_BASE_CPUS_H
#define DML_BASE_CPUS_H

/* The CPUs of the affinity mask, or fewer if a control group (a container, a service, a batch job)
 * may use less time than that. At least 1; part of a CPU does not count. */
unsigned cpus_usable(void);

/* The quota alone of the groups that `groups` names, the text of /proc/self/cgroup, and of those
 * above them, as the file systems below `root` (/sys/fs/cgroup) have it; 0 if there is none. */
unsigned cpus_quota(const char *root, const char *groups);

#endif
