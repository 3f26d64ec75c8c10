/* How much memory and how many CPUs this process may use, and whether somebody was killed for want
 * of memory. Limits of the process, of its control group (a container, a service, a batch job) and
 * of the machine count together. */
#ifndef DML_BASE_RESOURCES_H
#define DML_BASE_RESOURCES_H

#include <stdint.h>

struct memory_limit {
    double bytes;    /* infinity: none */
    const char *set; /* where, in words: "ulimit -v" */
};

/* For this process, and each that it starts: addresses, or data. */
struct memory_limit memory_limit_of_process(void);

/* For all processes of this control group, or of this machine: what is available of it now. */
struct memory_limit memory_limit_of_all(void);

/* The least limit of the groups alone, in bytes; 0: none. `groups` is the text of
 * /proc/self/cgroup; the limits of its groups and of the groups above them are read below `root`
 * (/sys/fs/cgroup). */
double memory_limit_of_groups(const char *root, const char *groups);

/* How many processes of this control group, or of the machine if that does not say, the system has
 * killed so far because memory had run out. */
uint64_t memory_kills(void);

/* The count of the groups alone. */
uint64_t memory_kills_of_groups(const char *root, const char *groups);

/* "1.4 GB". Valid until the fourth next call. */
const char *memory_words(double bytes);

/* ERROR_UNAVAILABLE if not even a small run would have the memory that it takes: libraries that
 * allocate by themselves would end the process without a word. Ask before anything is begun. */
int memory_suffices(void);

/* The CPUs that this process may use: those of the affinity mask, or fewer if a control group (a
 * container, a service, a batch job) may use less time than that. At least 1; part of a CPU does
 * not count. */
unsigned cpus_usable(void);

/* The quota of the groups alone, in whole CPUs; 0: no limit. */
unsigned cpus_quota(const char *root, const char *groups);

#endif
