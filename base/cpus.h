/* How many CPUs this process may use: the only place that counts them. */
#ifndef DML_BASE_CPUS_H
#define DML_BASE_CPUS_H

/* The CPUs of the affinity mask, or fewer if a control group (a container, a service, a batch job)
 * may use less time than that. At least 1; part of a CPU does not count. */
unsigned cpus_usable(void);

/* The quota alone, in whole CPUs; 0: no limit. `groups` is the text of /proc/self/cgroup; the
 * quotas of its groups and of the groups above them are read below `root` (/sys/fs/cgroup). */
unsigned cpus_quota(const char *root, const char *groups);

#endif
