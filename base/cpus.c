#define _GNU_SOURCE
#include "base/cpus.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/groups.h"

#define MASK_CPUS_MAX 65536 /* far beyond what a kernel is built for */

/* Tries larger and larger sets: the kernel refuses one that is smaller than its own. */
static unsigned in_mask(void) {
    unsigned count = 0;
    for (int cpus = CPU_SETSIZE; !count && cpus <= MASK_CPUS_MAX; cpus *= 2) {
        size_t size = CPU_ALLOC_SIZE((size_t)cpus);
        cpu_set_t *set = CPU_ALLOC((size_t)cpus);
        if (set && sched_getaffinity(0, size, set) == 0)
            count = (unsigned)CPU_COUNT_S(size, set);
        CPU_FREE(set);
    }
    return count ? count : 1;
}

/* How many CPUs' worth of time one group may use; 0: no limit. Version 2 of control groups has the
 * file cpu.max with "QUOTA PERIOD" or "max PERIOD"; version 1 has a file for each number, and a
 * quota of −1 means no limit. */
static double quota_of(const char *folder) {
    double quota = 0, period = 0;
    char *text = groups_text(folder, "cpu.max");
    if (sscanf(text, "%lf %lf", &quota, &period) != 2) {
        quota = groups_number(folder, "cpu.cfs_quota_us");
        period = groups_number(folder, "cpu.cfs_period_us");
    }
    free(text);
    return quota > 0 && period > 0 ? quota / period : 0;
}

unsigned cpus_quota(const char *root, const char *groups) {
    double least = groups_least(root, groups, "cpu", quota_of);
    return least > 0 && least < 1 ? 1 : (unsigned)least;
}

unsigned cpus_usable(void) {
    char *groups = groups_own();
    unsigned masked = in_mask(), quota = cpus_quota(GROUPS_ROOT, groups);
    free(groups);
    return quota && quota < masked ? quota : masked;
}
