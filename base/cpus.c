#define _GNU_SOURCE
#include "base/cpus.h"

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"

#define MASK_CPUS_MAX 65536 /* far beyond what a kernel is built for */
#define TEXT_BYTES_MAX 65536

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

/* The text of a small file, "" if it cannot be read. Free it. */
static char *text_of(const char *path) {
    char *text;
    size_t length;
    if (file_read(path, TEXT_BYTES_MAX, &text, &length) == 0)
        return text;
    error_clear();
    return memory_copy_string("");
}

static double number_in(const char *folder, const char *name) {
    char *path = path_join(folder, name);
    char *text = text_of(path);
    double number = strtod(text, NULL);
    free(text);
    free(path);
    return number;
}

/* How many CPUs' worth of time one group may use; 0: no limit. Version 2 of control groups has the
 * file cpu.max with "QUOTA PERIOD" or "max PERIOD"; version 1 has a file for each number, and a
 * quota of −1 means no limit. */
static double quota_of(const char *folder) {
    double quota = 0, period = 0;
    char *path = path_join(folder, "cpu.max");
    char *text = text_of(path);
    if (sscanf(text, "%lf %lf", &quota, &period) != 2) {
        quota = number_in(folder, "cpu.cfs_quota_us");
        period = number_in(folder, "cpu.cfs_period_us");
    }
    free(text);
    free(path);
    return quota > 0 && period > 0 ? quota / period : 0;
}

static double smaller(double a, double b) {
    return a > 0 && (!(b > 0) || a < b) ? a : b;
}

/* The least quota of a group ("/a/b") and of all groups above it. Within a container the group's
 * folder may be missing: then `root` itself is the container's group. */
static double quota_up(const char *root, const char *group, size_t length) {
    double least = 0;
    char *folder = memory_format("%s%.*s", root, (int)length, group);
    for (size_t end = strlen(folder); end >= strlen(root); end--)
        if (end == strlen(root) || folder[end] == '/' || !folder[end]) {
            folder[end] = '\0';
            least = smaller(quota_of(folder), least);
        }
    free(folder);
    return least;
}

/* Whether "cpu" is among the controllers of a line of version 1: "cpu,cpuacct". */
static bool has_cpu(const char *controllers, size_t length) {
    for (const char *at = controllers; at < controllers + length; at += strcspn(at, ",:") + 1)
        if (strncmp(at, "cpu,", 4) == 0 || strncmp(at, "cpu:", 4) == 0)
            return true;
    return false;
}

unsigned cpus_quota(const char *root, const char *groups) {
    double least = 0;
    for (const char *line = groups; *line; line += strcspn(line, "\n"), line += *line != 0) {
        const char *controllers = strchr(line, ':');
        const char *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group || group > line + strcspn(line, "\n"))
            continue;
        size_t names = (size_t)(group - controllers - 1), length = strcspn(group + 1, "\n");
        if (names && !has_cpu(controllers + 1, names))
            continue;
        char *mount = names ? memory_format("%s/%.*s", root, (int)names, controllers + 1)
                            : memory_copy_string(root);
        least = smaller(quota_up(mount, group + 1, length), least);
        free(mount);
    }
    return least > 0 && least < 1 ? 1 : (unsigned)least;
}

unsigned cpus_usable(void) {
    char *groups = text_of("/proc/self/cgroup");
    unsigned masked = in_mask(), quota = cpus_quota("/sys/fs/cgroup", groups);
    free(groups);
    return quota && quota < masked ? quota : masked;
}
